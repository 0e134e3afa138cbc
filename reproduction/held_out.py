"""Patients to choose by: some of those that train, while those that validate elsewhere stay out of sight."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.store.store import Store
from inbounds.writing import aside, write_json

ARRAYS = ("images.npy", "truth.npy")


def every_fifth(patients: Iterable[str]) -> set[str]:
    """Every fifth of them, in the order of their names."""
    return set(sorted(set(patients))[4::5])


def held_out(store: Store, folder: Path) -> Store:
    """The same data split otherwise, in a folder of its own that shares the arrays.

    Every fifth training patient validates, and those that validated are set aside. Labels and facts are copied.
    """
    if not (folder / "dataset.json").is_file():
        new = every_fifth(record.patient for record in store.records if record.split == "train")
        if not new:
            raise BadInput(f"{store.path}: fewer than five patients train, so that none can be held out; prepare more")
        about = json.loads((store.path / "dataset.json").read_text(encoding="utf-8"))
        about["name"] += ", every fifth training patient held out"
        for scan in about["scans"]:
            scan["split"] = "test" if scan["split"] != "train" else "validation" if scan["patient"] in new else "train"
        with aside(folder) as part:
            write_json(part / "dataset.json", about)
            for name in ("annotations", "facts"):
                if (store.path / name).is_dir():
                    shutil.copytree(store.path / name, part / name)
    for name in ARRAYS:
        link = folder / name
        if (store.path / name).is_file() and not link.is_file():  # which it is not either where the data moved
            link.unlink(missing_ok=True)
            link.symlink_to((store.path / name).resolve())
    split = Store(folder)
    if split.checksums != store.checksums:
        raise BadInput(f"{folder}: it is of other data than {store.path}; choose another folder")
    return split
