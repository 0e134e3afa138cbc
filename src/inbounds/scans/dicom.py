"""DICOM: one series of a folder, or one file with several frames, through SimpleITK and GDCM.

Rescale slope and intercept are applied. A mask is written as NIfTI, NRRD or MetaImage in the same place in space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import open_file, regular
from inbounds.scans.format import DEFLATE, Scan, Voxels, blaming, by, check_room, opening
from inbounds.scans.itk import ItkGeometry, check_geometry, reader_of, toolkit

SUFFIXES = (".dcm",)
_SERIES = "0020|000e"
_JITTER = 0.1  # of the usual distance between slices: scanners round positions, a missing slice doubles one


def is_dicom(path: Path) -> bool:
    """Whether a file carries the mark of DICOM behind its preamble; many such files have no suffix."""
    try:
        with open_file(path) as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def header(path: Path) -> Scan:
    """Read the header of every file of the series that `path`, a folder or one of its files, stands for."""
    files = _series(path)
    readers = [_information(file) for file in files]
    first = readers[0]
    for file, reader in zip(files, readers, strict=True):
        if reader.GetNumberOfComponents() != 1:
            raise BadInput(f"{file}: the pixels are colours; export the series in shades of gray")
        if reader.GetSize() != first.GetSize():
            raise BadInput(
                f"{file}: its size {by(reader.GetSize())} differs from {by(first.GetSize())} in {files[0]}; "
                "keep one series of equal slices in the folder"
            )
    geometry, notes = _stack(path, files, readers)
    shape, spacing = check_geometry(path, geometry)
    promised = math.prod(geometry.size) * width(files[0], first)
    check_room(path, promised, sum(file.stat().st_size for file in files), DEFLATE)
    mixed = len({reader.GetPixelID() for reader in readers}) > 1
    return Scan(path, shape, spacing, geometry, files, notes, partial(_load, path, files, shape, mixed))


def _series(path: Path) -> tuple[Path, ...]:
    """The files of the series, in the order of their positions."""
    reader = toolkit(path).ImageSeriesReader
    if not path.is_dir():
        opening(path)
        information = _information(path)
        if not information.HasMetaDataKey(_SERIES):
            return (path,)
        folder, series = path.parent, information.GetMetaData(_SERIES).strip(" \0")
    else:
        for file in path.iterdir():
            regular(file)  # GDCM opens whatever lies there
        folder, uids = path, reader.GetGDCMSeriesIDs(str(path))
        if not uids:
            raise BadInput(
                f"{path}: no DICOM series can be read from this folder; give the folder that holds the slices"
            )
        if len(uids) > 1:
            raise BadInput(
                f"{path}: the folder holds {len(uids)} series ({', '.join(uids[:8])}{', ...' * (len(uids) > 8)}); "
                "give one file of the series that you want, or keep one series in each folder"
            )
        series = uids[0]
    with blaming(path, f"its series UID is {series!r}", RuntimeError, TypeError):
        files = tuple(Path(name) for name in reader.GetGDCMSeriesFileNames(str(folder), series))
    if path.is_dir():
        names = {file.name for file in files}
        for file in sorted(folder.iterdir()):
            if file.suffix.lower() == ".dcm" and file.name not in names and not file.name.startswith("."):
                opening(file)
                raise BadInput(
                    f"{file}: this slice cannot be read as DICOM; copy it again, or remove it from the folder"
                )
    return files or (path,)


def _information(file: Path) -> Any:
    reader = reader_of(file, "GDCMImageIO")
    with blaming(file, "this cannot be read as a DICOM image", RuntimeError):
        reader.ReadImageInformation()
    return reader


def _stack(path: Path, files: Sequence[Path], readers: Sequence[Any]) -> tuple[ItkGeometry, tuple[str, ...]]:
    """The geometry of slices put one upon the other, from the positions that they state."""
    first = readers[0]
    size, steps, direction = first.GetSize(), first.GetSpacing(), np.reshape(first.GetDirection(), (3, 3))
    if len(readers) == 1:
        return ItkGeometry(size, steps, first.GetOrigin(), first.GetDirection()), ()
    if size[2] > 1:
        raise BadInput(f"{path}: a series of {len(files)} files with {size[2]} frames each; give each file as a scan")
    for file, reader in zip(files, readers, strict=True):
        if not np.allclose(np.reshape(reader.GetDirection(), (3, 3)), direction, atol=1e-3):
            raise BadInput(
                f"{file}: it is oriented differently from {files[0]}; keep one stack of slices in the folder"
            )
    origins = np.array([reader.GetOrigin() for reader in readers])
    gaps = np.diff(origins @ np.cross(direction[:, 0], direction[:, 1]))
    usual = float(np.sort(gaps)[(len(gaps) - 1) // 2])  # of two, the smaller: the other spans what is missing
    worst = int(np.argmax(np.abs(gaps - usual)))
    if np.min(np.abs(gaps)) < 1e-3:
        again = int(np.argmin(np.abs(gaps)))
        raise BadInput(
            f"{path}: {files[again].name} and {files[again + 1].name} lie at the same position; "
            "if these are several phases or echoes, give each its own folder"
        )
    if abs(gaps[worst] - usual) > _JITTER * abs(usual):
        raise BadInput(
            f"{path}: slices are {abs(usual):.3g} mm apart, but {abs(gaps[worst]):.3g} mm between {files[worst].name} "
            f"and {files[worst + 1].name}; add the missing slices, or resample the series to even spacing"
        )
    notes: tuple[str, ...] = ()
    if abs(gaps[worst] - usual) > 0.01 * abs(usual):
        notes = (f"{path}: slices are {gaps.min():.4g} to {gaps.max():.4g} mm apart; their mean is used",)
    step = (origins[-1] - origins[0]) / (len(origins) - 1)
    between = float(np.linalg.norm(step))
    matrix = np.column_stack([direction[:, 0], direction[:, 1], step / between])
    place = tuple(float(value) for value in origins[0])
    turned = tuple(float(value) for value in matrix.ravel())
    return ItkGeometry((*size[:2], len(files)), (*steps[:2], between), place, turned), notes


def _load(path: Path, files: tuple[Path, ...], shape: tuple[int, int, int], mixed: bool, _labels: bool) -> Voxels:
    itk = toolkit(path)
    reader = itk.ImageSeriesReader()
    reader.SetImageIO("GDCMImageIO")
    reader.SetFileNames([str(file) for file in files])
    if mixed:  # slices with slopes of their own, some of them whole numbers: the first slice must not decide
        reader.SetOutputPixelType(itk.sitkFloat32)
    with blaming(path, "the pixels cannot be read", RuntimeError):
        image = reader.Execute()
    array: Voxels = itk.GetArrayFromImage(image).reshape(shape)
    return array


def width(path: Path, reader: Any) -> int:
    """The bytes of one voxel; complex numbers are refused."""
    name = str(toolkit(path).GetPixelIDValueAsString(reader.GetPixelID()))
    words = name.split("-bit ")
    if "complex" in name or len(words) != 2 or not words[0].isdigit():
        raise BadInput(f"{path}: the voxels are of the type {name!r}; save the scan as whole or real numbers")
    return int(words[0]) // 8
