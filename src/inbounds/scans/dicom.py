"""DICOM: one series of a folder, or one file with several frames, through SimpleITK and GDCM.

Rescale slope and intercept are applied. A mask is written as NIfTI, NRRD or MetaImage in the same place in space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import open_file
from inbounds.scans.format import DEFLATE, Scan, Shape, Voxels, blaming, by, check_room, opening
from inbounds.scans.gdcm import Damaged, Gdcm, Information
from inbounds.scans.itk import ItkGeometry, check_geometry

SUFFIXES = (".dcm",)
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
    with Gdcm(path) as gdcm:
        found = _series(path, gdcm)
    files, heads = tuple(found), tuple(found.values())
    first = heads[0]
    for file, head in found.items():
        if head.components != 1:
            raise BadInput(f"{file}: the pixels are colours; export the series in shades of gray")
        if head.size != first.size:
            raise BadInput(
                f"{file}: its size {by(head.size)} differs from {by(first.size)} in {files[0]}; "
                "keep one series of equal slices in the folder"
            )
    geometry, notes = _stack(path, files, heads)
    shape, spacing = check_geometry(path, geometry)
    # Slices with slopes of their own, some of them whole numbers: the first slice must not decide.
    dtypes = {_dtype(file, head) for file, head in found.items()}
    kind, dtype = ("", dtypes.pop()) if len(dtypes) == 1 else ("sitkFloat32", np.dtype(np.float32))
    check_room(path, math.prod(shape) * dtype.itemsize, sum(file.stat().st_size for file in files), DEFLATE)
    load = partial(_load, path, files, shape, dtype, kind)
    width = dtype.itemsize * (1 if len(files) > 1 else 3)  # a single file is held twice more where GDCM reads it
    return Scan(path, shape, spacing, geometry, files, notes, load, width=width)


def _series(path: Path, gdcm: Gdcm) -> dict[Path, Information]:
    """The files of the series, in the order of their positions, and what they say."""
    if not path.is_dir():
        opening(path)
        given = _information(path, gdcm)
        others = sorted(path.parent.iterdir()) if given.series else []
    else:
        given, others = None, sorted(path.iterdir())
    series: dict[str, dict[Path, Information]] = {}
    bad: list[Path] = []
    for file in others:
        if file.is_dir() or file.name.startswith("."):
            continue
        try:
            head = gdcm.information(file)
        except (Damaged, OSError):
            if file.suffix.lower() == ".dcm":
                bad.append(file)
            continue
        series.setdefault(head.series, {})[file] = head
    if given is not None:
        return _sorted(series.get(given.series, {})) or {path: given}
    if not series:
        raise BadInput(f"{path}: no DICOM series can be read from this folder; give the folder that holds the slices")
    if len(series) > 1:
        raise BadInput(
            f"{path}: the folder holds {len(series)} series ({', '.join(sorted(series)[:8])}"
            f"{', ...' * (len(series) > 8)}); give one file of the series that you want, or keep one series in each "
            "folder"
        )
    for file in bad:
        opening(file)
        raise BadInput(f"{file}: this slice cannot be read as DICOM; copy it again, or remove it from the folder")
    return _sorted(*series.values())


def _information(file: Path, gdcm: Gdcm) -> Information:
    with blaming(file, "this cannot be read as a DICOM image", Damaged):
        return gdcm.information(file)


def _sorted(series: dict[Path, Information]) -> dict[Path, Information]:
    """Along the normal of the first file's plane; files at one place stay in the order of their names."""
    if not series:
        return series
    direction = np.reshape(next(iter(series.values())).direction, (3, 3))
    normal = np.cross(direction[:, 0], direction[:, 1])
    return dict(sorted(series.items(), key=lambda item: float(np.dot(item[1].origin, normal))))


def _stack(path: Path, files: Sequence[Path], heads: Sequence[Information]) -> tuple[ItkGeometry, tuple[str, ...]]:
    """The geometry of slices put one upon the other, from the positions that they state."""
    first = heads[0]
    size, steps, direction = first.size, first.spacing, np.reshape(first.direction, (3, 3))
    if len(heads) == 1:
        return ItkGeometry(size, steps, first.origin, first.direction), ()
    if size[2] > 1:
        raise BadInput(f"{path}: a series of {len(files)} files with {size[2]} frames each; give each file as a scan")
    for file, head in zip(files, heads, strict=True):
        if not np.allclose(np.reshape(head.direction, (3, 3)), direction, atol=1e-3):
            raise BadInput(
                f"{file}: it is oriented differently from {files[0]}; keep one stack of slices in the folder"
            )
    origins = np.array([head.origin for head in heads])
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


def _dtype(path: Path, head: Information) -> np.dtype[np.generic]:
    """The numbers that voxels are once slope and intercept are applied."""
    bits, _, name = head.pixel.partition("-bit ")
    kind = {"signed integer": "i", "unsigned integer": "u", "float": "f"}.get(name)
    if kind is None or not bits.isdigit():
        raise BadInput(f"{path}: the voxels are of the type {head.pixel!r}; save the scan as whole or real numbers")
    return np.dtype(f"{kind}{int(bits) // 8}")


def _load(
    path: Path, files: tuple[Path, ...], shape: Shape, dtype: np.dtype[np.generic], kind: str, _labels: bool
) -> Voxels:
    array, each = np.empty(shape, dtype), shape[0] // len(files)
    with Gdcm(path) as gdcm:
        for number, file in enumerate(files):
            with blaming(file, "the pixels cannot be read", Damaged):
                gdcm.read(file, array[number * each : (number + 1) * each], kind)
    return array
