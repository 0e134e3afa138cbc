"""How good a predicted mask is: overlap, surface and size, per slice and per volume."""

from inbounds.evaluation.overlap import Overlap, SizeError, dice_per_slice, dice_per_volume, overlap, size_error
from inbounds.evaluation.surface import SurfaceDistances, surface_distances
from inbounds.evaluation.table import Row, read_rows, summarise, write_rows

__all__ = [
    "Overlap",
    "Row",
    "SizeError",
    "SurfaceDistances",
    "dice_per_slice",
    "dice_per_volume",
    "overlap",
    "read_rows",
    "size_error",
    "summarise",
    "surface_distances",
    "write_rows",
]
