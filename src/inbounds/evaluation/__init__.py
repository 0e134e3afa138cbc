"""How good a predicted mask is: overlap, surface and size, per slice and per volume."""

from inbounds.evaluation.overlap import Overlap, SizeError, dice_per_slice, dice_per_volume, overlap, size_error
from inbounds.evaluation.summary import summarise
from inbounds.evaluation.surface import SurfaceDistances, surface_distances

__all__ = [
    "Overlap",
    "SizeError",
    "SurfaceDistances",
    "dice_per_slice",
    "dice_per_volume",
    "overlap",
    "size_error",
    "summarise",
    "surface_distances",
]
