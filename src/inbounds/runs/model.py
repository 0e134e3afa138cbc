"""The networks that a run keeps, ready to use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from inbounds.config import network_of
from inbounds.errors import BadInput
from inbounds.runs.checkpoint import kept_epochs, load_weights
from inbounds.runs.run import Run

Kept = TypeVar("Kept")


def build_network(run: Run) -> nn.Module:
    """The run's network, untrained."""
    return network_of(run.settings.network, run.channels, len(run.classes) + 1, run.settings.training.patch)


def load_network(run: Run, model: str = "best", device: torch.device | str = "cpu") -> nn.Module:
    """One of the networks a run keeps, in evaluation mode."""
    network = build_network(run)
    _newest(run, model, lambda file: load_weights(file, network))
    return network.to(device).eval()


def load_epoch(run: Run, model: str, device: torch.device | str = "cpu") -> tuple[nn.Module, int]:
    """The same, and the epoch after which it was kept."""
    network = build_network(run)

    def read(file: Path) -> int:
        load_weights(file, network)
        return kept_epochs(file.parent)[model]

    epoch = _newest(run, model, read)
    return network.to(device).eval(), epoch


def _newest(run: Run, model: str, read: Callable[[Path], Kept]) -> Kept:
    """What is read from the newest checkpoint of a run, which may be in training."""
    while True:
        file = run.weights(model)
        try:
            return read(file)
        except BadInput:
            if run.weights(model) == file:  # else the next has just taken its place
                raise
