"""What a person knows of slices and scans, as a table that any spreadsheet opens.

One row per scan, slice and class. Every cell but the first and the class may be empty, which means unknown:

    case, slice, class, present, size_px, size_mm2, volume_ml, centroid_row, centroid_col, mean_intensity, compactness

`slice` is the 0-based index in the original file, empty for the whole scan. Sizes and positions are in pixels of the
original file, brightness in its original values: whoever fills in the table need not know what a store does with it.
The columns after `present` are those of `inbounds.regions.statistics`. Each may hold a range, `800-1200`, or have two
more beside it for the ends, `size_px_min` and `size_px_max`. `LV+MYO` in the place of a class is both together;
`LV:RV` relates one to the other, and has columns of its own.

A number may be a population's mean beside its standard deviation `sd`, for every scan where the case is `*`; or that of
the patient's earlier scan, beside the share `change` by which it may have changed since. Both are kept as ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.regions import FactColumns, Geometry, statistics
from inbounds.regions.facts import range_of
from inbounds.regions.region import spelled
from inbounds.store.record import Record
from inbounds.store.table_reader import Row, class_value, read_table
from inbounds.writing import write_table

_YES_NO = {"1": True, "yes": True, "true": True, "y": True, "0": False, "no": False, "false": False, "n": False}
_KEYS = ("case", "slice", "class", "present")
_OTHERS = ("sd", "change")
EVERY = "*"
"""In the place of a case: every scan of the store."""
WITHIN = 2.0
"""So many standard deviations around a mean: 95 % of a population."""


def given_columns(relates: int = 1) -> dict[str, FactColumns]:
    """The statistics that tables may give, by name: of a region, or of so many regions that are related."""
    every = ((name, one.columns) for name, one in statistics.items() if one.relates == relates)
    return {name: columns for name, columns in every if columns is not None}


def _columns_of(relates: int) -> list[str]:
    return [column for columns in given_columns(relates).values() for column in (*columns.names, *columns.units)]


@dataclass(frozen=True)
class Fact:
    """One row: what is known of a class in one slice, or in a whole scan (`slice` is `None`).

    `known` holds numbers by column, the ends of a range by names such as `size_px_min`. What is not there is unknown.
    What is known of several classes together, or of a relation, says of which `regions`; `klass` is then their first.
    """

    case: str
    slice: int | None
    klass: int
    present: bool | None = None
    known: Mapping[str, float] = field(default_factory=dict)
    regions: tuple[tuple[int, ...], ...] = ()

    @property
    def key(self) -> tuple[str, int | None, tuple[tuple[int, ...], ...]]:
        """What it is of."""
        return self.case, self.slice, self.regions or ((self.klass,),)

    @property
    def columns(self) -> dict[str, FactColumns]:
        """The statistics that a row of its kind may give, by name."""
        return given_columns(max(1, len(self.regions)))

    def values(self, columns: FactColumns, geometry: Geometry) -> tuple[list[float], list[float], list[float]]:
        """The values of a statistic and the ends of their ranges, in units of its first columns; NaN is unknown."""
        value, low, high = ([math.nan] * len(columns.names) for _ in range(3))
        for column in (*columns.units, *columns.names):
            for side, cell in zip((value, low, high), (column, *range_of(column)), strict=True):
                if cell in self.known:
                    component, number = columns.read(column, self.known[cell], geometry)
                    side[component] = side[component] if math.isnan(number) else number
        return value, low, high

    def is_present(self, geometry: Geometry) -> bool | None:
        """Whether the region is there: as written, or because of a size that is not 0, a centre, a brightness."""
        if self.present is not None:
            return self.present
        implied = (_there(name, self.values(columns, geometry)) for name, columns in self.columns.items())
        return next((there for there in implied if there is not None), None)


def _there(name: str, sides: tuple[list[float], ...]) -> bool | None:
    """What a statistic says of presence."""
    if statistics[name].presence is None:
        return True if any(not math.isnan(number) for side in sides for number in side) else None
    (value, *_), (low, *_), (high, *_) = sides
    return True if value > 0 or low > 0 else False if value == 0 or high == 0 else None


@dataclass(frozen=True)
class Facts:
    """A facts table. Rows are unique in case, slice and class; `ignored` are the columns that were not understood.

    `rows` are of classes; `relations` of several classes together, `LV+MYO`, or of one region and another, `LV:RV`.
    """

    rows: tuple[Fact, ...]
    classes: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    relations: tuple[Fact, ...] = ()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.rows)

    @classmethod
    def read(cls, path: Path, classes: Sequence[str], cases: Mapping[str, Record]) -> Facts:
        """Read a table, looking at every cell. Columns may be left out; classes are given by name or number."""
        columns = [*_KEYS, *_OTHERS, *range_of("change"), *known_columns()]
        lines, ignored = read_table(path, columns, ("case", "class"))
        rows: dict[object, Fact] = {}
        for line in (line for line in lines if line.cells["case"] != EVERY):
            fact = fact_of(line, classes, cases)
            if fact.key in rows:
                raise BadInput(
                    f"{line.where}: a second row for {fact.case}, slice {line.cells['slice'] or 'none'}, "
                    f"class {line.cells['class']}; keep one of them"
                )
            rows[fact.key] = fact
        general: dict[object, Fact] = {}
        for line in (line for line in lines if line.cells["case"] == EVERY):
            for fact in _of_all(line, classes, cases):
                if fact.key in general:
                    raise BadInput(f"{line.where}: a second row for every scan, class {line.cells['class']}; keep one")
                general[fact.key] = fact
        for key, fact in general.items():
            if key not in rows or (not rows[key].known and rows[key].present is not False):
                rows[key] = fact
        return cls((), tuple(classes), ignored)._with(rows.values())

    def _with(self, facts: Iterable[Fact]) -> Facts:
        every = tuple(facts)
        rows, relations = (tuple(f for f in every if bool(f.regions) == several) for several in (False, True))
        return replace(self, rows=rows, relations=relations)

    def merged(self, other: Facts, where: str) -> Facts:
        """What both say; refused, naming `where`, if one says otherwise than the other."""
        rows = {fact.key: fact for fact in (*self.rows, *self.relations)}
        for fact in (*other.rows, *other.relations):
            if fact.key not in rows:
                rows[fact.key] = fact
                continue
            before = rows[fact.key]
            said: dict[str, tuple[float | None, float | None]] = {"present": (before.present, fact.present)}
            said |= {column: (before.known[column], fact.known[column]) for column in before.known.keys() & fact.known}
            for column, (one, two) in said.items():
                if None not in (one, two) and one != two:
                    raise BadInput(
                        f"{where}: {fact.case}, slice {_cell(fact.slice) or 'none'}, class {self.name(fact)}: "
                        f"{column} is {_cell(one)} in one table and {_cell(two)} in another; correct one of them"
                    )
            present = before.present if fact.present is None else fact.present
            rows[fact.key] = replace(before, present=present, known={**before.known, **fact.known})
        return self._with(rows.values())

    def name(self, fact: Fact) -> str:
        """What a row is of, as tables have it."""
        return spelled(fact.key[2], self.classes)

    def write(self, path: Path) -> None:
        """Write the table; aside first, then renamed. Ranges get two columns."""
        facts = (*self.rows, *self.relations)
        used = {column for fact in facts for column in fact.known}
        every = [*_columns_of(1), *(c for c in _columns_of(2) if used & {c, *range_of(c)})]
        columns = [c for one in every for c in (one, *(end for end in range_of(one) if end in used))]
        rows = (
            (f.case, _cell(f.slice), self.name(f), _cell(f.present), *(_cell(f.known.get(c)) for c in columns))
            for f in facts
        )
        write_table(path, [*_KEYS, *columns], rows)


def _cell(value: bool | float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def known_columns() -> list[str]:
    """All columns of numbers, and those of their ends."""
    known = [*_columns_of(1), *_columns_of(2)]
    return [*known, *(end for column in known for end in range_of(column))]


def _of_all(line: Row, classes: Sequence[str], cases: Mapping[str, Record]) -> Iterator[Fact]:
    """A row on every scan, as facts of each."""
    if line.cells["slice"]:
        raise BadInput(
            f"{line.where}: slice is {line.cells['slice']} of every scan; leave it empty: whole scans are meant"
        )
    for name in cases:
        yield fact_of(replace(line, cells={**line.cells, "case": name}), classes, cases)


def fact_of(line: Row, classes: Sequence[str], cases: Mapping[str, Record]) -> Fact:
    """The fact that a line of a table gives, once every cell was looked at."""
    regions = _regions(line, classes)
    if regions:
        line = replace(line, cells={**line.cells, "class": str(regions[0][0])})
    case, index, klass = line.place(cases, classes)
    text = line.cells["present"]
    if text and text.lower() not in _YES_NO:
        raise BadInput(f"{line.where}: present is {text!r}; write 1 or 0, or leave it empty")
    given = [*_columns_of(1), *_columns_of(2)]
    numbers = _widened(line, {name: number for column in given for name, number in line.numbers(column).items()})
    fact = Fact(case.name, index, klass, _YES_NO.get(text.lower()), numbers, regions)
    usable = [
        c
        for columns in fact.columns.values()
        for name in (*columns.names, *columns.units)
        for c in (name, *range_of(name))
    ]
    if strange := [column for column in numbers if column not in usable]:
        of = "two regions, as LV:RV" if len(regions) < 2 else "a class, or of several together, as LV+MYO"
        raise BadInput(f"{line.where}: {strange[0]} is of {of}; write it into a row of its own")
    for name, columns in fact.columns.items():
        _check(line, fact, name, columns, case.geometry(index))
    return fact


def _widened(line: Row, numbers: dict[str, float]) -> dict[str, float]:
    """A number as a range: a mean with two standard deviations, an earlier number with its change."""
    told = [column for column in (*_OTHERS, *range_of("change")) if line.cells.get(column)]
    if not told:
        return numbers
    if len(numbers) != 1 or next(iter(numbers)) not in (*_columns_of(1), *_columns_of(2)):
        raise BadInput(f"{line.where}: {told[0]} is of one number, and the row has {len(numbers)}; give one, no range")
    ((column, number),) = numbers.items()
    sd, change = line.number("sd"), line.numbers("change")
    if (sd is not None and change) or (sd is not None and sd < 0):
        raise BadInput(f"{line.where}: sd is {line.cells['sd']}; give 0 or more, or a change, not both")
    if sd is not None:
        low, high = number - WITHIN * sd, number + WITHIN * sd
    else:
        least, most = (change.get(end) for end in range_of("change"))
        both = change.get("change", 0.0)
        least, most = -both if least is None else least, both if most is None else most
        if not -1 <= least <= most:
            raise BadInput(f"{line.where}: change is {line.cells['change']}, a share, such as 0.1, or from -0.1 to 0.3")
        low, high = number * (1 + least), number * (1 + most)
    ends = dict(zip(range_of(column), (low, high), strict=True))
    return ends if low > 0 or number < 0 else {range_of(column)[1]: high}


def _regions(line: Row, classes: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The regions that a row is of, by the values of their classes; nothing for a class by itself."""
    text = line.cells["class"]
    if text in classes or not any(sign in text for sign in "+:"):
        return ()
    regions = tuple(
        tuple(sorted(class_value(klass.strip(), classes, line.where) for klass in region.split("+")))
        for region in text.split(":")
    )
    if len(regions) > 2 or len(set(regions)) < len(regions) or any(len(set(one)) < len(one) for one in regions):
        raise BadInput(f"{line.where}: class is {text}; write different classes, as LV+MYO, or two regions, as LV:RV")
    return regions


def _check(line: Row, fact: Fact, name: str, columns: FactColumns, geometry: Geometry) -> None:
    """Refuse what cannot be true of a statistic."""
    sides = fact.values(columns, geometry)
    given = [not all(map(math.isnan, component)) for component in zip(*sides, strict=True)]
    if any(given) != all(given):
        raise BadInput(f"{line.where}: a {name} needs all of {', '.join(columns.names)}")
    every = (*columns.names, *columns.units)
    for end, cell, column in ((end, (c, *range_of(c))[end], c) for c in every for end in range(3)):
        if cell not in fact.known:
            continue
        component, number = columns.read(column, fact.known[cell], geometry)
        said, shown = sides[end][component], f"{cell} is {line.cells[cell] or line.cells[column]}"
        if math.isnan(number):
            others = " or ".join(other for other in every if other != column)
            raise BadInput(f"{line.where}: {shown}, which a whole scan does not have; give {others}")
        if reason := columns.refused(component, number, geometry):
            raise BadInput(f"{line.where}: {shown}; {reason}")
        if abs(number - said) > 0.01 * max(abs(said), 1):
            raise BadInput(f"{line.where}: {shown}, or {number:g} in {every[0]}, not {said:g}; keep one of them")
    for component, (value, low, high) in enumerate(zip(*sides, strict=True)):
        known = [number for number in (low, value, high) if not math.isnan(number)]
        if any(one > other * (1 + 1e-5) for one, other in pairwise(known)):
            shown = " to ".join(f"{number:g}" for number in known)
            raise BadInput(
                f"{line.where}: {columns.names[component]} would go from {shown}; correct one of its columns"
            )
    if fact.present is not None and _there(name, sides) not in (None, fact.present):
        said = next(number for side in sides for number in side if not math.isnan(number))
        raise BadInput(
            f"{line.where}: present is {line.cells['present']} but the {name} is {said:g}; correct one of them"
        )
