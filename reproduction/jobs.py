"""From rows to runs that are ready to train, or that go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inbounds.config import known_recipe
from inbounds.errors import BadInput
from inbounds.runs.run import Run
from inbounds.store.store import Store
from reproduction.experiment import Experiment, presets, settings_of
from reproduction.knowledge import Say, facts_of, labels_of, planned
from reproduction.split import by_group, of_group

SPLIT = "validation"
ABOUT = "reproduce.json"
"""What a folder of runs is of: experiment, preset, changes."""


@dataclass(frozen=True)
class Job:
    """One run: where it lies, of which row, how it is trained, what is changed, and its seed."""

    path: Path
    table: Experiment
    row: str
    preset: str
    changes: tuple[str, ...]
    seed: int

    @property
    def begun(self) -> bool:
        """Whether there is a run."""
        return (self.path / "run.json").is_file()


def check(jobs: Sequence[Job], store: Store, *, resume: bool) -> None:
    """Refuse, before anything is written, what cannot be trained or was begun otherwise."""
    if not any(record.split == SPLIT and record.truth for record in store.records):
        raise BadInput(
            f"{store.path}: no scan of the split {SPLIT!r} has a truth to compare with; prepare it with masks"
        )
    for job in jobs:
        for klass in job.table.classes:
            store.class_index(klass)
        about = job.table.rows[job.row]
        known_recipe(about.recipe)
        if about.group is not None:
            by_group(store, about.group.name, trained=about.group.trained)
        if about.labels:
            store.about(about.labels)
        run = Run.open(job.path) if job.begun else None
        chosen = None if run is None else run.about.get("plan", {}).get("settings")
        settings = settings_of(job.table, job.row, job.preset, store, job.changes, chosen)
        if run is None:
            continue
        if not resume:
            raise BadInput(f"{run.path}: already exists; add --resume to go on, or choose another folder")
        if run.settings != settings or run.seed != job.seed:
            raise BadInput(f"{run.path}: it was begun with other settings; resume with the same command, or remove it")


def begin(jobs: Sequence[Job], store: Store, say: Say) -> list[Run]:
    """The runs, made where they are not there yet; labels and facts that the store lacks are added to it."""
    ready: dict[tuple[str, str, tuple[str, ...]], dict[str, Any]] = {}
    stores = [_store_of(job, store) for job in jobs]
    for job, own in zip(jobs, stores, strict=True):
        key = (job.table.title, job.row, job.changes)
        if not job.begun:
            ready[key] = ready.get(key) or _ready(job, own, say)
            Run.create(job.path, store=own, seed=job.seed, **ready[key])
    return [Run.open(job.path).moved(own) for job, own in zip(jobs, stores, strict=True)]


def _store_of(job: Job, store: Store) -> Store:
    """The data as a row splits it, in `stores` beside the runs."""
    group = job.table.rows[job.row].group
    if group is None:
        return store
    folder = job.path.parents[2] / "stores" / f"{group.name}{'-trained' * group.trained}"
    return of_group(store, folder, group.name, trained=group.trained)


def _ready(job: Job, store: Store, say: Say) -> dict[str, Any]:
    """What `Run.create` wants, but for the folder, the store and the seed."""
    table, row = job.table, job.row
    labels, facts = labels_of(store, table, row, say), facts_of(store, table, row, say)
    plans = presets()[job.preset].plan
    chosen = planned(table, row, job.preset, store, labels, facts, job.changes) if plans else None
    layer = None if chosen is None else chosen.settings
    settings = settings_of(table, row, job.preset, store, job.changes, layer)
    return {"settings": settings, "annotation": labels, "facts": facts, "classes": table.classes, "plan": chosen}


def read_about(out: Path) -> dict[str, Any]:
    """What a folder of runs is of; nothing where nothing was trained."""
    file = out / ABOUT
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError as error:
        raise BadInput(f"{file}: damaged ({error}); remove it, or choose another folder") from None
    return about


def check_about(out: Path, about: dict[str, Any]) -> None:
    """Refuse a folder that is of something else."""
    if (before := read_about(out) or about) != about:
        raise BadInput(f"{out}: it holds {in_words(before)}, not {in_words(about)}; choose another folder")


def in_words(about: dict[str, Any]) -> str:
    """What a folder is of."""
    return " ".join([about["experiment"], about["preset"], *about["changes"]])
