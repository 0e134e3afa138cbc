"""Doing lines of a manifest, in this process: each is claimed by a lock, begun or gone on with, and its end noted."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

from inbounds.errors import BadInput, reason
from inbounds.jobs.attempts import How, entries, file_of, fruitless, note, since_asked
from inbounds.jobs.manifest import Kind, Line, read_manifest
from inbounds.locks import InUse, holder, locked

KINDS: dict[Kind, str] = {"train": "training", "predict": "predicting", "prepare": "preparing"}
"""The module that does each kind of work."""
ATTEMPTS = 3
"""So many in a row that bring a line nowhere are enough."""
WAIT = 20.0
"""Seconds for which a line that somebody holds is waited for: he may be dying, and this its second attempt."""


def kind(line: Line) -> ModuleType:
    """The module that does a line, with `work` and `progress`."""
    return importlib.import_module(f"inbounds.jobs.{KINDS[line.task]}")


def work(folder: Path, numbers: Sequence[int]) -> bool:
    """Do some lines, but for those that are done or that others do; says whether all went well."""
    lines = read_manifest(folder)
    left, until, good = {number: lines[number] for number in numbers}, time.monotonic() + WAIT, True
    while left:
        with ExitStack() as held:
            ours: dict[int, Line] = {}
            for number, line in list(left.items()):
                if holder(folder / line.place, inside=True):  # somebody trains it on his own account
                    continue
                try:
                    held.enter_context(locked(file_of(folder, number)))
                except InUse:
                    continue
                del left[number]
                if not kind(line).progress(folder / line.place)[2]:
                    ours[number] = line
            good &= _do(folder, ours)
        if not ours and time.monotonic() > until:
            break
        if left:
            time.sleep(1)
    return good


def _do(folder: Path, lines: Mapping[int, Line]) -> bool:
    """Do lines that are ours."""
    failures: set[int] = set()
    begun: dict[int, Line] = {}
    before: dict[int, int] = {}

    def failed(number: int, why: str, died: bool = False) -> None:
        failures.add(number)
        note(folder, number, "ended", how="died" if died else "failed", why=why)

    for number, line in lines.items():
        epoch, happened = kind(line).progress(folder / line.place)[0], entries(folder, number)
        if since_asked(happened) and since_asked(happened)[-1].how == "failed":
            failures.add(number)
        elif fruitless(happened, epoch) >= ATTEMPTS:
            said = [entry.why for entry in happened if entry.why]
            ends = f"; the last said: {said[-1]}" if said else ": killed, out of memory, or out of time"
            failed(number, f"{ATTEMPTS} attempts ended at epoch {epoch}, where they began{ends}")
        else:
            note(folder, number, "began", epoch=epoch)
            begun[number], before[number] = line, epoch
    try:
        for task in KINDS:
            if some := {number: line for number, line in begun.items() if line.task == task}:
                kind(next(iter(some.values()))).work(folder, some, failed)
    except (BadInput, OSError, MemoryError, RuntimeError) as error:
        for number in begun.keys() - failures:
            failed(number, reason(error))
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        moved = {
            number for number, line in begun.items() if kind(line).progress(folder / line.place)[0] > before[number]
        }
        for number in begun.keys() - failures:
            how: How = "died" if not stopped else "waited" if moved - {number} and number not in moved else "stopped"
            note(folder, number, "ended", how=how, why="" if stopped else reason(error))
        raise
    for number in begun.keys() - failures:
        note(folder, number, "ended", how="done")
    return not failures
