"""The newest masks of some slices while a training runs: a program of its own beside it, which never holds it up.

    python -m inbounds.studio.preview PROJECT/trainings/002

Each time the run has a newer checkpoint, its network looks at a few slices, and their masks go into `newest.npz`. It
ends when whoever began it closes its input, or is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import UInt8

from inbounds.errors import BadInput
from inbounds.studio.project import Project
from inbounds.writing import file_aside

FILE = "newest.npz"
SCANS = 12
"""So many scans are looked at, a slice of each."""
PAUSE, SHARE = 3.0, 20.0
"""Seconds between two looks at least; and how many times the work of a look, so that training has the rest."""

Mask = UInt8[np.ndarray, "rows columns"]


@dataclass(frozen=True)
class Newest:
    """Masks of some slices while a network learns.

    Attributes:
        epoch: How far the network was.
        slices: The slice of each scan, by name.
        masks: Its mask, with the values of the project's classes.
    """

    epoch: int = 0
    slices: dict[str, int] = field(default_factory=dict)
    masks: dict[str, Mask] = field(default_factory=dict)


def choose(project: Project, names: Sequence[str]) -> dict[str, int]:
    """Which slices to look at: those with most labels, and middle ones of scans that have none, in turn."""
    numbers = {entry.name: number for number, entry in project.shelf.entries.items()}
    labelled = [name for name in names if project.summary(numbers[name])["marks"][0]]
    others = [name for name in names if name not in set(labelled)]
    half = max(SCANS // 2, SCANS - len(others))
    chosen = labelled[:half] + others[: SCANS - min(half, len(labelled))]
    slices = {}
    for name in chosen:
        entry, shape = project.usable(numbers[name])
        marks = project.summary(entry.id)["marks"][0]
        slices[name] = int(marks[len(marks) // 2]) if marks else shape[0] // 2
    return slices


def read_newest(work: Path) -> Newest:
    """What was written last, or nothing."""
    with suppress(OSError, EOFError, ValueError, KeyError, BadZipFile), (work / FILE).open("rb") as stream:
        kept = np.load(stream)
        slices = dict(zip(kept["names"].tolist(), kept["slices"].tolist(), strict=True))
        masks = {name: kept[f"mask{place}"] for place, name in enumerate(slices)}
        if all(mask.dtype == np.uint8 and mask.ndim == 2 for mask in masks.values()):
            return Newest(int(kept["epoch"]), slices, masks)
    return Newest()


def write_newest(work: Path, newest: Newest) -> None:
    """Keep masks for the page."""
    names = np.array(list(newest.slices), dtype=np.str_)
    arrays = {f"mask{place}": newest.masks[name] for place, name in enumerate(newest.slices)}
    with file_aside(work / FILE) as part, part.open("wb") as stream:
        numbers = {"epoch": np.array(newest.epoch), "slices": np.array(list(newest.slices.values()))}
        np.savez_compressed(stream, allow_pickle=False, names=names, **numbers, **arrays)


def opened(work: Path) -> Callable[[], Newest]:
    """A function that looks at the slices of a job with its run's newest network."""
    import torch  # half a second and much memory: not before there is a network

    from inbounds.evaluation.evaluate import predict_slices
    from inbounds.runs.run import Run

    torch.set_num_threads(1)
    run = Run.open(work / "run")
    records = {record.name: record for record in run.opened_store().records}
    about = json.loads((work / "job.json").read_text(encoding="utf-8"))
    wanted, values = about["shown"], np.array(about["values"], dtype=np.uint8)
    slices = {name: n for name, n in wanted.items() if name in records and n < records[name].slices}
    places = {name: records[name].first + n for name, n in slices.items()}

    def look() -> Newest:
        checkpoint = run.checkpoint
        found = predict_slices(run, list(places.values()))
        masks = {name: values[records[name].fit.back(found[place][None])[0]] for name, place in places.items()}
        return Newest(0 if checkpoint is None else int(checkpoint.name), slices, masks)

    return look


def main(work: Path) -> None:
    """Look again and again, until nobody waits for it any more."""
    with suppress(AttributeError, OSError):
        os.nice(10)
    look, last = None, ""
    while True:
        newest = max((each.name for each in (work / "run" / "checkpoints").glob("[0-9]*")), default="")
        pause = PAUSE
        if newest > last:
            with suppress(BadInput, OSError, ValueError, KeyError):  # replaced just now: there will be another
                look = look or opened(work)
                begun = time.process_time()
                write_newest(work, look())
                last, pause = newest, max(PAUSE, SHARE * (time.process_time() - begun))
        time.sleep(pause)


def _until_left() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_until_left, daemon=True).start()
    main(Path(sys.argv[1]))
