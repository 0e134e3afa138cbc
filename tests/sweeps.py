"""Sweeps of a few runs that take seconds, what comes of them, and how far they are."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from inbounds.jobs.attempts import entries
from inbounds.jobs.manifest import read_manifest, write_manifest
from inbounds.jobs.plan import lines_of, read_sweep
from inbounds.jobs.training import work
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows
from inbounds.store.store import Store
from training_runs import kept

PLAN = """
store = "{store}"
recipe = "tags"
annotation = "disc"
classes = ["LV"]
seeds = {seeds}

[settings.network]
name = "monai:UNet"
settings = {{ spatial_dims = 2, channels = [4, 8], strides = [2] }}

[settings.training]
batch = 8
device = "cpu"
threads = 1
epochs = {epochs}
"""


def plan(file: Path, store: Store, *, epochs: int = 1, seeds: Sequence[int] = (0,), more: str = "") -> Path:
    """A plan, as a person writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = PLAN.format(store=store.path.resolve(), seeds=list(seeds), epochs=epochs)
    file.write_text(text + more, encoding="utf-8")
    return file


def begun(folder: Path, file: Path) -> Path:
    """A folder with the manifest of a plan."""
    folder.mkdir(parents=True, exist_ok=True)
    write_manifest(folder, lines_of(read_sweep(file), file))
    return folder


def alone(folder: Path, file: Path) -> Path:
    """All runs of a plan, one after the other in this process."""
    for number, line in enumerate(read_manifest(begun(folder, file))):
        work(folder, {number: line}, lambda number, why, died: (_ for _ in ()).throw(AssertionError(why)))
    return folder


def sweeping(file: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """`inbounds sweep` in a process of its own."""
    command = [sys.executable, "-m", "inbounds", "sweep", str(file), "--out", str(out), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def epochs(out: Path, number: int) -> int:
    """How many epochs a run of a sweep has finished."""
    place = out / read_manifest(out)[number].place if (out / "manifest.jsonl").is_file() else out
    return Run.open(place).epoch if (place / "run.json").is_file() else 0


def until(true: Callable[[], object], process: subprocess.Popen[str], seconds: float = 300) -> None:
    """Wait while a command is at work."""
    end = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def ended(process: subprocess.Popen[str], seconds: float = 300) -> str:
    """What a command said that came to a good end."""
    said, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, said
    return said


def same(one: Path, other: Path) -> None:
    """All runs of two sweeps are finished, and alike to the last bit; the table is the same."""
    lines = read_manifest(one)
    assert [line.hash for line in lines] == [line.hash for line in read_manifest(other)]
    for line in lines:
        runs = [Run.open(folder / line.place) for folder in (one, other)]
        assert all(run.finished for run in runs)
        first, second = map(contents, runs)
        assert first == second, line.place


def contents(run: Run) -> dict[str, object]:
    """What a run keeps, but for how it calls itself."""
    rows = [[getattr(row, name) for name in Row.__annotations__ if name != "run"] for row in _rows(run)]
    files = {name: value for name, value in kept(run).items() if "checkpoints" in name}
    return {**files, "rows": repr(rows)}


def _rows(run: Run) -> list[Row]:
    rows = read_rows(run.path / "metrics.csv")
    assert [row.epoch for row in rows if row.metric == "lr"] == list(range(1, run.epoch + 1))  # each epoch, once
    return rows


def done_once(folder: Path, number: int) -> bool:
    """Whether exactly one attempt at a line came to its end."""
    return sum(entry.how == "done" for entry in entries(folder, number)) == 1
