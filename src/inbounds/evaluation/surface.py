"""How far apart the surfaces of prediction and truth lie, in mm. Computed by MONAI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from inbounds.errors import BadInput


@dataclass(frozen=True)
class SurfaceDistances:
    """Distances between two surfaces, in the units of the spacing. NaN where one of them does not exist.

    Attributes:
        hd95: The 95th percentile of the distances from one surface to the other, in the worse of the two directions
            (the Hausdorff distance is their maximum).
        assd: The average symmetric surface distance: the mean over the points of both surfaces.
    """

    hd95: float
    assd: float


def surface_distances(
    prediction: Bool[Tensor | np.ndarray, "D H W"], truth: Bool[Tensor | np.ndarray, "D H W"], spacing: Sequence[float]
) -> SurfaceDistances:
    """Compare the surfaces of one class in one volume.

    The surface of a mask is its outermost layer of voxels: those with a neighbour outside, face to face, where beyond
    the border of the volume all is outside. Distances run between voxel centres. In a volume of several slices even a
    region within one slice has a top and a bottom, so all its voxels are surface; a volume of a single slice is an
    image, where the surface is the contour.

    Empty prediction or truth: both distances are NaN. Voxels whose truth is unknown are to be left out of both masks.

    Args:
        prediction: Where the class was predicted. On any device; the work is done on the CPU.
        truth: Where it is.
        spacing: Between slices, rows and columns, in mm.

    Raises:
        ImportError: MONAI or SciPy is missing.

    Example:
        square = torch.zeros(1, 10, 30, dtype=torch.bool)
        square[:, :, :10] = True
        surface_distances(square, square.roll(20, dims=2), (8.0, 1.0, 1.0)).hd95  # 20.0
    """
    masks = [torch.as_tensor(mask) for mask in (prediction, truth)]
    for mask, name in zip(masks, ("prediction", "truth"), strict=True):
        if mask.dtype != torch.bool or mask.ndim != 3:
            raise ValueError(f"the {name} must be a bool mask (D, H, W), not {mask.dtype} of {tuple(mask.shape)}")
    if masks[0].shape != masks[1].shape:
        raise ValueError(f"prediction {tuple(masks[0].shape)} and truth {tuple(masks[1].shape)} differ in shape")
    if len(spacing) != 3 or not all(0 < step < math.inf for step in spacing):
        raise ValueError(f"spacing {tuple(spacing)} must be three positive numbers: between slices, rows and columns")
    first, second = (mask.cpu() for mask in masks)
    if not (first.any() and second.any()):
        return SurfaceDistances(math.nan, math.nan)
    steps = [float(step) for step in spacing]
    if first.shape[0] == 1:
        first, second, steps = first[0], second[0], steps[1:]
    window = _bounding_box(first | second)
    return _distances(first[window], second[window], steps)


def _bounding_box(mask: Bool[Tensor, "*space"]) -> tuple[slice, ...]:
    """The smallest box around all that is true, and one voxel more on each side where there is one.

    Nothing changes within it: a voxel is on the surface for its own neighbours' sake, and distances keep to voxels.
    """
    box = []
    for axis in range(mask.ndim):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        inside = mask.any(dim=others).nonzero()
        box.append(slice(max(int(inside[0]) - 1, 0), int(inside[-1]) + 2))
    return tuple(box)


def _distances(
    prediction: Bool[Tensor, "*space"], truth: Bool[Tensor, "*space"], spacing: list[float]
) -> SurfaceDistances:
    """By MONAI, for masks that are not empty, in 2-D or 3-D."""
    require_monai()
    from monai.metrics.hausdorff_distance import compute_hausdorff_distance
    from monai.metrics.surface_distance import compute_average_surface_distance

    # One image, one channel; by default MONAI would take that channel for the background and leave it out.
    pair = prediction[None, None], truth[None, None]
    hd95 = compute_hausdorff_distance(*pair, include_background=True, percentile=95, spacing=spacing)
    assd = compute_average_surface_distance(*pair, include_background=True, symmetric=True, spacing=spacing)
    return SurfaceDistances(float(hd95), float(assd))


def require_monai() -> None:
    """Refuse to go on without what measures surfaces."""
    try:
        # MONAI imports without SciPy, and then fails at the first surface.
        import scipy  # type: ignore[import-untyped]  # noqa: F401
        from monai.metrics import hausdorff_distance  # noqa: F401
    except ImportError as error:
        raise BadInput(
            f"surface distances need MONAI and SciPy ({error}): pip install monai scipy, or leave them out "
            "(--no-surfaces)"
        ) from None
