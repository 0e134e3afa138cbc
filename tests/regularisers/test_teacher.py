"""Agreement with a teacher: by hand, against a slow oracle, and without one."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from cases import SPACES, one_hot, random, random_probs
from inbounds import agreement


@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_agrees_with_a_slow_oracle(space: tuple[int, ...]) -> None:
    probs, teacher = random_probs(2, 3, space), random_probs(2, 3, space, seed=1)
    teacher[0, :, 0] = one_hot(torch.zeros(1, *space[1:]), 3)[0]  # log 0 among it
    expected = torch.from_numpy(oracles.agreement(probs.numpy(), teacher.numpy()))
    torch.testing.assert_close(agreement(probs, teacher=teacher), expected)
    sharper = teacher**2 / (teacher**2).sum(dim=1, keepdim=True)
    torch.testing.assert_close(agreement(probs, teacher=teacher, sharpness=2.0), agreement(probs, teacher=sharper))


def test_certainty_by_hand() -> None:
    probs = torch.tensor([0.5, 0.25, 0.125, 0.125])[None, :, None]
    labels = torch.tensor([0.5, 0.5, 0.0, 0.0])[None, :, None]  # one bit of two: half certain
    assert agreement(probs, teacher=labels).item() == pytest.approx(0.5 * (0.5 + 1.0) * math.log(2))
    assert agreement(probs, teacher=torch.full_like(probs, 0.25)).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_the_gradient_goes_to_the_prediction_alone(space: tuple[int, ...]) -> None:
    probs, teacher = random_probs(1, 3, space).requires_grad_(), random_probs(1, 3, space, seed=1).requires_grad_()
    torch.autograd.gradcheck(lambda x: agreement(x, teacher=teacher, sharpness=1.5), probs)
    agreement(probs, teacher=teacher).sum().backward()
    assert teacher.grad is None


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**20), st.permutations(range(3)))
def test_it_is_least_at_the_teachers_own_labels_and_knows_no_order_of_classes(seed: int, order: list[int]) -> None:
    probs, teacher = random_probs(1, 3, (4, 5), seed=seed), random_probs(1, 3, (4, 5), seed=seed + 1)
    value = agreement(probs, teacher=teacher)
    assert agreement(teacher, teacher=teacher).item() < value.item()
    torch.testing.assert_close(agreement(probs[:, order], teacher=teacher[:, order]), value)


def test_a_certain_contradiction_stays_finite_and_pulls() -> None:
    logits = torch.tensor([[[200.0, 60.0], [0.0, 0.0]]], requires_grad=True)
    value = agreement(logits.softmax(1), teacher=torch.tensor([[[0.0, 0.0], [1.0, 1.0]]]))
    value.sum().backward()
    assert value.isfinite().all()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 0, 1].item() == pytest.approx(0.5)


def test_without_a_teacher_it_is_nothing() -> None:
    value = agreement(random_probs(3, 2, (4, 4), dtype=torch.float16).requires_grad_(), random(3, 1, 4, 4))
    assert value.tolist() == [0, 0, 0]
    assert value.dtype == torch.float32
    assert not value.requires_grad


@pytest.mark.plain
def test_refuses_what_does_not_fit() -> None:
    probs = random_probs(1, 2, (4, 4))
    for found, teacher in ((probs, probs[..., 1:]), (probs[:, :1], probs[:, :1])):
        with pytest.raises(ValueError, match="must be of the same shape, with two classes or more"):
            agreement(found, teacher=teacher)
    with pytest.raises(ValueError, match="sharpness must be above 0, not 0"):
        agreement(probs, teacher=probs, sharpness=0.0)
