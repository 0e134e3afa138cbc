"""What people know of a class in a slice or in a whole scan: whether it is there, and roughly how large."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inbounds.errors import BadInput
from inbounds.scans.format import Shape, Spacing
from inbounds.studio.actions import COLUMNS, SetFact, Size
from inbounds.studio.database import Action
from inbounds.studio.labels import Labels
from inbounds.studio.shelf import Entry

BOX_SHARE = (0.5, 0.9)
"""How large a region in a box is, as a share of the box."""
TABLE = (
    "case",
    "slice",
    "class",
    "present",
    *(c for name in COLUMNS.values() for c in (name, f"{name}_min", f"{name}_max")),
)


@dataclass(frozen=True)
class Fact:
    """One fact: present or not, and a size from and to; what is `None` is unknown."""

    present: bool | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "px"

    def pixels(self, spacing: Spacing) -> tuple[float | None, float | None]:
        """The least and the most, in pixels of a slice or voxels of a scan."""
        one = pixel(self.unit, spacing)
        return tuple(None if end is None else end / one for end in (self.low, self.high))  # type: ignore[return-value]

    @property
    def sized(self) -> bool:
        """Whether it says anything of the size."""
        return self.low is not None or self.high is not None

    @property
    def absent(self) -> bool:
        """Whether it says that the class is not there."""
        return self.present is False or self.high == 0


Facts = dict[tuple[int | None, int], Fact]


def pixel(unit: str, spacing: Spacing) -> float:
    """What a voxel measures in a unit."""
    between, row, column = spacing
    return {"px": 1.0, "mm2": row * column, "ml": between * row * column / 1000}[unit]


def facts_of(actions: Iterable[Action]) -> Facts:
    """What is known after some actions: of a class and slice, what was said last."""
    known: Facts = {}
    for action in actions:
        content = action.content
        if action.kind == "box":
            _keep_box(known, content)
            continue
        for one in content["facts"] if action.kind == "facts" else [content]:
            size = one["size"] or {}
            fact = Fact(one["present"], size.get("low"), size.get("high"), size.get("unit", "px"))
            for place in [one["slice"]] if one.get("slices") is None else one["slices"]:
                known.pop((place, one["class"]), None)
                if fact.present is not None or one["size"]:
                    known[place, one["class"]] = fact
    return known


def _keep_box(known: Facts, content: Mapping[str, Any]) -> None:
    """A box in a slice that trains tells a range of sizes; one across slices does not."""
    if content["plane"] == 0:
        number, inside = content["slice"], content["inside"]
        known[number, content["class"]] = Fact(None, *(round(share * inside, 1) for share in BOX_SHARE))


def checked(action: SetFact, name: str, entry: Entry, shape: Shape, labels: Labels) -> str | None:
    """Refuse what cannot be true; a sentence if it looks odd beside the labels."""
    for place in action.places:
        there = where(entry.name, place)
        if place is not None and place >= shape[0]:
            raise BadInput(f"{there} is not there: the scan has slices 1 to {shape[0]}")
        if action.size is not None:
            _possible(action.size, there, name, place, shape, entry.spacing)
        if action.size is not None and action.present is not None:
            least, most = action.size.low or 0, math.inf if action.size.high is None else action.size.high
            if (action.present and most == 0) or (not action.present and least > 0):
                raise BadInput(f"{there}: {name} cannot be {'there' if action.present else 'absent'} and of that size")
    warnings = [
        contradiction(_fact(action), name, where(entry.name, place), place, action.klass, entry, labels)
        for place in action.places
    ]
    return next((warning for warning in warnings if warning), None)


def contradiction(
    fact: Fact, name: str, where: str, place: int | None, klass: int, entry: Entry, labels: Labels
) -> str | None:
    """What labels say against a fact, if they do."""
    count = int((labels.classes if place is None else labels.in_slice(place))[klass])
    if fact.absent and count:
        return f"{where}: {name} is said to be absent, but {count} voxels are labelled as it"
    _, most = fact.pixels(entry.spacing)
    if most is not None and count > most:
        return f"{where}: {name} is said to have {most:.4g} voxels at most, but {count} are labelled as it"
    return None


def rows(case: str, facts: Facts, names: Mapping[int, str], labels: Labels | None = None) -> list[tuple[object, ...]]:
    """The lines of a facts table; what labels speak against is left out, as labels are what somebody saw."""
    lines: list[tuple[object, ...]] = []
    for (place, klass), fact in sorted(facts.items(), key=lambda one: (one[0][0] is None, one[0])):
        count = 0 if labels is None else int((labels.classes if place is None else labels.in_slice(place))[klass])
        if klass not in names or (fact.absent and count):
            continue
        cells: dict[str, object] = {"case": case, "slice": "" if place is None else place, "class": names[klass]}
        cells["present"] = "" if fact.present is None else int(fact.present)
        column = COLUMNS[fact.unit]
        if fact.low is not None and fact.low == fact.high:
            cells[column] = f"{fact.low:.6g}"
        else:
            ends = ((f"{column}_min", fact.low), (f"{column}_max", fact.high))
            cells |= {end: f"{value:.6g}" for end, value in ends if value is not None}
        lines.append(tuple(cells.get(name, "") for name in TABLE))
    return lines


def told(facts: Facts, names: Mapping[int, str], entry: Entry, labels: Labels) -> list[dict[str, Any]]:
    """The facts for the page, with what labels say against them."""
    return [
        {
            "class": klass,
            "slice": place,
            "present": fact.present,
            "size": {"low": fact.low, "high": fact.high, "unit": fact.unit} if fact.sized else None,
            "warning": contradiction(fact, names[klass], where(entry.name, place), place, klass, entry, labels),
        }
        for (place, klass), fact in sorted(facts.items(), key=lambda one: (one[0][0] is None, one[0]))
        if klass in names
    ]


def _fact(action: SetFact) -> Fact:
    size = action.size
    return Fact(action.present) if size is None else Fact(action.present, size.low, size.high, size.unit)


def where(case: str, place: int | None) -> str:
    """A scan or a slice of it, in words; people count slices from 1, as the page does."""
    return case if place is None else f"{case}, slice {place + 1}"


def _possible(size: Size, where: str, name: str, place: int | None, shape: Sequence[int], spacing: Spacing) -> None:
    if place is None and size.unit == "mm2":
        raise BadInput(f"{where}: a whole scan has no size in mm2; give ml or voxels, or name a slice")
    one = pixel(size.unit, spacing)
    most = math.prod(shape if place is None else shape[1:])
    asked = size.low if size.low is not None else size.high
    if asked is not None and max(asked, size.high or 0) / one > most * (1 + 1e-5):
        unit = {"ml": "ml", "mm2": "mm2", "px": "voxels"}[size.unit]
        raise BadInput(
            f"{where}: {name} cannot have {max(asked, size.high or 0):g} {unit}: all of it has {most * one:.4g}; check "
            "the unit"
        )
