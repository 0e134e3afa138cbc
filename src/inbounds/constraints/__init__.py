"""What we know about a region: interval, bounds, penalties, constraint."""

from collections.abc import Callable

from inbounds.constraints.bounds import Bounds, Common, Fixed, Individual, Knowledge, Tags
from inbounds.constraints.constraint import Constraint
from inbounds.constraints.interval import Interval
from inbounds.constraints.known import Known
from inbounds.constraints.multipliers import Multipliers
from inbounds.constraints.penalties import hinge, log_barrier, quadratic
from inbounds.constraints.typical import typical_values

__all__ = [
    "Bounds",
    "Common",
    "Constraint",
    "Fixed",
    "Individual",
    "Interval",
    "Knowledge",
    "Known",
    "Multipliers",
    "Tags",
    "hinge",
    "kinds",
    "log_barrier",
    "quadratic",
    "typical_values",
]

kinds: dict[str, Callable[..., Bounds]] = {
    "tags": Tags,
    "common": Common,
    "individual": Individual,
    "known": Known,
    "fixed": Fixed,
}
"""Bounds by name, for settings. Add your own."""
