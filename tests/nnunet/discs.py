"""A raw data set of nnU-Net: discs beside squares as bright, half of the cases labelled in full, half by clicks."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import nibabel
import numpy as np

SPACING = (6.0, 1.5, 1.5)


def write_discs(raw: Path, table: Path, *, cases: int = 8, side: int = 48, slices: int = 6) -> None:
    """Scans, labels in which 2 is `ignore`, scans to predict, and a table of the size of each disc on each slice."""
    random = np.random.default_rng(0)
    for folder in ("imagesTr", "labelsTr", "imagesTs"):
        (raw / folder).mkdir(parents=True)
    row, column = np.mgrid[:side, :side]
    affine, lines = np.diag([*SPACING[::-1], 1]), []
    for case in range(cases):
        r, c = random.uniform(side / 2 - 6, side / 2 + 6, 2)
        image, label = np.empty((slices, side, side), np.float32), np.empty((slices, side, side), np.uint8)
        for at in range(slices):
            # Nothing in the first and the last slice.
            radius = (7 + case % 4) * (1 - ((at - slices / 2) / slices) ** 2) * (0 < at < slices - 1)
            away = (row - r) ** 2 + (column - c) ** 2
            disc, square = away < radius**2, (abs(row - 6) < 4) & (abs(column - 6) < 4)
            image[at] = 1 + 0.8 * (disc | square) + 0.1 * random.standard_normal((side, side))
            label[at] = disc if case % 2 == 0 else np.where(disc & (away < 4), 1, np.where(row < 2, 0, 2))
            lines.append((f"case{case}", at, "disc", int(disc.sum())))
        nibabel.Nifti1Image(image.T, affine).to_filename(raw / "imagesTr" / f"case{case}_0000.nii.gz")
        nibabel.Nifti1Image(label.T, affine).to_filename(raw / "labelsTr" / f"case{case}.nii.gz")
        if case == 0:
            nibabel.Nifti1Image(image.T, affine).to_filename(raw / "imagesTs" / "new_0000.nii.gz")
    about = {"channel_names": {"0": "MR"}, "labels": {"background": 0, "disc": 1, "ignore": 2}}
    about |= {"numTraining": cases, "file_ending": ".nii.gz"}
    (raw / "dataset.json").write_text(json.dumps(about), encoding="utf-8")
    with table.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("case", "slice", "class", "size_px"), *lines])
