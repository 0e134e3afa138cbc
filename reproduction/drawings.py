"""What the figures of collected results show, and the files they are drawn to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from reproduction.experiment import Levels, Panel, experiment, paper
from reproduction.figures import Curve, Level, draw_curves, draw_levels
from reproduction.results import Collected, counts, rows_of

BROKEN = "images whose mask breaks its bounds"


def figures(name: str, preset: str, runs: Sequence[Collected]) -> dict[str, Any]:
    """What each figure of an experiment shows, by the name of its file; only those that have anything to compare."""
    panels, by_row = curves(name, preset, runs), rows_of(name, preset, runs)
    shown: dict[str, Any] = {"curves": (panels,)} if panels else {}
    if broken := violations(name, preset, runs):
        shown["violations"] = (broken,)
    for across in experiment(name).levels:
        level = {row for rows in across.lines.values() for row in rows.values() if len(set(rows.values())) == 1}
        if len({row for rows in across.lines.values() for row in rows.values() if by_row[row]} - level) > 1:
            shown[across.stem] = (across.across, _places(across), levels(name, preset, runs, across))
    return shown


def draw(folder: Path, name: str, preset: str, runs: Sequence[Collected]) -> list[Path]:
    """The figures of an experiment as SVG and PNG files."""
    ways: dict[str, Callable[..., list[Path]]] = {
        "curves": draw_curves,
        "violations": partial(draw_curves, what=BROKEN),
    }
    shown = figures(name, preset, runs)
    return [file for stem, content in shown.items() for file in ways.get(stem, draw_levels)(folder / stem, *content)]


def curves(name: str, preset: str, runs: Sequence[Collected]) -> list[tuple[str, list[Curve]]]:
    """What the figure of DSC by epoch shows: by panel the curves of the rows that were run.

    A panel with a single curve compares nothing, and is left out where another one does.
    """
    panels = _panels(experiment(name).curves, rows_of(name, preset, runs), lambda run: run.curves["dsc_volume"])
    return [panel for panel in panels if len(panel[1]) > 1] or [panel for panel in panels if panel[1]]


def violations(name: str, preset: str, runs: Sequence[Collected]) -> list[tuple[str, list[Curve]]]:
    """What the figure of bounds that do not hold shows: by panel the rows to compare, by epoch."""

    def broken(run: Collected) -> list[float]:
        return [round(1 - held, 5) for held in run.curves["satisfied"]]

    bounded = {
        row: [run for run in some if "satisfied" in run.curves] for row, some in rows_of(name, preset, runs).items()
    }
    return [panel for panel in _panels(experiment(name).violations, bounded, broken) if len(panel[1]) > 1]


def _panels(
    panels: Sequence[Panel], by_row: Mapping[str, Sequence[Collected]], values: Callable[[Collected], Sequence[float]]
) -> list[tuple[str, list[Curve]]]:
    """By panel the curves of the rows that were run."""

    def points(run: Collected) -> tuple[tuple[float, float], ...]:
        return tuple(zip(run.curves["epoch"], values(run), strict=True))

    found = []
    for panel in panels:
        some = [Curve(label, tuple(points(run) for run in by_row[row])) for row, label in panel.rows.items()]
        found.append((panel.title, [curve for curve in some if curve.seeds]))
    return found


def levels(name: str, preset: str, runs: Sequence[Collected], across: Levels) -> list[Level]:
    """What a figure over levels shows: DSC per volume at the epoch that counts, and the paper's."""
    by_row, theirs, protocol = rows_of(name, preset, runs), paper(name), counts(preset)
    lines = []
    for label, rows in across.lines.items():
        ours, figures = [], []
        for place in _places(across):
            values = [run.value("dsc_volume", protocol) for run in by_row[rows[place]]] if place in rows else []
            ours.append((fmean(values) if values else math.nan, stdev(values) if len(values) > 1 else math.nan))
            figure = theirs.get(rows[place]) if place in rows else None
            figures.append(math.nan if figure is None else figure)
        lines.append(Level(label, tuple(ours), tuple(figures)))
    return lines


def _places(across: Levels) -> list[str]:
    return list(dict.fromkeys(place for rows in across.lines.values() for place in rows))
