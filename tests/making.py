"""Tiny stores, made from arrays the way real ones are made from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from inbounds.runs.run import Run
from inbounds.sources.source import Loaded, Source
from inbounds.store.facts import Fact
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.training.loop import Progress, Trainer

CLASSES = ("background", "RV", "LV")
SPACING = (8.0, 1.25, 1.5)


def row(case: str, number: int | None, klass: int, present: bool | None = None, **known: float) -> Fact:
    """A row of facts, its columns as keywords."""
    return Fact(case, number, klass, present, known)


def disc(shape: tuple[int, int], centre: tuple[float, float], radius: float) -> np.ndarray:
    """A mask whose pixels lie within `radius` of `centre`."""
    rows, columns = np.indices(shape)
    return np.hypot(rows - centre[0], columns - centre[1]) <= radius


def truth_like(seed: int, slices: int = 3, shape: tuple[int, int] = (30, 26)) -> np.ndarray:
    """Two discs that drift from slice to slice; the last slice is empty."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((slices, *shape), np.uint8)
    for mask in truth[:-1]:
        for klass in (1, 2):
            centre = (shape[0] * (0.15 + 0.3 * klass), shape[1] * rng.uniform(0.4, 0.6))
            mask[disc(shape, centre, rng.uniform(2.5, 4.5))] = klass
    return truth


def image_of(truth: np.ndarray, seed: int = 0) -> np.ndarray:
    """One channel of 12-bit brightness, in which classes differ."""
    noise = np.random.default_rng(seed).normal(0, 40, truth.shape)
    return (300 + 500 * truth.astype(np.float64) + noise).astype(np.int16)[None]


def source(
    name: str,
    truth: np.ndarray | None,
    *,
    image: np.ndarray | None = None,
    spacing: tuple[float, float, float] = SPACING,
    split: str = "train",
    patient: str = "",
    weak: Mapping[str, np.ndarray] | None = None,
) -> Source:
    """A scan that lies in memory; give an image where there is no truth to make one from."""
    if image is None:
        image = image_of(truth)
    loaded = Loaded(image, spacing, truth, weak or {})
    return Source(name, patient or name, lambda: loaded, split=split, weak=tuple(weak or ()), truth=truth is not None)


def make_store(
    path: Path,
    sources: Sequence[Source] | None = None,
    *,
    shape: tuple[int, int] = (32, 32),
    fit: Callable[[tuple[int, int], tuple[int, int]], GridWindow] = GridWindow.pad,
    classes: tuple[str, ...] = CLASSES,
    dtype: str = "uint8",
) -> Store:
    """Prepare scans; two of them, a and b, if none are given."""
    if sources is None:
        sources = [source(name, truth_like(seed)) for seed, name in enumerate("ab")]
    return prepare(sources, path, Plan("tiny", classes, shape, fit, "as told", dtype)).store


def train_here(runs: Sequence[Run], *, resume: bool, show: Callable[[Path, Progress], None]) -> dict[Path, str]:
    """In place of `train_many`: one after the other in this process, since others take seconds each to start."""
    for run in runs:
        Trainer(run, partial(show, run.path)).fit(resume=resume)
    return {}
