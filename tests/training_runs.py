"""A few generated hearts, and runs on them that take a second."""

from __future__ import annotations

from pathlib import Path

from inbounds.config import read_settings
from inbounds.datasets import hearts
from inbounds.datasets.annotate import simulate
from inbounds.datasets.fit import Fit
from inbounds.datasets.prepare import Plan, prepare
from inbounds.datasets.store import Store
from inbounds.runs.run import Run

SMALL = [
    "network.name=monai:UNet",
    "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}",
    "training.batch=8",
    "training.device=cpu",
]


def hearts_store(path: Path) -> Store:
    """Four patients, 48x48, with discs as weak labels."""
    made = prepare(hearts.sources(4, side=48), path, Plan("tiny", hearts.CLASSES, (48, 48), Fit.pad, "none")).store
    simulate(made, "disc", "disc", [1, 2, 3])
    return made


def start(path: Path, store: Store, recipe: str = "individual", *changes: str, **told: object) -> Run:
    """A run that has not begun."""
    settings = read_settings(recipe, None, [*SMALL, *changes])
    told = {"annotation": None if recipe == "full" else "disc", "classes": ["LV"], **told}
    return Run.create(path, settings, store, **told)  # type: ignore[arg-type]


def kept(run: Run) -> dict[str, bytes]:
    """Everything that a run keeps, but for event files."""
    files = [file for file in sorted(run.path.rglob("*")) if file.is_file() and "tensorboard" not in file.parts]
    return {str(file.relative_to(run.path)): file.read_bytes() for file in files if file.name != "run.json"}
