"""Segment medical images from a few clicks and a rough size.

Four nouns: a *statistic* measures a soft region, *bounds* say where it should lie, a *penalty* prices what lies
outside, and a *supervision* adds this to what the labelled pixels say.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from inbounds import annotations as annotations
    from inbounds import constraints as constraints
    from inbounds import losses as losses
    from inbounds import regions as regions
    from inbounds import regularisers as regularisers
    from inbounds import supervision as supervision
    from inbounds.annotations import UNLABELLED, Annotation
    from inbounds.constraints.bounds import Bounds, Common, Fixed, Individual, Knowledge, Tags
    from inbounds.constraints.constraint import Constraint
    from inbounds.constraints.interval import Interval
    from inbounds.constraints.known import Known
    from inbounds.constraints.multipliers import Multipliers
    from inbounds.constraints.penalties import hinge, log_barrier, quadratic
    from inbounds.constraints.typical import typical_values
    from inbounds.losses import Ascent, Exact, Proposals, cross_entropy
    from inbounds.regions.compactness import compactness
    from inbounds.regions.fractions import fraction, mean_intensity, variance_intensity
    from inbounds.regions.patches import Patches
    from inbounds.regions.relations import distance, inclusion, offset, ratio
    from inbounds.regions.scans import Scans
    from inbounds.regions.shape import centroid, moment, spread
    from inbounds.regions.size import size
    from inbounds.regions.statistic import statistic
    from inbounds.regularisers import Regulariser, border, normalised_cut, pairwise
    from inbounds.supervision import Loss, Supervision, Terms, recipes

_ROOMS = ("regions", "annotations", "constraints", "regularisers", "losses", "supervision")
"""Where the public names live."""

__all__ = [
    "UNLABELLED",
    "Annotation",
    "Ascent",
    "Bounds",
    "Common",
    "Constraint",
    "Exact",
    "Fixed",
    "Individual",
    "Interval",
    "Knowledge",
    "Known",
    "Loss",
    "Multipliers",
    "Patches",
    "Proposals",
    "Regulariser",
    "Scans",
    "Supervision",
    "Tags",
    "Terms",
    "border",
    "centroid",
    "compactness",
    "cross_entropy",
    "distance",
    "fraction",
    "hinge",
    "inclusion",
    "log_barrier",
    "mean_intensity",
    "moment",
    "normalised_cut",
    "offset",
    "pairwise",
    "quadratic",
    "ratio",
    "recipes",
    "size",
    "spread",
    "statistic",
    "typical_values",
    "variance_intensity",
]


def __getattr__(name: str) -> Any:
    """Nothing is imported before it is used, so that the command line answers without torch."""
    if name in _ROOMS:
        return importlib.import_module(f"inbounds.{name}")
    for room in _ROOMS if name in __all__ else ():
        module = importlib.import_module(f"inbounds.{room}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module 'inbounds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS, "__version__"]
