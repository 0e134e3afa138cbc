"""The networks that a run keeps, ready to use."""

from __future__ import annotations

import torch
from torch import nn

from inbounds.networks import Guided, Merged, build
from inbounds.runs.checkpoint import load_weights
from inbounds.runs.run import Run


def build_network(run: Run) -> nn.Module:
    """The run's network, untrained."""
    network = run.settings.network
    made = build(network.name, run.channels, len(run.classes) + 1 + network.spare, **network.settings)
    if network.spare:
        made = Merged(made, network.spare)
    return Guided(made, network.guided) if network.guided else made


def load_network(run: Run, model: str = "best", device: torch.device | str = "cpu") -> nn.Module:
    """One of the networks a run keeps, in evaluation mode."""
    network = build_network(run)
    load_weights(run.weights(model), network)
    return network.to(device).eval()
