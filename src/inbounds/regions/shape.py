"""Where a region lies and how it is shaped.

Coordinates are pixel indices in axis order: row, column; slice first in 3-D.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.facts import FactColumns, Geometry
from inbounds.regions.fractions import share
from inbounds.regions.scans import Scans, each, total
from inbounds.regions.size import size
from inbounds.regions.statistic import Probs, Values, statistic, wide


def _diagonal(probs: Tensor, *_: Any, **__: Any) -> float:
    """The squared length of the image's diagonal, in pixels."""
    return float(sum(side**2 for side in probs.shape[2:]))


def _axis(probs: Tensor, axis: int) -> Float[Tensor, " n"]:
    return torch.arange(probs.shape[2 + axis], device=probs.device, dtype=wide(probs.dtype))


def _marginal(probs: Tensor, axis: int) -> Float[Tensor, "B K n"]:
    """Probability summed over every axis but one: all that a first or second moment along it needs."""
    others = [2 + other for other in range(probs.ndim - 2) if other != axis]
    if not others:
        return probs.to(wide(probs.dtype))
    return probs.sum(dim=others, dtype=wide(probs.dtype))


def _outside(axis: int, value: float, geometry: Geometry) -> str:
    side = geometry.shape[axis]
    inside = -0.5 <= value <= side - 0.5
    return "" if inside else f"it lies outside the slice, which has {side} of them (0 to {side - 1})"


_COLUMNS = FactColumns(
    ("centroid_row", "centroid_col"),
    to_grid=lambda values, at: at.point(*values),
    moved=lambda fact, motion: motion.points(fact),
    moved_range=lambda low, high, motion: motion.boxes(low, high),
    refused=_outside,
)


@statistic(scale=_diagonal, columns=_COLUMNS)
def centroid(probs: Probs, *, scans: Scans | None = None) -> Values:
    """The centre of mass of each soft region: `fraction` with the pixel coordinates as potential.

    One component per axis. Over the slices of a scan it is the in-plane centre of the whole stack.

    Empty region: the centre of the image (see `fraction`). Natural scale: the squared diagonal of the image.

    Example:
        >>> probs = torch.zeros(1, 1, 4, 4)
        >>> probs[0, 0, 1, 2] = 1
        >>> centroid(probs)
        tensor([[[1., 2.]]])
    """
    mass = size(probs, scans=scans)
    axes = range(probs.ndim - 2)
    first = torch.stack([(_marginal(probs, a) * _axis(probs, a)).sum(dim=-1) for a in axes], dim=-1)
    middle = torch.stack([_axis(probs, a).mean() for a in axes]).expand(mass.shape[0], 1, -1)
    return share(total(first, scans), mass, middle)


@statistic(scale=lambda probs, *_, **__: _diagonal(probs) ** 2)
def spread(probs: Probs, *, scans: Scans | None = None) -> Values:
    """How far each soft region reaches along each axis: the second central moment, in squared pixels.

    Component `m` is `sum_p (x_m - centroid_m)^2 S_p / sum_p S_p`, a variance; its root is a distance.

    Empty region: the spread of the whole image. Natural scale: the fourth power of the image's diagonal.

    Example:
        >>> spread(torch.tensor([[[[1.0, 0.0, 1.0]]]]))  # columns 0 and 2 of a single row
        tensor([[[0., 1.]]])
    """
    middle = each(centroid(probs, scans=scans), scans)
    parts, wholes = [], []
    for a in range(probs.ndim - 2):
        squared = (_axis(probs, a) - middle[..., a, None]).square()
        parts.append((_marginal(probs, a) * squared).sum(dim=-1))
        wholes.append(squared.mean(dim=-1))
    second, whole = torch.stack(parts, dim=-1), torch.stack(wholes, dim=-1)
    if scans is not None:
        slices = scans.total(whole.new_ones(whole.shape[0], 1, 1)).clamp(min=1)
        whole = scans.total(whole) / slices
    return share(total(second, scans), size(probs, scans=scans), whole)


def exponents(order: int | tuple[int, ...], dimensions: int) -> list[tuple[int, ...]]:
    """One exponent per axis: those given, or all that add up to `order`, the first axis falling first."""
    if isinstance(order, int) and order >= 0:
        return [powers for powers in product(range(order, -1, -1), repeat=dimensions) if sum(powers) == order]
    if isinstance(order, tuple) and len(order) == dimensions and all(isinstance(n, int) and n >= 0 for n in order):
        return [order]
    raise ValueError(
        f"order {order!r} does not fit images of {dimensions} dimensions: give one exponent per axis, or a whole number"
    )


@statistic(scale=lambda *_, **__: 1.0)
def moment(probs: Probs, order: int | tuple[int, ...], *, scans: Scans | None = None) -> Values:
    """Central, scale-normalised shape moments: the same for a region moved or enlarged.

    For exponents `(p, q)`: `sum (row - r)^p (column - c)^q S / V^(1 + (p + q) / 2)`, with `V` the size and `(r, c)` the
    centroid; in 3-D three exponents and `(p + q + s) / 3`. An order given as a number stands for all exponents that
    add up to it, one component each: order 2 in 2-D is (2, 0), (1, 1), (0, 2). Over the slices of a scan moments are
    in-plane, and change with the number of slices.

    Empty region: 0. A region of less than one pixel is divided by one pixel. Natural scale: 1, as moments have no unit.

    Example:
        >>> moment(torch.tensor([[[[1.0, 0.0, 1.0]]]]), (0, 2))  # (1 + 1) / 2^2
        tensor([[[0.5000]]])
    """
    dimensions = probs.ndim - 2
    middle = each(centroid(probs, scans=scans), scans)
    mass = size(probs, scans=scans).clamp(min=1)
    parts = []
    for powers in exponents(order, dimensions):
        rest = probs.to(wide(probs.dtype))
        for a in reversed(range(dimensions)):
            if powers[a]:
                offsets = _axis(probs, a) - middle[..., a, None]
                rest = rest * offsets.reshape(*offsets.shape[:2], *(1,) * a, -1).pow(powers[a])
            rest = rest.sum(dim=-1)
        parts.append(total(rest, scans) / mass[..., 0] ** (1 + sum(powers) / dimensions))
    return torch.stack(parts, dim=-1)
