"""What a network's scores pass before anybody sees them. Heads learn nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inbounds.networks.edge_filter import EdgeFilter


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


class Dilate(nn.Module):
    """A network that finds the cores of regions: a pixel has the best score within reach.

    Seeds come from the inside of a region, and a network trained on them ends short of its border. Here it may: a class
    leads the background as it does at the best pixel that is at most `reach` away along each axis. What losses, bounds
    and masks see is the region that was grown.

    Args:
        network: Gives scores at the size of the image.
        reach: By how many pixels regions grow.

    Example:
        >>> scores = torch.tensor([[[[0.0, 0.0, 0.0, 0.0]], [[2.0, -1.0, -3.0, -3.0]]]])
        >>> Dilate(nn.Identity(), 1)(scores)[0, 1]
        tensor([[ 2.,  2., -1., -3.]])
    """

    def __init__(self, network: nn.Module, reach: int) -> None:
        super().__init__()
        if reach < 1:
            raise ValueError(f"regions grow by 1 pixel or more, not by {reach}")
        self.network, self.reach = network, reach

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B K *space"]:
        """The scores of every class, before the softmax; those of the background are 0."""
        scores: Tensor = self.network(image).float()
        lead = scores[:, 1:] - scores[:, :1]
        pool = functional.max_pool3d if image.ndim == 5 else functional.max_pool2d
        lead = pool(lead, 2 * self.reach + 1, stride=1, padding=self.reach)
        return torch.cat([torch.zeros_like(lead[:, :1]), lead], dim=1)


heads: dict[str, Callable[[nn.Module, Any, int], nn.Module]] = {
    "initial_share": InitialShare,
    "edge_filter": lambda network, sigma, _: EdgeFilter(network, sigma),
    "dilate": lambda network, reach, _: Dilate(network, reach),
}
"""By the setting that asks for it, in the order in which scores pass them: from a network, the setting and the number
of classes to the network with its head."""
