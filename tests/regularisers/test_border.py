"""The border that no edge of the image accounts for."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

import oracles
from cases import SPACES, random, random_probs
from inbounds import Regulariser, border

BRIGHT = torch.zeros(1, 1, 16, 16)
BRIGHT[..., 4:12, 4:12] = 1.0


def square(first: int, last: int) -> torch.Tensor:
    probs = torch.zeros(1, 1, 16, 16)
    probs[..., first:last, first:last] = 1.0
    return probs


@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_agrees_with_a_slow_oracle_at_any_reach(space: tuple[int, ...]) -> None:
    probs, image = random_probs(2, 2, space), 0.3 * random(2, 1, *space, seed=1)
    for settings in ({}, {"reach": 2, "edge": 0.05}, {"power": 1}, {"power": 1.5}):
        expected = torch.from_numpy(oracles.border(probs.numpy(), image.numpy(), **settings))[..., 0]
        torch.testing.assert_close(border(probs, image, **settings), expected / math.prod(space))


def test_a_region_that_ends_at_edges_has_none() -> None:
    assert border(square(4, 12), BRIGHT).item() < 1e-6
    assert border(square(5, 11), BRIGHT).item() > 10 / 256
    assert border(square(3, 13), BRIGHT).item() > 10 / 256


def test_without_edges_it_grows_with_the_border_alone() -> None:
    flat = torch.zeros(1, 1, 16, 16)
    small, large = border(square(6, 10), flat).item(), border(square(4, 12), flat).item()
    assert 1.9 < large / small < 2.6
    assert border(torch.ones(1, 1, 16, 16), flat).item() == 0


@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_framed_is_the_border_in_a_wider_image_without_region(space: tuple[int, ...]) -> None:
    """Of two pixels beyond the rim neither shows a region, so that all pairs are within reach of the image."""
    probs, image = random_probs(2, 2, space), 0.3 * random(2, 1, *space, seed=1)
    sides = [3] * (2 * len(space))
    wider = functional.pad(image, sides, mode="replicate")
    beyond = math.prod(side + 6 for side in space) / math.prod(space)  # more pixels to divide by
    wide = border(functional.pad(probs, sides), wider) * beyond
    torch.testing.assert_close(border(probs, image, framed=True), wide)


def test_framed_a_region_that_fills_the_image_is_no_way_out() -> None:
    flat = torch.zeros(1, 1, 16, 16)
    assert border(torch.ones(1, 1, 16, 16), flat, framed=True).item() > border(square(4, 12), flat).item()
    assert border(square(4, 12), BRIGHT, framed=True).item() < 1e-6


@pytest.mark.parametrize("power", [1, 1.5, 2, 3])
def test_the_gradient_is_that_of_the_sum(power: float) -> None:
    """It is not left to autograd: a step along it must change the value as a difference of two values does."""
    probs, image = random_probs(1, 2, (5, 6)).double(), 0.3 * random(1, 1, 5, 6, seed=1).double()
    torch.autograd.gradcheck(lambda x: border(x, image, power=power, framed=True), probs.requires_grad_())


def test_of_a_mask_all_powers_find_the_same_and_slow_changes_cost_most_at_the_lowest() -> None:
    flat = torch.zeros(1, 1, 16, 16)
    slow = torch.linspace(1, 0, 16).expand(1, 1, 16, 16)
    masks = [border(square(4, 12), flat, power=power).item() for power in (1, 1.5, 2)]
    assert masks == pytest.approx([masks[0]] * 3)
    low, middle, high = (border(slow, flat, power=power).item() for power in (1, 1.5, 2))
    assert low > middle > high


def test_reach_says_how_far_pixels_look() -> None:
    row = torch.zeros(1, 1, 1, 6)
    step = torch.tensor([[[[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]]])
    # Reach 1 is 8 neighbours, so 4 pairs a pixel, of which one row has one: 1 / 4. Reach 2: 1 + 2 pairs, of 12 a pixel.
    assert border(step, row, reach=1).item() == pytest.approx(0.25 / 6)
    assert border(step, row, reach=2).item() == pytest.approx(0.25 / 6)


def test_descent_moves_a_region_to_the_edges() -> None:
    """From a seed in the middle of a bright square to all of it, and no further."""
    logits = torch.zeros(1, 2, 16, 16, requires_grad=True)
    loss = Regulariser(border, weight=10.0)
    seed = torch.zeros(16, 16, dtype=torch.bool)
    seed[7:9, 7:9] = True
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(300):
        optimiser.zero_grad()
        log_probs = logits.log_softmax(1)
        ends = log_probs[0, 1, seed].mean() + log_probs[0, 0, :2].mean()
        (loss(log_probs.exp(), BRIGHT) - ends).backward()
        optimiser.step()
    assert torch.equal(logits[0].argmax(0).bool(), BRIGHT[0, 0].bool())


@pytest.mark.parametrize("settings", [{"edge": 0.0}, {"edge": -1.0}, {"reach": 0}, {"reach": 17}])
def test_refuses_settings_that_mean_nothing(settings) -> None:
    with pytest.raises(ValueError, match="edge must be above 0 and reach from 1 to 16"):
        border(square(4, 12), BRIGHT, **settings)


def test_refuses_a_power_that_would_reward_steps() -> None:
    with pytest.raises(ValueError, match=r"power must be 1 or more, not 0\.5"):
        border(square(4, 12), BRIGHT, power=0.5)
