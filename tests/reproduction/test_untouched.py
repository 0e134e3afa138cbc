"""The five commands of the README on a folder without any contour, with nothing set."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inbounds.runs.run import Run
from pages import ROOT
from reproduction.untouched import overlap

RESULTS = ROOT / "reproduction" / "results" / "untouched"


def test_overlap_of_classes_that_are_there_or_found(tmp_path: Path) -> None:
    import nibabel

    mask, truth = np.zeros((2, 1, 2, 2), np.uint8)
    truth[0, 0], mask[0, 0, 0] = 1, 1  # one of two pixels
    for name, array in (("masks", mask), ("truth", truth)):
        (tmp_path / name).mkdir()
        nibabel.Nifti1Image(array.T, np.eye(4)).to_filename(tmp_path / name / "a.nii.gz")
    np.testing.assert_allclose(overlap(tmp_path / "masks", tmp_path / "truth", 3), [[2 / 3, np.nan]])


@pytest.mark.parametrize("name", ["phantom", "acdc"])
def test_the_page_shows_what_was_measured(name: str) -> None:
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    cells = [f"{found['minutes']:g}", *(f"{value:.3f}" for value in (found["mean"], *found["dsc"].values()))]
    row = f"| {' | '.join([name, *cells])} | {found['rank_correlation_of_doubt']:.2f} |"
    assert row in (ROOT / "reproduction" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_clicks_and_rough_sizes_to_sound_masks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reproduction.untouched", str(tmp_path), "--minutes", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert "known: sizes of 132 of 396 slices, tags of 132, 660 clicks in 3 classes and background" in told
    assert "epochs of 50 steps, about" in told
    assert "Warning" not in told
    masks = sorted((tmp_path / "masks").glob("*.nii.gz"))
    assert len(masks) == 20
    with (tmp_path / "masks" / "predictions.csv").open(encoding="utf-8") as stream:
        doubts = [float(row["doubt"]) for row in csv.DictReader(stream)]
    assert doubts == sorted(doubts, reverse=True)
    assert len(doubts) == 60
    run = Run.open(tmp_path / "run")
    assert run.settings.training.minutes == 4
    assert run.settings.training.epochs is None
    result = json.loads((tmp_path / "untouched.json").read_text(encoding="utf-8"))
    assert result["mean"] > 0.7
