"""How far apart the surfaces of prediction and truth lie, in mm. Computed by MONAI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    prediction: Bool[Tensor, "D H W"], truth: Bool[Tensor, "D H W"], spacing: Sequence[float]
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
        spacing: Between slices, rows and columns, in mm, each above 0.

    Raises:
        ImportError: MONAI or SciPy is missing.

    Example:
        square = torch.zeros(1, 10, 30, dtype=torch.bool)
        square[:, :, :10] = True
        surface_distances(square, square.roll(20, dims=2), (8.0, 1.0, 1.0)).hd95  # 20.0
    """
    first, second = prediction.cpu(), truth.cpu()
    if not (first.any() and second.any()):
        return SurfaceDistances(math.nan, math.nan)
    steps = [float(step) for step in spacing]
    if len(first) == 1:
        first, second, steps = first[0], second[0], steps[1:]
    require_monai()
    from monai.metrics.hausdorff_distance import compute_hausdorff_distance
    from monai.metrics.surface_distance import compute_average_surface_distance

    # One image, one channel; by default MONAI would take that channel for the background and leave it out.
    pair = first[None, None], second[None, None]
    hd95 = compute_hausdorff_distance(*pair, include_background=True, percentile=95, spacing=steps)
    assd = compute_average_surface_distance(*pair, include_background=True, symmetric=True, spacing=steps)
    return SurfaceDistances(float(hd95), float(assd))


def require_monai() -> None:
    """Refuse to go on without what measures surfaces."""
    try:
        # MONAI imports without SciPy, and then fails at the first surface.
        import scipy  # type: ignore[import-untyped]  # noqa: F401
        from monai.metrics import hausdorff_distance  # noqa: F401
    except ImportError as error:
        raise BadInput(
            f"surface distances need MONAI and SciPy ({error}): pip install 'inbounds[evaluate]', or leave "
            "them out (--no-surfaces)"
        ) from None
