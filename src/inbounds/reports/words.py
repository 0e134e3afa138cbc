"""What a run knew of its images, how it was set up and where it came from, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inbounds.config import Settings
from inbounds.constraints import Common, Constraint, Fixed, Individual, Tags
from inbounds.datasets.store import FULL
from inbounds.runs.run import Run


def known(run: Run, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Which pixels were labelled, then one phrase for each constraint."""
    hybrid, about = run.settings.hybrid, run.about["annotation"]
    strategy = about.get("strategy", "")
    if run.annotation == FULL:
        labels = "every pixel"
    elif strategy in ("", run.annotation):
        labels = f"{run.annotation} labels"
    else:
        labels = f"{run.annotation} labels ({strategy})"
    if hybrid.full_scans:
        scans = f"{hybrid.full_scans} scan{'s' * (hybrid.full_scans > 1)} in full"
        others = f"{labels} in the others" + (f" (counting {hybrid.weak:.3g})" if hybrid.weak != 1 else "")
        labels = f"{scans}, " + ("nothing else" if hybrid.only_full else others)
    return (labels, *(_phrase(one, run.classes) + _aim(one) for one in constraints))


def _aim(constraint: Constraint) -> str:
    words = ["a wish"] if constraint.wish else []
    if constraint.margin:
        words.append(f"aiming inside by {100 * constraint.margin:.3g} %")
    if constraint.fades:
        words.append("fading")
    return f" ({', '.join(words)})" if words else ""


def _phrase(constraint: Constraint, classes: Sequence[str]) -> str:
    what = constraint.statistic.fact.replace("_", " ")
    unit, of = (" px" if what in ("size", "centroid", "spread") else ""), ""
    if constraint.classes is not None and len(constraint.classes) < len(classes):
        of = " of " + ", ".join("background" if k == 0 else classes[k - 1] for k in constraint.classes)
    whose = "scan" if constraint.scope == "volume" else "image"
    bounds = constraint.bounds
    if isinstance(bounds, Tags):
        return f"whether the region{of} is there"
    if isinstance(bounds, Individual):
        margin = f"{bounds.absolute:.3g}{unit}" if bounds.relative is None else f"{100 * bounds.relative:.3g} %"
        side = "at most {} above" if bounds.tight == "upper" else "within {} of"
        return f"{what}{of} {side.format(margin)} each {whose}'s own"
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


def settings_of(run: Run) -> Iterator[tuple[str, str, bool]]:
    """Every setting, its value, and whether it is other than by default."""
    usual = dict(_flat(Settings(recipe=run.settings.recipe).model_dump()))
    for key, value in _flat(run.settings.model_dump()):
        yield key, _text(value), usual.get(key) != value


def _flat(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_text(each)}" for key, each in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def provenance_of(run: Run) -> Iterator[tuple[str, str]]:
    """Where a run's figures come from: data, labels, seed, source, versions."""
    about = run.about
    yield "data", about["data"]["name"]
    yield from ((f"SHA-256 of {file}", value) for file, value in about["data"]["checksums"].items())
    yield from ((f"data {key}", _text(value)) for key, value in about["data"].get("source", {}).items())
    for key, value in about["annotation"].items():
        if key != "checksums":
            yield ("labels" if key == "name" else f"labels: {key}"), _text(value)
    for file, value in about["annotation"].get("checksums", {}).items():
        yield f"SHA-256 of {file}", value
    yield "facts", run.facts or "none"
    yield "classes", ", ".join(run.classes)
    yield "seed", str(run.seed)
    yield "commit", about.get("commit") or "not known"
    yield from about.get("versions", {}).items()
    yield from about.get("machine", {}).items()
