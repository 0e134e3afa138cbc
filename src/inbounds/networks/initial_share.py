"""What a network gives before it has learnt anything."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class InitialShare(nn.Module):
    """A network to which every class but the background is rare before it has learnt anything.

    A new network gives all classes about the same score, so that half of an image is foreground, far above any bound on
    its size. A penalty then presses all of it down before the labelled pixels have taught what to keep, from which a
    network recovers late or never. Here equal scores give each class the probability `share`.

    Args:
        network: Gives scores.
        share: About the share of an image that a class has, such as 0.02.
        classes: Classes, the background included.

    Example:
        >>> InitialShare(nn.Identity(), 0.02, 2)(torch.zeros(1, 2, 1, 1)).softmax(1).flatten()
        tensor([0.9800, 0.0200])
    """

    def __init__(self, network: nn.Module, share: float, classes: int) -> None:
        super().__init__()
        rest = 1 - (classes - 1) * share
        if not (share > 0 and rest > 0):
            raise ValueError(
                f"{classes - 1} classes cannot have a share of {share} each: it is above 0, the sum below 1"
            )
        self.network, self.odds = network, math.log(share / rest)

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B K *space"]:
        """The scores of every class, before the softmax."""
        scores = self.network(image)
        return torch.cat([scores[:, :1], scores[:, 1:] + self.odds], dim=1)
