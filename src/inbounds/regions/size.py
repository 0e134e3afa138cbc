"""How large a region is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.facts import FactColumns, Geometry
from inbounds.regions.patches import Patches
from inbounds.regions.scans import Scans, total
from inbounds.regions.statistic import Number, Probs, statistic, wide

Spacing = Sequence[float] | Float[Tensor, "given _"]
"""In mm: one number per axis, and for slices maybe one more in front; or such a row for each image or scan."""


def steps_of(probs: Tensor, spacing: Spacing | None, *, between: bool = False) -> list[Number]:
    """What a pixel measures along each axis: numbers, or `(N, 1, 1)`; with `between`, from slice to slice as well."""
    dimensions = probs.ndim - 2
    if spacing is None:
        return [1.0] * dimensions
    given = spacing.shape[-1] if isinstance(spacing, Tensor) else len(spacing)
    negative = not isinstance(spacing, Tensor) and not min(spacing) > 0
    if given not in (dimensions, dimensions + 1) or negative:
        said = f"of shape {tuple(spacing.shape)}" if isinstance(spacing, Tensor) else tuple(spacing)
        raise ValueError(
            f"spacing {said} does not fit images of {dimensions} dimensions: it must be one positive number "
            "per axis, and may have one more in front, the distance between slices"
        )
    first = 0 if between else given - dimensions
    if not isinstance(spacing, Tensor) or spacing.ndim < 2:
        return [float(step) for step in spacing[first:]]
    return [spacing[:, axis, None, None].to(wide(probs.dtype)) for axis in range(first, given)]


def per_scan(number: Number, scans: Scans | None) -> Number:
    """A number for each scan, from one for each of its slices: their mean."""
    if scans is None or isinstance(scans, Patches) or not isinstance(number, Tensor):
        return number
    return scans.total(number) / scans.total(torch.ones_like(number)).clamp(min=1)


def sides_of(probs: Tensor, scans: Scans | None) -> list[Number]:
    """The sides of each image in pixels; of whole scans, where patches of them are given."""
    if not isinstance(scans, Patches):
        return [float(side) for side in probs.shape[2:]]
    return [scans.sides[:, axis, None, None].to(wide(probs.dtype)) for axis in range(scans.axes)]


def _pixel(probs: Tensor, spacing: Spacing | None) -> Number:
    """What one pixel measures: 1, or its area or volume in the units of the spacing."""
    return math.prod(steps_of(probs, spacing, between=True))


def _scale(probs: Tensor, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Number:
    return math.prod(sides_of(probs, scans)) * per_scan(_pixel(probs, spacing), scans) ** 2


def _presence(probs: Tensor, spacing: Spacing | None = None, *, scans: Scans | None = None) -> tuple[Number, Number]:
    pixel = _pixel(probs, spacing)
    if isinstance(scans, Patches):
        return pixel, scans.voxels.to(wide(probs.dtype)) * pixel
    whole = probs.new_full((probs.shape[0], 1, 1), math.prod(probs.shape[2:]), dtype=wide(probs.dtype))
    return per_scan(pixel, scans), total(whole * pixel, scans)


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
    to_grid=lambda values, at: [value * math.prod(at.scale) * at.deep for value in values],
    moved=lambda fact, motion: fact * motion.factor.square()[:, None, None],
    refused=_refused,
)


@statistic(scale=_scale, presence=_presence, columns=_COLUMNS)
def size(probs: Probs, spacing: Spacing | None = None, *, scans: Scans | None = None) -> Float[Tensor, "N K 1"]:
    """The number of pixels or voxels in each soft region, `V_S = sum_p S_p` (Eq. "Constrained-CNN").

    With a `spacing` in mm (one number per axis, or such a row for each image) the size is in mm2 or mm3; for slices, a
    third number in front, the distance between them, makes it mm3. With `scans` the sizes of a scan's slices are added
    up; with `Patches` (and a row of spacing for each scan), it is the size of whole scans. An empty region measures 0;
    the gradient is 1 (times a pixel) everywhere.

    Natural scale: the number of pixels of one image (the authors' code divides by it, the paper's text does not),
    times the squared size of a pixel, so that a weight means the same in pixels and in mm.

    Example:
        >>> size(torch.full((1, 2, 4, 4), 0.5))[0, :, 0]
        tensor([8., 8.])
    """
    pixel = _pixel(probs, spacing)
    if isinstance(scans, Patches):
        return scans.mass(probs) * pixel
    space = tuple(range(2, probs.ndim))
    sizes = probs.sum(dim=space, dtype=wide(probs.dtype)).unsqueeze(-1)
    return total(sizes if spacing is None else sizes * pixel, scans)
