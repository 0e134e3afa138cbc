"""The networks that a run keeps, ready to use."""

from __future__ import annotations

import torch
from torch import nn

from inbounds.config import network_of
from inbounds.errors import BadInput
from inbounds.runs.checkpoint import kept_epochs, load_weights
from inbounds.runs.run import Run


def build_network(run: Run) -> nn.Module:
    """The run's network, untrained."""
    return network_of(run.settings.network, run.channels, len(run.classes) + 1, run.settings.training.patch)


def load_network(run: Run, model: str = "best", device: torch.device | str = "cpu") -> nn.Module:
    """One of the networks a run keeps, in evaluation mode."""
    return load_epoch(run, model, device)[0]


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
