"""Averages stop at edges, keep what is constant, and lead gradients as far as they lead scores."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inbounds.networks import EdgeFilter


class Given(nn.Module):
    """A network that gives the same scores whatever it sees."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = nn.Parameter(scores)

    def forward(self, _: Tensor) -> Tensor:
        return self.scores


def disc(side: int = 32, radius: float = 10) -> Tensor:
    """A bright disc on a dark ground."""
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    centre = (side - 1) / 2
    return ((rows - centre).square() + (columns - centre).square() < radius**2).float()[None, None]


def by_hand(scores: Tensor, image: Tensor, sigma: float, stride: int) -> Tensor:
    """One round on one row, neighbour by neighbour."""
    made = []
    for at in range(len(scores)):
        near = [at - stride, at, at + stride]
        near = [at if not 0 <= n < len(scores) else n for n in near]
        counts = [float(torch.exp(-((image[n] - image[at]) ** 2) / (2 * sigma**2))) for n in near]
        made.append(sum(c * float(scores[n]) for c, n in zip(counts, near, strict=True)) / sum(counts))
    return torch.tensor(made)


@pytest.mark.parametrize("stride", [1, 3])
def test_one_round_is_a_weighted_mean(stride: int) -> None:
    scores, image = torch.randn(9), torch.rand(9)
    found = EdgeFilter(Given(scores[None, None]), 0.3, [stride])(image[None, None])
    torch.testing.assert_close(found[0, 0], by_hand(scores, image, 0.3, stride))


def test_a_core_fills_its_region_and_no_more() -> None:
    region = disc()
    core = disc(radius=4) * 2 - 1
    found = EdgeFilter(Given(core.repeat(1, 2, 1, 1)), 0.1)(region)
    rim = (region - disc(radius=8)).bool()
    assert (core[rim] < 0).all()
    assert (found[:, :1][rim] > core[rim] + 0.3).all()
    torch.testing.assert_close(found[:, :1][region == 0], core[region == 0])


def test_a_constant_stays_and_nothing_leaves_its_range() -> None:
    image = torch.rand(2, 1, 20, 13)
    torch.testing.assert_close(
        EdgeFilter(Given(torch.full((2, 3, 20, 13), 2.5)), 0.2)(image), torch.full((2, 3, 20, 13), 2.5)
    )
    scores = torch.randn(2, 3, 20, 13)
    found = EdgeFilter(Given(scores), 0.2)(image)
    assert found.min() >= scores.min()
    assert found.max() <= scores.max()


def test_gradients_reach_the_rim_and_not_the_image() -> None:
    image = disc().requires_grad_()
    network = Given(torch.zeros(1, 1, 32, 32))
    EdgeFilter(network, 0.1)(image)[0, 0, 15, 15].backward()
    assert network.scores.grad is not None
    assert network.scores.grad[0, 0, 15, 23] > 0
    assert network.scores.grad[0, 0, 15, 30].abs() < 1e-6
    assert image.grad is None


def test_any_number_of_axes_and_channels() -> None:
    """A stride that is longer than an axis is left out there."""
    scores = torch.randn(1, 2, 3, 9, 8)
    assert EdgeFilter(Given(scores), 0.2)(torch.rand(1, 2, 3, 9, 8)).shape == scores.shape


@pytest.mark.parametrize("given", [(0.0,), (-1.0,), (0.1, []), (0.1, [0])])
def test_refuses(given: tuple) -> None:
    with pytest.raises(ValueError, match=r"sigma must be positive|strides must be 1 or more"):
        EdgeFilter(nn.Identity(), *given)
