"""Lines and boxes as numbers that a template can draw: across in per cent of the width, down in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HEIGHT = 220
"""Pixels of a chart with lines."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A run's curve.

    Attributes:
        run: Its number, which decides the colour.
        name: What to write at its end.
        points: Epoch and value; a gap where a value is NaN.
        soft: Of the probabilities rather than of the mask: drawn dashed, without a name.
    """

    run: int
    name: str
    points: Points
    soft: bool = False


@dataclass(frozen=True)
class Drawn:
    """A line on its chart: the path, its end, and where its name goes."""

    run: int
    name: str
    soft: bool
    path: str
    end: tuple[float, float]
    label: float


@dataclass(frozen=True)
class Chart:
    """A chart of lines; ticks are pairs of place and text."""

    y_ticks: list[tuple[float, str]]
    x_ticks: list[tuple[float, str]]
    lines: list[Drawn]
    height: int = HEIGHT
    strong: float | None = None


@dataclass(frozen=True)
class Box:
    """The spread of a run's cases, in per cent of the width, which goes from 0 to 1.

    Attributes:
        run: Its number.
        name: Its name.
        n: How many cases there are.
        undefined: How many more have no value.
        median: Itself, not in per cent.
        ends: The furthest cases within 1.5 times the box's width.
        quartiles: Where the box begins, its median, where it ends.
        dots: Each case: across, down from the middle, and its name with its value.
    """

    run: int
    name: str
    n: int
    undefined: int
    median: float = math.nan
    ends: tuple[float, float] = (0.0, 0.0)
    quartiles: tuple[float, float, float] = (0.0, 0.0, 0.0)
    dots: list[tuple[float, float, str]] = field(default_factory=list)


def share_chart(lines: Iterable[Line], *, percent: bool = False) -> Chart:
    """Curves of a share, from 0 at the bottom to 1 at the top."""
    ticks = [(share, f"{100 * share:.0f} %" if percent else f"{share:.1f}") for share in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    return _chart(lines, lambda share: min(max(share, 0.0), 1.0), ticks)


def ratio_chart(lines: Sequence[Line]) -> Chart:
    """Curves of a ratio on a logarithmic scale with 1 in the middle; what is beyond 16 times lies on the edge."""
    values = [value for line in lines for _, value in line.points if value > 0 and math.isfinite(value)]
    reach = min(4, max(1, math.ceil(max((abs(math.log2(value)) for value in values), default=1))))

    def place(ratio: float) -> float:
        log = math.log2(ratio) if ratio > 0 else -math.inf
        return (min(max(log, -reach), reach) + reach) / (2 * reach)

    ticks = [(2.0**n, f"{2**n}" if n >= 0 else f"1/{2**-n}") for n in range(-reach, reach + 1)]
    return _chart(lines, place, ticks, strong=HEIGHT / 2)


def size_chart(lines: Sequence[Line]) -> Chart:
    """Curves of sizes in pixels, from 0 to a round number above the largest."""
    largest = max((value for line in lines for _, value in line.points if math.isfinite(value)), default=1)
    step = _round_step(largest / 4)
    ticks = [(n * step, f"{n * step}") for n in range(math.ceil(largest / step) + 1)]
    return _chart(lines, lambda size: size / ticks[-1][0], ticks)


def _chart(
    lines: Iterable[Line],
    place: Callable[[float], float],
    ticks: Sequence[tuple[float, str]],
    strong: float | None = None,
) -> Chart:
    lines = [line for line in lines if any(not math.isnan(value) for _, value in line.points)]
    last = max((epoch for line in lines for epoch, _ in line.points), default=2)
    across = max(last, 2) - 1

    def put(epoch: float, value: float) -> tuple[float, float]:
        return 100 * (epoch - 1) / across, HEIGHT * (1 - place(value))

    placed = [[(e, v) if math.isnan(v) else put(e, v) for e, v in line.points] for line in lines]
    ends = [next(point for point in reversed(points) if not math.isnan(point[1])) for points in placed]
    named = [n for n, line in enumerate(lines) if not line.soft]
    labels = dict(zip(named, spread([ends[n][1] for n in named], 14, (0, HEIGHT)), strict=True))
    drawn = [
        Drawn(line.run, shorten(line.name), line.soft, path(points), end, labels.get(n, end[1]))
        for n, (line, points, end) in enumerate(zip(lines, placed, ends, strict=True))
    ]
    down = [(HEIGHT * (1 - place(value)), text) for value, text in ticks]
    return Chart(down, [(put(epoch, 1)[0], str(epoch)) for epoch in epochs(int(across) + 1)], drawn, strong=strong)


def epochs(last: int) -> list[int]:
    """Round numbers of epochs for an axis that goes from 1 to `last`.

    Example:
        >>> epochs(200)
        [1, 50, 100, 150, 200]
    """
    step = _round_step(last / 5)
    return [1, *(epoch for epoch in range(step, last + 1, step) if epoch - 1 > step / 2)]


def _round_step(rough: float) -> int:
    unit = 10 ** math.floor(math.log10(rough)) if rough >= 1 else 1
    return next(n * unit for n in (1, 2, 5, 10) if n * unit >= rough)


def path(points: Points) -> str:
    """An SVG path through points, interrupted where a value is NaN; a lone point becomes a short dash.

    Example:
        >>> path([(0, 5), (10, 6), (20, math.nan), (30, 7)])
        'M0 5L10 6M30 7h0.5'
    """
    pieces: list[list[str]] = [[]]
    for x, y in points:
        if math.isnan(y):
            pieces.append([])
        else:
            pieces[-1].append(f"{round(x, 2):g} {round(y, 2):g}")
    return "".join("M" + "L".join(piece) + ("h0.5" if len(piece) == 1 else "") for piece in pieces if piece)


def spread(places: Sequence[float], gap: float, limits: tuple[float, float]) -> list[float]:
    """Labels moved apart as little as needed: in order, `gap` from each other, within limits if they fit.

    Example:
        >>> spread([10, 12, 50], 10, (0, 100))
        [6.0, 16.0, 50.0]
    """
    groups: list[tuple[float, list[int]]] = []
    for index in sorted(range(len(places)), key=lambda n: (places[n], n)):
        members, middle = [index], places[index]
        while groups and groups[-1][0] + gap * (len(groups[-1][1]) + len(members)) / 2 > middle:
            members = groups.pop()[1] + members
            half = gap * (len(members) - 1) / 2
            middle = sum(places[n] for n in members) / len(members)
            middle = max(min(middle, limits[1] - half), limits[0] + half)
        groups.append((middle, members))
    moved = {n: at + gap * (k - (len(some) - 1) / 2) for at, some in groups for k, n in enumerate(some)}
    return [float(moved[n]) for n in range(len(places))]


def shorten(name: str, most: int = 15) -> str:
    """A name that fits, its middle left out."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most - 1 - most // 2) :]}"


def box(run: int, name: str, cases: Mapping[str, float]) -> Box:
    """Tukey's box of what a run reached case by case, every case a dot."""
    order = sorted((value, case) for case, value in cases.items() if not math.isnan(value))
    undefined = len(cases) - len(order)
    if not order:
        return Box(run, shorten(name), 0, undefined)
    values = np.array([value for value, _ in order])
    low, middle, high = (float(q) for q in np.percentile(values, (25, 50, 75)))
    inside = values[(values >= low - 1.5 * (high - low)) & (values <= high + 1.5 * (high - low))]
    aside = (0.0, -4.0, 4.0, -7.0, 7.0)
    dots = [(100 * value, aside[n % 5], f"{case}: {value:.3f}") for n, (value, case) in enumerate(order)]
    ends: Any = (100 * float(inside.min()), 100 * float(inside.max()))
    return Box(run, shorten(name), len(order), undefined, middle, ends, (100 * low, 100 * middle, 100 * high), dots)
