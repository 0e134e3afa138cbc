"""Segment medical images from a few clicks and a rough size.

Four nouns: a *statistic* measures a soft region, *bounds* say where it should lie, a *penalty* prices what lies
outside, and a *supervision* adds this to what the labelled pixels say.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from inbounds.annotations import UNLABELLED, Annotation
    from inbounds.constraints.bounds import Common, Fixed, Individual, Tags
    from inbounds.constraints.constraint import Constraint
    from inbounds.constraints.interval import Interval
    from inbounds.constraints.known import Known
    from inbounds.constraints.penalties import hinge, log_barrier, quadratic
    from inbounds.constraints.typical import typical_values
    from inbounds.losses import Ascent, Exact, Proposals, cross_entropy
    from inbounds.regions.compactness import compactness
    from inbounds.regions.fractions import fraction, mean_intensity, variance_intensity
    from inbounds.regions.patches import Patches
    from inbounds.regions.scans import Scans
    from inbounds.regions.shape import centroid, moment, spread
    from inbounds.regions.size import size
    from inbounds.regions.statistic import statistic
    from inbounds.regularisers import Regulariser, agreement, border, normalised_cut, pairwise
    from inbounds.supervision import Supervision, Terms, recipes

# Where each public name lives. Nothing is imported before it is used, so that the command line answers without torch.
_ROOMS = {
    "annotations": "UNLABELLED Annotation",
    "constraints": "Common Constraint Fixed Individual Interval Known Tags hinge log_barrier quadratic typical_values",
    "losses": "Ascent Exact Proposals cross_entropy",
    "regions": (
        "Patches Scans centroid compactness fraction mean_intensity moment size spread statistic variance_intensity"
    ),
    "regularisers": "Regulariser agreement border normalised_cut pairwise",
    "supervision": "Supervision Terms recipes",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "UNLABELLED",
    "Annotation",
    "Ascent",
    "Common",
    "Constraint",
    "Exact",
    "Fixed",
    "Individual",
    "Interval",
    "Known",
    "Patches",
    "Proposals",
    "Regulariser",
    "Scans",
    "Supervision",
    "Tags",
    "Terms",
    "agreement",
    "border",
    "centroid",
    "compactness",
    "cross_entropy",
    "fraction",
    "hinge",
    "log_barrier",
    "mean_intensity",
    "moment",
    "normalised_cut",
    "pairwise",
    "quadratic",
    "recipes",
    "size",
    "spread",
    "statistic",
    "typical_values",
    "variance_intensity",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'inbounds' has no attribute {name!r}")
    return getattr(importlib.import_module(f"inbounds.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
