"""The experiments as they are written down: plain settings, a file each."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from inbounds.config import Model, Settings, read_settings
from inbounds.datasets.store import Store
from inbounds.errors import BadInput

NAMES = ("left-ventricle", "hybrid", "spine", "prostate", "bounds", "loose-bounds", "loose-bounds-small")
TIMING = "timing"
FIRST = "first"
"""In place of a patient's name: the first patient of the training split, so that nobody chooses."""


class Seeds(Model):
    """Weak labels as the paper has them: how a store's annotation is made, and what it is called if it has to be."""

    name: str
    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Row(Model):
    """One row of a table: what is trained.

    Attributes:
        cells: What stands in the table's first columns.
        recipe: What is known.
        settings: Of this row alone.
        presets: Settings of this row in some presets only.
        seeds: Weak labels other than the experiment's.
        same_as: `experiment/row` with the same settings, whose results serve where this row has none of its own.
        data: What the store must be, by `name`, `fit` or `rows` (where bounds in pixels are of a grid of that height);
            elsewhere the row is left out.
    """

    cells: tuple[str, ...]
    recipe: str
    settings: dict[str, Any] = Field(default_factory=dict)
    presets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    seeds: Seeds | None = None
    same_as: str = ""
    data: dict[Literal["name", "fit", "rows"], str] = Field(default_factory=dict)


class Panel(Model):
    """Curves by epoch: rows, and what they are called there."""

    title: str
    rows: dict[str, str]


class Levels(Model):
    """Lines over levels of something: for each line, the row at each level."""

    across: str
    lines: dict[str, dict[str, str]]


class Experiment(Model):
    """A table of the paper, and its figures."""

    title: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    seeds: Seeds
    settings: dict[str, Any]
    presets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    rows: dict[str, Row]
    curves: tuple[Panel, ...] = ()
    sizes: dict[str, str] = Field(default_factory=dict)
    levels: Levels | None = None
    pictures: dict[str, str] = Field(default_factory=dict)


class Preset(Model):
    """How all rows are trained.

    Attributes:
        about: What it is, in words.
        like: Another preset, whose settings hold where this one has none.
        settings: Its own.
    """

    about: str
    like: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)


@cache
def experiment(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in NAMES:
        raise BadInput(f"no experiment {name!r}; {nearest(name, (*NAMES, TIMING))}")
    return Experiment.model_validate(_toml(f"{name}.toml"))


@cache
def presets() -> dict[str, Preset]:
    """All presets by name."""
    return {name: Preset.model_validate(content) for name, content in _toml("presets.toml").items()}


@cache
def paper(name: str) -> dict[str, float | None]:
    """What the paper found, by row; nothing of an experiment that it does not have."""
    every = json.loads((files(__package__) / "paper.json").read_text(encoding="utf-8"))
    found: dict[str, float | None] = every.get(name, {})
    return found


def chosen(experiment: Experiment, rows: Sequence[str], store: Store) -> list[str]:
    """Some rows in the order of the table; if none are named, all that this store serves."""
    found = {"name": store.name, "fit": store.source.get("fit"), "rows": str(store.shape[0])}
    missing = {
        row: f"{key}={value!r}"
        for row, told in experiment.rows.items()
        for key, value in told.data.items()
        if found[key] != value
    }
    for row in rows:
        if row not in experiment.rows:
            raise BadInput(f"{experiment.title} has no row {row!r}; {nearest(row, list(experiment.rows))}")
        if row in missing:
            raise BadInput(f"{store.path}: the row {row!r} needs a store with {missing[row]}; prepare one")
    return [row for row in experiment.rows if (row in rows if rows else row not in missing)]


def settings_of(
    experiment: Experiment, row: str, preset: str, store: Store | None, changes: Sequence[str] = ()
) -> Settings:
    """The settings of a row: of the experiment, of the preset, its own, then single changes, each above the last.

    What an experiment or a row says of the preset counts above what the preset says of itself. What is said of a preset
    that this one is like counts too, below all that is said of this one. Without a store, the first patient has no
    name yet.
    """
    if preset not in presets():
        raise BadInput(f"no preset {preset!r}; {nearest(preset, list(presets()))}")
    told = experiment.rows[row]
    content: dict[str, Any] = {}
    names = [preset]
    while like := presets()[names[0]].like:
        names.insert(0, like)
    layers = [experiment.settings]
    for name in names:
        layers += [presets()[name].settings, experiment.presets.get(name, {})]
    for layer in (*layers, told.settings, *(told.presets.get(name, {}) for name in names)):
        content |= _flat(layer)
    if not told.recipe.startswith("proposals_"):
        content = {key: value for key, value in content.items() if not key.startswith("proposals.")}
    if store is not None and content.get("common.patient") == FIRST:
        content["common.patient"] = next(record.patient for record in store.records if record.split == "train")
    written = [f"{key}={_inline(value)}" for key, value in content.items()]
    return read_settings(told.recipe, None, [*written, *changes])


def nearest(name: str, names: Sequence[str]) -> str:
    """What may have been meant."""
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"


def _inline(value: Any) -> str:
    """A value as TOML writes it within a line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _flat(content: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in content.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def _toml(file: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / file).read_text(encoding="utf-8"))
