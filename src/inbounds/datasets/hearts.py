"""The embedded data set: generated hearts as sources for a store."""

from __future__ import annotations

from functools import partial

import numpy as np

from inbounds.datasets.phantom import CLASSES, Phase, generate
from inbounds.datasets.source import Loaded, Source

NAME = "phantom"
VALIDATION = 0.25

__all__ = ["CLASSES", "NAME", "VALIDATION", "sources"]


def sources(patients: int, *, side: int = 96, seed: int = 0) -> list[Source]:
    """Both phases of so many generated patients; the last quarter validates."""
    held = patients - round(patients * VALIDATION)
    phases: tuple[Phase, Phase] = ("ED", "ES")
    return [
        Source(
            f"phantom{patient:03d}_{phase}",
            f"phantom{patient:03d}",
            partial(_load, patient, phase, side, seed),
            split="train" if patient <= held else "validation",
            phase=phase,
        )
        for patient in range(1, patients + 1)
        for phase in phases
    ]


def _load(patient: int, phase: Phase, side: int, seed: int) -> Loaded:
    scan = generate(patient, phase, shape=(side, side), seed=seed)
    return Loaded(np.ascontiguousarray(scan.image[None]), scan.spacing, scan.truth)
