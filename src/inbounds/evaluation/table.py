"""All results as one long table, a number a row, that any spreadsheet opens.

    run, epoch, case, slice, class, metric, value

`slice` is the 0-based index in the scan, empty for the whole volume; `value` is `nan` where there is none.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from inbounds.errors import BadInput
from inbounds.writing import write_table

COLUMNS = ("run", "epoch", "case", "slice", "class", "metric", "value")

Summary = dict[str, dict[str, dict[str, float | int | None]]]
"""By metric, then class: `mean`, `std`, `median`, `n` and `n_nan`."""


@dataclass(frozen=True)
class Row:
    """One number about one class in one slice, or in a whole volume (`slice` is `""`).

    Attributes:
        run: Names the run.
        epoch: Of the weights that predicted.
        case: Names the scan.
        slice: Its 0-based index in the scan, or `""`.
        klass: The class by name; the column is called `class`.
        metric: What was measured.
        value: NaN where it does not exist.
    """

    run: str
    epoch: int
    case: str
    slice: int | Literal[""]
    klass: str
    metric: str
    value: float


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the table aside, then rename it: a half-written table never exists, an old one is replaced.

    Numbers are written so that reading gives the same ones.
    """
    write_table(path, COLUMNS, (astuple(row) for row in rows))


def read_rows(path: Path) -> list[Row]:
    """Read a table as `write_rows` wrote it.

    Raises:
        BadInput: Naming the file, the line, the value and the remedy.
    """
    rows = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = csv.reader(stream)
            header = tuple(next(lines, ()))
            if header != COLUMNS:
                raise BadInput(
                    f"{path}: not a table of results: its columns are {', '.join(header) or 'none'}, not "
                    f"{', '.join(COLUMNS)}; evaluate again"
                )
            for cells in lines:
                try:
                    rows.append(_row(cells))
                except ValueError as error:
                    raise BadInput(f"{path}, line {lines.line_num}: {error}; evaluate again") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); check the name") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a text file in UTF-8; evaluate again") from None
    return rows


def _row(cells: list[str]) -> Row:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells instead of {len(COLUMNS)}")
    run, epoch, case, slice_, klass, metric, value = cells
    return Row(run, int(epoch), case, int(slice_) if slice_ else "", klass, metric, float(value))


def summarise(rows: Iterable[Row]) -> Summary:
    """What a run achieved: of each metric and class the `mean`, `std` and `median`, over slices or over volumes.

    NaN values are left out and counted: `n` values were averaged, `n_nan` did not exist. `std` is that of a sample
    (divided by n - 1). What cannot be computed is `None`, which JSON writes as null: a mean of no values, the spread
    of a single one.

    Raises:
        ValueError: The rows mix what cannot be averaged: runs, epochs, slices with volumes, or a number given twice.

    Example:
        >>> dice = {"ann": 0.5, "bob": 1.0, "eve": math.nan}
        >>> summarise(Row("run", 9, case, "", "LV", "dice", value) for case, value in dice.items())["dice"]["LV"]
        {'mean': 0.75, 'std': 0.3535533905932738, 'median': 0.75, 'n': 2, 'n_nan': 1}
    """
    groups: defaultdict[str, defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    sources = set()
    for row in rows:
        groups[row.metric][row.klass].append(row)
        sources.add((row.run, row.epoch))
    if len(sources) > 1:
        raise ValueError(f"rows of several runs or epochs: {sorted(sources)}; summarise each by itself")
    return {
        metric: {klass: _statistics(metric, klass, group) for klass, group in by_class.items()}
        for metric, by_class in groups.items()
    }


def _statistics(metric: str, klass: str, rows: list[Row]) -> dict[str, float | int | None]:
    if len({row.slice == "" for row in rows}) > 1:
        raise ValueError(f"{metric} of {klass} is given for slices and for volumes; name the two differently")
    if len({(row.case, row.slice) for row in rows}) < len(rows):
        raise ValueError(f"{metric} of {klass} is given twice for the same slice or volume; remove one of the rows")
    values = np.array([row.value for row in rows], dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    with np.errstate(invalid="ignore"):  # an infinite value has no spread
        numbers = {
            "mean": float(values.mean()) if n else math.nan,
            "std": float(values.std(ddof=1)) if n > 1 else math.nan,
            "median": float(np.median(values)) if n else math.nan,
        }
    finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
    return {**finite, "n": n, "n_nan": len(rows) - n}
