"""Everything that a run measures, as one long table and as TensorBoard curves."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.writing import write_table, writing

COLUMNS = ("epoch", "split", "metric", "class", "value")


@dataclass(frozen=True)
class Measured:
    """One number: of an epoch and a split, for a class or (`klass` empty) for all."""

    epoch: int
    split: str
    metric: str
    klass: str
    value: float


class Log:
    """Appends to `metrics.csv`, and to TensorBoard where that is installed. Rows of an epoch are written together."""

    def __init__(self, root: Path, epochs_done: int) -> None:
        self.file = root / "metrics.csv"
        kept = [row for row in read(self.file) if row.epoch <= epochs_done] if self.file.is_file() else []
        write_table(self.file, COLUMNS, (_cells(row) for row in kept))
        self.board: Any = None
        with suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(root / "tensorboard"), purge_step=epochs_done + 1)

    def write(self, rows: Iterable[Measured]) -> None:
        """Add the rows of an epoch."""
        rows = list(rows)
        before = self.file.stat().st_size
        try:
            with writing(self.file), self.file.open("a", encoding="utf-8", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(_cells(row) for row in rows)
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


def _cells(row: Measured) -> tuple[int, str, str, str, str]:
    return row.epoch, row.split, row.metric, row.klass, repr(row.value)


def read(file: Path) -> list[Measured]:
    """The rows of a run's `metrics.csv`; a last line cut short by a kill is left out."""
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    try:
        return [
            Measured(int(line["epoch"]), line["split"], line["metric"], line["class"], float(line["value"]))
            for line in csv.DictReader(whole.splitlines())
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: damaged ({error}); remove it and resume the run, or start the run again") from None
