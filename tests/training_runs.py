"""A few generated hearts, and runs on them that take a second."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Literal

from inbounds.config import read_settings
from inbounds.runs.run import Run
from inbounds.sources import phantom as hearts
from inbounds.store.annotate import simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store

SMALL = [
    "network.name=monai:UNet",
    "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}",
    "training.batch=8",
    "training.device=cpu",
]


DEEP = [
    "network.name=unet",
    "network.dimensions=3",
    "network.settings={width=4,levels=2,flat=1}",
    "training.batch=2",
    "training.patch=[4,32,40]",
    "training.device=cpu",
]
"""A small network of volumes."""


def hearts_store(path: Path, dimensions: Literal[2, 3] = 2) -> Store:
    """Four patients, 48x48, with discs as weak labels."""
    plan = Plan("tiny", hearts.CLASSES, (48, 48), GridWindow.pad, "none", dimensions=dimensions)
    made = prepare(hearts.sources(4, side=48), path, plan).store
    simulate(made, "disc", "disc", [1, 2, 3])
    return made


def blind(store: Store, path: Path, *splits: str) -> Store:
    """The same data without any truth, and without facts on some splits."""
    shutil.copytree(store.path, path)
    about = json.loads((path / "dataset.json").read_text(encoding="utf-8"))
    for scan in about["scans"]:
        scan["truth"] = False
    del about["checksums"]["truth.npy"]
    (path / "truth.npy").unlink()
    (path / "dataset.json").write_text(json.dumps(about))
    names = {record.name for record in store.records if record.split in splits}
    file = path / "annotations" / "disc" / "facts.csv"
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([head, *(line for line in lines if line.split(",")[0] not in names)]) + "\n")
    return Store(path)


def start(path: Path, store: Store, recipe: str = "individual", *changes: str, **told: object) -> Run:
    """A run that has not begun."""
    settings = read_settings(recipe, None, [*SMALL, *changes])
    told = {"annotation": None if recipe == "full" else "disc", "classes": ["LV"], **told}
    return Run.create(path, settings, store, **told)  # type: ignore[arg-type]


def kept(run: Run) -> dict[str, bytes]:
    """Everything that a run keeps, but for event files and where it lies."""
    files = [file for file in sorted(run.path.rglob("*")) if file.is_file() and "tensorboard" not in file.parts]
    return {
        str(file.relative_to(run.path)): file.read_bytes().replace(f"{run.path},".encode(), b",")
        for file in files
        if file.name != "run.json"
    }
