"""What people did, as the tables that the commands read: every labelled voxel is a click, every fact a line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inbounds.studio.facts import TABLE, rows
from inbounds.studio.project import Project
from inbounds.writing import file_aside, write_table

CLICKS = ("case", "slice", "row", "column", "class")


def write_tables(project: Project, folder: Path) -> tuple[int, int]:
    """Write `clicks.csv`, and `sizes.csv` if there are facts; how many lines each has."""
    names = {value: name for value, (name, _) in project.classes.items()}
    with project.database.lock:  # nothing is done between the two
        clicks = 0
        with file_aside(folder / "clicks.csv") as part, part.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(CLICKS)
            for lines in _clicks(project, names):
                writer.writerows(lines)
                clicks += len(lines)
        facts = list(_facts(project, names))
    (folder / "sizes.csv").unlink(missing_ok=True)
    if facts:
        write_table(folder / "sizes.csv", TABLE, facts)
    return clicks, len(facts)


def _clicks(project: Project, names: dict[int, str]) -> Iterator[list[tuple[str, int, int, int, str]]]:
    for number in sorted(project.summaries()):
        entry = project.shelf.entries[number]
        if entry.error is not None or not project.summary(number)["classes"]:
            continue
        where, values = project.labels(number).voxels()
        places = np.unravel_index(where, project.labels(number).shape)
        columns = [axis.tolist() for axis in (*places, values)]
        yield [(entry.name, s, r, c, names[k]) for s, r, c, k in zip(*columns, strict=True) if k in names]


def _facts(project: Project, names: dict[int, str]) -> Iterator[tuple[object, ...]]:
    for number in project.with_facts():
        entry = project.shelf.entries[number]
        if entry.error is None:
            yield from rows(entry.name, project.facts(number), names, project.labels(number))
