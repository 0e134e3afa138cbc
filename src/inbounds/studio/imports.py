"""What people bring from other programs: points of 3D Slicer, painted masks, tables of clicks and of facts.

A file is read whole and looked at before anything of it counts; all of it is one action, which can be undone.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.scan import SUFFIXES, header, read_labels, same_geometry
from inbounds.studio.actions import COLUMNS
from inbounds.studio.labels import UNLABELLED, pack
from inbounds.studio.project import Project
from inbounds.studio.shelf import Entry
from inbounds.studio.tables import CLICKS

EMPTY = (0, UNLABELLED)
"""Values of a painted mask that label nothing, unless somebody says what they stand for."""
Point = tuple[str, float, float, float]
"""What a point is called, and where it lies in mm right, anterior and superior."""
Voxel = tuple[int, int, int, int]
"""Slice, row, column and the value of a class."""
Batch = list[tuple[int, Mapping[str, Any], bytes | None]]


@dataclass(frozen=True)
class Brought:
    """A file that somebody brings.

    Attributes:
        path: Where it lies for now, under its own name.
        scan: Which scan it is about, if that was said; else its name says so.
        klass: The class of points that are not called after one.
        values: From the values of a mask to those of classes; others label nothing. If none are given, they are as they
            are, and all must be known.
    """

    path: Path
    scan: int | None = None
    klass: int | None = None
    values: Mapping[int, int | None] = field(default_factory=dict)


def bring(project: Project, who: str, file: Brought) -> tuple[int, str]:
    """Take a file in; the number of the action, and what it was, in a sentence."""
    try:
        batch, sentence = _read(project, file)
    except BadInput as error:
        raise BadInput(str(error).replace(f"{file.path.parent}{os.sep}", "")) from None
    facts = all(voxels is None for _, _, voxels in batch)
    return project.import_batch(who, "facts" if facts else "voxels", batch), sentence


def _read(project: Project, file: Brought) -> tuple[Batch, str]:
    """What a file says, by the kind that its name tells."""
    name = file.path.name.lower()
    if name.endswith((".mrk.json", ".fcsv")):
        return _points(project, file, _markups(file.path) if name.endswith("json") else _fcsv(file.path))
    if name.endswith((".csv", ".tsv", ".txt")):
        return _table(project, file.path)
    if name.endswith(SUFFIXES):
        return _mask(project, file)
    raise BadInput(
        f"{file.path.name}: not known by its name; bring .mrk.json or .fcsv of 3D Slicer, a mask, or a table (.csv)"
    )


def _points(project: Project, file: Brought, points: Iterable[Point]) -> tuple[Batch, str]:
    entry = _scan(project, file)
    affine = header(entry.files[0]).geometry.affine
    if affine is None:
        raise BadInput(
            f"{entry.name}: the scan does not say where it lies, so that points in mm cannot be placed in it"
        )
    back, voxels = np.linalg.inv(affine), []
    for name, *place in points:
        column, row, number = (back @ [*place, 1.0])[:3]
        voxels.append((*_voxel(entry, f"point {name!r}", number, row, column), _klass(project, file, name)))
    return _packed(entry, voxels, file.path.name), f"{_count(len(voxels), 'point')} on {entry.name}"


def _markups(path: Path) -> Iterator[Point]:
    """The points of a file of 3D Slicer; what is not placed yet is left out."""
    try:
        for markup in json.loads(path.read_text(encoding="utf-8-sig"))["markups"]:
            turn = _turn(path, markup.get("coordinateSystem", "LPS"))
            for point in markup["controlPoints"]:
                if point.get("positionStatus", "defined") == "defined":
                    x, y, z = map(float, point["position"])
                    yield str(point.get("label", "")), turn * x, turn * y, z
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path.name}: not a file of points ({error!r}); save the markups of 3D Slicer again") from None


def _fcsv(path: Path) -> Iterator[Point]:
    """The points of an older file of 3D Slicer."""
    turn, columns = -1.0, ["id", "x", "y", "z", "ow", "ox", "oy", "oz", "vis", "sel", "lock", "label"]
    try:
        for line in path.read_text(encoding="utf-8-sig").splitlines():
            if line.startswith("#"):
                key, _, value = line.lstrip("# ").partition("=")
                if key.strip() == "CoordinateSystem":
                    turn = _turn(path, value.strip())
                elif key.strip() == "columns":
                    columns = [name.strip() for name in value.split(",")]
            elif line.strip():
                cells = dict(zip(columns, next(csv.reader([line])), strict=False))
                yield cells.get("label", ""), turn * float(cells["x"]), turn * float(cells["y"]), float(cells["z"])
    except (KeyError, ValueError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path.name}: not a file of points ({error!r}); save the markups of 3D Slicer again") from None


def _turn(path: Path, system: str) -> float:
    """What turns the first two coordinates to right and anterior."""
    if system in ("LPS", "1"):
        return -1.0
    if system in ("RAS", "0"):
        return 1.0
    raise BadInput(f"{path.name}: its coordinates are in the system {system!r}, neither LPS nor RAS; save it again")


def _mask(project: Project, file: Brought) -> tuple[Batch, str]:
    entry, name = _scan(project, file), file.path.name
    painted = read_labels(file.path)
    if signs := same_geometry(header(entry.files[0]), painted):
        raise BadInput(f"{signs[0]}: it was painted on another scan, or moved")
    present = [int(value) for value in np.unique(painted.array)]
    values: dict[int, int | None] = dict.fromkeys(EMPTY)
    values |= dict(file.values) or {value: value for value in project.classes if value}
    unknown = [value for value in present if value not in values]
    if unknown and not file.values:
        raise BadInput(f"{name}: the value {unknown[0]} stands for no class; say which value is which class")
    if bad := [value for value in values.values() if value is not None and value not in project.classes]:
        raise BadInput(f"{name}: there is no class {bad[0]}; add it first")
    flat = painted.array.reshape(-1)
    values |= dict.fromkeys(unknown)
    table = {value: UNLABELLED if klass is None else klass for value, klass in values.items()}
    classes = np.array([table[value] for value in present], dtype=np.uint8)[np.searchsorted(present, flat)]
    where = np.flatnonzero(classes != UNLABELLED)
    if not len(where):
        raise BadInput(f"{name}: nothing in it labels anything; say which values stand for which classes")
    content = {"from": name, "voxels": len(where)}
    batch: Batch = [(entry.id, content, pack(where.astype(np.int64), classes[where]))]
    left = f"; the values {', '.join(map(str, unknown))} label nothing" if unknown else ""
    return batch, f"{_count(len(where), 'painted voxel')} on {entry.name}{left}"


def _table(project: Project, path: Path) -> tuple[Batch, str]:
    """A table of clicks, if it has rows and columns; else one of facts."""
    from inbounds.store.grid import GridWindow  # with which comes torch
    from inbounds.store.record import Record

    cases, numbers = {}, {}
    for number in project.shelf.entries:
        entry = project.entry(number)
        if entry.error is None and entry.shape is not None:
            fit = GridWindow.pad(entry.shape[1:], entry.shape[1:])
            cases[entry.name] = Record(entry.name, "", "train", 0, entry.shape[0], fit, entry.spacing, (0.0, 1.0))
            numbers[entry.name] = entry
    names = [name for name, _ in project.classes.values()]
    try:
        text = path.read_text(encoding="utf-8-sig").split("\n", 1)[0].lower()
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}: not a text file in UTF-8; save the sheet as 'CSV UTF-8'") from None
    told = {cell.strip() for cell in re.split(r"[,;\t]", text)}
    read = _clicked if {"row", "column"} <= told else _known
    return read(project, path, names, cases, numbers)


def _clicked(
    project: Project, path: Path, names: Sequence[str], cases: Mapping[str, Any], entries: Mapping[str, Entry]
) -> tuple[Batch, str]:
    from inbounds.store.table_reader import read_table

    values, found = list(project.classes), dict[str, list[Voxel]]()
    lines, _ = read_table(path, CLICKS, CLICKS)
    for line in lines:
        case, number, klass = line.place(cases, names)
        row, column = line.number("row"), line.number("column")
        if number is None or row is None or column is None:
            raise BadInput(f"{line.where}: a click needs a slice, a row and a column; fill them in")
        place = _voxel(entries[case.name], line.where, number, row, column)
        found.setdefault(case.name, []).append((*place, values[klass]))
    batch = [row for name, voxels in found.items() for row in _packed(entries[name], voxels, path.name)]
    return batch, f"{_count(len(lines), 'click')} on {_count(len(found), 'scan')}"


def _known(
    project: Project, path: Path, names: Sequence[str], cases: Mapping[str, Any], entries: Mapping[str, Entry]
) -> tuple[Batch, str]:
    from inbounds.store.facts import Facts

    values, found = list(project.classes), dict[int, list[dict[str, Any]]]()
    read = Facts.read(path, names, cases)
    if read.relations:
        name = read.name(read.relations[0])
        raise BadInput(f"{path.name}: a row is of {name}, and the studio knows classes alone; bring it to a store")
    for fact in read:
        size = next((_size(fact.known, unit) for unit in COLUMNS if _size(fact.known, unit)), None)
        if fact.klass and (size or fact.present is not None):
            told = {"class": values[fact.klass], "slice": fact.slice, "present": fact.present, "size": size}
            found.setdefault(entries[fact.case].id, []).append(told)
    batch: Batch = [(number, {"from": path.name, "facts": facts}, None) for number, facts in found.items()]
    count = sum(map(len, found.values()))
    if not count:
        raise BadInput(f"{path.name}: no line says whether a class is there or how large it is; fill in what is known")
    return batch, f"{_count(count, 'fact')} on {_count(len(found), 'scan')}"


def _size(known: Mapping[str, float], unit: str) -> dict[str, Any] | None:
    """A size that a table gives in a unit: one number is both ends of its range."""
    column = COLUMNS[unit]
    low, high = (known.get(f"{column}_{end}", known.get(column)) for end in ("min", "max"))
    return None if low is None and high is None else {"low": low, "high": high, "unit": unit}


def _packed(entry: Entry, voxels: Sequence[Voxel], name: str) -> Batch:
    """Points as voxels of a scan; of two on the same voxel, the later counts."""
    if not voxels or entry.shape is None:
        raise BadInput(f"{name}: there is no point in it")
    places = {voxel[:3]: voxel[3] for voxel in voxels}
    where = np.ravel_multi_index(tuple(np.array(list(places)).T), entry.shape).astype(np.int64)
    return [(entry.id, {"from": name, "voxels": len(where)}, pack(where, np.array([*places.values()], dtype=np.uint8)))]


def _voxel(entry: Entry, where: str, *place: float) -> tuple[int, int, int]:
    """The voxel in which a place lies."""
    assert entry.shape is not None
    if not all(math.isfinite(at) and -0.5 <= at < side - 0.5 for at, side in zip(place, entry.shape, strict=True)):
        told = ", ".join(f"{at:.4g}" for at in place)
        raise BadInput(f"{where}: (slice, row, column) {told} lies outside {entry.name}; is it of another scan?")
    number, row, column = (math.floor(at + 0.5) for at in place)
    return number, row, column


def _scan(project: Project, file: Brought) -> Entry:
    """The scan that a file is about: as was said, or as its name begins."""
    if file.scan is not None:
        return project.usable(file.scan)[0]
    entries = sorted(project.shelf.entries.values(), key=lambda entry: -len(entry.name))
    for entry in entries:
        rest = file.path.name.removeprefix(entry.name)
        if rest != file.path.name and not rest[:1].isalnum():
            return project.usable(entry.id)[0]
    raise BadInput(f"{file.path.name}: no scan is called so; open the scan that it belongs to, or rename the file")


def _klass(project: Project, file: Brought, label: str) -> int:
    """The class that a point is called after, as `LV` or `LV-3`; or else that which was said."""
    for value, (name, _) in sorted(project.classes.items(), key=lambda one: -len(one[1][0])):
        if re.fullmatch(rf"{re.escape(name.lower())}([^a-z].*)?", label.strip().lower(), re.DOTALL):
            return value
    if file.klass in project.classes:
        return int(file.klass or 0)
    names = ", ".join(name for name, _ in project.classes.values())
    raise BadInput(
        f"{file.path.name}: the point {label!r} is called after no class ({names}); name points such as LV-1"
    )


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'s' * (number != 1)}"
