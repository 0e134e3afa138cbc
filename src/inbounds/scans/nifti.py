"""NIfTI-1 and NIfTI-2, compressed or not: nibabel reads the header, and a mask gets back the very same one.

The file's axes are columns, rows, slices in this order whatever directions of the body they run along.
"""

from __future__ import annotations

import gzip
import math
import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.data_file import read_block
from inbounds.scans.format import (
    DEFLATE,
    Affine,
    Mask,
    Plain,
    Scan,
    Voxels,
    blaming,
    check_grid,
    check_room,
    library,
    opening,
)

SUFFIXES = (".nii.gz", ".nii")
_MILLIMETRES = {1: 1000.0, 3: 0.001}  # the header's codes for metres and micrometres; anything else is mm


@dataclass(frozen=True)
class NiftiGeometry:
    """The bytes of the scan's header: affines, their codes, units and number of axes all go to the mask unchanged."""

    path: Path
    header: bytes

    @property
    def affine(self) -> Affine | None:
        """The sform where there is one, else the qform; `None` for a file without either."""
        header = _parse(self.path, self.header)
        if not (header["sform_code"] > 0 or header["qform_code"] > 0):
            return None
        return np.asarray(header.get_best_affine(), dtype=np.float64)

    def check(self, path: Path) -> None:
        """The mask is `.nii` or `.nii.gz` too."""
        if not path.name.lower().endswith(SUFFIXES):
            raise BadInput(f"{path}: the mask of a NIfTI scan ({self.path}) is NIfTI too; name it .nii.gz or .nii")

    def write(self, mask: Mask, path: Path) -> None:
        """Write a mask, compressed or not as its name says."""
        _store(_parse(self.path, self.header), mask, path)


def write_affine(mask: Mask, affine: Affine, path: Path) -> None:
    """Write a mask as NIfTI for a scan of another format: the affine is the sform, and the qform too if it fits."""
    nibabel = library("nibabel", path)
    header = nibabel.Nifti1Header() if max(mask.shape) < 1 << 15 else nibabel.Nifti2Header()
    header.set_data_shape(mask.shape[::-1])
    header.set_xyzt_units("mm")
    header.set_qform(affine, 1)
    header.set_sform(affine, 1)
    if not np.allclose(header.get_qform(), affine, atol=1e-3):
        header["qform_code"] = 0  # a sheared affine, which a rotation and three spacings cannot express
    _store(header, mask, path)


def header(path: Path) -> Scan:
    """Read what the file says, from its first few hundred bytes."""
    packed = opening(path).startswith(b"\x1f\x8b")  # gzip, whatever the name says
    damaged = blaming(path, "the data are cut short or damaged", EOFError, OSError, zlib.error)
    with damaged, gzip.open(path) if packed else path.open("rb") as file:
        start = file.read(540)
    blob = _own_bytes(path, start)
    parsed = _parse(path, blob)
    with _parsing(path):
        sizes = [int(size) for size in parsed.get_data_shape()]
        dtype = parsed.get_data_dtype()
        offset = int(parsed.get_data_offset())
        slope, inter = parsed.get_slope_inter()
        steps = [float(step) for step in parsed["pixdim"][1 : 1 + min(len(sizes), 3)]]
        unit = _MILLIMETRES.get(int(parsed["xyzt_units"]) % 8, 1.0)
    shape, spacing = check_grid(path, sizes, [step * unit or 1.0 for step in steps])
    if dtype.kind not in "iuf":
        kind = "complex" if dtype.kind == "c" else "colour"
        raise BadInput(f"{path}: the voxels are {kind} ({dtype}); save each component as a scan of its own")
    if offset < len(blob):
        raise BadInput(f"{path}: the voxels begin at byte {offset}, inside the header; export the scan again")
    promised, there = math.prod(sizes) * dtype.itemsize, path.stat().st_size
    if packed:
        check_room(path, offset + promised, there, DEFLATE)
    else:
        check_room(path, promised, max(0, there - offset))
    notes: tuple[str, ...] = ()
    if 0 in steps:
        notes = (f"{path}: the header gives a voxel spacing of 0, which means unknown; taken as 1 mm",)
    with _parsing(path):
        affine = np.asarray(parsed.get_best_affine())
    if not np.isfinite(affine).all():
        raise BadInput(f"{path}: the header's orientation (affine) holds NaN or infinity; export the scan again")
    sides = np.linalg.norm(affine[:3, : len(steps)], axis=0)
    placed = parsed["sform_code"] > 0 or parsed["qform_code"] > 0
    if placed and not notes and not np.allclose(sides, steps, rtol=0.01, atol=0):
        notes = (
            f"{path}: the header's spacing {steps} differs from its affine's {sides.round(4).tolist()}; "
            "the former is used",
        )
    scale = 1.0 if slope is None else slope, inter or 0.0
    load = partial(_load, path, packed, offset, dtype, shape, scale)
    plain = None if packed else Plain(path, offset, dtype, scale)
    width = dtype.itemsize * (1 if dtype.isnative else 2) + (0 if scale == (1.0, 0.0) else max(4, dtype.itemsize))
    return Scan(path, shape, spacing, NiftiGeometry(path, blob), (path,), notes, load, plain, width=width)


def _load(
    path: Path,
    packed: bool,
    offset: int,
    dtype: np.dtype[Any],
    shape: tuple[int, int, int],
    scale: tuple[float, float],
    _labels: bool,
) -> Voxels:
    begin, before = (0, offset) if packed else (offset, 0)
    array = read_block(path, begin, "gzip" if packed else "raw", dtype, shape, before)
    if dtype.itemsize > 8:
        array = array.astype(np.float64)
    if scale == (1.0, 0.0):
        return array
    wide = np.result_type(array.dtype, np.float32)
    scaled = np.empty(shape, wide)
    with np.errstate(all="ignore"):
        for one, stored in zip(scaled, array, strict=True):
            np.add(stored.astype(wide) * wide.type(scale[0]), wide.type(scale[1]), out=one)
    return scaled


def _store(header: Any, mask: Mask, path: Path) -> None:
    """Give the header a mask's type and write both; a slice-major array in C order is the file's own order."""
    header = header.copy()
    header.set_data_dtype(np.uint8)
    header["scl_slope"], header["scl_inter"] = 1, 0
    header["cal_min"], header["cal_max"] = 0, 0
    header["vox_offset"] = len(header.binaryblock) + 4
    content = b"".join((header.binaryblock, bytes(4), np.ascontiguousarray(mask).data))
    # A fixed time stamp: the same mask gives the same bytes.
    path.write_bytes(gzip.compress(content, 6, mtime=0) if path.name.lower().endswith(".gz") else content)


def _parsing(path: Path) -> AbstractContextManager[None]:
    # Senseless numbers in a header surface as any of a dozen exceptions from nibabel and NumPy.
    return blaming(path, "the NIfTI header is damaged", Exception, remedy="export the scan again")


def _own_bytes(path: Path, start: bytes) -> bytes:
    """The header proper: 348 bytes for NIfTI-1, 540 for NIfTI-2, in either byte order."""
    sizes = {int.from_bytes(start[:4], "little"), int.from_bytes(start[:4], "big")}
    length = 348 if 348 in sizes else 540 if 540 in sizes else None
    if length is None or len(start) < length:
        raise BadInput(
            f"{path}: this is not a NIfTI file (it starts with {start[:8]!r}); convert the scan to NIfTI first"
        )
    magic = start[344:348] if length == 348 else start[4:8]
    if magic in (b"ni1\0", b"ni2\0"):
        raise BadInput(f"{path}: the voxels lie in a separate .img file; convert the pair to a single .nii file")
    if magic not in (b"n+1\0", b"n+2\0"):
        raise BadInput(
            f"{path}: the NIfTI magic is {magic!r}, neither n+1 nor n+2; an Analyze file does not say which side is "
            "left: convert it to NIfTI, or download the file again"
        )
    return start[:length]


def _parse(path: Path, blob: bytes) -> Any:
    nibabel = library("nibabel", path)
    with _parsing(path):
        parsed = (nibabel.Nifti1Header if len(blob) == 348 else nibabel.Nifti2Header)(blob, check=False)
    if parsed["pixdim"][0] not in (-1, 1):  # the handedness of the qform; the standard says to take 0 as 1
        parsed["pixdim"][0] = 1
    return parsed
