"""What runs show while they go on: a bar each with the time left on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from inbounds.training.loop import Progress


class Screen:
    """Shows the progress of one run or of several."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.bar: Any = None
        self.tasks: dict[Path, Any] = {}

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TimeRemainingColumn(),
                TextColumn("{task.fields[told]}"),
            )
            self.bar = Progress(*columns, console=self.console)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, run: Path, progress: Progress) -> None:
        """Show where a run stands."""
        if self.bar is not None:
            total = progress.epochs * progress.steps
            if run not in self.tasks:
                self.tasks[run] = self.bar.add_task(str(run), total=total, told="")
            done = (progress.epoch - 1) * progress.steps + progress.step
            self.bar.update(self.tasks[run], completed=done, told=self._line(progress))
        elif progress.step == progress.steps:
            self.console.print(f"{run}: {self._line(progress)}", highlight=False, soft_wrap=True)

    @staticmethod
    def _line(progress: Progress) -> str:
        left = progress.seconds_left
        parts = [f"epoch {progress.epoch}/{progress.epochs}", f"step {progress.step}/{progress.steps}"]
        parts += [f"rate {progress.rate:g}", f"{left:.0f} s left" if left < 600 else f"{left / 60:.0f} min left"]
        parts += [f"{name} {value:.4g}" for name, value in progress.terms.items()]
        if "dsc_volume" in progress.validation:
            parts.append(f"DSC {progress.validation['dsc_volume']:.3f}")
        if "held" in progress.validation:
            parts.append(f"bounds held {progress.validation['held']:.0%}")
        return ", ".join(parts)
