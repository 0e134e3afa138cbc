"""Figures that explain, and show no result: what a violation costs, and what there is to be known of an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from inbounds.annotations.annotation import UNLABELLED
from inbounds.constraints import hinge, log_barrier, quadratic
from inbounds.constraints.penalties import Penalty
from inbounds.reports.pictures import window
from inbounds.sources.phantom import CLASSES, generate
from inbounds.store.seeds import erosion
from reproduction.figures import COLOURS, MARKS, RULE, SOFT, bare, figure, written


def draw_penalty(stem: Path) -> list[Path]:
    """What a region's size costs: nothing within its bounds, and the more the further outside."""
    lower, upper = 1.0, 2.0
    size = torch.linspace(0, 3, 601, dtype=torch.float64)
    penalties: tuple[tuple[str, Penalty, Any, float], ...] = (
        ("quadratic: the paper's", quadratic, "-", 2.2),
        ("hinge", hinge, (0, (5, 2)), 1.4),
        ("log barrier, t = 5", log_barrier(5.0), (0, (1, 1.5)), 1.4),
    )
    with figure(stem, "", (5.4, 3.0)) as axes:
        axis = axes[0][0]
        axis.axvspan(lower, upper, color=RULE, alpha=0.5, linewidth=0)
        for (name, penalty, dash, width), colour in zip(penalties, COLOURS, strict=False):
            axis.plot(
                size,
                penalty(lower - size) + penalty(size - upper),
                color=colour,
                linestyle=dash,
                linewidth=width,
                label=name,
            )
        axis.text((lower + upper) / 2, 0.62, "within bounds", ha="center", color=SOFT)
        axis.set(xlim=(0, 3), ylim=(-0.06, 1.05), xlabel="size of the soft region", ylabel="penalty")
        axis.set_xticks([lower, upper], ["lower bound", "upper bound"])
        axis.set_yticks([0])
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=3, handlelength=2.4)
    return written(stem)


def draw_levels_of_supervision(stem: Path) -> list[Path]:
    """What can be known of one image, from every pixel to a tag, on a generated heart.

    Bounds are drawn as circles of the smallest and of the largest area that they allow: how large a region is, is
    known, and where it lies is not.
    """
    scan, klass = generate(1, "ED", shape=(176, 176), seed=0), CLASSES.index("LV")
    labels = np.asarray(scan.truth)
    sizes = (labels == klass).sum(axis=(1, 2))
    number = int(np.argsort(sizes)[(len(sizes) + int((sizes == 0).sum())) // 2])  # of middling size
    mask = labels[number] == klass
    part = window(mask)
    truth, image = mask[part], scan.image[0, number][part]
    seeds = erosion(labels[number], [klass], np.random.default_rng(0))[part] != UNLABELLED
    size, present = int(sizes[number]), sizes[sizes > 0]
    common = (0.9 * float(present.min()), 1.1 * float(present.max()))
    own = (0.9 * size, 1.1 * size)
    panels: list[tuple[str, str, np.ndarray | None, tuple[float, float] | None]] = [
        ("image", "", None, None),
        ("full", "every pixel", truth, None),
        ("partial", "a few pixels", seeds, None),
        ("tags", "and: it is there", seeds, None),
        ("common", f"and: {common[0]:.0f} to {common[1]:.0f} px", seeds, common),
        ("individual", f"and: {own[0]:.0f} to {own[1]:.0f} px", seeds, own),
    ]
    with figure(stem, "", (1.6 * len(panels), 2.15), 1, len(panels)) as axes:
        for axis, (title, text, label, bounds) in zip(axes[0], panels, strict=True):
            axis.imshow(image, cmap="gray", interpolation="nearest")
            if label is not None:
                _paint(axis, label, COLOURS[2])
            if label is truth:
                _paint(axis, ~label, "#c0392b", 0.3)
            for area, dash in zip(bounds or (), ((0, (1, 1.5)), "-"), strict=False):
                _circle(axis, seeds, area, dash)
            bare(axis)
            axis.set_title(title, loc="center")
            axis.set_xlabel(text, fontsize=8.5)
    return written(stem)


def _paint(axis: Any, where: np.ndarray, colour: str, strength: float = 0.8) -> None:
    from matplotlib.colors import to_rgb

    overlay = np.zeros((*where.shape, 4))
    overlay[where] = (*to_rgb(colour), strength)
    axis.imshow(overlay, interpolation="nearest")


def _circle(axis: Any, around: np.ndarray, area: float, dash: Any) -> None:
    from matplotlib.patches import Circle

    row, column = (float(places.mean()) for places in np.nonzero(around))
    radius = float(np.sqrt(area / np.pi))
    axis.add_patch(Circle((column, row), radius, fill=False, edgecolor=MARKS[1], linewidth=1.4, linestyle=dash))
