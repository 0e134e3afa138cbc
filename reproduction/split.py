"""The same data split otherwise: patients to choose by, and patients of a kind that training has not seen."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.store.record import Record
from inbounds.store.store import Store
from inbounds.writing import aside, write_json

ARRAYS = ("images.npy", "truth.npy")
GROUPS = ("DCM", "HCM", "MINF", "NOR", "RV")
"""Of ACDC's 100 patients, twenty after twenty, where no `Info.cfg` came with them."""


def every_fifth(patients: Iterable[str]) -> set[str]:
    """Every fifth of them, in the order of their names."""
    return set(sorted(set(patients))[4::5])


def group_of(record: Record) -> str:
    """The group of a patient, such as a pathology; empty if it is not known."""
    number = re.fullmatch(r"patient(\d{3})", record.patient)
    place = (int(number[1]) - 1) // 20 if number else -1
    return record.group or (GROUPS[place] if 0 <= place < len(GROUPS) else "")


def held_out(store: Store, folder: Path) -> Store:
    """Every fifth training patient validates, and those that validated are set aside: to choose by."""
    new = every_fifth(record.patient for record in store.records if record.split == "train")
    if not new:
        raise BadInput(f"{store.path}: fewer than five patients train, so that none can be held out; prepare more")
    splits = {
        record.patient: "test" if record.split != "train" else "validation" if record.patient in new else "train"
        for record in store.records
    }
    return split_anew(store, folder, splits, "every fifth training patient held out")


def by_group(store: Store, group: str, *, trained: bool) -> dict[str, str]:
    """Where patients go so that, of those that validate, the ones of a group alone do, and the others are set aside.

    The group's patients who train do so if they are to be `trained` on; else they are set aside too.
    """
    splits = {}
    for record in store.records:
        own, validates = group_of(record) == group, record.split == "validation"
        kept = own == validates or (trained and record.split == "train")
        splits[record.patient] = record.split if kept else "test"
    for side in ("train", "validation"):
        if side not in splits.values():
            raise BadInput(f"{store.path}: {group} held out leaves nobody in {side!r}; prepare all patients of ACDC")
    return splits


def of_group(store: Store, folder: Path, group: str, *, trained: bool) -> Store:
    """The data so split."""
    words = f"{group} alone validates" + ("" if trained else ", and does not train")
    return split_anew(store, folder, by_group(store, group, trained=trained), words)


def split_anew(store: Store, folder: Path, splits: Mapping[str, str], words: str) -> Store:
    """The same data split otherwise, by patient, in a folder of its own that shares the arrays.

    Labels and facts are copied. A folder that is there already is left as it is.
    """
    if not (folder / "dataset.json").is_file():
        about = json.loads((store.path / "dataset.json").read_text(encoding="utf-8"))
        about["name"] += f", {words}"
        for scan in about["scans"]:
            scan["split"] = splits[scan["patient"]]
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
