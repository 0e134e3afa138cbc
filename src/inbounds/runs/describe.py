"""What a run knows of its images, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inbounds.config import Hybrid
from inbounds.constraints import Common, Constraint, Fixed, Individual, Known, Tags
from inbounds.regions.region import spelled
from inbounds.store.store import FULL
from inbounds.supervision import Supervision


def describe(
    annotation: str, about: Mapping[str, Any], hybrid: Hybrid, supervision: Supervision, classes: Sequence[str]
) -> tuple[str, ...]:
    """Which pixels are labelled, then one phrase for each constraint.

    Args:
        annotation: The name of the labels.
        about: How they were made.
        hybrid: How many scans are labelled in full.
        supervision: With the constraints.
        classes: The names of classes 1, 2, ...
    """
    strategy = about.get("strategy", "")
    if annotation == FULL:
        labels = "every pixel"
    elif strategy in ("", annotation):
        labels = f"{annotation} labels"
    else:
        labels = f"{annotation} labels ({strategy})"
    if hybrid.full_scans:
        scans = f"{hybrid.full_scans} scan{'s' * (hybrid.full_scans > 1)} in full"
        weight = hybrid.weak_label_weight
        others = f"{labels} in the others" + (f" (counting {weight:.3g})" if weight != 1 else "")
        labels = f"{scans}, " + ("nothing else" if hybrid.only_full else others)
    return (labels, *(_phrase(one, classes) for one in supervision.constraints))


def _phrase(constraint: Constraint, classes: Sequence[str]) -> str:
    what = constraint.statistic.fact.replace("_", " ")
    unit, of = (" px" if what in ("size", "centroid", "spread", "distance", "offset") else ""), ""
    if constraint.classes is not None and list(constraint.classes) != list(range(1, len(classes) + 1)):
        of = " of " + ", ".join(
            spelled(group, ["background", *classes]) for group in constraint.groups(len(classes) + 1)
        )
    whose = "scan" if constraint.scope == "volume" else "image"
    bounds = constraint.bounds
    if isinstance(bounds, Tags):
        return f"whether the region{of} is there"
    if isinstance(bounds, Individual):
        margin = f"{bounds.absolute:.3g}{unit}" if bounds.relative is None else f"{100 * bounds.relative:.3g} %"
        side = "at most {} above" if bounds.tight == "upper" else "within {} of"
        return f"{what}{of} {side.format(margin)} each {whose}'s own"
    if isinstance(bounds, Known):
        return f"{what}{of} as far as each {whose}'s is known, numbers within {100 * bounds.relative:.3g} %"
    if isinstance(bounds, Common | Fixed):
        where = " where it is there" if isinstance(bounds, Common) else ""
        return f"{what}{of} {_range(bounds.lower, bounds.upper)}{unit}{where}, the same for every {whose}"
    return f"{what}{of} within {type(bounds).__name__}"


def _range(lower: Any, upper: Any) -> str:
    low, high = _side(lower), _side(upper)
    if low and high:
        return f"from {low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else "unbounded"


def _side(side: Any) -> str:
    """A bound as text: one number, or one for each class; nothing where it is open."""
    flat = [number for row in side for number in row] if isinstance(side, list) else [side]
    if any(abs(number) == float("inf") for number in flat):
        return ""
    return " / ".join(dict.fromkeys(f"{number:.4g}" for number in flat))
