"""Every cell of the paper's tables of results beside ours, and what it would cost to run what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.tables import markdown
from reproduction.experiment import PAPER, experiment, paper, settings_of
from reproduction.results import Collected, counts, presets_of, rows_of
from reproduction.tables import came, mean, otherwise

CELLS = "cells"
SHOWN = ("paper", "default")
KINDS = {
    "partial": "partial",
    "full": "full",
    "proposals_tags": "proposals_1",
    "proposals_common": "proposals_2",
    "proposals_individual": "proposals_2",
}
"""What a step of a recipe is like, among those that the benchmark measures; a penalty with two bounds if not named."""
Steps = Sequence[Mapping[str, Any]]
DIRECT = "penalty_2"
EIGHT = ("steps", DIRECT, 8)


def cells(collected: Sequence[Collected], benches: Sequence[Mapping[str, Any]]) -> str:
    """One table of all of the paper's, in Markdown: its figures, both presets', and others' where neither has any.

    Args:
        collected: What was run.
        benches: What was measured of steps; those on a GPU say what cells would cost that were not run.
    """
    steps = [row for bench in benches if not bench.get("device", "CPU").startswith("CPU") for row in bench["rows"]]
    lines = [["table", "row", "paper", *(f"`{preset}`" for preset in SHOWN), "otherwise"]]
    for name in PAPER:
        about, theirs = experiment(name), paper(name)
        of = {preset: rows_of(name, preset, collected) for preset in (*SHOWN, *presets_of(name, collected))}
        there = [row for row, one in about.rows.items() if theirs[row] is not None and "name" not in one.data]
        for number, row in enumerate(there):
            known = {preset: _ours(of[preset][row], preset) for preset in SHOWN}
            ours = [known[one] or f"not run{_price(name, row, one, collected, steps)}" for one in SHOWN]
            named = zip(about.columns, about.rows[row].cells, strict=True)
            words = ", ".join(f"{column}: {cell}" if cell.isdigit() else cell for column, cell in named)
            other = otherwise(of, row, SHOWN, _ours)
            lines.append(["" if number else about.title, words, f"{theirs[row]:.3f}", *ours, other])
    return markdown(lines)


def _ours(runs: Sequence[Collected], preset: str) -> str:
    """DSC per volume at the epoch that counts."""
    return mean([run.value("dsc_volume", counts(preset)) for run in runs]) + came(runs) if runs else ""


def _price(name: str, row: str, preset: str, collected: Sequence[Collected], steps: Steps) -> str:
    """Minutes on a GPU by itself: measured steps times time, or where a preset plans what other rows took."""
    minutes = _planned(name, collected) if preset == "default" else _stepped(name, row, steps)
    return "" if minutes is None else f" ({minutes:.0f} min)"


def _planned(name: str, collected: Sequence[Collected]) -> float | None:
    runs = {about: [run for run in collected if run.key == (about, "default")] for about in (name, PAPER[0])}
    seconds = [float(run.about["seconds"]) for run in runs[name] or runs[PAPER[0]] if run.about.get("seconds")]
    return max(1.0, median(seconds) / 60) if seconds else None


def _stepped(name: str, row: str, measured: Steps) -> float | None:
    """200 epochs of steps of the paper's network and batch; a kind of step is as much slower as ENet's is."""
    about, settings = experiment(name), settings_of(experiment(name), row, "paper", None)
    training, network = settings.training, (settings.network.name, settings.training.batch)
    times: dict[tuple[str, str, int], float] = {
        (one["section"], one["name"], one["batch"]): one["ms"] for one in measured
    }
    kinds = {name: ms for (section, name, batch), ms in times.items() if (section, batch) == ("steps", 1)}
    if not kinds.keys() >= {DIRECT, *KINDS.values()} or EIGHT not in times or training.epochs is None:
        return None
    enet = kinds[DIRECT] if training.batch == 1 else times[EIGHT] * training.batch / 8  # at most
    direct = times.get(("networks", *network), enet if settings.network.name == "enet" else None)
    if direct is None:
        return None
    share = settings.hybrid.full_scans / about.scans if settings.hybrid.only_full else 1.0
    steps = training.epochs * share * about.slices * training.repeats / training.batch
    slower = kinds[KINDS.get(settings.recipe, DIRECT)] / kinds[DIRECT]
    if settings.recipe == "volume":  # whole scans at once, which is faster
        slower = times[EIGHT] / 8 / direct
    return steps * direct * slower / 60_000
