"""DICOM: one series of a folder, or one file with several frames, through SimpleITK and GDCM.

Frames that have places of their own (enhanced objects) are read with pydicom. Rescale slope and intercept are applied.
A mask is written as NIfTI, NRRD or MetaImage in the same place in space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float

from inbounds.errors import BadInput
from inbounds.reading import open_file
from inbounds.scans.format import DEFLATE, Scan, Shape, Voxels, blaming, by, check_room, opening
from inbounds.scans.gdcm import Damaged, Gdcm, Information, NoImage
from inbounds.scans.itk import ItkGeometry, check_geometry

SUFFIXES = (".dcm",)
_JITTER = 0.1  # of the usual distance between slices: scanners round positions, a missing slice doubles one
_TILT = 0.01  # of the distance between slices, sideways: half a degree


def is_dicom(path: Path) -> bool:
    """Whether a file carries the mark of DICOM behind its preamble; many such files have no suffix.

    The table of contents of a disc, `DICOMDIR`, is no image.
    """
    if path.name.upper() == "DICOMDIR":
        return False
    try:
        with open_file(path) as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def header(path: Path) -> Scan:
    """Read the header of every file of the series that `path`, a folder or one of its files, stands for."""
    with Gdcm(path) as gdcm:
        found = _sorted(_series(path, gdcm))
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
    order: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    if len(files) > 1 and first.size[2] > 1:
        raise BadInput(f"{path}: a series of {len(files)} files with {first.size[2]} frames each; give each file alone")
    if first.places:
        order = tuple(int(place) for place in np.argsort(_along(first, first.places), kind="stable"))
        names = [f"frame {frame + 1}" for frame in order]
        geometry, notes = _stack(path, names, first, np.array(first.places)[list(order)])
    elif len(files) > 1:
        _check_alike(found)
        geometry, notes = _stack(path, [f.name for f in files], first, np.array([head.origin for head in heads]))
    else:
        geometry = ItkGeometry(first.size, first.spacing, first.origin, first.direction)
    shape, spacing = check_geometry(path, geometry)
    # Slices with slopes of their own, some of them whole numbers: the first slice must not decide.
    dtypes = {_dtype(file, head) for file, head in found.items()}
    kind, dtype = ("", dtypes.pop()) if len(dtypes) == 1 else ("sitkFloat32", np.dtype(np.float32))
    check_room(path, math.prod(shape) * dtype.itemsize, sum(file.stat().st_size for file in files), DEFLATE)
    load = partial(_load, path, files, shape, dtype, "frames" if order else kind, order)
    width = dtype.itemsize * (1 if len(files) > 1 else 3)  # a single file is held twice more where it is read
    return Scan(path, shape, spacing, geometry, files, notes, load, width=width, series=first.series, frames=order)


def series_in(folder: Path, gdcm: Gdcm) -> tuple[dict[str, dict[Path, Information]], dict[Path, str]]:
    """What lies directly in a folder: the files of each series, and why other files of DICOM cannot be read."""
    tells_apart = find_spec("pydicom") is not None  # what is damaged from what is no image
    series: dict[str, dict[Path, Information]] = {}
    bad: dict[Path, str] = {}
    for file in sorted(folder.iterdir()):
        if file.is_dir() or file.name.startswith(".") or file.name.upper() == "DICOMDIR":
            continue
        try:
            head = gdcm.information(file)
        except NoImage:
            continue
        except (Damaged, OSError) as error:
            if file.suffix.lower() == ".dcm" or (tells_apart and is_dicom(file)):
                last = (str(error).strip().splitlines() or [""])[-1].strip()
                bad[file] = last.replace(str(folder), "...")[:200]
            continue
        series.setdefault(head.series, {})[file] = head
    return series, bad


def _series(path: Path, gdcm: Gdcm) -> dict[Path, Information]:
    """The files of the series, and what they say."""
    if not path.is_dir():
        opening(path)
        given = _information(path, gdcm)
        alone = not given.series or given.size[2] > 1
        series, _ = ({}, {}) if alone else series_in(path.parent, gdcm)
        return series.get(given.series, {path: given})
    series, bad = series_in(path, gdcm)
    if not series:
        why = f" ({next(iter(bad.values()))})" if bad else ""
        raise BadInput(
            f"{path}: no DICOM series can be read from this folder{why}; give the folder that holds the slices"
        )
    for file, why in bad.items():
        opening(file)
        raise BadInput(
            f"{file}: this slice cannot be read as DICOM ({why}); copy it again, or remove it from the folder"
        )
    if len(series) > 1:
        raise BadInput(
            f"{path}: the folder holds {len(series)} series ({', '.join(sorted(series)[:8])}"
            f"{', ...' * (len(series) > 8)}); give one file of the series that you want, or keep one series in each "
            "folder"
        )
    return next(iter(series.values()))


def _information(file: Path, gdcm: Gdcm) -> Information:
    with blaming(file, "this cannot be read as a DICOM image", Damaged):
        return gdcm.information(file)


def _sorted(series: dict[Path, Information]) -> dict[Path, Information]:
    """Along the normal of the first file's plane; files at one place stay in the order of their names."""
    along = dict(
        zip(series, _along(next(iter(series.values())), [head.origin for head in series.values()]), strict=True)
    )
    return dict(sorted(series.items(), key=lambda item: along[item[0]]))


def _along(head: Information, places: Sequence[Sequence[float]]) -> list[float]:
    """How far places lie along the normal of a file's plane."""
    direction = np.reshape(head.direction, (3, 3))
    return [float(far) for far in np.array(places) @ np.cross(direction[:, 0], direction[:, 1])]


def _check_alike(found: Mapping[Path, Information]) -> None:
    """Refuse slices that are turned, or whose pixels are of another size."""
    (file, first), *others = found.items()
    for other, head in others:
        if not np.allclose(head.direction, first.direction, atol=1e-3):
            raise BadInput(f"{other}: it is oriented differently from {file}; keep one stack of slices in the folder")
        if not np.allclose(head.spacing[:2], first.spacing[:2], rtol=1e-3):
            raise BadInput(
                f"{other}: its pixels are {_pixel(head)}, those of {file} {_pixel(first)}; keep one stack of equal "
                "slices in the folder"
            )


def _pixel(head: Information) -> str:
    """The size of a pixel as text."""
    return " x ".join(f"{side:g}" for side in head.spacing[:2]) + " mm"


def _stack(
    path: Path, names: Sequence[str], first: Information, origins: Float[np.ndarray, "slices 3"]
) -> tuple[ItkGeometry, tuple[str, ...]]:
    """The geometry of slices put one upon the other, from the positions that they state."""
    direction = np.reshape(first.direction, (3, 3))
    normal = np.cross(direction[:, 0], direction[:, 1])
    gaps = np.diff(origins @ normal)
    usual = float(np.sort(gaps)[(len(gaps) - 1) // 2])  # of two, the smaller: the other spans what is missing
    worst = int(np.argmax(np.abs(gaps - usual)))
    if np.min(np.abs(gaps)) < 1e-3:
        again = int(np.argmin(np.abs(gaps)))
        raise BadInput(
            f"{path}: {names[again]} and {names[again + 1]} lie at the same position; "
            "if these are several phases or echoes, give each its own folder"
        )
    if abs(gaps[worst] - usual) > _JITTER * abs(usual):
        raise BadInput(
            f"{path}: slices are {abs(usual):.3g} mm apart, but {abs(gaps[worst]):.3g} mm between {names[worst]} "
            f"and {names[worst + 1]}; add the missing slices, or resample the series to even spacing"
        )
    step = (origins[-1] - origins[0]) / (len(origins) - 1)
    between = float(np.linalg.norm(step))
    sideways = np.linalg.norm(np.diff(origins, axis=0) - gaps[:, None] * normal, axis=1)
    tilt = float(np.linalg.norm(step - (step @ normal) * normal)) / between
    if tilt > _TILT or sideways.max() > max(_JITTER * abs(usual), min(first.spacing[:2])):
        angle = math.degrees(math.asin(min(1.0, tilt)))
        raise BadInput(
            f"{path}: each slice lies up to {sideways.max():.3g} mm aside of the one before, {angle:.1f} degrees on "
            "the whole, as with a tilted gantry; convert the series with a program that corrects the tilt, such as "
            "dcm2niix, and give what it writes"
        )
    notes: tuple[str, ...] = ()
    if abs(gaps[worst] - usual) > 0.01 * abs(usual):
        notes = (f"{path}: slices are {gaps.min():.4g} to {gaps.max():.4g} mm apart; their mean is used",)
    matrix = np.column_stack([direction[:, 0], direction[:, 1], step / between])
    place = tuple(float(value) for value in origins[0])
    turned = tuple(float(value) for value in matrix.ravel())
    return ItkGeometry((*first.size[:2], len(origins)), (*first.spacing[:2], between), place, turned), notes


def _dtype(path: Path, head: Information) -> np.dtype[np.generic]:
    """The numbers that voxels are once slope and intercept are applied."""
    bits, _, name = head.pixel.partition("-bit ")
    kind = {"signed integer": "i", "unsigned integer": "u", "float": "f"}.get(name)
    if kind is None or not bits.isdigit():
        raise BadInput(f"{path}: the voxels are of the type {head.pixel!r}; save the scan as whole or real numbers")
    return np.dtype(f"{kind}{int(bits) // 8}")


def _load(
    path: Path,
    files: tuple[Path, ...],
    shape: Shape,
    dtype: np.dtype[np.generic],
    kind: str,
    order: tuple[int, ...],
    _labels: bool,
) -> Voxels:
    array, each = np.empty(shape, dtype), shape[0] // len(files)
    with Gdcm(path) as gdcm:
        for number, file in enumerate(files):
            with blaming(file, "the pixels cannot be read", Damaged):
                gdcm.read(file, array[number * each : (number + 1) * each], kind)
    return array[list(order)] if order and list(order) != sorted(order) else array
