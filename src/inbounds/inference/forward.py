"""The forward pass that prediction, validation and evaluation share."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

CHUNK = 32
"""Slices that go through the network at once."""


@torch.no_grad()
def probabilities(network: nn.Module, image: Float[Tensor, "B channels *space"]) -> Float[Tensor, "B K *space"]:
    """Probabilities of some slices, a chunk at a time."""
    return torch.cat([network(chunk).float().softmax(dim=1) for chunk in image.split(CHUNK)])
