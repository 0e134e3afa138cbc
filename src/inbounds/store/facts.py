"""What a person knows of slices and scans, as a table that any spreadsheet opens.

One row per scan, slice and class. Every cell but the first and the class may be empty, which means unknown:

    case, slice, class, present, size_px, size_mm2, volume_ml, centroid_row, centroid_col, mean_intensity

`slice` is the 0-based index in the original file, empty for the whole scan. Sizes and positions are in pixels of the
original file, brightness in its original values: whoever fills in the table need not know what a store does with it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from io import StringIO
from pathlib import Path

from inbounds.errors import BadInput, nearest
from inbounds.store.record import Record
from inbounds.writing import write_table

_YES_NO = {"1": True, "yes": True, "true": True, "y": True, "0": False, "no": False, "false": False, "n": False}


@dataclass(frozen=True)
class Fact:
    """One row: what is known of a class in one slice, or in a whole scan (`slice` is `None`). `None` means unknown."""

    case: str
    slice: int | None
    klass: int
    present: bool | None = None
    size_px: float | None = None
    size_mm2: float | None = None
    volume_ml: float | None = None
    centroid_row: float | None = None
    centroid_col: float | None = None
    mean_intensity: float | None = None

    def size(self, spacing: tuple[float, float, float]) -> float | None:
        """The size in original pixels (of the whole scan: voxels), from whichever unit was filled in."""
        depth, height, width = spacing
        if self.size_px is not None:
            return self.size_px
        if self.volume_ml is not None:
            return self.volume_ml * 1000 / (depth * height * width)
        if self.size_mm2 is not None and self.slice is not None:
            return self.size_mm2 / (height * width)
        return None

    def is_present(self, spacing: tuple[float, float, float]) -> bool | None:
        """Whether the region is there: as written, or because a size or a centre was given."""
        if self.present is not None:
            return self.present
        size = self.size(spacing)
        if size is not None:
            return size > 0
        return True if self.centroid_row is not None or self.mean_intensity is not None else None


COLUMNS = ("case", "slice", "class", *(field.name for field in fields(Fact)[3:]))


@dataclass(frozen=True)
class Facts:
    """A facts table. Rows are unique in case, slice and class."""

    rows: tuple[Fact, ...]
    classes: tuple[str, ...]

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.rows)

    @classmethod
    def read(cls, path: Path, classes: Sequence[str], cases: Mapping[str, Record]) -> Facts:
        """Read a table, looking at every cell.

        Commas, semicolons or tabs separate the cells; with semicolons numbers may have a decimal comma, as spreadsheets
        write in much of Europe. Classes are given by name or number. Columns may be left out or come in any order.

        Raises:
            BadInput: Naming the file, the line, the value and the remedy.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise BadInput(f"{path}: not a text file in UTF-8; save the sheet as 'CSV UTF-8'") from None
        except OSError as error:
            raise BadInput(f"{path}: cannot be read ({error.strerror}); check the name") from None
        first = text.split("\n", 1)[0]
        separator = max(",;\t", key=first.count)
        lines = csv.reader(StringIO(text), delimiter=separator)
        try:
            return cls._parse(path, lines, separator == ";", tuple(classes), cases)
        except csv.Error as error:
            raise BadInput(f"{path}, line {lines.line_num}: {error}; save the sheet as CSV again") from None

    @classmethod
    def _parse(
        cls, path: Path, lines: Iterator[list[str]], comma: bool, classes: tuple[str, ...], cases: Mapping[str, Record]
    ) -> Facts:
        header = [cell.strip().lower() for cell in next(lines, [])]
        for name in header:
            if name not in COLUMNS:
                raise BadInput(f"{path}: unknown column {name!r}; {nearest(name, COLUMNS)}")
        missing = [name for name in ("case", "class") if name not in header]
        if missing or len(set(header)) != len(header):
            what = f"there is no column {missing[0]!r}" if missing else "a column appears twice"
            raise BadInput(f"{path}: {what}; the first line must name the columns: {', '.join(COLUMNS)}")
        rows: dict[tuple[str, int | None, int], Fact] = {}
        for number, cells in enumerate(lines, start=2):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(header) and any(cell.strip() for cell in cells[len(header) :]):
                raise BadInput(f"{path}, line {number}: {len(cells)} cells for {len(header)} columns")
            row = dict.fromkeys(COLUMNS, "") | dict(zip(header, (cell.strip() for cell in cells), strict=False))
            fact = _fact(f"{path}, line {number}", row, comma, classes, cases)
            key = (fact.case, fact.slice, fact.klass)
            if key in rows:
                raise BadInput(
                    f"{path}, line {number}: a second row for {row['case']}, slice {row['slice'] or 'none'}, "
                    f"class {row['class']}; keep one of them"
                )
            rows[key] = fact
        return cls(tuple(rows.values()), classes)

    def write(self, path: Path) -> None:
        """Write the table; aside first, then renamed."""
        rows = ((f.case, _cell(f.slice), self.classes[f.klass], *map(_cell, astuple(f)[3:])) for f in self.rows)
        write_table(path, COLUMNS, rows)


def _cell(value: bool | float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def _number(where: str, column: str, text: str, comma: bool) -> float | None:
    if not text:
        return None
    try:
        value = float(text.replace(",", ".") if comma else text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{where}: {column} is {text!r}, which is no number; leave the cell empty if it is unknown")
    return value


def _fact(
    where: str, row: Mapping[str, str], comma: bool, classes: tuple[str, ...], cases: Mapping[str, Record]
) -> Fact:
    case = cases.get(row["case"])
    if case is None:
        raise BadInput(f"{where}: no case {row['case']!r}; {nearest(row['case'], cases)}")
    names = {str(value): value for value in range(len(classes))} | {name: value for value, name in enumerate(classes)}
    if row["class"] not in names:
        raise BadInput(f"{where}: no class {row['class']!r}; {nearest(row['class'], classes)}")
    present = row["present"].lower()
    if present and present not in _YES_NO:
        raise BadInput(f"{where}: present is {row['present']!r}; write 1 or 0, or leave it empty")
    number = {name: _number(where, name, row[name], comma) for name in ("slice", *COLUMNS[4:])}
    index = number.pop("slice")
    if index is not None and not (index.is_integer() and 0 <= index < case.slices):
        raise BadInput(f"{where}: slice {row['slice']} of {case.name}, which has slices 0 to {case.slices - 1}")
    for name in ("size_px", "size_mm2", "volume_ml"):
        value = number[name]
        if value is not None and value < 0:
            raise BadInput(f"{where}: {name} is {row[name]}; a size is 0 or more")
    for name, limit in (("centroid_row", case.fit.original[0]), ("centroid_col", case.fit.original[1])):
        value = number[name]
        if value is not None and not -0.5 <= value <= limit - 0.5:
            raise BadInput(
                f"{where}: {name} is {row[name]}, outside the slice, which has {limit} of them (0 to {limit - 1})"
            )
    if (number["centroid_row"] is None) != (number["centroid_col"] is None):
        raise BadInput(f"{where}: a centroid needs both its row and its column")
    if index is None and number["size_mm2"] is not None:
        raise BadInput(f"{where}: a whole scan has no area; give size_px (voxels) or volume_ml")
    if present and not _YES_NO[present] and number["centroid_row"] is not None:
        raise BadInput(f"{where}: present is {row['present']}, but there is a centroid; correct one of them")
    fact = Fact(case.name, None if index is None else int(index), names[row["class"]], _YES_NO.get(present), **number)
    size = fact.size(case.spacing)
    for unit in ("size_mm2", "volume_ml"):
        alone = replace(fact, size_px=None, size_mm2=None, volume_ml=None)
        other = replace(alone, **{unit: number[unit]}).size(case.spacing)  # type: ignore[arg-type]
        if size is not None and other is not None and abs(other - size) > 0.01 * max(size, 1):
            raise BadInput(
                f"{where}: {unit} {row[unit]} is {other:g} pixels, but size_px says {size:g}; keep one of them"
            )
    if size is not None and fact.present is not None and (size > 0) != fact.present:
        raise BadInput(f"{where}: present is {row['present']} but the size is {size:g}; correct one of them")
    whole = case.fit.original[0] * case.fit.original[1] * (1 if fact.slice is not None else case.slices)
    if size is not None and size > whole * (1 + 1e-5):  # what `write` rounds may end up that much above
        raise BadInput(f"{where}: a size of {size:g} pixels is more than there are ({whole}); check the unit")
    return fact
