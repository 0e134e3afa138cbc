"""How many scans a second `predict` segments, from file to file, beside forward passes alone and beside nnU-Net."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.scans import CLASSES, hounsfield, watched, write
from benchmarks.timing import Row, Way, in_turn, row
from inbounds.batches.samples import as_float
from inbounds.errors import BadInput
from inbounds.inference import Predictor, predict_files
from inbounds.inference.forward import chunk, probabilities
from inbounds.writing import write_json

ROOT = Path(__file__).parents[1]
NNUNET = ROOT / ".venv-nnunet" / "bin" / "python"
"""What `make nnunet` sets up."""
DATA = "Dataset902_Organs"
EPOCHS = 10
"""Of the network, so that it finds something."""
ROUNDS = 6
"""Parts of the scans, which forward passes and `predict` do in turn."""


@dataclass(frozen=True)
class Amount:
    """How many scans, and their slices, rows and columns."""

    scans: int = 300
    shape: tuple[int, int, int] = (10, 256, 256)


MANY = Amount()


class Forward:
    """The network on slices that lie in memory as a store has them, in full batches, part after part."""

    def __init__(self, predictor: Predictor, parts: Sequence[Sequence[Path]]) -> None:
        self.network, self.device, self.at = predictor.networks[0], predictor.device, 0
        self.parts = [
            torch.cat([torch.from_numpy(predictor.look(file).read().stored) for file in part]) for part in parts
        ]

    def __call__(self, count: int) -> None:
        """So many parts."""
        for _ in range(count):
            images = self.parts[self.at % len(self.parts)]
            for some in images.split(chunk(images.shape[2:])):
                probabilities(self.network, as_float(some.to(self.device)))
            self.at += 1


class Files:
    """`inbounds predict`, without its start: scans from files, masks into files."""

    def __init__(self, predictor: Predictor, parts: Sequence[Sequence[Path]], out: Path) -> None:
        self.predictor, self.parts, self.out, self.at = predictor, parts, out, 0

    def __call__(self, count: int) -> None:
        """So many parts."""
        for _ in range(count):
            part = self.parts[self.at % len(self.parts)]
            outcome = predict_files(self.predictor, part, self.out, overwrite=True)
            if outcome.failures:
                raise BadInput(next(iter(outcome.failures.values())))
            self.at += 1


def measure(folder: Path, amount: Amount, device: str) -> list[Row]:
    """Scans a second; ratios are to the forward passes that each way needs.

    Args:
        folder: For scans and masks.
        amount: Of scans.
        device: Where the network computes.
    """
    for number in range(4):
        image, mask = hounsfield(amount.shape, number)
        for kind, array in (("images", image), ("labels", mask)):
            write(array, folder / "few" / kind / f"case{number}.nii.gz", "nii.gz")
    store, run = folder / "store", folder / "run"
    watched("prepare", "folder", folder / "few", store, "--classes", ",".join(CLASSES))
    settings = f"training.device={device}", f"training.epochs={EPOCHS}"
    watched("train", "full", "--store", store, "--run", run, "--set", *settings)
    scans = folder / "scans"
    for number in range(amount.scans):
        write(hounsfield(amount.shape, number)[0], scans / f"scan{number:04d}_0000.nii.gz", "nii.gz")
    files = sorted(scans.iterdir())
    each = max(1, len(files) // ROUNDS)
    parts = [files[first : first + each] for first in range(0, each * (len(files) // each), each)]
    alone, doubting = (Predictor(run, device=device, doubt=doubt) for doubt in (False, True))
    ways: dict[str, Way] = {
        "forward passes alone": Forward(alone, parts),
        "predict --no-doubt": Files(alone, parts, folder / "masks"),
        "predict": Files(doubting, parts, folder / "masks"),
    }
    times = in_turn(ways, len(parts), "predicting")
    base = times["forward passes alone"]
    passes = {"predict": 3}
    rows = [_row(name, its, each, amount, [passes.get(name, 1) * one for one in base]) for name, its in times.items()]
    if device == "cpu" and NNUNET.is_file():
        rows.append(_row("nnU-Net, without mirroring", [_nnunet(folder, run, files)], len(files), amount, None))
    return rows


def _row(name: str, times: Sequence[float], scans: int, amount: Amount, base: Sequence[float] | None) -> Row:
    one = row("predict", name, chunk(amount.shape[1:]), times, base, images=scans * amount.shape[0])
    one |= {"scans": scans, "scans_per_second": 1000 * scans / one["ms"]}
    return one | ({"share": 1 / one["ratio"]} if base else {})


def _nnunet(folder: Path, run: Path, files: Sequence[Path]) -> float:
    """Milliseconds that nnU-Net's predictor takes for the same scans with the same network."""
    raw = folder / "nnunet" / "raw" / DATA
    for kind, ours in (("imagesTr", "images"), ("labelsTr", "labels")):
        (raw / kind).mkdir(parents=True)
        for file in sorted((folder / "few" / ours).iterdir()):
            end = "_0000.nii.gz" if kind == "imagesTr" else ".nii.gz"
            shutil.copy(file, raw / kind / file.name.replace(".nii.gz", end))
    labels = {name: value for value, name in enumerate(CLASSES)}
    about = {"channel_names": {"0": "MRI"}, "labels": labels, "numTraining": 4, "file_ending": ".nii.gz"}
    write_json(raw / "dataset.json", about)
    settings = {f"nnUNet_{name}": str(folder / "nnunet" / name) for name in ("raw", "preprocessed", "results")}
    settings |= {
        "nnUNet_def_n_proc": "2",
        "nnUNet_compile": "f",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    words = ["-d", DATA[7:10], "-c", "2d", "--no_pp", "-np", "1", "-npfp", "1"]
    _told([str(NNUNET.with_name("nnUNetv2_plan_and_preprocess")), *words], settings)
    plans = folder / "nnunet" / "preprocessed" / DATA / "nnUNetPlans.json"
    words = [str(run), str(plans), str(raw / "dataset.json"), str(files[0].parent), str(folder / "nnunet" / "masks")]
    told = _told([str(NNUNET), "-m", "benchmarks.nnunet_predictor", *words], settings)
    return 1000 * float(json.loads(told.splitlines()[-1])["seconds"])


def _told(command: list[str], settings: dict[str, str]) -> str:
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise BadInput(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout
