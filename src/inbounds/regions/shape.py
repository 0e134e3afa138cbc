"""Where a region lies and how it is shaped.

Coordinates are pixel indices in axis order: row, column; slice first in 3-D.
"""

from __future__ import annotations

from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.facts import FactColumns, Geometry
from inbounds.regions.fractions import share
from inbounds.regions.patches import Patches
from inbounds.regions.scans import Scans, each, total
from inbounds.regions.size import Spacing, per_scan, sides_of, size, steps_of
from inbounds.regions.statistic import Number, Probs, Values, statistic, wide


def _diagonal(probs: Tensor, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Number:
    """The squared length of the image's diagonal, in pixels or mm."""
    pairs = zip(sides_of(probs, scans), _steps(probs, spacing, scans), strict=True)
    return sum((side * step) ** 2 for side, step in pairs)


def _steps(probs: Tensor, spacing: Spacing | None, scans: Scans | None) -> list[Number]:
    return [per_scan(step, scans) for step in steps_of(probs, spacing)]


def _in_mm(values: Values, probs: Tensor, spacing: Spacing | None, scans: Scans | None, power: int) -> Values:
    """From pixels to the units of the spacing."""
    if spacing is None:
        return values
    steps = _steps(probs, spacing, scans)
    return torch.cat([values[..., axis : axis + 1] * step**power for axis, step in enumerate(steps)], dim=-1)


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
def centroid(probs: Probs, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Values:
    """The centre of mass of each soft region: `fraction` with the pixel coordinates as potential.

    One component per axis; in mm from the middle of the first pixel with a `spacing`, one number per axis or such a row
    for each image. Over the slices of a scan it is the in-plane centre of the whole stack; with `Patches`, that of
    whole scans.

    Empty region: the centre of the image (see `fraction`). Natural scale: the squared diagonal of the image.

    Example:
        >>> probs = torch.zeros(1, 1, 4, 4)
        >>> probs[0, 0, 1, 2] = 1
        >>> centroid(probs)
        tensor([[[1., 2.]]])
    """
    if isinstance(scans, Patches):
        middle = (scans.sides.to(wide(probs.dtype)) - 1)[:, None] / 2
        centre = _middle(probs, scans) + middle
        return _in_mm(centre, probs, spacing, scans, 1)
    mass = size(probs, scans=scans)
    axes = range(probs.ndim - 2)
    first = torch.stack([(_marginal(probs, a) * _axis(probs, a)).sum(dim=-1) for a in axes], dim=-1)
    middle = torch.stack([_axis(probs, a).mean() for a in axes]).expand(mass.shape[0], 1, -1)
    return _in_mm(share(total(first, scans), mass, middle), probs, spacing, scans, 1)


def _middle(probs: Probs, scans: Patches) -> Values:
    """The centre of whole scans, from their middle."""
    first = scans.first(probs)
    return share(first, scans.mass(probs), torch.zeros_like(first))


@statistic(scale=lambda *args, **settings: _diagonal(*args, **settings) ** 2)
def spread(probs: Probs, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Values:
    """How far each soft region reaches along each axis: the second central moment, in squared pixels.

    Component `m` is `sum_p (x_m - centroid_m)^2 S_p / sum_p S_p`, a variance; its root is a distance. With a `spacing`
    it is in mm2; with `Patches`, that of whole scans.

    Empty region: the spread of the whole image. Natural scale: the fourth power of the image's diagonal.

    Example:
        >>> spread(torch.tensor([[[[1.0, 0.0, 1.0]]]]))  # columns 0 and 2 of a single row
        tensor([[[0., 1.]]])
    """
    if isinstance(scans, Patches):
        centre = _middle(probs, scans)
        sides = scans.sides.to(centre.dtype)[:, None]
        whole = (sides.square() - 1) / 12 + centre.square()
        return _in_mm(share(scans.second(probs, centre), scans.mass(probs), whole), probs, spacing, scans, 2)
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
    return _in_mm(share(total(second, scans), size(probs, scans=scans), whole), probs, spacing, scans, 2)


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
