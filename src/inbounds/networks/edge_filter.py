"""Scores that follow the edges of the image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

STRIDES = (1, 1, 2, 2, 4, 4, 2, 2, 1, 1)
"""The distances of the neighbours that a score is averaged with, round by round: together about 20 pixels."""


class EdgeFilter(nn.Module):
    """A network whose scores are averaged with those of neighbours of similar brightness, again and again.

    Seeds that lie in the middle of a region say nothing of its rim, and a network trained on them tends to find the
    middle only. Averaged this way, what is found in the middle holds up to the next edge, and so does the gradient of
    the loss. A neighbour counts `exp(-d^2 / (2 sigma^2))`, where `d` is the difference in brightness: an edge-avoiding
    filter in the manner of Dammertz et al. (2010). Nothing in it is learnt, and the image gets no gradient.

    Args:
        network: Gives scores at the size of the image.
        sigma: The difference in brightness that counts as an edge, where images go from 0 to 1.
        strides: How far the neighbours are, in each round.

    Example:
        >>> image = torch.tensor([[[[0.0, 0.0, 1.0, 1.0]]]])
        >>> EdgeFilter(nn.Identity(), 0.1)(image + torch.tensor([0.0, 0.02, 0.0, 0.0])).round(decimals=2)
        tensor([[[[0.0100, 0.0100, 1.0000, 1.0000]]]])
    """

    def __init__(self, network: nn.Module, sigma: float, strides: Sequence[int] = STRIDES) -> None:
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma must be positive, not {sigma}")
        if not strides or min(strides) < 1:
            raise ValueError(f"strides must be 1 or more, not {list(strides)}")
        self.network, self.sigma, self.strides = network, sigma, tuple(strides)

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B K *space"]:
        """The scores of every class, before the softmax."""
        scores: Tensor = self.network(image).float()
        image = image.detach().float()
        shares: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        for stride in self.strides:
            for axis in range(2, image.ndim):
                if stride >= image.shape[axis]:
                    continue
                if (axis, stride) not in shares:
                    shares[axis, stride] = self._shares(image, axis, stride)
                before, after = shares[axis, stride]
                scores = (
                    scores
                    + before * (_moved(scores, axis, stride) - scores)
                    + after * (_moved(scores, axis, -stride) - scores)
                )
        return scores

    def _shares(self, image: Tensor, axis: int, stride: int) -> tuple[Tensor, Tensor]:
        """What the neighbour before and the one after count, the pixel itself counting the rest."""
        before, after = (
            torch.exp((_moved(image, axis, way) - image).square().sum(dim=1, keepdim=True) / (-2 * self.sigma**2))
            for way in (stride, -stride)
        )
        total = 1 + before + after
        return before / total, after / total


def _moved(x: Tensor, axis: int, by: int) -> Tensor:
    """Every pixel's neighbour `by` before it; beyond the border, the pixel itself."""
    length = x.shape[axis]
    if by > 0:
        return torch.cat([x.narrow(axis, 0, by), x.narrow(axis, 0, length - by)], dim=axis)
    return torch.cat([x.narrow(axis, -by, length + by), x.narrow(axis, length + by, -by)], dim=axis)
