"""Figures for print and for pages, from numbers alone: as SVG and as PNG, the same numbers giving the same file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import growth
from inbounds.reports.curves import epochs as epochs_shown
from inbounds.reports.curves import spread
from inbounds.reports.pictures import window
from inbounds.writing import file_aside

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c0528c", "#d99a00", "#45a5dc")
"""As on the page that compares runs; they can be told apart by the colour-blind too."""
INK, SOFT, RULE = "#1c1e21", "#5d6368", "#dcddd8"
DASHED = (0, (4, 2))
MARKS = ("#4aa8e8", "#f5c344")
"""Over scans: of what was found, and of the truth."""

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "inbounds",
}


@dataclass(frozen=True)
class Curve:
    """What is called `name`: for each seed its epochs and values."""

    name: str
    seeds: tuple[tuple[tuple[float, float], ...], ...]


@dataclass(frozen=True)
class Level:
    """A line over levels: mean and standard deviation at each, and what the paper has there (NaN for none)."""

    name: str
    ours: tuple[tuple[float, float], ...]
    paper: tuple[float, ...]


def fingerprint(content: Any) -> str:
    """A short name for what a figure shows; it is written into the file, so that the two can be compared."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def draw_curves(
    stem: Path, panels: Sequence[tuple[str, Sequence[Curve]]], what: str = "DSC per volume, validation"
) -> list[Path]:
    """A share by epoch, a panel beside the other: the mean over seeds, and their range as a band."""
    names = list(dict.fromkeys(curve.name for _, curves in panels for curve in curves))
    with figure(stem, fingerprint((panels,)), (4.6 * len(panels) + 0.4, 3.4), 1, len(panels), sharey=True) as axes:
        for axis, (title, curves) in zip(axes[0], panels, strict=True):
            last = max((epoch for curve in curves for seed in curve.seeds for epoch, _ in seed), default=2)
            ends = []
            for curve in curves:
                colour = COLOURS[names.index(curve.name) % len(COLOURS)]
                epochs, values = _grid(curve)
                mean = np.nanmean(values, axis=0)
                if len(values) > 1:
                    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
                    axis.fill_between(epochs, low, high, color=colour, alpha=0.16, linewidth=0)
                axis.plot(epochs, mean, color=colour, linewidth=1.5, label=curve.name)
                ends.append((float(mean[-1]), curve.name, colour))
            places = spread([100 * value for value, _, _ in ends], 6.2, (0, 100))
            for place, (_, name, colour) in zip(places, ends, strict=True):
                axis.annotate(name, (1.02, place / 100), xycoords="axes fraction", color=colour, va="center")
            axis.set(title=title, xlabel="epoch", xlim=(1, max(last, 2)), ylim=(0, 1))
            axis.set_xticks(epochs_shown(int(max(last, 2))))
            axis.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        axes[0][0].set_ylabel(what)
    return written(stem)


def draw_levels(stem: Path, across: str, levels: Sequence[str], lines: Sequence[Level]) -> list[Path]:
    """Lines over levels: ours with the spread over seeds, the paper's dashed."""
    with figure(stem, fingerprint((across, levels, lines)), (5.6, 3.4)) as axes:
        axis, x = axes[0][0], np.arange(len(levels))
        for line, colour in zip(lines, COLOURS, strict=False):
            flat = len(set(line.ours)) == 1
            dots = {"color": colour, "marker": "" if flat else "o", "markersize": 5}
            mean, std = (np.array([pair[n] for pair in line.ours]) for n in (0, 1))
            axis.plot(x, line.paper, linewidth=1.1, linestyle=DASHED, markerfacecolor="white", **dots)
            if flat or np.isnan(std).all():
                axis.plot(x, mean, linewidth=1.7, label=line.name, **dots)
            else:
                axis.errorbar(x, mean, np.nan_to_num(std), linewidth=1.7, capsize=2.5, label=line.name, **dots)
        handles, names = axis.get_legend_handles_labels()
        if not all(math.isnan(figure) for line in lines for figure in line.paper):
            handles.append(axis.plot([], [], color=SOFT, linewidth=1.1, linestyle=DASHED)[0])
            names.append("the paper")
        axis.legend(handles, names, loc="center left", bbox_to_anchor=(1.01, 0.5))
        axis.set(xticks=x, xticklabels=levels, xlabel=across, ylabel="DSC per volume, validation", ylim=(None, 1))
        axis.margins(x=0.05)
    return written(stem)


def draw_cases(stem: Path, rows: Sequence[tuple[str, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]]) -> list[Path]:
    """Scans with the truth and what each run found, with its DSC in this slice: a case a row.

    Args:
        stem: Where to, without an ending.
        rows: Of each case: what to write beside it, the image, the true mask, and by name the masks found.
    """
    columns = 2 + len(rows[0][3])
    with figure(stem, "", (1.55 * columns + 0.4, 1.75 * len(rows) + 0.3), len(rows), columns) as axes:
        for number, (line, (text, image, truth, predicted)) in enumerate(zip(axes, rows, strict=True)):
            masks: dict[str, np.ndarray | None] = {"scan": None, "truth": truth, **predicted}
            part = window(truth)
            line[0].set_ylabel(text, fontsize=8)
            for axis, (name, mask) in zip(line, masks.items(), strict=True):
                axis.imshow(image[part], cmap="gray", interpolation="nearest")
                if mask is not None and mask[part].any():
                    axis.contourf(mask[part], levels=[0.5, 1.5], colors=[MARKS[name == "truth"]], alpha=0.3)
                    axis.contour(mask[part], levels=[0.5], colors=[MARKS[name == "truth"]], linewidths=1.2)
                bare(axis)
                if number == 0:
                    axis.set_title(name, loc="center", fontsize=9, fontweight="normal")
                if name in predicted:
                    dice = 2 * (predicted[name] & truth).sum() / max(predicted[name].sum() + truth.sum(), 1)
                    axis.set_xlabel(f"DSC {dice:.2f}", fontsize=8, labelpad=2)
    return written(stem)


def draw_growth(stem: Path, bench: Mapping[str, Any]) -> list[Path]:
    """How time grows; dashed, a straight line through the origin and the longest epoch. Nothing if not measured."""
    images, batches = growth(bench)
    if not images:
        return []
    with figure(stem, fingerprint((images, batches)), (7.2, 2.8), 1, 2) as axes:
        left, right = axes[0]
        most, longest = images[-1]
        left.plot([0, most], [0, longest], color=SOFT, linewidth=1.1, linestyle=DASHED)
        left.plot(*zip(*images, strict=True), color=COLOURS[0], marker="o", clip_on=False)
        left.set(title="Steps of an epoch", xlabel="images", ylabel="seconds", xlim=(0, None), ylim=(0, None))
        right.plot(*zip(*batches, strict=True), color=COLOURS[1], marker="o", clip_on=False)
        right.set(title="An image, by batch", xlabel="images a batch", ylabel="ms", ylim=(0, None))
        right.set_xticks([size for size, _ in batches])
    return written(stem)


def draw_pace(stem: Path, measured: Mapping[str, Any]) -> list[Path]:
    """DSC after so many seconds of a training that began at nothing; see `reproduction.pace`."""
    seconds, scores = measured["seconds"], measured["dsc"]
    with figure(stem, fingerprint((seconds, scores)), (5.6, 2.8)) as axes:
        axis = axes[0][0]
        axis.plot(seconds, scores, color=COLOURS[0], marker="o", markersize=5, linewidth=1.7)
        axis.axvspan(0, seconds[0] - (seconds[1] - seconds[0]), color=RULE, linewidth=0)
        axis.annotate(
            "start,\ncompilation", (seconds[0] / 2, 0.04), xycoords=("data", "axes fraction"), ha="center", color=SOFT
        )
        axis.set(xlabel="seconds", ylabel="DSC per volume, validation", xlim=(0, None), ylim=(None, 1))
    return written(stem)


def bare(axis: Any) -> None:
    """Nothing around a picture."""
    axis.set(xticks=[], yticks=[])
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)


@contextmanager
def figure(
    stem: Path, shows: str, size: tuple[float, float], rows: int = 1, columns: int = 1, **settings: Any
) -> Iterator[Any]:
    """Axes to draw on, written as SVG and PNG in the end; `shows` goes into both as their description."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        drawn, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **settings)
        try:
            yield axes
            for file, silent in zip(written(stem), ("Date", "Software"), strict=True):
                with file_aside(file) as part:
                    kind = file.suffix.removeprefix(".")
                    drawn.savefig(part, format=kind, dpi=160, metadata={silent: None, "Description": shows})
        finally:
            plt.close(drawn)


def written(stem: Path) -> list[Path]:
    """The files of a figure."""
    return [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]


def _grid(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """The epochs that any seed has, and a line of values for each seed; NaN where it has none."""
    epochs = sorted({epoch for seed in curve.seeds for epoch, _ in seed})
    values = np.array([[dict(seed).get(epoch, math.nan) for epoch in epochs] for seed in curve.seeds])
    return np.array(epochs), values
