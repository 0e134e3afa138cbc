"""What a person would write down of a scan whose truth is known: simulated facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from inbounds.errors import BadInput
from inbounds.regions import Geometry, Scans, statistics
from inbounds.store.facts import Fact, given_columns
from inbounds.store.record import Record
from inbounds.store.store import Store

BY_HAND = ("size", "centroid", "mean_intensity")
"""Statistics that people are wrong about, or that have several units."""


@dataclass(frozen=True)
class Noise:
    """How far off a person is.

    Attributes:
        size: How far off sizes are at most, as a share of the true one; every error up to that is as likely.
        position: Standard deviation of centroids along each axis, in pixels of the store's grid.
    """

    size: float = 0.0
    position: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.size < math.inf and 0 <= self.position < math.inf):
            raise BadInput(f"sizes and centres are off by 0 or more, not by {self.size:g} and {self.position:g}")

    def factor(self, rng: np.random.Generator) -> float:
        """What a size is multiplied by: never less than a tenth."""
        return max(0.1, 1 + float(rng.uniform(-self.size, self.size))) if self.size else 1.0


def measure(
    store: Store, record: Record, truth: np.ndarray, classes: Sequence[int], rng: np.random.Generator, noise: Noise
) -> list[Fact]:
    """The facts that a careful person would write down for one scan: of each slice, and of the whole."""
    depth, height, width = record.spacing
    images = store.images[record.span].astype(np.float32)
    if store.dtype == np.uint8:
        images /= 255
    black, white = record.intensity
    edge = np.array(record.fit.original) - 0.5
    most = float(np.prod(record.fit.original))
    rows: list[Fact] = []
    for klass in classes:
        masks = truth == klass
        voxels = float(masks.sum()) / record.voxel
        bright = float(images[:, 0][masks].mean(dtype=np.float64)) if voxels else 0.0
        for number, place in enumerate(record.nearest()):
            mask, image = masks[place], images[place]
            pixels = float(mask.sum()) / record.fit.area
            if not pixels:
                rows.append(Fact(record.name, number, klass, False, {"size_px": 0, "size_mm2": 0}))
                continue
            centre = np.argwhere(mask).mean(axis=0) + rng.normal(0, noise.position, size=2)
            row, col = np.clip(record.fit.point_back(*centre), -0.5, edge).tolist()
            mean = float(image[0][mask].mean(dtype=np.float64))
            size = min(pixels * noise.factor(rng), most)
            known = {"size_px": size, "size_mm2": size * height * width, "centroid_row": row, "centroid_col": col}
            known["mean_intensity"] = black + mean * (white - black)
            known |= _others(record.geometry(number), mask[None], image[None])
            rows.append(Fact(record.name, number, klass, True, known))
        size = min(voxels * noise.factor(rng), most * record.original_slices)
        known = {"size_px": size, "volume_ml": size * depth * height * width / 1000}
        if voxels:
            known["mean_intensity"] = black + bright * (white - black)
            there = masks.any(axis=(1, 2))
            known |= _others(record.geometry(None), masks[there], images[there])
        rows.append(Fact(record.name, None, klass, voxels > 0, known))
    return rows


def _others(geometry: Geometry, masks: np.ndarray, images: np.ndarray) -> dict[str, float]:
    """All other statistics that tables have columns for, of a slice or of the slices of a scan, by column."""
    probs, scans = torch.from_numpy(masks).float().unsqueeze(1), Scans(torch.zeros(len(masks), dtype=torch.long), 1)
    known: dict[str, float] = {}
    for name, columns in given_columns().items():
        if name in BY_HAND:
            continue
        one = statistics[name]
        measured = one(probs, **one.inputs(torch.from_numpy(images), scans))[0, 0, : len(columns.names)].tolist()
        values = columns.from_grid(measured, geometry)
        if all(math.isfinite(v) and not columns.refused(n, v, geometry) for n, v in enumerate(values)):
            known |= zip(columns.names, values, strict=True)
    return known
