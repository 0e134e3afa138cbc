"""A lot of everything: memory, open files and temporary files may not grow with the number of scans."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.nifti import write_affine
from torture.campaign import Campaign, Result
from torture.material import TINY
from torture.process import LIMIT, Command, Place, apart, faults, start

SCANS, SLICES, PREDICTED = 2000, 10, 300
SHAPE = (SLICES, 24, 24)
STEADY = 0.4
"""The share of a command's time after which its memory should be what it is."""
EVERY = 0.05
SLOPES = {"prepare": 15.0, "verify": 25.0, "annotate": 25.0, "train": 1.0, "predict": 25.0}
"""By how many MB a command may grow for 1,000 more scans, or slices seen by a training."""
FILES = 8
"""How many more files may be open late than early: a store has several that grow."""


@dataclass(frozen=True)
class Sample:
    """A command at one moment: seconds, MB of its own memory, open files, and temporary files."""

    at: float
    memory: float
    files: int
    temporary: int


def campaign(out: Path, share: float) -> list[Result]:
    """All of it in turn, on a share of the scans that it is meant for."""
    place = Campaign("load", out.resolve(), 0, 1).place(0)
    shutil.rmtree(place.root, ignore_errors=True)
    place.made()
    if not Path("/proc/self/status").exists():
        raise BadInput("the load campaign looks into /proc, which this system does not have; run it on Linux")
    scans, predicted = max(20, round(SCANS * share)), max(10, round(PREDICTED * share))
    apart(lambda: _write(place, scans, predicted))
    once = ["--set", "training.epochs=2", "--set", f"training.slices={scans * SLICES}"]
    streamed = [*TINY, *once, "--set", "training.data_on_device=false", "--set", "training.batch=32"]
    commands: dict[str, tuple[list[str], int]] = {
        "prepare": (["prepare", "folder", "flat", "store", "--classes", "background,a", "--side", "32"], scans),
        "verify": (["verify", "store"], scans),
        "annotate": (["annotate", "store", "--name", "disc", "--strategy", "disc"], scans),
        "train": (["train", "--store", "store", "--run", "run", *streamed], 2 * scans * SLICES),
        "predict": (["predict", "run", "new", "--out", "masks", "--no-doubt"], predicted),
    }
    results = [_watched(n, name, words, items, place) for n, (name, (words, items)) in enumerate(commands.items())]
    if not any(result.problems for result in results):
        shutil.rmtree(place.root)
    return results


def _watched(number: int, name: str, words: list[str], items: int, place: Place) -> Result:
    command = start(words, place)
    samples = []
    while command.running():
        if sample := _sample(command):
            samples.append(sample)
        time.sleep(EVERY)
    ended = command.ended(LIMIT * 10)
    result = Result(number, name, "load", f"{items:,} {'slices' if name == 'train' else 'scans'}")
    result.seconds, result.memory, result.problems = ended.seconds, ended.memory, faults(ended, {0}, "with a lot")
    (place.root / f"{name}.json").write_text(json.dumps([asdict(sample) for sample in samples]), encoding="utf-8")
    late = [sample for sample in samples if sample.at > STEADY * ended.seconds]
    if len(late) < 4:
        result.outcome = "too quick to tell"
        return result
    slope = float(np.polyfit([sample.at for sample in late], [sample.memory for sample in late], 1)[0])
    grown = slope * ended.seconds / items * 1000
    result.outcome = f"{grown:+.2f} MB per 1,000"
    if grown > SLOPES[name]:
        result.problems.append(f"it grows by {grown:.1f} MB for 1,000 more; {SLOPES[name]:g} are allowed")
    measures: dict[str, Callable[[Sample], int]] = {"open": lambda s: s.files, "temporary": lambda s: s.temporary}
    for what, measure in measures.items():
        early, most = measure(late[0]), max(map(measure, late))
        if most > early + FILES:
            result.problems.append(f"{most} {what} files late, {early} before")
    return result


def _sample(command: Command) -> Sample | None:
    """How a command stands; nothing where it has just ended."""
    root = Path("/proc") / str(command.process)
    try:
        status = dict(line.split(":", 1) for line in (root / "status").read_text().splitlines())
        memory = int(status["RssAnon"].split()[0]) / 1024
        temporary = sum(1 for _ in command.place.temporary.rglob("*"))
        return Sample(time.monotonic() - command.begun, memory, len(list((root / "fd").iterdir())), temporary)
    except (OSError, KeyError):
        return None


def _write(place: Place, scans: int, predicted: int) -> None:
    """Scans with their masks, and others without."""
    rng = np.random.default_rng(0)
    for folder in ("flat/images", "flat/labels", "new"):
        (place.here / folder).mkdir(parents=True)
    for number in range(scans + predicted):
        mask = np.zeros(SHAPE, np.uint8)
        row, column = rng.integers(4, 12, 2)
        mask[:, row : row + 8, column : column + 8] = 1
        image = (rng.integers(0, 90, SHAPE) + 120 * mask).astype(np.uint8)
        folder = "flat/images" if number < scans else "new"
        write_affine(image, np.diag([1.5, 1.5, 8, 1]), place.here / folder / f"p{number:05d}.nii")
        if number < scans:
            write_affine(mask, np.diag([1.5, 1.5, 8, 1]), place.here / "flat/labels" / f"p{number:05d}.nii")
