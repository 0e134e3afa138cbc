"""What runs left in their files, gathered for a page: settings, curves and evaluations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.samples import load
from inbounds.errors import BadInput
from inbounds.evaluation.summary import Summary
from inbounds.reading import open_file
from inbounds.runs.checkpoint import kept_epochs
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows
from inbounds.store.store import Store


@dataclass(frozen=True)
class Result:
    """What one run left.

    Attributes:
        run: What decides it.
        name: A short name that no other run of the page has.
        known: What it knew of the images, in words.
        labelled: The share of the training pixels whose class it knew.
        bounded: Whether it knew any bounds.
        kept: The epoch of each network it keeps.
        model: The network it is judged by.
        curves: What it measured epoch by epoch.
        summaries: By model, the means of its evaluation on the split.
        cases: By class and scan, the DSC per volume of `model`.
        slices: By class, scan and slice, the DSC of `model`.
    """

    run: Run
    name: str
    known: tuple[str, ...]
    labelled: float
    bounded: bool
    kept: dict[str, int]
    model: str
    curves: list[Row]
    summaries: dict[str, Summary]
    cases: dict[str, dict[str, float]]
    slices: dict[tuple[str, str, int], float]


def unmeasured(runs: Sequence[Run], split: str) -> list[tuple[Run, str]]:
    """The networks to evaluate before a page can be written: no evaluation, or one of an earlier epoch.

    Raises:
        BadInput: The runs cannot be compared, for they do not hold out the same scans, or one is named twice; or the
            curves of one are damaged, which is better heard before a long evaluation than after it.
    """
    _names(runs)
    _common_store(runs, split)
    for run in runs:
        read_rows(run.path / "metrics.csv", growing=True)
    wanted = [(run, model) for run in runs for model in _models(run)]
    return [(run, model) for run, model in wanted if _summary(run, split, model) is None]


def read_results(runs: Sequence[Run], split: str) -> list[Result]:
    """What the runs left, in their order."""
    _common_store(runs, split)
    return [_result(run, name, split) for run, name in zip(runs, _names(runs), strict=True)]


def _result(run: Run, name: str, split: str) -> Result:
    store = run.opened_store()
    hybrid = run.settings.hybrid.model_dump()
    samples = load(
        store, run.annotation, facts=run.facts, classes=run.classes, data_on_device=False, seed=run.seed, **hybrid
    )
    labelled = sum(int((maps != UNLABELLED).sum()) for maps in samples.labels.split(256))
    summaries = {model: _summary(run, split, model) for model in _models(run)}
    rows: list[Row] = []
    if summaries.get(run.default_model):
        rows = read_rows(run.path / "evaluation" / f"{split}-{run.default_model}" / "cases.csv")
    cases: dict[str, dict[str, float]] = {klass: {} for klass in run.classes}
    slices: dict[tuple[str, str, int], float] = {}
    for row in rows:
        if row.metric == "dsc_volume":
            cases[row.klass][row.case] = row.value
        elif row.metric == "dsc_slice" and row.slice != "":
            slices[row.klass, row.case, row.slice] = row.value
    return Result(
        run,
        name,
        tuple(run.about["known"]),
        labelled / (len(samples) * samples.pixels),
        len(run.about["known"]) > 1,
        kept_epochs(run.checkpoint),
        run.default_model,
        read_rows(run.path / "metrics.csv", growing=True),
        {model: summary for model, summary in summaries.items() if summary is not None},
        cases,
        slices,
    )


def classes_of(results: Sequence[Result]) -> list[str]:
    """All classes that any of the runs learned, in their order."""
    return list(dict.fromkeys(klass for result in results for klass in result.run.classes))


def _models(run: Run) -> list[str]:
    return list(dict.fromkeys([run.default_model, "last"])) if run.checkpoint is not None else []


def _summary(run: Run, split: str, model: str) -> Summary | None:
    """The means of an evaluation; nothing if there is none, or one of an earlier epoch."""
    folder = run.path / "evaluation" / f"{split}-{model}"
    try:
        with open_file(folder / "summary.json") as file:
            content: dict[str, Any] = json.load(file)
        current = content["epoch"] == kept_epochs(run.checkpoint)[model] and (folder / "cases.csv").is_file()
        metrics: Summary = content["metrics"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return metrics if current else None


def _names(runs: Sequence[Run]) -> list[str]:
    """Of each path its last parts, as many as tell it from the others."""
    paths = [run.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise BadInput(f"{twice}: given twice; name each run once")
    return [_ending(path, [other for other in paths if other != path]) for path in paths]


def _ending(path: Path, others: Sequence[Path]) -> str:
    for count in range(1, len(path.parts)):
        ending = path.parts[-count:]
        if all(other.parts[-count:] != ending for other in others):
            return "/".join(ending)
    return str(path)


def _common_store(runs: Sequence[Run], split: str) -> Store:
    """The data of the first run, once those of all others are known to hold out the same scans."""
    if not runs:
        raise BadInput("no run to report on; name at least one")
    first = runs[0].opened_store()
    if not any(record.split == split for record in first.records):
        there = ", ".join(sorted({record.split for record in first.records}))
        raise BadInput(f"{first.path}: no scan is in the split {split!r}; there are: {there}")
    for run in runs[1:]:
        if not _same_scans(first, run.opened_store(), split):
            raise BadInput(
                f"{runs[0].path} and {run.path}: their {split} scans differ, so their figures cannot be compared; "
                "report on runs that share a store"
            )
    return first


def _same_scans(one: Store, other: Store, split: str) -> bool:
    mine, theirs = ([record for record in store.records if record.split == split] for store in (one, other))
    if [(r.name, r.slices, r.truth) for r in mine] != [(r.name, r.slices, r.truth) for r in theirs]:
        return False
    if one.checksums == other.checksums:
        return True
    if one.shape != other.shape or one.classes != other.classes:
        return False
    spans = [(a.span, b.span, a.truth) for a, b in zip(mine, theirs, strict=True)]
    return all(
        np.array_equal(one.images[a], other.images[b]) and (not truth or np.array_equal(one.truth[a], other.truth[b]))
        for a, b, truth in spans
    )
