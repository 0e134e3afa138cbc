"""Lines that train: each a run, begun or gone on with; several at once on a GPU, or in processes on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from inbounds.described import Described
from inbounds.errors import BadInput
from inbounds.jobs.manifest import Line, checked
from inbounds.reports.progress_table import Screen
from inbounds.runs.begin import Wanted, begin_one
from inbounds.runs.machine import devices
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.loop import NotFinite, Trainer
from inbounds.training.train_many import train_many

AT_ONCE = 16
"""Runs side by side: more would not fit on a GPU, and what few have measured is kept the sooner."""


class Training(Described):
    """What such a line says: a run, as `inbounds train` would be asked for it.

    Attributes:
        store: The data.
        data: Their checksums when the run was planned.
        fold: Which of how many parts of the patients validates.
        changes: Single settings; the other attributes are those of `Wanted`.
    """

    store: str
    data: dict[str, str]
    recipe: str
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    fold: int | None = None
    folds: int = 0
    annotation: str | None = None
    facts: str | None = None
    classes: list[str] = Field(default_factory=list)
    margin: float | None = None
    start: str | None = None
    changes: list[str] = Field(default_factory=list)

    def begin(self, place: Path) -> Run:
        """The run, made or opened."""
        store = Store(self.store)
        if store.checksums != self.data:
            raise BadInput(f"{store.path}: not the data that {place} was planned for; bring them back, or plan anew")
        wanted = Wanted(
            [self.recipe],
            [self.seed],
            folds=self.folds,
            annotation=self.annotation,
            facts=self.facts,
            classes=self.classes,
            changes=self.changes,
            start=None if self.start is None else Path(self.start),
            margin=self.margin,
        )
        return begin_one(place, store, wanted, self.recipe, self.seed, self.fold, resume=True)


def progress(place: Path) -> tuple[int, int | None, bool]:
    """How many epochs a run has finished, of how many, and whether it has come to its end."""
    if not (place / "run.json").is_file():
        return 0, None, False
    try:
        run = Run.open(place)
    except BadInput:  # which beginning it says, too
        return 0, None, False
    return run.epoch, run.epochs, run.finished


def work(folder: Path, lines: Mapping[int, Line], failed: Callable[[int, str, bool], None]) -> None:
    """Train what some lines say, to the end; `failed` hears of each that fails, and whether its process just died."""
    runs: dict[Path, int] = {}
    ready = []
    for number, line in lines.items():
        try:
            run = checked(line, Training, folder).begin(folder / line.place)
        except BadInput as error:
            failed(number, str(error), False)
            continue
        runs[run.path] = number
        ready.append(run)
    for path, why in train_all(ready).items():
        failed(runs[path], str(why), why.startswith(f"{path}: its process ended"))


def train_all(
    runs: Sequence[Run],
    before: Callable[[Sequence[Run]], object] = lambda _: None,
    after: Callable[[], object] = lambda: None,
) -> dict[Path, str]:
    """Train runs to their ends, some at once, going on where they stand; of each that failed, why.

    Args:
        runs: All of them; those that are finished are left.
        before: Called with those of them that begin next.
        after: Called whenever some of them are finished, to keep what they measured.
    """
    failures: dict[Path, str] = {}
    left = [run for run in runs if not run.finished]
    with Screen() as screen:
        for some in (left[first : first + AT_ONCE] for first in range(0, len(left), AT_ONCE)):
            before(some)
            ended = [run for run in some if run.epochs is not None and run.epoch >= run.epochs]
            alone = some if len(some) == 1 and devices(some[0].settings.training) == 1 else ended
            for run in alone:
                try:
                    Trainer(run, partial(screen.show, run.path)).fit(resume=True)
                except NotFinite as error:
                    failures[run.path] = str(error)
            if alone is not some:
                failures |= train_many(some, resume=True, show=screen.show)
            after()
    return failures
