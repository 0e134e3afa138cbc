"""All that came of a project, in one folder for other programs: masks, labels, tables, the store, the commands."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.scans.scan import header, is_series, stem, write_mask
from inbounds.studio.earlier import Earlier
from inbounds.studio.labels import UNLABELLED
from inbounds.studio.project import Project
from inbounds.studio.results import Results
from inbounds.studio.tables import write_tables
from inbounds.writing import aside, write_table

AS_IT_WENT = ("--resume", "--overwrite")
"""What is said of a training that was stopped, and is not when all is done anew."""
VOLUMES = ("case", "class", "volume_ml", "known_min", "known_max", "doubt", "accepted")


def export(project: Project, results: Results) -> dict[str, Any]:
    """Write everything into `export/`, in the place of what was exported before; what there is then.

    masks/         of the last training, in the scans' own geometry and format
    labels/        what people labelled, likewise; 255 is unlabelled
    volumes.csv    a line for each scan and class
    clicks.csv, sizes.csv, store/
    commands.txt   called in this folder, they repeat the trainings that came to an end, from
    trainings/     what was known at each
    """
    folder, work = project.folder / "export", project.folder / "trainings"
    jobs = [about for about in reversed(Earlier(work).jobs) if about["state"] == "done"]
    commands = commands_again(jobs, work)
    with aside(folder, replace=True) as made:
        if results.folder is not None:
            shutil.copytree(results.folder, made / "masks", ignore=shutil.ignore_patterns(".*"))
            about = json.loads((results.folder.parent / "job.json").read_text(encoding="utf-8"))
            if (work / about["store"] / "dataset.json").is_file():
                shutil.copytree(work / about["store"], made / "store", ignore=shutil.ignore_patterns(".*"))
        for number in (f"{about['number']:03d}" for about in jobs):
            for table in (work / number).glob("*.csv"):
                (made / work.name / number).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(table, made / work.name / number / table.name)
        with project.database.lock:
            write_tables(project, made)
            _write_labels(project, made / "labels")
            write_table(made / "volumes.csv", VOLUMES, _volumes(project, results))
        (made / "commands.txt").write_text("".join(f"{line}\n" for line in commands), encoding="utf-8")
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return {"folder": str(folder), "files": files, "commands": commands}


def _write_labels(project: Project, folder: Path) -> None:
    """Label maps of what people did: classes 0, 1, 2, ... in their order, as in masks."""
    table = np.full(256, UNLABELLED, dtype=np.uint8)
    for place, value in enumerate(project.classes):
        table[value] = place
    for number, summary in project.summaries().items():
        entry = project.shelf.entries[number]
        if entry.error is None and summary["classes"]:
            scan = entry.files[0]
            ending = ".nii.gz" if is_series(scan) else scan.name[len(stem(scan)) :].lower()
            write_mask(table[project.labels(number).array], header(scan), folder / f"{entry.name}{ending}")


def _volumes(project: Project, results: Results) -> Iterator[tuple[object, ...]]:
    for number in sorted(project.shelf.entries, key=lambda one: project.shelf.entries[one].name):
        entry, facts = project.shelf.entries[number], project.facts(number)
        found = results.of(entry.name)
        accepted = int(found.predicted and project.accepted(number) == results.number)
        for value, (name, _) in project.classes.items():
            fact = facts.get((None, value))
            ends = (None, None) if fact is None else fact.pixels(entry.spacing)
            one = math.prod(entry.spacing) / 1000
            known = ["" if end is None else f"{end * one:.6g}" for end in ends]
            volume = found.volumes.get(value)
            if volume is not None or any(known):
                told = ("" if volume is None else volume, *known, "" if found.doubt is None else found.doubt)
                yield (entry.name, name, *told, accepted)


def commands_again(jobs: Sequence[Mapping[str, Any]], work: Path) -> list[str]:
    """The commands of trainings, each of which begins with the weights of the one before, as one calls them elsewhere.

    What lay in the folder of all trainings is looked for in one of this name; a store is prepared once.
    """
    lines: dict[tuple[str, ...], list[str]] = {}
    for folder, line in ((about.get("folder", work), line) for about in jobs for line in about["commands"]):
        inside = f"{folder}{os.sep}"
        words = [
            f"{work.name}/{word.removeprefix(inside)}" if word.startswith(inside) else word
            for word in shlex.split(line)
            if word not in AS_IT_WENT
        ]
        lines[tuple(words[1:5] if words[1] == "prepare" else words)] = words
    return [shlex.join(words) for words in lines.values()]
