"""Everything measured, as one long table that any spreadsheet opens: one number a row, here and as TensorBoard curves.

    run, epoch, split, case, slice, class, metric, value

A cell is empty where it does not apply: a number about a whole split has no case, a loss has no class. The table of a
run in training is its `metrics.csv`, that of an evaluation its `cases.csv`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from inbounds.errors import BadInput
from inbounds.reading import regular
from inbounds.writing import ESCAPED, as_meant, write_lines, write_table, writing

COLUMNS = ("run", "epoch", "split", "case", "slice", "class", "metric", "value")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number.

    Attributes:
        run: The path of the run.
        epoch: After which it was measured.
        split: Of the scans that it is about.
        case: The scan; `""` for all of them.
        slice: Its 0-based index in the scan; `""` for the whole volume.
        klass: The class by name, or the constraint; the column is called `class`.
        metric: What was measured.
        value: NaN where it does not exist.
    """

    run: str = ""
    epoch: int
    split: str
    case: str = ""
    slice: int | Literal[""] = ""
    klass: str = ""
    metric: str
    value: float


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the table aside, then rename it: a half-written table never exists, an old one is replaced.

    Numbers are written so that reading gives the same ones.
    """
    write_table(path, COLUMNS, map(astuple, rows))


def read_rows(path: Path, *, growing: bool = False) -> list[Row]:
    """Read a table as `write_rows` or a `Log` wrote it.

    Args:
        path: The file.
        growing: A run adds to it: there may be nothing yet, and a last line cut short by a kill is left out.

    Raises:
        BadInput: Naming the file, the line, the value and the remedy.
    """
    remedy = "remove it and resume the run, or start the run again" if growing else "evaluate again"
    try:
        content = b"" if growing and not path.is_file() else regular(path).read_bytes()
        text = content[: content.rfind(b"\n") + 1 if growing else None].decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); check the name") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a text file in UTF-8; {remedy}") from None
    if growing and not text:
        return []
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        header = tuple(next(lines, ()))
        if header != COLUMNS:
            raise BadInput(
                f"{path}: not a table of results: its columns are {', '.join(header) or 'none'}, not "
                f"{', '.join(COLUMNS)}; {remedy}"
            )
        return [_row(cells) for cells in lines]
    except (ValueError, csv.Error) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}, line {lines.line_num}: damaged ({error}); {remedy}") from None


def _row(cells: list[str]) -> Row:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells instead of {len(COLUMNS)}")
    run, epoch, split, case, at, klass, metric, value = map(as_meant, cells)
    place: int | Literal[""] = int(at) if at else ""
    return Row(
        run=run, epoch=int(epoch), split=split, case=case, slice=place, klass=klass, metric=metric, value=float(value)
    )


class Log:
    """Appends to a run's `metrics.csv`, and to TensorBoard where that is installed; an epoch's rows all at once."""

    def __init__(self, root: Path, epochs_done: int) -> None:
        self.run, self.file = str(root), root / "metrics.csv"
        kept = [row for row in read_rows(self.file, growing=True) if row.epoch <= epochs_done]
        write_rows(self.file, [replace(row, run=self.run) for row in kept])
        self.board: Any = None
        with suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(root / "tensorboard"), purge_step=epochs_done + 1)

    def write(self, rows: Iterable[Row]) -> None:
        """Add the rows of an epoch, which need not name the run."""
        rows = [replace(row, run=self.run) for row in rows]
        before = self.file.stat().st_size
        try:
            with writing(self.file), self.file.open("a", encoding="utf-8", newline="", errors=ESCAPED) as stream:
                write_lines(stream, map(astuple, rows))
        except BadInput:
            with suppress(OSError):
                os.truncate(self.file, before)
            raise
        if self.board is not None:
            with writing(self.file.parent / "tensorboard"):
                for row in rows:
                    name = f"{row.split}/{row.metric}" + (f"/{row.klass}" if row.klass else "")
                    self.board.add_scalar(name, row.value, row.epoch)
                self.board.flush()

    def close(self) -> None:
        """Finish the curves; what the disk does not take was reported when it was written."""
        if self.board is not None:
            with suppress(OSError):
                self.board.close()
