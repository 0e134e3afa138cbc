"""What can be measured of a soft region: pure, differentiable functions, in 2-D and 3-D alike."""

from inbounds.regions.fractions import fraction, mean_intensity, variance_intensity
from inbounds.regions.scans import Scans
from inbounds.regions.shape import centroid, moment, spread
from inbounds.regions.size import size
from inbounds.regions.statistic import Statistic, statistic

statistics: dict[str, Statistic[...]] = {
    known.fact: known for known in (size, centroid, spread, moment, mean_intensity, variance_intensity)
}
"""By name, for settings. Add your own."""

__all__ = [
    "Scans",
    "Statistic",
    "centroid",
    "fraction",
    "mean_intensity",
    "moment",
    "size",
    "spread",
    "statistic",
    "statistics",
    "variance_intensity",
]
