"""The networks that a run keeps, ready to use."""

from __future__ import annotations

import torch
from torch import nn

from inbounds.config import network_of
from inbounds.runs.checkpoint import load_weights
from inbounds.runs.run import Run


def build_network(run: Run) -> nn.Module:
    """The run's network, untrained."""
    return network_of(run.settings.network, run.channels, len(run.classes) + 1)


def load_network(run: Run, model: str = "best", device: torch.device | str = "cpu") -> nn.Module:
    """One of the networks a run keeps, in evaluation mode."""
    network = build_network(run)
    load_weights(run.weights(model), network)
    return network.to(device).eval()
