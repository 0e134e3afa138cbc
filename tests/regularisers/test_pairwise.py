"""Neighbours that look alike and are told apart: by hand, against a slow oracle, and what must not change it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from cases import SPACES, VOLUME, one_hot, random, random_probs
from inbounds import Regulariser, pairwise

CASES = [
    {},
    {"stride": 1, "reach": 1},
    {"stride": 1, "reach": 2, "spread": 1.0, "sigma": 0.3},
    {"stride": 3, "reach": 16},
]


def oracle(probs: torch.Tensor, image: torch.Tensor, **changed: object) -> torch.Tensor:
    return torch.from_numpy(oracles.pairwise(probs.numpy(), image.numpy(), **changed))


@pytest.mark.parametrize("changed", CASES)
@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_agrees_with_a_slow_oracle(space: tuple[int, ...], changed: dict) -> None:
    """Among it: sides that are no multiple of the stride or shorter than the window, images of several channels."""
    probs, image = random_probs(2, 3, space), 0.3 * random(2, 2, *space, seed=1)
    torch.testing.assert_close(pairwise(probs, image, **changed), oracle(probs, image, **changed))


def test_blocks_may_differ_from_axis_to_axis() -> None:
    probs, image = random_probs(2, 3, VOLUME), 0.3 * random(2, 1, *VOLUME, seed=1)
    for stride in ((1, 2, 2), (1, 1, 3)):
        found, wanted = pairwise(probs, image, stride=stride), oracle(probs, image, stride=stride)
        torch.testing.assert_close(found, wanted)
    flat = pairwise(probs[:, :, :1], image[:, :, :1], stride=2, reach=1)  # one slice, thinner than a block
    window = (3**3 - 1) / (3**2 - 1)
    torch.testing.assert_close(flat * window, pairwise(probs[:, :, 0], image[:, :, 0], stride=2, reach=1))


def test_pairs_by_hand() -> None:
    """Three pixels in a row, the last of another class and twice as far from the first."""
    probs = torch.tensor([[[[1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]]])
    flat = torch.zeros(1, 1, 1, 3)
    one, two = math.exp(-1 / 72), math.exp(-4 / 72)
    found = pairwise(probs, flat, stride=1)
    assert found.item() == pytest.approx(2 * (one + two) / 3 / 120)
    edge = torch.tensor([[[[0.0, 0.1, 0.1]]]])
    looks = math.exp(-0.01 / (2 * 0.05**2))
    assert pairwise(probs, edge, stride=1, sigma=0.05).item() == pytest.approx(2 * (one + two * looks) / 3 / 120)


def test_it_is_least_where_classes_end_at_the_edges_of_the_image() -> None:
    bright = torch.zeros(1, 16, 16)
    bright[:, 4:12, 4:12] = 1.0

    def costs(first: int, last: int) -> float:
        mask = torch.zeros(1, 16, 16)
        mask[:, first:last, first:last] = 1
        return pairwise(one_hot(mask, 2), bright[:, None].double(), stride=1).item()

    assert costs(4, 12) < 1e-12
    assert min(costs(5, 11), costs(3, 13), costs(4, 11)) > 1e-3
    assert pairwise(torch.full((1, 2, 16, 16), 0.5), bright[:, None]).item() > 0.05  # not to decide is no way out


probabilities = st.integers(0, 2**20).map(lambda seed: random_probs(1, 3, (6, 7), seed=seed))
images = st.integers(0, 2**20).map(lambda seed: random(1, 1, 6, 7, seed=seed))
how = st.fixed_dictionaries(
    {"sigma": st.floats(0.05, 1), "reach": st.integers(1, 6), "spread": st.floats(0.5, 9), "stride": st.integers(1, 3)}
)


@settings(max_examples=25, deadline=None)
@given(images, how, st.integers(0, 2))
def test_one_class_everywhere_costs_nothing(image: torch.Tensor, how: dict, klass: int) -> None:
    assert pairwise(one_hot(torch.full((1, 6, 7), klass), 3), image, **how).item() == 0


@settings(max_examples=25, deadline=None)
@given(probabilities, images, how, st.permutations(range(3)), st.floats(-3, 3))
def test_what_does_not_change_it(
    probs: torch.Tensor, image: torch.Tensor, how: dict, order: list[int], brighter: float
) -> None:
    value = pairwise(probs, image, **how)
    assert 0 < value.item() < 1
    for same in (
        pairwise(probs[:, order], image, **how),
        pairwise(probs, image + brighter, **how),
        pairwise(probs, 3 * image, **how | {"sigma": 3 * how["sigma"]}),
    ):
        torch.testing.assert_close(same, value)
    if how["stride"] == 1:
        torch.testing.assert_close(pairwise(probs.flip(2, 3), image.flip(2, 3), **how), value)


@pytest.mark.parametrize("changed", CASES)
@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_the_gradient_is_that_of_the_sum(space: tuple[int, ...], changed: dict) -> None:
    """It is not left to autograd: a step along it must change the value as a difference of two values does."""
    probs, image = random_probs(1, 2, space), 0.3 * random(1, 1, *space, seed=1)
    torch.autograd.gradcheck(lambda x: pairwise(x, image, **changed), probs.requires_grad_())


def test_images_of_a_batch_stay_apart_and_get_no_gradient() -> None:
    probs, image = random_probs(3, 2, (5, 6)), random(3, 1, 5, 6, seed=1).requires_grad_()
    together = pairwise(probs.requires_grad_(), image, stride=1)
    alone = [pairwise(probs[b : b + 1], image[b : b + 1], stride=1) for b in range(3)]
    torch.testing.assert_close(together, torch.cat(alone))
    together[1].backward()
    assert image.grad is None
    assert not probs.grad[[0, 2]].any()


def test_half_precision_is_summed_in_single() -> None:
    probs, image = random_probs(2, 2, (64, 64), dtype=torch.float32), random(2, 1, 64, 64, dtype=torch.float32)
    half = pairwise(probs.half(), image.half())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, pairwise(probs, image), atol=1e-3, rtol=1e-3)


def test_descent_moves_a_region_to_the_edges() -> None:
    """From a seed in the middle of a bright square to all of it, and no further."""
    bright = torch.zeros(1, 1, 16, 16)
    bright[..., 4:12, 4:12] = 1.0
    logits = torch.zeros(1, 2, 16, 16, requires_grad=True)
    loss = Regulariser(pairwise, weight=10.0)
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        log_probs = logits.log_softmax(1)
        labels = log_probs[0, 1, 7:9, 7:9].mean() + log_probs[0, 0, :2].mean()
        (loss(log_probs.exp(), bright) - labels).backward()
        optimiser.step()
    assert torch.equal(logits[0].argmax(0).bool(), bright[0, 0].bool())


@pytest.mark.plain
def test_refuses_what_means_nothing() -> None:
    probs, image = random_probs(1, 2, (4, 4)), random(1, 1, 4, 4)
    for wrong in ({"sigma": 0.0}, {"spread": -1.0}, {"reach": 0}, {"reach": 17}):
        with pytest.raises(ValueError, match="sigma and spread must be above 0 and reach from 1 to 16"):
            pairwise(probs, image, **wrong)
    for stride in (0, (2, 2, 2), (1, 0)):
        with pytest.raises(ValueError, match="stride must be 1 or more, or that for each of 2 axes"):
            pairwise(probs, image, stride=stride)
    with pytest.raises(ValueError, match="does not fit"):
        pairwise(probs, image[..., 1:])
