"""Facts for nnU-Net: from a person's table to the voxels of each of its configurations.

nnU-Net resamples every scan to the spacing in its plans. A size in original pixels becomes one in pixels of that
spacing; in 2-D that of a slice, in 3-D that of the scan, given or added up where all slices are known. Facts lie beside
the preprocessed data in a file of JSON, which the trainer reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from inbounds.described import Described, Line, read_json, written
from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.regions.size import size
from inbounds.scans.scan import header
from inbounds.sources.folder import recognise
from inbounds.store.facts import Fact, Facts
from inbounds.store.grid import GridWindow
from inbounds.store.record import Record
from inbounds.writing import write_json, writing

FILE = "inbounds_facts.json"
Fine = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Literal["present", "size", "size_min", "size_max"]
Known = dict[Name, Fine]
Rows = dict[Line, Known]
"""By class, what is known of it."""
_NAMES: tuple[Name, ...] = get_args(Name)


class Case(Described):
    """What is known of a scan, and of its slices by their number in the original file."""

    scan: Rows = Field(default_factory=dict)
    slices: dict[str, Rows] = Field(default_factory=dict)


class Told(Described):
    """What the trainer reads: sizes in voxels of each configuration, by case."""

    margin: Annotated[float, Field(ge=0, le=2)]
    classes: list[Line]
    configurations: dict[Line, dict[Line, Case]]

    def tensors(self, known: Sequence[Rows]) -> dict[str, Float[Tensor, "N K 1"]]:
        """Facts by name, a row for each of some slices or scans; NaN is unknown."""
        value = [
            [[rows.get(name, {}).get(fact, math.nan) for rows in known] for name in self.classes] for fact in _NAMES
        ]
        return {fact: torch.tensor(one).T.unsqueeze(-1) for fact, one in zip(_NAMES, value, strict=True)}

    def rows(self, configuration: str, case: str, number: int | None) -> Rows:
        """What is known of a slice, or with `None` of a whole scan. A class that a scan lacks, its slices lack."""
        found = self.configurations.get(configuration, {}).get(case)
        if found is None:
            return {}
        if number is None:
            return found.scan
        absent: Rows = {name: known for name, known in found.scan.items() if known.get("present") == 0}
        return absent | found.slices.get(str(number), {})


class _Configuration(Described):
    spacing: list[float] | None = None
    inherits_from: str | None = None


class _Plans(Described):
    configurations: dict[str, _Configuration]
    transpose_forward: list[int]

    def spacing(self, name: str) -> list[float] | None:
        """That of a configuration, or of those that it builds upon."""
        for _ in self.configurations:
            found = self.configurations.get(name)
            if found is None or found.spacing is not None or found.inherits_from is None:
                return None if found is None else found.spacing
            name = found.inherits_from
        return None


def write_facts(raw: Path, preprocessed: Path, table: Path, plans: str, margin: float) -> tuple[Path, Told, list[str]]:
    """Read a table of facts and write what the trainer needs; returns the file, what is in it, and notes."""
    layout = recognise(raw)
    if layout.kind != "nnU-Net" or not layout.classes:
        raise BadInput(f"{raw}: no raw data set of nnU-Net, which has imagesTr/NAME_0000.* and dataset.json")
    classes = tuple(layout.classes[value] for value in sorted(layout.classes))
    if sorted(layout.classes) != list(range(len(classes))):
        raise BadInput(f"{raw / 'dataset.json'}: labels must be 0, 1, 2, ... and an ignore label above them")
    file = preprocessed / f"{plans}.json"
    if not file.is_file():
        raise BadInput(f"{file}: there is no such file; run nnUNetv2_plan_and_preprocess first, or give --plans")
    planned = read_json(file, _Plans, "plan and preprocess the data set again")
    records = {name: _record(name, files[0]) for name, files in layout.images.items()}
    facts = Facts.read(table, classes, records)
    configurations, notes = {}, []
    for name in planned.configurations:
        spacing = planned.spacing(name)
        if spacing is None:
            continue
        if len(spacing) == 2 and planned.transpose_forward[0] != 0:
            notes.append(f"{name} cuts scans along another axis than their files: facts of slices say nothing there")
            continue
        configurations[name] = _cases(facts, records, spacing, planned.transpose_forward)
    content = {"margin": margin, "classes": list(classes), "configurations": configurations}
    target = preprocessed / FILE
    checked = written(content, Told, str(target), "correct the table")
    with locked(target), writing(target):
        write_json(target, checked)
    return target, read_facts(target), notes


def read_facts(file: Path) -> Told:
    """What was written."""
    return read_json(file, Told, "write it again with: inbounds nnunet")


def _record(name: str, file: Path) -> Record:
    """A scan as its file has it."""
    scan = header(file)
    slices, *shape = scan.shape
    fit = GridWindow.pad((shape[0], shape[1]), (shape[0], shape[1]))
    return Record(name, name, "train", 0, slices, fit, scan.spacing, (0.0, 1.0), truth=False)


def _cases(
    facts: Facts, records: Mapping[str, Record], spacing: Sequence[float], transposed: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """What is known of every case, in voxels of a spacing along the axes as nnU-Net orders them."""
    flat, cases = len(spacing) == 2, dict[str, dict[str, Any]]()
    parts: dict[tuple[str, str], list[Known]] = {}
    for fact in facts:
        record = records[fact.case]
        has = [record.spacing[axis] for axis in transposed][flat:]
        factor = math.prod(has) / math.prod(spacing)
        known = _known(fact, record, factor)
        if not known:
            continue
        case = cases.setdefault(fact.case, {"scan": {}, "slices": {}})
        name = facts.classes[fact.klass]
        if fact.slice is None:
            # Of a slice the size of its scan says nothing but whether there is anything.
            case["scan"][name] = {"present": known["present"]} if flat and "present" in known else known
        elif flat:
            case["slices"].setdefault(str(fact.slice), {})[name] = known
        else:
            parts.setdefault((fact.case, name), []).append(known)
    for (case_name, name), found in parts.items():
        added = _added(found, records[case_name].original_slices)
        cases[case_name]["scan"][name] = added | cases[case_name]["scan"].get(name, {})
    return cases


def _known(fact: Fact, record: Record, factor: float) -> Known:
    """What a row says: whether the region is there, and its size or range."""
    assert size.columns is not None
    geometry = record.geometry(fact.slice)
    present, known = fact.is_present(geometry), Known()
    if present is not None:
        known["present"] = float(present)
    for name, (number, *_) in zip(_NAMES[1:], fact.values(size.columns, geometry), strict=True):
        if not math.isnan(number):
            known[name] = number * factor
    return known


def _added(slices: Sequence[Known], count: int) -> Known:
    """What slices say of their scan: present where any shows the region; its size, where all are known."""
    added = Known()
    if any(one.get("present") == 1 for one in slices):
        added["present"] = 1.0
    if len(slices) == count:
        low = [0.0 if one.get("present") == 0 else one.get("size", one.get("size_min")) for one in slices]
        high = [0.0 if one.get("present") == 0 else one.get("size", one.get("size_max")) for one in slices]
        if low == high and None not in low:
            added["size"] = math.fsum(number for number in low if number is not None)
        else:
            for name, ends in zip(_NAMES[2:], (low, high), strict=True):
                if None not in ends:
                    added[name] = math.fsum(number for number in ends if number is not None)
        if all(number == 0 for number in high):
            added["present"] = 0.0
    return added
