"""How much border a region has for its size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inbounds.regions.facts import FactColumns, Geometry
from inbounds.regions.scans import Scans, total
from inbounds.regions.size import size
from inbounds.regions.statistic import Probs, statistic, wide

SMOOTHING = 1e-3


def _scale(probs: Tensor, *, scans: Scans | None = None) -> float:  # noqa: ARG001
    axes = probs.ndim - 2
    return float(axes**axes * math.pi ** (axes / 2) / math.gamma(axes / 2 + 1)) ** 2


def _unstretched(values: Sequence[float], at: Geometry) -> Sequence[float]:
    return values if math.isclose(*at.scale, rel_tol=0.01) else [math.nan]


_COLUMNS = FactColumns(
    ("compactness",),
    to_grid=_unstretched,
    from_grid=_unstretched,
    refused=lambda _, value, __: "" if value > 0 else "a compactness is above 0",
)


@statistic(scale=_scale, columns=_COLUMNS)
def compactness(probs: Probs, *, scans: Scans | None = None) -> Float[Tensor, "N K 1"]:
    """The squared perimeter over the size, `P^2 / V`, or in 3-D `P^3 / V^2` of the surface: least for what is round.

    `P = sum_v sqrt(|g_v|^2 + e^2) - e` over the corners `v` between pixels, with `e` = 0.001, where `g_v` has for each
    axis the mean difference of probability across `v`: in 2-D `(c + d - a - b) / 2` and `(b + d - a - c) / 2` of the
    four pixels `a b / c d` around it. Beyond the image there is no region. Over the slices of a scan perimeters and
    sizes are added up first: the value of `n` equal slices is `n` times that of one.

    A straight border counts 1 a pixel along rows and columns, and is right along diagonals; between them a mask has up
    to 8 % too much, soft borders less. A square of side `n` has `4 (n - 1)` corners on its sides and 4 at its ends that
    count `sqrt(1/2)`: about `(4 n)^2 / n^2 = 16`. A disc has the perimeter of the octagon around it, `6.63 r`, so
    `6.63^2 / 3.14 = 14`, where the smooth disc has `4 pi = 12.6`. Large cubes have 216, balls 132. A few pixels have
    less: one has 8. Faint probability everywhere has little border, so bound the size as well.

    Empty region: 0. A region of less than one pixel is divided by one pixel. Natural scale: the squared value of a
    smooth disc or ball. As a fact it is that of the original pixels, unknown where the grid stretches one axis.

    Example:
        >>> probs = torch.zeros(1, 1, 12, 12)
        >>> probs[:, :, 1:11, 1:11] = 1  # (4 * 9 + 4 * 0.707)^2 / 100 = 38.83^2 / 100
        >>> compactness(probs).round()
        tensor([[[15.]]])
    """
    axes = probs.ndim - 2
    padded = functional.pad(probs.to(wide(probs.dtype)), [1] * (2 * axes))
    squares = probs.new_zeros((), dtype=padded.dtype)
    for along in range(2, probs.ndim):
        across = padded.diff(dim=along)
        for other in range(2, probs.ndim):
            if other != along:
                ends = across.shape[other] - 1
                across = (across.narrow(other, 0, ends) + across.narrow(other, 1, ends)) / 2
        squares = squares + across.square()
    border = total(((squares + SMOOTHING**2).sqrt() - SMOOTHING).flatten(2).sum(dim=2, keepdim=True), scans)
    return border**axes / size(probs, scans=scans).clamp(min=1) ** (axes - 1)
