"""Who trains, who validates and who is set aside: by patient, never by scan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput, nearest, some
from inbounds.sources.source import Source
from inbounds.store.record import SPLITS, Record
from inbounds.store.table_reader import read_table


def split_by_patient(sources: Sequence[Source], *, validation: float, test: float = 0.0, seed: int = 0) -> list[Source]:
    """Give every source a split, drawing patients by a seed. Sources that have one keep it.

    Args:
        sources: The scans.
        validation: The share of patients to validate on.
        test: The share to set aside for the last evaluation.
        seed: Of the draw.
    """
    patients = sorted({source.patient for source in sources if not source.split})
    order = np.random.default_rng(seed).permutation(len(patients))
    # Whoever asks for a share of several patients gets at least one.
    least = 1 if len(patients) > 1 else 0
    counts = [max(least, round(share * len(patients))) if share else 0 for share in (validation, test)]
    if sum(counts) >= len(patients) and patients:
        raise BadInput(
            f"{len(patients)} patients cannot be split into {counts[0]} and {counts[1]} with any left to train on"
        )
    names = ["validation"] * counts[0] + ["test"] * counts[1]
    names += ["train"] * (len(patients) - len(names))
    drawn = {patients[patient]: name for patient, name in zip(order, names, strict=True)}
    return [source if source.split else replace(source, split=drawn[source.patient]) for source in sources]


def hold_out(sources: Sequence[Source], test: float, seed: int = 0) -> list[Source]:
    """Set a share of all patients aside for the last test, drawn from those that would train."""
    patients = sorted({source.patient for source in sources})
    training = sorted({source.patient for source in sources if source.split == "train"})
    count = round(test * len(patients))
    if count >= len(training) > 0:
        raise BadInput(f"{count} patients to test on leave none of {len(training)} to train on")
    chosen = set(np.random.default_rng(seed).permutation(training)[:count].tolist())
    return [replace(source, split="test") if source.patient in chosen else source for source in sources]


def split_by_file(sources: Sequence[Source], file: Path) -> list[Source]:
    """Give every source the split that a table says, of its name (column `case`) or of its patient."""
    lines, _ = read_table(file, ("case", "patient", "split"), ("split",))
    found: dict[str, str] = {}
    for line in lines:
        key = "case" if line.cells["case"] else "patient"
        name, split = line.cells[key], line.cells["split"].lower()
        scans = {s.name: getattr(s, "name" if key == "case" else "patient") for s in sources}
        if name not in scans.values():
            raise BadInput(f"{line.where}: there is no {key} {name!r}; {nearest(name, sorted(set(scans.values())))}")
        if split not in SPLITS:
            raise BadInput(f"{line.where}: the split of {name} is {split!r}; write one of {', '.join(SPLITS)}")
        for scan in (scan for scan, of in scans.items() if of == name):
            if found.setdefault(scan, split) != split:
                raise BadInput(f"{line.where}: {scan} is in {found[scan]} by a line above; keep one of them")
    if missing := [source.name for source in sources if source.name not in found]:
        raise BadInput(f"{file}: no line says where {some(missing)} belong; add them")
    return [replace(source, split=found[source.name]) for source in sources]


def joined(sources: Sequence[Source], there: Mapping[str, str]) -> list[Source]:
    """Where scans belong that are added to others: with those of their patient, if there are any; new patients train.

    A split that a source has already stays.
    """
    return [source if source.split else replace(source, split=there.get(source.patient, "train")) for source in sources]


def both_sides(records: Iterable[Record]) -> list[str]:
    """What to say where scans of one patient are in several splits; nothing where there are none."""
    of: dict[str, dict[str, str]] = {}
    for record in records:
        of.setdefault(record.patient, {})[record.split] = record.name
    mixed = {patient: scans for patient, scans in of.items() if len(scans) > 1}
    for scans in list(mixed.values())[:1]:
        where = " and ".join(f"{name} in {split}" for split, name in scans.items())
        return [f"patients are on both sides of the split ({some([*mixed])}; {where}): scores will be too good"]
    return []
