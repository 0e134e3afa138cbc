"""How large a region is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from inbounds.regions.facts import FactColumns, Geometry
from inbounds.regions.scans import Scans, total
from inbounds.regions.statistic import Number, Probs, statistic, wide


def _pixel(probs: Tensor, spacing: Sequence[float] | None) -> float:
    """What one pixel measures: 1, or its area or volume in the units of the spacing."""
    if spacing is None:
        return 1.0
    dimensions = probs.ndim - 2
    if len(spacing) not in (dimensions, dimensions + 1) or not min(spacing) > 0:
        raise ValueError(
            f"spacing {tuple(spacing)} does not fit images of {dimensions} dimensions: it must be one positive number "
            "per axis, and may have one more in front, the distance between slices"
        )
    return math.prod([float(step) for step in spacing])


def _scale(probs: Tensor, spacing: Sequence[float] | None = None, *, scans: Scans | None = None) -> float:  # noqa: ARG001
    return math.prod(probs.shape[2:]) * _pixel(probs, spacing) ** 2


def _presence(
    probs: Tensor, spacing: Sequence[float] | None = None, *, scans: Scans | None = None
) -> tuple[Number, Number]:
    pixel = _pixel(probs, spacing)
    whole = probs.new_full((probs.shape[0], 1, 1), pixel * math.prod(probs.shape[2:]), dtype=wide(probs.dtype))
    return pixel, total(whole, scans)


def _refused(_: int, value: float, geometry: Geometry) -> str:
    pixels = math.prod(geometry.shape) * (geometry.slices or 1)
    if value > pixels * (1 + 1e-5):  # what a table rounds may end up that much above
        return f"a size of {value:g} pixels is more than there are ({pixels}); check the unit"
    return "" if value >= 0 else "a size is 0 or more"


_COLUMNS = FactColumns(
    ("size_px",),
    {
        "size_mm2": lambda value, at: value / math.prod(at.spacing[1:]) if at.slices is None else math.nan,
        "volume_ml": lambda value, at: value * 1000 / math.prod(at.spacing),
    },
    to_grid=lambda values, at: [value * math.prod(at.scale) for value in values],
    moved=lambda fact, motion: fact * motion.factor.square()[:, None, None],
    refused=_refused,
)


@statistic(scale=_scale, presence=_presence, columns=_COLUMNS)
def size(probs: Probs, spacing: Sequence[float] | None = None, *, scans: Scans | None = None) -> Float[Tensor, "N K 1"]:
    """The number of pixels or voxels in each soft region, `V_S = sum_p S_p` (Eq. "Constrained-CNN").

    With a `spacing` in mm (one number per axis) the size is in mm2 or mm3; for slices, a third number in front, the
    distance between them, makes it mm3. With `scans` the sizes of a scan's slices are added up. An empty region
    measures 0; the gradient is 1 (times a pixel) everywhere.

    Natural scale: the number of pixels of one image (the authors' code divides by it, the paper's text does not),
    times the squared size of a pixel, so that a weight means the same in pixels and in mm.

    Example:
        >>> size(torch.full((1, 2, 4, 4), 0.5))[0, :, 0]
        tensor([8., 8.])
    """
    space = tuple(range(2, probs.ndim))
    sizes = probs.sum(dim=space, dtype=wide(probs.dtype)).unsqueeze(-1)
    return total(sizes if spacing is None else sizes * _pixel(probs, spacing), scans)
