"""When and where a line was begun, and how that ended: a few words each, added to a file as they happen.

Whoever is killed writes no end. So a line that was begun, has not ended and is locked by nobody has died.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Literal

from inbounds.described import Count, Described, Line, understood
from inbounds.errors import BadInput
from inbounds.locks import HOST
from inbounds.writing import ESCAPED, writing

FOLDER = "attempts"
How = Literal["", "done", "failed", "died", "stopped", "waited"]
JOBS = (("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"), ("SLURM_JOB_ID",))
"""Where Slurm says what it calls a task."""


class Entry(Described):
    """One thing that happened.

    Attributes:
        what: A person asked for the line, an attempt began, or it ended.
        when: In the time of the machine.
        where: The machine, and the job if a scheduler began it.
        epoch: How far the line was.
        how: It ended: done, failed for a reason that stays, died (its process did), stopped by a signal, to go on, or
            stopped while its turn had not come.
        why: In words.
    """

    what: Literal["asked", "began", "ended"]
    when: str
    where: str = ""
    epoch: Count = 0
    how: How = ""
    why: Line = ""


def file_of(folder: Path, number: int) -> Path:
    """Where it is noted; who does the line holds this file's lock, whatever he hands to processes of his own."""
    return folder / FOLDER / f"{number:04d}.jsonl"


def note(
    folder: Path,
    number: int,
    what: Literal["asked", "began", "ended"],
    *,
    epoch: int = 0,
    how: How = "",
    why: str = "",
) -> None:
    """Add what happened to a line, which whoever calls this holds."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    why = why.encode(errors=ESCAPED)[:10_000].decode(errors="replace")
    entry = Entry(what=what, when=now, where=_here(), epoch=epoch, how=how, why=why)
    file = file_of(folder, number)
    with writing(file):
        file.parent.mkdir(exist_ok=True)
        with file.open("a+b") as stream:
            stream.seek(max(0, stream.tell() - 1))
            cut = stream.read() not in (b"", b"\n")  # by a kill in the middle of a line
            text = ("\n" if cut else "") + json.dumps(entry.model_dump()) + "\n"
            stream.write(text.encode())


def entries(folder: Path, number: int) -> list[Entry]:
    """What happened to a line; words that a kill cut short are left out."""
    file, found = file_of(folder, number), []
    for text in file.read_bytes().decode(errors="replace").splitlines() if file.is_file() else ():
        try:
            found.append(understood(text, Entry, str(file), "remove it", str(file)))
        except BadInput:
            continue
    return found


def since_asked(happened: list[Entry]) -> list[Entry]:
    """What happened since a person last asked for the line."""
    last = max((n for n, entry in enumerate(happened) if entry.what == "asked"), default=-1)
    return happened[last + 1 :]


def fruitless(happened: list[Entry], epoch: int) -> int:
    """How many attempts in a row, up to now, began where the line still is."""
    count, waited = 0, False
    for entry in reversed(since_asked(happened)):
        if entry.what == "began":
            if entry.epoch != epoch:
                break
            count += not waited
        waited = entry.how == "waited"
    return count


def _here() -> str:
    for names in JOBS:
        if all(name in os.environ for name in names):
            node = os.environ.get("SLURMD_NODENAME", HOST)
            return f"{node}, job {'_'.join(os.environ[name] for name in names)}"
    return HOST
