"""A scan in any format a hospital or a challenge may give, and a mask written back exactly over it.

Whatever the format, an array is `(slices, rows, columns)`: the file's own axes in reverse, so that slice `k` is index
`k` of the file's last axis. Nothing is turned or resampled on the way in, so nothing has to be turned back on the way
out.

| format | suffix | mask |
|---|---|---|
| NIfTI | `.nii.gz`, `.nii` | NIfTI with the scan's own header |
| MetaImage | `.mhd` + data, `.mha` | MetaImage, NRRD or NIfTI |
| NRRD | `.nrrd`, `.nhdr` + data | NRRD, MetaImage or NIfTI |
| DICOM series | a folder, or one file of the series | NIfTI, NRRD or MetaImage in the same place in space |
| pictures | `.png`, `.tif`, `.tiff`, or a folder of them | the same, under the same names |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput
from inbounds.memory import require
from inbounds.scans import dicom, metaimage, nifti, nrrd, pictures
from inbounds.scans.format import Mask, Scan, Voxels, by
from inbounds.writing import put, workspace

_FORMATS = (nifti, metaimage, nrrd, pictures, dicom)
_READERS: dict[str, Callable[[Path], Scan]] = {name: form.header for form in _FORMATS for name in form.SUFFIXES}
SUFFIXES = tuple(_READERS)
_NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What names of scans do not have: control characters, and bytes that are not UTF-8."""


def stem(path: Path) -> str:
    """The name without the suffix of its format: `patient001` for `patient001.nii.gz`; the whole name of a folder.

    Raises:
        BadInput: It is no text, such as a name in another encoding than UTF-8: no table could hold it.
    """
    if _NO_TEXT.search(path.name):
        raise BadInput(f"{path.parent}: the name {path.name!r} is not text in UTF-8 on one line; rename the file")
    return path.name if path.is_dir() else path.name[: len(path.name) - len(_suffix(path))]


def is_scan(path: Path) -> bool:
    """Whether the name, or for DICOM and folders the content, says that this is a scan; it may still be a bad one.

    A folder is a scan when pictures or DICOM files lie directly in it. Hidden files never count.
    """
    return not path.name.startswith(".") and _reader(path) is not None


def is_series(path: Path) -> bool:
    """Whether a scan is read as DICOM."""
    return _reader(path) is dicom.header


def header(path: Path) -> Scan:
    """What a scan says about itself, without reading its voxels: cheap enough for a first pass over a data set.

    Raises:
        BadInput: For everything that can be known to be wrong without looking at the voxels.
    """
    if reader := _reader(path):
        scan = reader(path)
        what = f"{path}: a scan of {by(scan.shape)} voxels (slices, rows, columns)"
        require(scan.size, what, "correct its header if it is not as large, or cut or resample the scan")
        return scan
    if path.is_dir():
        raise BadInput(
            f"{path}: the folder holds neither pictures nor DICOM files; give a scan, such as a .nii.gz file"
        )
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or folder; check the name")
    raise BadInput(f"{path}: not a scan by its name; known are {', '.join(SUFFIXES)}: convert it or correct the name")


def read(path: Path) -> Scan:
    """Read an image. Its voxels are finite and not all the same.

    Raises:
        BadInput: Naming the file, what is wrong with it and the remedy.
    """
    return filled(header(path))


def filled(head: Scan) -> Scan:
    """The same scan with its voxels, of which only the header was read."""
    path, array = head.path, head.load(False)
    low, high = array.min(), array.max()  # both are NaN if any voxel is
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = ~np.isfinite(array)
        index = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), array.shape))
        raise BadInput(
            f"{path}: {int(bad.sum()):,} voxels are NaN or infinite, the first at (slice, row, column) {index}; "
            "replace them, for instance by the value of the background"
        )
    if low == high:
        raise BadInput(f"{path}: every voxel is {low}: nothing to learn from; check that this is the scan you meant")
    return replace(head, voxels=array)


def read_labels(path: Path) -> Scan:
    """Read a label map: whole numbers in the smallest type that holds them, which is mostly uint8.

    Floating-point files are accepted where each voxel is within 0.001 of a whole number, as some tools store labels
    with a scale factor.

    Raises:
        BadInput: Naming the file, what is wrong with it and the remedy.
    """
    scan = header(path)
    return replace(scan, voxels=_whole(path, scan.load(True)))


def write_mask(mask: Mask, like: Scan, path: Path, *, overwrite: bool = False) -> None:
    """Write a mask that overlays a scan exactly; the table above says in which formats.

    It is written aside and then renamed, so a half-written mask never bears this name. An existing file is replaced; an
    existing folder with something in it only if that is asked for.

    Raises:
        BadInput: If `path` cannot hold the mask of such a scan.
        OSError: If the disk does not take it.
    """
    if mask.shape != like.shape or mask.dtype != np.uint8:
        raise ValueError(
            f"a mask for {like.path} must be uint8 of shape {like.shape}, not {mask.dtype} of {mask.shape}"
        )
    like.geometry.check(path)
    if path.exists() and path.samefile(like.path):
        raise BadInput(f"{path}: the mask would replace the scan itself; give it another name")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise BadInput(f"{path}: this folder exists and is not empty; give another name or remove it")
    with workspace(path) as space:
        part = space / path.name
        try:
            like.geometry.write(mask, part)
        except OSError as error:
            raise OSError(
                f"{path}: the mask could not be written ({error}); make room, or choose another place"
            ) from error
        # Not every library notices a full disk, so look before the name is given.
        if not _reads_back(mask, part):
            raise OSError(f"{path}: the mask could not be written in full; make room, or choose another place")
        if part.is_dir():
            put(part, path)
        for file in sorted(space.iterdir(), key=lambda file: file == part):  # the header after its data
            file.replace(path.parent / file.name)


def same_geometry(first: Scan, second: Scan) -> list[str]:
    """Check that two files describe the same voxels, such as a scan and its mask.

    Returns:
        A sentence for each sign that they do not lie in the same place although their shapes agree: voxel sizes that
        differ by more than 1 %, or corners more than half a voxel apart. Empty when all is well.

    Raises:
        BadInput: If their shapes differ.
    """
    if first.shape != second.shape:
        raise BadInput(
            f"{second.path}: its shape (slices, rows, columns) {second.shape} differs from {first.shape} of "
            f"{first.path}; a mask must be drawn on the scan's own grid: export it again, or resample it with nearest "
            "neighbours"
        )
    signs = []
    if not np.allclose(first.spacing, second.spacing, rtol=0.01, atol=0):
        signs.append(f"{second.path}: the spacing {second.spacing} mm differs from {first.spacing} mm of {first.path}")
    here, there = first.geometry.affine, second.geometry.affine
    if here is not None and there is not None:
        slices, rows, columns = first.shape
        corners = np.array([(c, r, s, 1) for c in (0, columns - 1) for r in (0, rows - 1) for s in (0, slices - 1)])
        apart = float(np.linalg.norm((corners @ (here - there).T)[:, :3], axis=1).max())
        if apart > 0.5 * min(first.spacing):
            signs.append(f"{second.path}: its corners lie up to {apart:.3g} mm away from those of {first.path}")
    return signs


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _reader(path: Path) -> Callable[[Path], Scan] | None:
    """By the name of a file; by what is inside where it has no suffix, or is a folder, of DICOM files or pictures."""
    if not path.is_dir():
        if suffix := _suffix(path):
            return _READERS[suffix]
        return dicom.header if path.is_file() and dicom.is_dicom(path) else None
    files = [file for file in path.iterdir() if not file.name.startswith(".") and file.is_file()]
    suffixes = {_suffix(file) for file in files}
    if ".dcm" in suffixes or any(dicom.is_dicom(file) for file in files if not _suffix(file)):
        return dicom.header
    return None if suffixes.isdisjoint(pictures.SUFFIXES) else pictures.header


def _whole(path: Path, array: Voxels) -> Voxels:
    if array.dtype.kind == "f":
        for number, one in enumerate(array):
            rounded = np.rint(one)
            with np.errstate(invalid="ignore"):
                bad = ~(np.abs(one - rounded) <= 1e-3)
            if bad.any():
                index = (number, *(int(i) for i in np.unravel_index(int(bad.argmax()), one.shape)))
                raise BadInput(
                    f"{path}: a label is {one[index[1:]]:g} at (slice, row, column) {index}, which is not a whole "
                    "number; give a label map, not probabilities or an image, and resample masks by nearest neighbours"
                )
            one[:] = rounded
    low, high = int(array.min()), int(array.max())
    for kind in (np.uint8, np.int16, np.int32, np.int64):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return array.astype(kind, copy=False)
    raise BadInput(f"{path}: labels run from {low} to {high}; give a label map with small whole numbers")


def _reads_back(mask: Mask, path: Path) -> bool:
    try:
        written = read_labels(path).array
        return written.shape == mask.shape and all(map(np.array_equal, written, mask))
    except BadInput:
        return False
