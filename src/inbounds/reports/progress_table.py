"""What runs show while they go on: a table on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

    from inbounds.training.loop import Progress

LAST = ("DSC", "satisfied")
"""What stands behind the terms of the loss."""


class Screen:
    """Shows the progress of one run or of several."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.live: Any = None
        self.shown: dict[Path, Progress] = {}
        self.noted: set[tuple[Path, str]] = set()

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            from rich.live import Live

            self.live = Live(get_renderable=self.table, console=self.console, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, run: Path, progress: Progress) -> None:
        """Show where a run stands."""
        self.shown[run] = progress
        for note in progress.notes:
            if (run, note) not in self.noted:
                self.noted.add((run, note))
                self.console.print(f"{run}: {note}", highlight=False, soft_wrap=True)
        if self.live is None and progress.step == progress.steps:
            words = [f"{name} {value}" for name, value in _cells(progress).items()]
            self.console.print(f"{run}: {', '.join(words)}", highlight=False, soft_wrap=True)

    def table(self) -> Table:
        """A line a run; what some runs do not have is empty."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        rows = {run: _cells(progress) for run, progress in self.shown.items()}
        names = list(dict.fromkeys(name for cells in rows.values() for name in cells))
        names = [name for name in names if name not in LAST] + [name for name in LAST if name in names]
        bars = self.console.width >= 100
        table = Table("run", *([""] if bars else []), *names, box=None, pad_edge=False)
        for run, cells in rows.items():
            progress = self.shown[run]
            done = (progress.epoch - 1) * progress.steps + progress.step
            bar = [ProgressBar(progress.epochs * progress.steps, done, width=12)] if bars else []
            title = str(run) if len(rows) == 1 else os.path.relpath(run, os.path.commonpath(rows))
            table.add_row(title, *bar, *(cells.get(name, "") for name in names))
        return table


def _cells(progress: Progress) -> dict[str, str]:
    left = progress.seconds_left
    wait = f"{left:.0f} s" if left < 600 else f"{left / 60:.0f} min" if math.isfinite(left) else "?"
    cells = {
        "epoch": f"{progress.epoch}/{progress.epochs}",
        "step": f"{progress.step}/{progress.steps}",
        "lr": f"{progress.lr:.3g}",
        "left": wait,
        **{name: f"{value:.4g}" for name, value in progress.terms.items()},
    }
    if "dsc_volume" in progress.validation:
        cells["DSC"] = f"{progress.validation['dsc_volume']:.3f}"
    if "satisfied" in progress.validation:
        cells["satisfied"] = f"{progress.validation['satisfied']:.0%}"
    return cells
