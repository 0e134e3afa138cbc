"""What can be measured of two regions: each value is of a region and the one that follows it."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inbounds.regions.facts import FactColumns, Geometry, turned
from inbounds.regions.fractions import share
from inbounds.regions.scans import Scans, total
from inbounds.regions.shape import centroid
from inbounds.regions.size import Spacing, size
from inbounds.regions.statistic import Number, Probs, statistic, wide

SMOOTHING = 1e-3


def _not_negative(_: int, value: float, __: Geometry) -> str:
    return "" if value >= 0 else "it is 0 or more"


def _share(_: int, value: float, __: Geometry) -> str:
    return "" if 0 <= value <= 1 else "it is a share, from 0 to 1"


@statistic(scale=lambda *_, **__: 1.0, columns=FactColumns(("ratio",), refused=_not_negative), relates=2)
def ratio(probs: Probs, *, scans: Scans | None = None) -> Float[Tensor, "N K-1 1"]:
    """The size of each region over that of the next, `V_A / V_B`.

    The next may hold the first: of classes `[1, (1, 2)]` it is the share of class 1 in both. Empty first region: 0. A
    next region of less than one pixel counts as one pixel. Natural scale: 1, as a ratio has no unit.

    Example:
        >>> ratio(torch.tensor([[[[1.0, 0.0, 0.0, 0.0]], [[0.0, 1.0, 1.0, 0.0]]]]))  # one pixel, and two
        tensor([[[0.5000]]])
    """
    sizes = size(probs, scans=scans)
    return sizes[:, :-1] / sizes[:, 1:].clamp(min=1)


@statistic(scale=lambda *_, **__: 1.0, columns=FactColumns(("inclusion",), refused=_share), relates=2)
def inclusion(probs: Probs, reach: int = 1, *, scans: Scans | None = None) -> Float[Tensor, "N K-1 1"]:
    """How far each region A lies inside the next, B: the share of A and its surroundings that B has.

    `sum_p A_p mean_{q in N(p)} B_q / sum_p A_p`, with `N(p)` the pixels at most `reach` away along one axis, `p` among
    them: what is beyond the image does not count. It is 1 where A lies in B with `reach` pixels to spare on all sides.
    **B holds A**: where classes exclude each other, as after a softmax, say that class 1 lies inside class 2 with the
    classes `[1, (1, 2)]`. With `reach=0` it is the plain share of A that B has, for outputs that may overlap.

    Empty A: 1, as what is not there lies nowhere else; a region of less than one pixel is completed by that. Natural
    scale: 1. Over the slices of a scan surroundings are in-plane.

    Example:
        >>> a = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
        >>> b = torch.tensor([[1.0, 1.0, 0.0, 0.0]])  # of the pixel of A and its two neighbours it has two
        >>> inclusion(torch.stack([a, b])[None])
        tensor([[[0.6667]]])
    """
    probs = probs.to(wide(probs.dtype))
    inner, outer = probs[:, :-1], probs[:, 1:]
    found, count = outer, torch.ones_like(outer[:1, :1])
    for axis in range(2, probs.ndim):
        for step in range(1, min(reach, probs.shape[axis] - 1) + 1):
            for shift in (step, -step):
                found = found + _shifted(outer, axis, shift)
                count = count + _shifted(torch.ones_like(count), axis, shift)
    space = tuple(range(2, probs.ndim))
    inside = total((inner * found / count).sum(dim=space).unsqueeze(-1), scans)
    return share(inside, size(inner, scans=scans), torch.ones_like(inside))


def _shifted(x: Tensor, axis: int, by: int) -> Tensor:
    """What lies `by` pixels further along an axis; 0 beyond the image."""
    kept = x.narrow(axis, max(by, 0), x.shape[axis] - abs(by))
    sides = [(max(-by, 0), max(by, 0)) if a == axis else (0, 0) for a in reversed(range(2, x.ndim))]
    return functional.pad(kept, [side for pair in sides for side in pair])


def _diagonal(probs: Tensor, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Number:
    return centroid.scale(probs, spacing, scans=scans)


def _on_grid(values: list[float], at: Geometry) -> list[float]:
    return [value * at.scale[0] if math.isclose(*at.scale, rel_tol=0.01) else math.nan for value in values]


_DISTANCE = FactColumns(
    ("distance_px",),
    {
        "distance_mm": lambda value, at: (
            value / at.spacing[1] if math.isclose(*at.spacing[1:], rel_tol=0.01) else math.nan
        )
    },
    to_grid=_on_grid,  # type: ignore[arg-type]
    moved=lambda fact, motion: fact * motion.factor[:, None, None],
    refused=_not_negative,
)


@statistic(scale=_diagonal, columns=_DISTANCE, relates=2)
def distance(probs: Probs, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Float[Tensor, "N K-1 1"]:
    """How far the centre of each region lies from that of the next, `sqrt(|c_B - c_A|^2 + e^2) - e`, with `e` = 0.001.

    In pixels, or in mm with a `spacing`. Over the slices of a scan it is in-plane. An empty region has its centre in
    the middle of the image. Natural scale: the squared diagonal of the image. As a fact it is unknown where pixels are
    not square, or where the grid stretches one axis.

    Example:
        >>> probs = torch.zeros(1, 2, 4, 5)
        >>> probs[0, 0, 0, 0] = probs[0, 1, 3, 4] = 1  # 3 rows and 4 columns apart
        >>> distance(probs).round(decimals=2)
        tensor([[[5.]]])
    """
    apart = offset(probs, spacing, scans=scans)
    return (apart.square().sum(dim=-1, keepdim=True) + SMOOTHING**2).sqrt() - SMOOTHING


_OFFSET = FactColumns(
    ("offset_row", "offset_col"),
    to_grid=lambda values, at: [value * scale for value, scale in zip(values, at.scale, strict=True)],
    moved=lambda fact, motion: turned(motion.turn, fact) * motion.factor[:, None, None],
    moved_range=lambda low, high, motion: motion.still().boxes(low, high),
)


@statistic(scale=_diagonal, columns=_OFFSET, relates=2)
def offset(probs: Probs, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Float[Tensor, "N K-1 M"]:
    """By how much the centre of the next region lies further along each axis, `c_B - c_A`: the order of two regions.

    One component per axis. Bounds on one of them say which region comes first: with the lower bounds `[[-inf, 5]]`
    the next region lies at least 5 columns to the right of the first. In pixels, or in mm with a `spacing`. An empty
    region has its centre in the middle of the image. Natural scale: the squared diagonal of the image.

    Example:
        >>> probs = torch.zeros(1, 2, 4, 5)
        >>> probs[0, 0, 0, 0] = probs[0, 1, 3, 4] = 1
        >>> offset(probs)
        tensor([[[3., 4.]]])
    """
    centres = centroid(probs, spacing, scans=scans)
    return centres[:, 1:] - centres[:, :-1]
