"""What a person would write down of a scan whose truth is known: simulated facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inbounds.errors import BadInput
from inbounds.store.facts import Fact
from inbounds.store.record import Record
from inbounds.store.store import Store


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
    images = store.images[record.range.start : record.range.stop, 0].astype(np.float32)
    if store.dtype == np.uint8:
        images /= 255
    black, white = record.intensity
    edge = np.array(record.fit.original) - 0.5
    most = float(np.prod(record.fit.original))
    rows: list[Fact] = []
    for klass in classes:
        voxels, bright = 0.0, 0.0
        for number, (mask, image) in enumerate(zip(truth == klass, images, strict=True)):
            pixels = float(mask.sum()) / record.fit.area
            if not pixels:
                rows.append(Fact(record.name, number, klass, False, {"size_px": 0, "size_mm2": 0}))
                continue
            centre = np.argwhere(mask).mean(axis=0) + rng.normal(0, noise.position, size=2)
            row, col = np.clip(record.fit.point_back(*centre), -0.5, edge).tolist()
            mean = float(image[mask].mean())
            size = min(pixels * noise.factor(rng), most)
            known = {"size_px": size, "size_mm2": size * height * width, "centroid_row": row, "centroid_col": col}
            known["mean_intensity"] = black + mean * (white - black)
            rows.append(Fact(record.name, number, klass, True, known))
            voxels += pixels
            bright += pixels * mean
        size = min(voxels * noise.factor(rng), most * record.slices)
        known = {"size_px": size, "volume_ml": size * depth * height * width / 1000}
        if voxels:
            known["mean_intensity"] = black + bright / voxels * (white - black)
        rows.append(Fact(record.name, None, klass, voxels > 0, known))
    return rows
