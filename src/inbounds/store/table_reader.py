"""Tables that people make in spreadsheets: clicks and facts are read alike."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path

from inbounds.errors import BadInput, nearest
from inbounds.reading import read_written
from inbounds.regions.facts import range_of
from inbounds.store.record import Record
from inbounds.writing import as_meant

_NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?"
LARGEST = 256 << 20
"""Bytes of a table: millions of lines. What is larger is another file."""
WIDEST = 1000
"""Columns of a table."""
_NO_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""What a terminal would take for a command."""
_RANGE = re.compile(rf"({_NUMBER})\s*[-\u2013]\s*({_NUMBER})")


@dataclass(frozen=True)
class Row:
    """One line of a table: its cells by column, empty where there is none, and file and line to name in a refusal."""

    where: str
    cells: Mapping[str, str]
    comma: bool

    def number(self, column: str, part: str | None = None) -> float | None:
        """What a cell, or part of it, says; nothing if it is empty."""
        text = self.cells[column] if part is None else part
        if self.comma and re.fullmatch(r"[1-9]\d{0,2}(\.\d{3})+", text):
            raise BadInput(f"{self.where}: {column} is {text}, thousands or a fraction; write it without the point")
        try:
            value = float((text.replace(",", ".") if self.comma else text) or "0")
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BadInput(f"{self.where}: {column} is {text!r}, which is no number; leave the cell empty if unknown")
        return value if text else None

    def numbers(self, column: str) -> dict[str, float]:
        """What a column says, and its ends: those of a range such as `800-1200`, or in columns of their own."""
        low, high = range_of(column)
        ends = _RANGE.fullmatch(self.cells[column])
        if ends is None:
            numbers = {name: self.number(name) for name in (low, column, high)}
        elif self.cells[low] or self.cells[high]:
            raise BadInput(f"{self.where}: there are ends in {column}, and in {low} or {high}; keep one of them")
        else:
            numbers = {low: self.number(column, ends[1]), high: self.number(column, ends[2])}
        known = {name: number for name, number in numbers.items() if number is not None}
        if list(known.values()) != sorted(known.values()):
            shown = " to ".join(f"{number:g}" for number in known.values())
            raise BadInput(f"{self.where}: {column} goes from {shown}; put the smaller number first")
        return known

    def place(self, cases: Mapping[str, Record], classes: Sequence[str]) -> tuple[Record, int | None, int]:
        """What the line speaks of: a scan, its slice by index in the original file if it is given, and a class."""
        name, index = self.cells["case"], self.number("slice")
        if name not in cases:
            raise BadInput(f"{self.where}: no case {name!r}; {nearest(name, cases)}")
        slices = cases[name].original_slices
        klass = class_value(self.cells["class"], classes, self.where)
        if index is not None and not (index.is_integer() and 0 <= index < slices):
            raise BadInput(
                f"{self.where}: slice {self.cells['slice']} of {name}, which has slices 0 to {slices - 1}; count from 0"
            )
        return cases[name], None if index is None else int(index), klass


def class_value(name: str, classes: Sequence[str], where: str) -> int:
    """The value of a class, by its name or that number itself; `where` begins the sentence that refuses another."""
    if name in classes:
        return classes.index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise BadInput(f"{where}: no class {name!r}; {nearest(name, classes)}")


def read_table(path: Path, columns: Sequence[str], needed: Sequence[str]) -> tuple[list[Row], tuple[str, ...]]:
    """The lines of a table that are not blank, and the names of the columns that nothing is known of.

    Commas, semicolons or tabs separate the cells; with semicolons numbers may have a decimal comma, as spreadsheets
    write in much of Europe. Columns come in any order, their names in any case. Others are ignored, but one whose name
    is nearly a known one is refused: it is more likely misspelt than meant for somebody else.
    """
    text = read_written(path, LARGEST, "save the sheet as 'CSV UTF-8'")
    if text.count('"') % 2:
        raise BadInput(f"{path}: a quotation mark is not closed, which hides the lines below it; remove or close it")
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    separator = max(",;\t", key=first.count)
    if (count := first.count(separator) + 1) > WIDEST:
        raise BadInput(f"{path}: {count} columns, and {WIDEST} are read at most; keep those that are needed")
    lines = csv.reader(StringIO(text, newline=""), delimiter=separator)
    try:
        header = [_NO_CHARACTER.sub("?", cell.strip().lower()) for cell in next(lines, [])]
        ignored = tuple(name for name in header if name and name not in columns)
        for name in ignored:
            if get_close_matches(name, columns, n=1, cutoff=0.7):
                raise BadInput(f"{path}: unknown column {name!r}; {nearest(name, columns)}")
        missing = [name for name in needed if name not in header]
        if missing or any(header.count(name) > 1 for name in columns):
            what = f"there is no column {missing[0]!r}" if missing else "a column appears twice"
            raise BadInput(f"{path}: {what}; the first line must name the columns: {', '.join(columns)}")
        rows = []
        for line in lines:
            where, cells = f"{path}, line {lines.line_num}", [as_meant(cell.strip()) for cell in line]
            if any(cells[len(header) :]):
                raise BadInput(f"{where}: {len(cells)} cells for {len(header)} columns")
            if any(cells):
                named = dict.fromkeys(columns, "") | dict(zip(header, cells, strict=False))
                rows.append(Row(where, named, separator == ";"))
    except csv.Error as error:
        raise BadInput(f"{path}, line {lines.line_num}: {error}; save the sheet as CSV again") from None
    return rows, ignored
