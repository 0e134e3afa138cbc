"""How long a training step on volumes takes, by the size of a patch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks.timing import Row, Steps, Way, row
from inbounds.config import read_settings
from inbounds.config.plan import REGULARISERS
from inbounds.config.plan import plan as plan_for
from inbounds.runs.run import Run
from inbounds.scans.format import by
from inbounds.sources import phantom as hearts
from inbounds.store.annotate import simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.training.estimate import SHARE
from inbounds.training.loop import Trainer

PATCHES = ((8, 64, 64), (8, 128, 128), (32, 64, 64), (32, 128, 128), (64, 128, 128))
"""Slices, rows and columns."""
Measure = Callable[[dict[str, Way], str], dict[str, list[float]]]


def patches(folder: Path, sizes: Sequence[tuple[int, int, int]], device: str, measure: Measure) -> list[Row]:
    """A step of what `inbounds train` does with the volumes of two classes known, with and without an estimate.

    Args:
        folder: For data and runs.
        sizes: Of patches.
        device: `cpu` or `cuda`.
        measure: Gives milliseconds of each way, by turns.
    """
    store = _store(folder / "hearts", max(size[0] for size in sizes), max(size[1] for size in sizes))
    rows = []
    for size in sizes:
        trainers = {
            known: _trainer(folder / f"{by(size)}-{known}", store, size, device, known) for known in (False, True)
        }
        ways: dict[str, Way] = {str(known): Steps(trainer) for known, trainer in trainers.items()}
        times = measure(ways, f"patches of {by(size)}")
        share = _refreshing(trainers[True], sorted(times["True"])[len(times["True"]) // 2])
        for known in (False, True):
            name = f"{by(size)}{', estimated' if known else ''}"
            batch = trainers[known].run.settings.training.batch
            one = row("patches", name, batch, times[str(known)], times["False"], label=name)
            rows.append(one | {"steps_per_second": 1000 / one["ms"]} | ({"refresh": share} if known else {}))
        ways.clear()
        trainers.clear()
    return rows


def _store(path: Path, depth: int, side: int) -> Store:
    """Generated hearts whose slices lie so close that a scan has as many as the deepest patch."""
    sources = hearts.sources(3, side=side)
    distance = 80.0 / depth  # of at least eight slices that are ten millimetres apart
    plan = Plan(hearts.NAME, hearts.CLASSES, (side, side), GridWindow.pad, "none", dimensions=3, slice_spacing=distance)
    store = prepare(sources, path, plan).store
    simulate(store, "disc", "disc", [store.class_index("LV"), store.class_index("RV")], background=True)
    return store


def _trainer(path: Path, store: Store, size: tuple[int, int, int], device: str, known: bool) -> Trainer:
    """A run as it is planned, ready to go; its scans were looked at, where the rest is estimated."""
    changes = [f"training.device={device}", "training.epochs=10", f"training.patch={list(size)}"]
    changes += [f"training.estimate={str(known).lower()}"]
    given = read_settings("volume", None, changes, layers=[{"regularisers": REGULARISERS}])
    chosen = plan_for(given, store, "disc", "disc", ["LV", "RV"], gpu=device == "cuda").settings
    settings = read_settings("volume", None, changes, layers=[chosen])
    run = Run.create(path, settings, store, annotation="disc", facts="disc", classes=["LV", "RV"])
    trainer = Trainer(run)
    if trainer.volumes is not None and trainer.volumes.estimate is not None:
        trainer.volumes.estimate.refresh(10**9)
    return trainer


def _refreshing(trainer: Trainer, step: float) -> float:
    """The time of looking at scans again between two epochs, as a share of that of an epoch's steps."""
    assert trainer.volumes is not None
    estimate = trainer.volumes.estimate
    assert estimate is not None
    begun = time.monotonic()
    with trainer.stream.here(), trainer.fabric.autocast():
        looked = estimate.refresh(10**9)
    if trainer.stream.cuda:
        torch.cuda.synchronize()
    whole = time.monotonic() - begun  # for all scans
    assert looked
    trained = trainer.volumes.voxels
    return (whole * SHARE * trained / sum(estimate.sizes)) / (trainer.volumes.steps() * step / 1000)
