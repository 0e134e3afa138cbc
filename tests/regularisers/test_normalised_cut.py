"""Ties that lead out of a class: by hand, against a slow oracle, and of classes that are not there."""

from __future__ import annotations

import importlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from cases import SPACES, one_hot, random, random_probs
from inbounds import normalised_cut

CASES = [{}, {"stride": 1, "reach": 1}, {"stride": 1, "reach": 2, "spread": 1.0, "sigma": 0.3}]
BRIGHT = torch.zeros(1, 12, 12)
BRIGHT[:, 3:9, 3:9] = 1.0


@pytest.mark.parametrize("changed", CASES)
@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_agrees_with_a_slow_oracle(space: tuple[int, ...], changed: dict) -> None:
    probs, image = random_probs(2, 3, space), 0.3 * random(2, 2, *space, seed=1)
    expected = torch.from_numpy(oracles.normalised_cut(probs.numpy(), image.numpy(), **changed))
    torch.testing.assert_close(normalised_cut(probs, image, **changed), expected)


@pytest.mark.parametrize("changed", CASES)
@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_the_gradient_is_that_of_the_sum(space: tuple[int, ...], changed: dict) -> None:
    probs, image = random_probs(1, 3, space), 0.3 * random(1, 1, *space, seed=1)
    torch.autograd.gradcheck(lambda x: normalised_cut(x, image, **changed), probs.requires_grad_())


def test_along_edges_it_costs_nothing_and_small_classes_pay_as_large_ones_do() -> None:
    image = BRIGHT[:, None].double()
    assert normalised_cut(one_hot(BRIGHT, 2), image, stride=1).item() < 1e-9
    assert normalised_cut(one_hot(BRIGHT.roll(2, 2), 2), image, stride=1).item() > 0.1
    flat, small, large = torch.zeros_like(image), torch.zeros(1, 12, 12), torch.zeros(1, 12, 12)
    small[:, :, 11:], large[:, :, 6:] = 1, 1  # as long a border, but fewer ties
    small, large = (normalised_cut(one_hot(mask, 2), flat, stride=1).item() for mask in (small, large))
    assert small > 1.2 * large


def test_a_class_that_is_not_there_costs_nothing_and_has_a_gradient_of_its_size() -> None:
    probs = one_hot(torch.zeros(1, 12, 12), 3).requires_grad_()
    value = normalised_cut(probs, torch.zeros_like(BRIGHT)[:, None].double())
    assert value.item() == 0
    value.sum().backward()
    assert 0 < probs.grad.abs().max() < 2
    lonely = 1e4 * random(1, 1, 12, 12)  # no pixel looks like any other: there are no ties at all
    assert normalised_cut(probs, lonely, sigma=1e-3).item() == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**20), st.permutations(range(3)), st.floats(-3, 3), st.integers(1, 3))
def test_what_does_not_change_it(seed: int, order: list[int], brighter: float, stride: int) -> None:
    probs, image = random_probs(1, 3, (6, 7), seed=seed), random(1, 1, 6, 7, seed=seed)
    value = normalised_cut(probs, image, stride=stride)
    assert 0 < value.item() <= 3
    torch.testing.assert_close(normalised_cut(probs[:, order], image, stride=stride), value)
    torch.testing.assert_close(normalised_cut(probs, image + brighter, stride=stride), value)


def test_ties_all_stronger_alike_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    probs, image = random_probs(1, 3, (6, 7)), random(1, 1, 6, 7)
    probs = torch.cat([probs, torch.zeros_like(probs[:, :1])], dim=1)  # the guard of an empty class scales too
    value = normalised_cut(probs, image)
    module = importlib.import_module("inbounds.regularisers.normalised_cut")
    plain = module.pulled

    def stronger(*given: object) -> tuple[torch.Tensor, ...]:
        blocks, pull, degree = plain(*given)
        return blocks, 40 * pull, 40 * degree

    monkeypatch.setattr(module, "pulled", stronger)
    torch.testing.assert_close(normalised_cut(probs, image), value)
