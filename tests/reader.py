"""Somebody who reads scans: sees where hearts are, clicks a few times, knows rough sizes, and mends what is wrong.

The eyes are the truth of generated hearts; the hands are those of whoever asks, a browser or requests to the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from scipy import ndimage

from inbounds.sources.phantom import CLASSES, generate

HEARTS = CLASSES
CLICK = 4.0
"""Radius of a brush in mm that fits into the regions."""
PLAINLY = 12
"""Pixels of a region in a slice that people would click."""
MARGIN = 0.15


@dataclass(frozen=True)
class Heart:
    """A generated scan, and what is in it.

    Attributes:
        name: Of the scan.
        truth: The class of each voxel.
        spacing: Between slices, rows and columns in mm.
    """

    name: str
    truth: np.ndarray
    spacing: tuple[float, float, float]


@dataclass(frozen=True)
class Click:
    """A click of a round brush: where, of which class, and its radius in mm."""

    slice: int
    row: int
    column: int
    klass: int
    radius: float


def draw_hearts(folder: Path, count: int, side: int, seed: int) -> dict[str, Heart]:
    """Write so many generated hearts as NIfTI, filled and contracted in turn."""
    folder.mkdir(parents=True)
    hearts = {}
    for number in range(1, count + 1):
        drawn = generate(number, "ES" if number % 2 else "ED", shape=(side, side), seed=seed)
        name = f"heart{number:02d}"
        between, row, column = drawn.spacing
        assert drawn.truth is not None
        affine = np.diag([-column, -row, between, 1.0])
        nibabel.Nifti1Image(drawn.image[0].T.astype(np.uint8), affine).to_filename(folder / f"{name}.nii.gz")
        hearts[name] = Heart(name, np.asarray(drawn.truth), drawn.spacing)
    return hearts


def first_clicks(heart: Heart, rng: np.random.Generator) -> list[Click]:
    """Five clicks in one slice: one in each class, two on background beside the heart."""
    plain = [n for n, seen in enumerate(heart.truth) if all((seen == k).sum() >= PLAINLY for k in (1, 2, 3))]
    n = int(rng.choice(plain))
    seen = heart.truth[n]
    clicks = [Click(n, *_inside(seen == klass, rng), klass, CLICK) for klass in (1, 2, 3)]
    far = ndimage.distance_transform_edt(seen == 0)
    beside = np.argwhere((far > 3) & (far < 10))
    return clicks + [Click(n, *_one(beside, rng), 0, CLICK) for _ in range(2)]


def sizes(heart: Heart, n: int, others: int, rng: np.random.Generator) -> Iterator[tuple[int, int, float | None]]:
    """What is known of a slice and of some others: slice, class, and its area in mm2; none where it is absent."""
    _, row, column = heart.spacing
    further = rng.permutation([each for each in range(len(heart.truth)) if each != n])[:others]
    for each in (n, *map(int, further)):
        for klass in (1, 2, 3):
            count = int((heart.truth[each] == klass).sum())
            yield each, klass, round(count * row * column, 1) if count else None


def corrections(mask: np.ndarray, heart: Heart) -> list[Click]:
    """Two clicks in one slice: in the largest region that is wrong, and in what else is wrong there, or beside it."""
    found = []
    for klass in range(len(HEARTS)):
        regions, number = ndimage.label((mask != heart.truth) & (heart.truth == klass))
        found += [(int((regions == one).sum()), klass, regions == one) for one in range(1, number + 1)]
    _, klass, region = max(found, key=lambda one: one[0])
    n = int(region.sum(axis=(1, 2)).argmax())
    seen, real = mask[n], heart.truth[n]
    others = [(seen != real) & (real == other) for other in range(len(HEARTS)) if other != klass]
    second = max(others, key=lambda area: float(_depth(area).max()))
    if _depth(second).max() < 2:  # hardly anything: then what lies beside
        away = ndimage.distance_transform_edt(~region[n])
        second = (real != klass) & (real == seen) & (away > 1) & (away < 6)
    return [_click_in(area, n, real, heart) for area in (region[n], second) if area.any()]


def _click_in(area: np.ndarray, n: int, real: np.ndarray, heart: Heart) -> Click:
    """Where an area is widest, with a brush that fits in."""
    depth = _depth(area)
    row, column = np.unravel_index(depth.argmax(), depth.shape)
    radius = max(0.5, round(2 * (float(depth.max()) - 0.5) * heart.spacing[1]) / 2)
    return Click(n, int(row), int(column), int(real[row, column]), min(CLICK, radius))


def dsc(mask: np.ndarray, heart: Heart) -> float:
    """The overlap of a mask with what is there, mean of the classes."""
    pairs = [(mask == klass, heart.truth == klass) for klass in (1, 2, 3)]
    return float(np.mean([2 * (a & b).sum() / max(1, a.sum() + b.sum()) for a, b in pairs]))


def _inside(region: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    depth = _depth(region)
    return _one(np.argwhere(depth >= 0.7 * depth.max()), rng)


def _depth(region: np.ndarray) -> np.ndarray:
    """How far inside each pixel lies, in pixels."""
    depth: np.ndarray = ndimage.distance_transform_edt(np.pad(region, 1))[1:-1, 1:-1]
    return depth


def _one(places: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    row, column = places[rng.integers(len(places))]
    return int(row), int(column)
