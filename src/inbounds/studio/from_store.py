"""A store in the place of scans: what it holds is written out as the files were, and all goes on as with a folder.

Slices get back the rows, columns and spacing of their files, so that what is clicked has the numbers that the store's
own annotations and facts have. How a scan lies in the body is not in a store: no letters are shown.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.format import library
from inbounds.writing import aside

if TYPE_CHECKING:
    from inbounds.store.record import Record
    from inbounds.store.store import Store

DIGEST = ".dataset.sha256"
PIECE = 64
"""Slices that are written at once."""


def is_store(path: Path) -> bool:
    """Whether a folder is a prepared data set."""
    return (path / "dataset.json").is_file() and (path / "images.npy").is_file()


def scans_of(path: Path, project: Path) -> Path:
    """The folder in a project that has the scans of a store; written once."""
    folder = project / "store" / path.name
    digest = hashlib.sha256((path / "dataset.json").read_bytes()).hexdigest()
    if (folder / DIGEST).is_file():
        if (folder / DIGEST).read_text(encoding="utf-8") != digest:
            raise BadInput(f"{path}: it was made anew since {project} began; give another folder with --project")
        return folder
    from inbounds.store.store import Store  # brings torch, for which a folder of scans need not wait

    store = Store(path)
    with aside(folder) as made:
        many = store.channels > 1
        inside = made / "imagesTr" if many else made
        inside.mkdir(exist_ok=True)
        for record in store.records:
            for channel in range(store.channels):
                _write(store, record, channel, inside / f"{record.name}{f'_{channel:04d}' * many}.nii")
        (made / DIGEST).write_text(digest, encoding="utf-8")
    return folder


def _write(store: Store, record: Record, channel: int, file: Path) -> None:
    """One channel of a scan, uncompressed, so that the studio need not hold it in memory."""
    header = library("nibabel", file).Nifti2Header()
    rows, columns = record.fit.original
    dtype = np.uint8 if store.dtype == np.uint8 else np.float32
    header.set_data_shape((columns, rows, record.slices))
    header.set_data_dtype(dtype)
    header.set_zooms(record.spacing[::-1])
    header.set_xyzt_units("mm")
    header["sform_code"] = header["qform_code"] = 0
    header["vox_offset"] = len(header.binaryblock) + 4
    with file.open("wb") as stream:
        stream.write(header.binaryblock + bytes(4))
        for first in range(record.first, record.range.stop, PIECE):
            piece = store.images[first : min(first + PIECE, record.range.stop)][:, channel]
            stream.write(np.ascontiguousarray(record.fit.back(np.asarray(piece)), dtype=dtype).data)
