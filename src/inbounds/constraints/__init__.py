"""What we know about a region: interval, bounds, penalties, constraint."""

from inbounds.constraints.bounds import Bounds, Common, Fixed, Individual, Knowledge, Tags
from inbounds.constraints.constraint import Constraint
from inbounds.constraints.interval import Interval
from inbounds.constraints.penalties import hinge, log_barrier, quadratic

__all__ = [
    "Bounds",
    "Common",
    "Constraint",
    "Fixed",
    "Individual",
    "Interval",
    "Knowledge",
    "Tags",
    "hinge",
    "log_barrier",
    "quadratic",
]
