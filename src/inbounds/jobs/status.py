"""Where each line stands, by its folder, its lock and what was noted of it: no engine is asked, as they miss deaths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from inbounds.errors import BadInput
from inbounds.jobs.attempts import Entry, entries, file_of
from inbounds.jobs.manifest import Line, read_manifest
from inbounds.jobs.work import kind
from inbounds.locks import InUse, holder
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows, write_rows

State = Literal["done", "running", "waiting", "died", "failed"]
STATES: tuple[State, ...] = ("done", "running", "waiting", "died", "failed")
TABLE = "results.csv"


@dataclass(frozen=True)
class Standing:
    """Where a line stands.

    Attributes:
        number: Of the line.
        place: The folder that it fills.
        state: Done; running, as somebody holds its lock; waiting for its turn, perhaps after an orderly stop; died, as
            its process ended without a word; or failed, for a reason that stays until a person asks again.
        epoch: How many epochs are finished, or 1 for other work that is done.
        epochs: Of how many, once that is known.
        attempts: How often it was begun.
        where: Who holds it, or where it was tried last.
        why: Why it failed or died.
    """

    number: int
    place: str
    state: State
    epoch: int
    epochs: int | None
    attempts: int
    where: str = ""
    why: str = ""


def standings(folder: Path) -> list[Standing]:
    """Where all lines of a manifest stand, in their order."""
    return [_standing(folder, number, line) for number, line in enumerate(read_manifest(folder))]


def _standing(folder: Path, number: int, line: Line) -> Standing:
    place = folder / line.place
    who = holder(file_of(folder, number)) or holder(
        place, inside=True
    )  # before looking: who lets go in between has left all that he did
    happened = entries(folder, number)
    epoch, epochs, done = kind(line).progress(place)
    attempts = sum(entry.what == "began" for entry in happened)
    last = happened[-1] if happened else Entry(what="asked", when="")
    found = Standing(number, line.place, "waiting", epoch, epochs, attempts, last.where if attempts else "", "")
    if who:
        return replace(found, state="running", where=f"{who} ({last.where})")
    if done:
        return replace(found, state="done")
    if last.what == "ended" and last.how in ("failed", "died"):
        return replace(found, state="failed" if last.how == "failed" else "died", why=last.why)
    if last.what == "began":
        why = "its process ended without a word: killed, out of memory, or its machine was lost"
        return replace(found, state="died", why=why)
    return found


def counted(found: Iterable[Standing]) -> dict[str, int]:
    """How many lines are in each state."""
    counts = Counter(one.state for one in found)
    return {state: counts[state] for state in STATES}


def in_words(found: Sequence[Standing]) -> str:
    """The same for people, such as `3 of 4 done, 1 failed`."""
    counts = counted(found)
    others = [f"{count} {state}" for state, count in counts.items() if count and state != "done"]
    return ", ".join([f"{counts['done']} of {len(found)} done", *others])


def runs_of(folder: Path) -> list[Run]:
    """The runs of a sweep that have a network to look at, in the order of its lines."""
    lines = [line for line in read_manifest(folder) if line.task == "train"]
    places = [folder / line.place for line in lines if (folder / line.place / "run.json").is_file()]
    return [run for run in map(Run.open, places) if run.checkpoint is not None]


def write_results(folder: Path) -> Path:
    """Write what all finished runs of a sweep measured at the end, as one table: `run` is a run's name in it.

    Whoever finds another at it leaves it to him.
    """
    rows: list[Row] = []
    for run in runs_of(folder):
        if run.finished:
            try:
                measured = read_rows(run.path / "metrics.csv", growing=True)
            except BadInput:  # `status` says what is wrong
                continue
            name = run.path.relative_to(folder / "runs").as_posix()
            rows += [replace(row, run=name) for row in measured if row.epoch == run.epoch]
    with suppress(InUse):
        write_rows(folder / TABLE, rows)
    return folder / TABLE
