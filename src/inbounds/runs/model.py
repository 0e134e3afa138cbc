"""The networks that a run keeps, ready to use."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from inbounds.config import network_of
from inbounds.errors import BadInput
from inbounds.runs.bundle import Bundle, is_bundle
from inbounds.runs.checkpoint import kept_epochs, load_weights
from inbounds.runs.run import Run


def build_network(run: Run) -> nn.Module:
    """The run's network, untrained."""
    return network_of(run.settings.network, run.channels, len(run.classes) + 1, run.settings.training.patch)


def load_network(run: Run | Bundle, model: str = "best", device: torch.device | str = "cpu") -> nn.Module:
    """One of the networks a run keeps, or that of a bundle, in evaluation mode."""
    if isinstance(run, Bundle):
        return run.network(model).to(device)
    return load_epoch(run, model, device)[0]


def open_runs(path: Path) -> list[Run | Bundle]:
    """What a path stands for: a run, a bundle, all that are in a folder, such as folds, or paths with commas."""
    opened: list[Run | Bundle] = []
    for place in [path] if path.exists() else [Path(part.strip()) for part in str(path).split(",")]:
        inside = [] if (place / "run.json").is_file() or is_bundle(place) else sorted(place.glob("*/"))
        found = [each for each in inside if (each / "run.json").is_file() or is_bundle(each)]
        opened += [Bundle.open(each) if is_bundle(each) else Run.open(each) for each in found or [place]]
    return opened


def load_epoch(run: Run, model: str, device: torch.device | str = "cpu") -> tuple[nn.Module, int]:
    """The same, and the epoch after which it was kept; of the newest checkpoint, as the run may be in training."""
    network = build_network(run)
    while True:
        file = run.weights(model)
        try:
            load_weights(file, network)
            return network.to(device).eval(), kept_epochs(file.parent)[model]
        except BadInput:
            if run.weights(model) == file:  # else the next has just taken its place
                raise
