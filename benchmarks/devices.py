"""What a second process gains on a CPU, and what it costs to leave data on the disk."""

from __future__ import annotations

import itertools
import math
import mmap
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.timing import Epochs, Row, Way, row
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.loop import Progress, Trainer
from inbounds.training.train_many import train_many

Make = Callable[..., Run]
"""A new run, from a recipe and changes of its settings."""
Measure = Callable[[dict[str, Way], str], dict[str, list[float]]]


def together(make: Make, numbers: tuple[int, ...], epochs: int) -> list[Row]:
    """The time of an epoch, validation and checkpoint included, of so many processes of one thread each.

    The first epoch, in which everything begins, is left out.
    """
    times: dict[int, list[float]] = {}
    for number in numbers:
        run = make("training.threads=1", f"training.devices={number}", f"training.epochs={epochs + 1}")
        ends: list[float] = []

        def show(_: Path, progress: Progress, ends: list[float] = ends) -> None:
            if progress.step == progress.steps and len(ends) < progress.epoch:
                ends.append(time.perf_counter())

        if failures := train_many([run], show=show):
            raise RuntimeError(next(iter(failures.values())))
        times[number] = [1000 * (after - before) for before, after in itertools.pairwise(ends)]
    batch, base = run.settings.training.batch, median(times[numbers[0]])
    images = sum(record.slices for record in run.opened_store().records if record.split == "train")
    rows = [row("devices", f"processes_{number}", batch, ms, processes=number) for number, ms in times.items()]
    return [one | {"ratio": one["ms"] / base, "images_per_second": 1000 * images / one["ms"]} for one in rows]


class Cold:
    """Epochs that begin with nothing of the store in memory but what the run itself holds."""

    def __init__(self, trainer: Trainer, opened: Sequence[Store]) -> None:
        self.opened, self.epochs = opened, Epochs([trainer])
        self.read: list[float] = []

    def __call__(self, count: int) -> None:
        """So many."""
        for _ in range(count):
            forget(self.opened)
            before = from_disk()
            self.epochs(1)
            self.read.append(from_disk() - before)


def streamed(trainers: Mapping[str, Trainer], store: Store, measure: Measure) -> list[Row]:
    """An epoch with data in memory and with data on the disk, whose pages are dropped before each."""
    opened = [store, *(trainer.run.opened_store() for trainer in trainers.values())]
    ways = {name: Cold(trainer, opened) for name, trainer in trainers.items()}
    times = measure(dict(ways), "streamed")
    rows, first = [], next(iter(times))
    for name, way in ways.items():
        trainer, steps = trainers[name], way.epochs.steps
        each = [ms / steps for ms in times[name]]
        base = [ms / steps for ms in times[first]]
        samples = trainer.samples
        needed = len(samples) * samples.pixels * trainer.run.opened_store().dtype.itemsize * trainer.run.channels
        share = median(way.read) / needed if needed else math.nan
        batch = trainer.run.settings.training.batch
        rows.append(row("streamed", name, batch, each, base, steps=steps, read=share, megabytes=needed / 2**20))
    return rows


def forget(opened: Sequence[Store]) -> None:
    """Drop what the system keeps of a store's images: an epoch that needs them has to ask the disk."""
    for store in opened:  # pages that a process has mapped are not dropped
        mapped: mmap.mmap = store.images.array._mmap  # type: ignore[attr-defined]  # of a memory map
        mapped.madvise(mmap.MADV_DONTNEED)
    with (opened[0].path / "images.npy").open("rb") as stream:
        os.fsync(stream.fileno())  # nor are those that wait to be written
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def from_disk() -> int:
    """The bytes that this process has had from a disk, as Linux counts them."""
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])
