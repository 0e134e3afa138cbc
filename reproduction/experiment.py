"""The experiments as they are written down: plain settings, a file each."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

from inbounds.config import Model, Settings, read_settings
from inbounds.config.plan import REGULARISERS
from inbounds.constraints import Common
from inbounds.errors import BadInput, nearest
from inbounds.regions import statistics
from inbounds.store.store import Store
from reproduction.split import group_of

PAPER = ("left-ventricle", "hybrid", "spine", "prostate", "bounds")
"""Those that are tables of the paper."""
OURS = ("fractions", "discussion", "heart", "prostate-volumes", "spine-volumes")
"""Those that it does not have."""
NAMES = (*PAPER, *OURS)
TIMING = "timing"
ABLATION = "ablation"
HERE = Path(__file__).parent
FIRST = "first"
"""In place of a patient's name: the first patient of the training split, so that nobody chooses."""


class Seeds(Model):
    """Simulated weak labels: how a store's annotation is made, and what it is called if it has to be."""

    name: str
    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)
    background: bool = False
    every: int = 1


class Brought(Model):
    """A table as a person brings it: nothing but `what`.

    Each number is within `error` of the true one, as a share; centres within so many `pixels` of the store's grid along
    each axis.
    """

    name: str
    what: Literal["sizes", "tags", "volumes", "centres", "intensities", "centres and intensities"]
    error: float = 0.0
    pixels: float = 0.0
    every: int = 1


class Range(Model):
    """Common bounds as the first patient shows them, on the truth.

    For statistics that tables of facts do not have, or with an upper side that is so many `times` as large.
    """

    statistic: str = "size"
    times: float = 1.0


class Group(Model):
    """The patients of a group, such as a pathology: of those that validate they alone do, and training may lack them.

    Where bounds are fitted on the first patient, it is the first of another group.
    """

    name: str
    trained: bool


class Row(Model):
    """One row of a table: what is trained.

    Attributes:
        cells: What stands in the table's first columns.
        recipe: What is known.
        settings: Of this row alone.
        weight: Of the recipe's own bounds, as the paper weighs them; a plan has weights of its own.
        seeds: Weak labels other than the experiment's.
        labels: Or those that a store came with, by name.
        facts: What people bring beside the labels; else what the simulation of labels wrote down.
        margin: How far off numbers may be, as a share, for the bounds around them; else as the recipe has it.
        ranges: Bounds of a constraint, by its name, that are fitted on the first patient.
        group: Patients who validate, and whom training may lack; else the store's own split holds.
        same_as: `experiment/row` with the same settings, whose results serve where this row has none of its own.
        data: What the store must be, by `name` or `rows` (where bounds in pixels are of a grid of that height);
            elsewhere the row is left out.
    """

    cells: tuple[str, ...]
    recipe: str
    settings: dict[str, Any] = Field(default_factory=dict)
    weight: float | None = None
    seeds: Seeds | None = None
    labels: str = ""
    facts: Brought | None = None
    margin: float | None = None
    ranges: dict[str, Range] = Field(default_factory=dict)
    group: Group | None = None
    same_as: str = ""
    data: dict[Literal["name", "rows"], str] = Field(default_factory=dict)


class Panel(Model):
    """Curves by epoch: rows, and what they are called there."""

    title: str
    rows: dict[str, str]


class Levels(Model):
    """Lines over levels of something: for each line, the row at each level; `stem` names the figure's files."""

    stem: str = "levels"
    across: str
    lines: dict[str, dict[str, str]]


class Experiment(Model):
    """A table, of the paper or of our own, and its figures; `settings` are those of the paper's method.

    Of a table of the paper, `scans` train, which have `slices`: what a run costs follows from them.
    """

    title: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    seeds: Seeds
    scans: int = 0
    slices: int = 0
    settings: dict[str, Any] = Field(default_factory=dict)
    presets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    rows: dict[str, Row]
    curves: tuple[Panel, ...] = ()
    violations: tuple[Panel, ...] = ()
    levels: tuple[Levels, ...] = ()
    pictures: dict[str, str] = Field(default_factory=dict)


class Preset(Model):
    """How all rows are trained.

    Attributes:
        about: In words.
        settings: Of all rows.
        plan: Train as `inbounds train` does: what it plans on a GPU for a row's labels and facts takes the place of the
            paper's method. The last epoch is what counts.
        steps: Of a plan: so many batches in all, from which the epochs follow.
        slices: Of a plan: in an epoch, at least; fewer are gone through several times, so that validation stays rare.
    """

    about: str
    settings: dict[str, Any] = Field(default_factory=dict)
    plan: bool = False
    steps: int = 0
    slices: int = 0


@cache
def experiment(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in NAMES:
        raise BadInput(f"no experiment {name!r}; {nearest(name, (*NAMES, TIMING, ABLATION))}")
    return Experiment.model_validate(_toml(f"{name}.toml"))


@cache
def presets() -> dict[str, Preset]:
    """All presets by name."""
    return {name: Preset.model_validate(content) for name, content in _toml("presets.toml").items()}


@cache
def paper(name: str) -> dict[str, float | None]:
    """What the paper found, by row; nothing of an experiment that it does not have."""
    every: dict[str, dict[str, float | None]] = json.loads((HERE / "paper.json").read_text(encoding="utf-8"))
    return every.get(name, {})


def chosen(experiment: Experiment, rows: Sequence[str], store: Store) -> list[str]:
    """Some rows in the order of the table; if none are named, all that this store serves."""
    has = {"name": store.name, "rows": str(store.shape[0])}
    missing = {
        row: f"{key}={value!r}"
        for row, about in experiment.rows.items()
        for key, value in about.data.items()
        if has[key] != value
    }
    for row in rows:
        if row not in experiment.rows:
            raise BadInput(f"{experiment.title} has no row {row!r}; {nearest(row, experiment.rows)}")
        if row in missing:
            raise BadInput(f"{store.path}: the row {row!r} needs a store with {missing[row]}; prepare one")
    return [row for row in experiment.rows if (row in rows if rows else row not in missing)]


def settings_of(
    experiment: Experiment,
    row: str,
    preset: str,
    store: Store | None,
    changes: Sequence[str] = (),
    plan: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a row: of the experiment, of the preset, its own, then single changes, each above the last.

    What an experiment says of the preset counts above what the preset says of itself. Where a preset plans,
    the plan takes the place of the experiment's settings; without one, the settings are what a person would give.
    Without a store, the first patient has no name yet.
    """
    if preset not in presets():
        raise BadInput(f"no preset {preset!r}; {nearest(preset, presets())}")
    about, how = experiment.rows[row], presets()[preset]
    layers: list[Mapping[str, Any]]
    if how.plan:
        likely = {"regularisers": REGULARISERS}  # so that single settings may change what a plan chooses
        layers = [likely if plan is None else plan, how.settings]
    else:
        layers = [experiment.settings, how.settings, experiment.presets.get(preset, {})]
        layers += [] if about.weight is None else [{"weight": about.weight}]
        around = {"bounds": {"relative": about.margin}}
        layers += [] if about.margin is None else [{"constraints": {"size": around, "volume": around}}]
    layers.append(about.settings)
    if store is not None:
        group = "" if about.group is None else about.group.name
        training = [record for record in store.records if record.split == "train"]
        first = next(record.patient for record in training if not group or group_of(record) != group)
        layers = [_named(layer, first) for layer in layers]
        fitted = {
            name: {"bounds": _fitted(one, store, first, experiment.classes)} for name, one in about.ranges.items()
        }
        layers.append({"constraints": fitted} if fitted else {})
    return read_settings(about.recipe, None, changes, layers=layers, shared=True)


def _named(content: Any, first: str) -> Any:
    """The same settings, with the first patient's name in its place."""
    if isinstance(content, dict):
        return {
            key: first if (key, value) == ("patient", FIRST) else _named(value, first) for key, value in content.items()
        }
    return content


def _fitted(one: Range, store: Store, patient: str, classes: Sequence[str]) -> dict[str, list[float]]:
    """The range that a patient shows, for each class, along all axes together."""
    statistic, seen = statistics[one.statistic], [record for record in store.records if record.patient == patient]
    truth = torch.from_numpy(np.concatenate([store.truth[record.span] for record in seen]))
    masks = torch.stack([truth == store.class_index(klass) for klass in classes], dim=1).double()
    there = masks.flatten(2).any(dim=2)[..., None].double()
    common = Common.fit({statistic.fact: statistic(masks), "present": there}, statistic, classes=range(len(classes)))
    lower, upper = (torch.tensor(side, dtype=torch.float64) for side in (common.lower, common.upper))
    return {"lower": lower.amin(dim=1).tolist(), "upper": (upper.amax(dim=1) * one.times).tolist()}


def _toml(file: str) -> dict[str, Any]:
    return tomllib.loads((HERE / file).read_text(encoding="utf-8"))
