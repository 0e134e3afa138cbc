"""A sweep as a person writes it down: what all runs share, rows, a grid of settings, and seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from inbounds.config import Model, known_recipe, read_settings
from inbounds.config.plan import REGULARISERS
from inbounds.described import Name
from inbounds.errors import BadInput
from inbounds.jobs.cluster import Cluster, read_toml
from inbounds.jobs.manifest import Line, line
from inbounds.jobs.training import Training
from inbounds.store.store import FULL, Store

RUNS = 10_000
LONGEST = 80
"""Characters of a run's name that comes from its settings."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Row(Model):
    """What some runs have of their own; what is not given is that of all.

    Attributes:
        name: The first part of their folders' names.
        recipe: What may be known.
        annotation: The labels.
        facts: The facts beside them.
        classes: Which to learn.
        margin: How far off sizes are, as a share.
        start: A run with whose weights to begin.
        settings: Above those of all runs.
    """

    name: Name
    recipe: str | None = None
    annotation: str | None = None
    facts: str | None = None
    classes: list[str] | None = None
    margin: float | None = Field(default=None, ge=0, le=10)
    start: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class Sweep(Cluster):
    """All of `plan.toml`; paths are as seen from its folder.

    Attributes:
        store: The data.
        recipe: What may be known.
        annotation: The labels; the only ones, if not given.
        facts: Facts beside them.
        classes: Which to learn; all, if not given.
        margin: How far off sizes are, as a share.
        start: A run with whose weights to begin.
        seeds: A run with each.
        folds: So many runs of each, which validate on different patients.
        settings: Of all runs, as in a file of settings.
        grid: By setting, or one of `recipe`, `annotation`, `facts`, its values: runs for all combinations.
        rows: Runs for each of these, beside each other.
    """

    store: str
    recipe: str = "known"
    annotation: str | None = None
    facts: str | None = None
    classes: list[str] = Field(default_factory=list)
    margin: float | None = Field(default=None, ge=0, le=10)
    start: str | None = None
    seeds: list[Seed] = Field(default=[0], min_length=1)
    folds: int = Field(default=0, ge=0, le=100)
    settings: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    rows: list[Row] = Field(default_factory=list)


OWN = ("recipe", "annotation", "facts")
"""What a grid may vary beside settings."""


def read_sweep(file: Path) -> Sweep:
    """A plan, with all paths as seen from here."""
    sweep: Sweep = read_toml(file, Sweep)
    where = file.parent

    def placed(path: str | None) -> str | None:
        return None if path is None else str((where / path).resolve())

    rows = [row.model_copy(update={"start": placed(row.start)}) for row in sweep.rows]
    return sweep.model_copy(update={"store": placed(sweep.store), "start": placed(sweep.start), "rows": rows})


def lines_of(sweep: Sweep, file: Path) -> list[Line]:
    """A line for each run, once all of them are known to be possible.

    Raises:
        BadInput: A recipe, a setting, labels or classes are not known, or there are too many runs.
    """
    store, lines = Store(sweep.store), []
    for name, shared in _combined(sweep, store, file):
        for seed in sweep.seeds:
            for fold in range(sweep.folds) if sweep.folds else [None]:
                place = f"runs/{name}/seed-{seed}" + ("" if fold is None else f"/fold-{fold}")
                about = Training(**shared, seed=seed, fold=fold, folds=sweep.folds)
                lines.append(line("train", place, about.model_dump(), beside=["store"]))
                if len(lines) > RUNS:
                    raise BadInput(f"{file}: more than {RUNS:,} runs; make several plans of it")
    return lines


def _combined(sweep: Sweep, store: Store, file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each combination, and what it asks for but seeds and folds."""
    rows: list[Row | None] = [*sweep.rows] or [None]
    for row in rows:
        own = {} if row is None else {key: value for key, value in row.model_dump().items() if value is not None}
        for values in itertools.product(*sweep.grid.values()):
            point = dict(zip(sweep.grid, values, strict=True))
            named = {key: own.get(key, getattr(sweep, key)) for key in (*OWN, "classes", "margin", "start")}
            named |= {key: point[key] for key in OWN if key in point}
            layers = [sweep.settings, own.get("settings", {}), {k: v for k, v in point.items() if k not in OWN}]
            try:
                changes = [f"{key}={_literal(value)}" for layer in layers for key, value in layer.items()]
            except BadInput as error:
                raise BadInput(f"{file}: {error}") from None
            parts = [own["name"]] if row else [] if point else [str(named["recipe"])]
            name = ",".join([*parts, *(f"{key.rpartition('.')[2]}={_short(value)}" for key, value in point.items())])
            _check(file, store, named, changes, name)
            yield _cut(name), {**named, "changes": changes, "store": sweep.store, "data": store.checksums}


def _check(file: Path, store: Store, named: Mapping[str, Any], changes: list[str], name: str) -> None:
    """Refuse what no machine could train."""
    try:
        known_recipe(str(named["recipe"]))
        read_settings(named["recipe"], None, changes, layers=[{"regularisers": REGULARISERS}])
        store.chosen(named["classes"])
        if (labels := named["annotation"]) is not None and labels != FULL:
            store.about(labels)
        if named["facts"] is not None:
            store.facts(named["facts"])
    except BadInput as error:
        raise BadInput(f"{file}, {name}: {error}") from None


def _literal(value: Any) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str | int):
        return json.dumps(value, ensure_ascii=False)
    raise BadInput(f"{value!r}: a setting is a number, a text, true or false, or a list or a group of them")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


def _short(value: Any) -> str:
    """A value as part of a folder's name."""
    text = str(value) if isinstance(value, str) else _literal(value).replace('"', "")
    return re.sub(r"[^\w.=+-]+", "_", text).strip("_")


def _cut(name: str) -> str:
    """A name that a folder can have, and that is still its own."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
