"""The real nnU-Net v2 plans, trains with our trainer and predicts. It lives in an environment of its own."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

from nnunet.discs import write_discs

ROOT = Path(__file__).parents[2]
NAME = "Dataset901_Discs"


def interpreter() -> Path | None:
    """A Python that has nnU-Net: the one that is named, that of `make nnunet`, or this one."""
    named = Path(os.environ.get("INBOUNDS_NNUNET_PYTHON", ROOT / ".venv-nnunet" / "bin" / "python"))
    if named.is_file():
        return named
    return Path(sys.executable) if importlib.util.find_spec("nnunetv2") else None


PYTHON = interpreter()
pytestmark = pytest.mark.skipif(PYTHON is None, reason="nnunetv2 is not installed: make nnunet")


class Place:
    """Folders of nnU-Net's own, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.raw = folder, folder / "raw" / NAME
        self.preprocessed, self.results = folder / "preprocessed" / NAME, folder / "results" / NAME
        for name in ("raw", "preprocessed", "results"):
            (folder / name).mkdir()

    def run(self, *command: str, **more: str) -> str:
        """A command of nnU-Net, or of ours; what it printed."""
        folders = {f"nnUNet_{name}": str(self.folder / name) for name in ("raw", "preprocessed", "results")}
        settings = {"nnUNet_n_proc_DA": "1", "nnUNet_def_n_proc": "1", "nnUNet_compile": "f", "OMP_NUM_THREADS": "1"}
        source = {"PYTHONPATH": str(ROOT / "src")}
        assert PYTHON is not None
        program = [str(PYTHON), "-m", "inbounds"] if command[0] == "inbounds" else [str(PYTHON.parent / command[0])]
        done = subprocess.run(
            [*program, *command[1:]],
            env=os.environ | folders | settings | source | more,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        return done.stdout

    def prepare(self, configuration: str, **settings: int) -> str:
        """A data set, preprocessed, with its facts; the line that makes our trainer known."""
        write_discs(self.raw, self.folder / "sizes.csv", **settings)
        self.run("nnUNetv2_plan_and_preprocess", "-d", "901", "-c", configuration, "-np", "1", "-npfp", "1")
        said = self.run("inbounds", "nnunet", NAME, "--facts", str(self.folder / "sizes.csv"))
        (line,) = [line for line in said.splitlines() if line.startswith("export nnUNet_extTrainer=")]
        return line.partition("=")[2]

    def train(self, configuration: str, trainers: str) -> list[dict[str, Any]]:
        """Two brief epochs; what the trainer wrote down."""
        found = os.pathsep.join([trainers, str(self.folder / "trainers")])
        own = self.folder / "trainers" / "Brief.py"
        own.parent.mkdir(exist_ok=True)
        own.write_text((Path(__file__).parent / "brief_trainer.py").read_text(encoding="utf-8"), encoding="utf-8")
        self.run("nnUNetv2_train", "901", configuration, "0", "-tr", "Brief", "-device", "cpu", nnUNet_extTrainer=found)
        diary = self.results / f"Brief__nnUNetPlans__{configuration}" / "fold_0" / "diary.jsonl"
        lines = [json.loads(line) for line in diary.read_text(encoding="utf-8").splitlines()]
        diary.unlink()
        return lines

    def predict(self, configuration: str, trainers: str) -> np.ndarray:
        """The mask of the new scan."""
        out = self.folder / f"masks_{configuration}"
        found = os.pathsep.join([trainers, str(self.folder / "trainers")])
        words = ["-d", "901", "-c", configuration, "-f", "0", "-tr", "Brief", "-chk", "checkpoint_final.pth"]
        words += ["-i", str(self.raw / "imagesTs"), "-o", str(out), "--disable_tta", "-npp", "1", "-nps", "1"]
        self.run("nnUNetv2_predict", *words, "-device", "cpu", nnUNet_extTrainer=found)
        return np.asarray(nibabel.load(out / "new.nii.gz").dataobj)


def check_patches(diary: list[dict[str, Any]]) -> None:
    """What a patch shows of a disc and what lies outside make up the size that is told, wherever it lies.

    To the pixel, where a patch is what lies in the scan. In one that was zoomed or turned, a disc is drawn anew: a
    pixel at its rim, or at that of the patch where this cuts it, then stands for anything between all and nothing of
    what lies there, so that the size is off by at most half of these pixels; and on average by nothing.
    """
    patches = [one for one in diary if "matrix" in one]
    plain, drawn = [], []
    for one in patches:
        matrix = np.abs(one["matrix"])
        (plain if np.allclose(matrix, np.eye(len(matrix)), atol=1e-6) else drawn).append(one)
    assert min(len(plain), len(drawn)) >= 10
    assert sum(one["shown"] < 0.8 * one["size"] for one in patches) >= 3, "no patch cuts a disc"
    for one in plain:
        assert one["found"] == pytest.approx(one["size"], rel=1e-5, abs=1e-3), one
    for one in drawn:
        assert abs(one["found"] - one["size"]) <= (one["rim"] / 2 + 2) * abs(np.linalg.det(one["matrix"])), one
    told = sum(one["size"] for one in drawn)
    assert sum(one["found"] for one in drawn) == pytest.approx(told, rel=0.02)


def check_looks(diary: list[dict[str, Any]]) -> None:
    """Lower bounds act on patches of scans that were looked at, and on others where they show all; as they were found.

    Where a slice is as large as a patch, the network by itself finds the same.
    """
    for one in diary:
        if "looked" in one:
            assert one["whole"] == pytest.approx(one["alone"], rel=0.01), one
    patches = [one for one in diary if "of" in one]
    assert any(one["seen"] for one in patches)
    assert all(one["complete"] for one in patches if one["seen"])
    assert not all(one["complete"] for one in patches if not one["seen"])


def check_terms(diary: list[dict[str, Any]], bounds: bool) -> None:
    """Bounds wait in the first epoch and act in the second, where there are any."""
    steps = [one for one in diary if "terms" in one]
    assert [one["epoch"] for one in steps] == [0, 0, 0, 1, 1, 1]
    assert all(math.isfinite(value) for one in steps for value in one["terms"].values())
    assert steps[-1]["terms"]["labels"] < steps[0]["terms"]["labels"]
    sizes = [one["terms"].get("size") for one in steps]
    assert sizes[:3] == ([0.0] * 3 if bounds else [None] * 3)
    assert (max(sizes[3:]) > 0) if bounds else (sizes[3:] == [None] * 3)


def test_bounds_in_nnunet(tmp_path: Path) -> None:
    place = Place(tmp_path)
    trainers = place.prepare("2d", cases=6, side=32, slices=4)
    diary = place.train("2d", trainers)
    check_patches(diary)
    check_looks(diary)
    assert any("looked" in one for one in diary)
    check_terms(diary, bounds=True)


@pytest.mark.slow
@pytest.mark.parametrize("configuration", ["2d", "3d_fullres"])
def test_with_and_without_bounds_and_predicting(tmp_path: Path, configuration: str) -> None:
    place = Place(tmp_path)
    trainers = place.prepare(configuration, cases=8, side=48, slices=8)
    for bounds in (True, False):
        if not bounds:
            (place.preprocessed / "inbounds_facts.json").unlink()
        check_terms(diary := place.train(configuration, trainers), bounds)
        if bounds:
            check_patches(diary)
            check_looks(diary)
        mask = place.predict(configuration, trainers)
        assert mask.shape == (48, 48, 8)
        assert set(np.unique(mask)) <= {0, 1}
