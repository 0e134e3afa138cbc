"""What can be measured of a soft region: pure, differentiable functions, in 2-D and 3-D alike."""

from inbounds.regions.compactness import compactness
from inbounds.regions.facts import FactColumns, Geometry, Motion
from inbounds.regions.fractions import fraction, mean_intensity, variance_intensity
from inbounds.regions.patches import Patches
from inbounds.regions.region import Region, fact_name
from inbounds.regions.relations import distance, inclusion, offset, ratio
from inbounds.regions.scans import Scans
from inbounds.regions.shape import centroid, moment, spread
from inbounds.regions.size import size
from inbounds.regions.statistic import Statistic, statistic

_OF_ONE: tuple[Statistic[...], ...] = (size, centroid, spread, moment, mean_intensity, variance_intensity, compactness)
_OF_TWO: tuple[Statistic[...], ...] = (ratio, inclusion, distance, offset)
statistics: dict[str, Statistic[...]] = {known.fact: known for known in (*_OF_ONE, *_OF_TWO)}
"""Those that settings may name and tables may give: one that is put here is known to both. `fraction` is not among
them, as it needs a potential."""

__all__ = [
    "FactColumns",
    "Geometry",
    "Motion",
    "Patches",
    "Region",
    "Scans",
    "Statistic",
    "centroid",
    "compactness",
    "distance",
    "fact_name",
    "fraction",
    "inclusion",
    "mean_intensity",
    "moment",
    "offset",
    "ratio",
    "size",
    "spread",
    "statistic",
    "statistics",
    "variance_intensity",
]
