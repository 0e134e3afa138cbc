"""A folder as a person has it who never drew a contour: scans, a few clicks, rough sizes, and scans still to segment.

scans/NAME.nii.gz   the scans to learn from; nothing but their voxels
clicks.csv          five clicks on every third slice: one in each class that it shows, the others on background
sizes.csv           of those slices, whether each class is there and how large it is, within 15 %
new/NAME.nii.gz     scans of other patients
truth/NAME.nii.gz   their masks, to see in the end what the clicks were worth
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from scipy import ndimage  # type: ignore[import-untyped]

from inbounds.progress import Track
from inbounds.scans.format import library
from inbounds.sources.source import Source
from inbounds.writing import aside, write_table

EVERY = 3
"""Of so many slices one is clicked, beginning with the second."""
CLICKS = 5
ERROR = 0.15
"""How far off sizes are at most, as a share."""
NEAR = 15
"""Pixels from the nearest region, at most, for every other click on background."""


def write_example(
    sources: Sequence[Source],
    classes: Sequence[str],
    folder: Path,
    *,
    seed: int = 0,
    track: Track[Source] = iter,
) -> None:
    """Write such a folder from scans whose truth is known; those that do not train are the new ones.

    Args:
        sources: The scans, with their split.
        classes: The names of the values of a truth.
        folder: Where to; it must not be there.
        seed: Of all that is drawn.
        track: Wraps the scans, for a progress bar.
    """
    clicks: list[tuple[object, ...]] = []
    sizes: list[tuple[object, ...]] = []
    with aside(folder) as root:
        for name in ("scans", "new", "truth"):
            (root / name).mkdir()
        for source in track(sources):
            loaded = source.load()
            image, truth = loaded.image[0], loaded.truth
            if truth is None:
                continue
            file = f"{source.name}.nii.gz"
            _write(image, loaded.spacing, root / ("scans" if source.split == "train" else "new") / file)
            if source.split != "train":
                _write(truth, loaded.spacing, root / "truth" / file)
                continue
            rng = np.random.default_rng([seed, zlib.crc32(source.name.encode())])
            for number in range(EVERY // 2, len(truth), EVERY):
                mask = truth[number]
                clicks += [(source.name, number, row, col, classes[k]) for row, col, k in _clicks(mask, rng)]
                for value, klass in enumerate(classes[1:], start=1):
                    size = round(float((mask == value).sum()) * rng.uniform(1 - ERROR, 1 + ERROR))
                    sizes.append((source.name, number, klass, int(size > 0), size))
        write_table(root / "clicks.csv", ("case", "slice", "row", "column", "class"), clicks)
        write_table(root / "sizes.csv", ("case", "slice", "class", "present", "size_px"), sizes)


def _clicks(mask: UInt8[np.ndarray, "H W"], rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Row, column and class of each click on a slice: in the inner half of a region, on background near and far."""
    clicks = []
    for value in np.unique(mask[mask > 0]).tolist():
        depth = ndimage.distance_transform_edt(np.pad(mask == value, 1))[1:-1, 1:-1]
        clicks.append((*_one_of(depth >= depth.max() / 2, rng), value))
    near = ndimage.distance_transform_edt(mask == 0) <= NEAR if clicks else np.ones(mask.shape, dtype=bool)
    left = range(CLICKS - len(clicks))
    return clicks + [(*_one_of((mask == 0) & (near | bool(number % 2)), rng), 0) for number in left]


def _one_of(region: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    row, column = np.unravel_index(rng.choice(np.flatnonzero(region)), region.shape)
    return int(row), int(column)


def _write(array: np.ndarray, spacing: tuple[float, float, float], file: Path) -> None:
    nibabel = library("nibabel", file)
    kept = array.astype(np.uint8 if array.dtype == np.uint8 else np.float32)
    nibabel.Nifti1Image(kept.T, np.diag([*spacing[::-1], 1.0])).to_filename(file)
