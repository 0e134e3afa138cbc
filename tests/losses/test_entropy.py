from __future__ import annotations

import math

import pytest
import torch

from cases import SPACES, random
from inbounds import UNLABELLED, cross_entropy

every_mean = pytest.mark.parametrize("mean", ["images", "pixels"])


def partial_label(B: int, K: int, space: tuple[int, ...]) -> torch.Tensor:
    """Labels of about half the pixels; the last image has none."""
    label = torch.randint(0, K, (B, *space))
    label[random(B, *space) < 0.5] = UNLABELLED
    label[-1] = UNLABELLED
    return label


def test_by_hand() -> None:
    """Image 0 has two labelled pixels, image 1 one: a mean of means, or a mean of all three."""
    probs = torch.tensor([[[[0.5, 0.25]], [[0.5, 0.75]]], [[[0.9, 0.125]], [[0.1, 0.875]]]])
    label = torch.tensor([[[1, 0]], [[UNLABELLED, 0]]])
    terms = math.log(2), math.log(4), math.log(8)
    assert cross_entropy(probs.log(), label).item() == pytest.approx(((terms[0] + terms[1]) / 2 + terms[2]) / 2)
    assert cross_entropy(probs.log(), label, mean="pixels").item() == pytest.approx(sum(terms) / 3)


@every_mean
def test_an_image_that_counts_less_adds_less(mean) -> None:
    """As if what it adds were multiplied: the number that a mean is divided by stays, and so do the other images."""
    logits, label = random(3, 2, 4, 5), partial_label(3, 2, (4, 5))
    logits.requires_grad_()
    counts = torch.tensor([1.0, 0.1, 1.0])
    whole, half = (cross_entropy(logits.log_softmax(1), label, mean=mean, label_weight=c) for c in (None, counts))
    alone = label.clone()
    alone[0] = UNLABELLED
    share = 0.5 if mean == "images" else (label[1] != UNLABELLED).sum() / (label != UNLABELLED).sum()
    second = cross_entropy(logits.log_softmax(1), alone, mean=mean) * share
    torch.testing.assert_close(half, whole - 0.9 * second)
    (before,), (after,) = (torch.autograd.grad(loss, logits) for loss in (whole, half))
    torch.testing.assert_close(after, before * counts[:, None, None, None])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("K", [2, 4])
def test_agrees_with_torch(space, K) -> None:
    logits, label = random(3, K, *space), partial_label(3, K, space)
    theirs = torch.nn.functional.cross_entropy
    ours = cross_entropy(logits.log_softmax(1), label, mean="pixels")
    torch.testing.assert_close(ours, theirs(logits, label, ignore_index=UNLABELLED))
    each = [theirs(logits[b : b + 1], label[b : b + 1], ignore_index=UNLABELLED) for b in (0, 1)]
    torch.testing.assert_close(cross_entropy(logits.log_softmax(1), label), (each[0] + each[1]) / 2)


@every_mean
def test_both_means_agree_on_one_image(mean) -> None:
    logits, label = random(1, 3, 4, 4), torch.randint(0, 3, (1, 4, 4))
    expected = torch.nn.functional.cross_entropy(logits, label)
    torch.testing.assert_close(cross_entropy(logits.log_softmax(1), label, mean=mean), expected)


@every_mean
def test_nothing_labelled_costs_nothing(mean) -> None:
    logits = random(2, 3, 4, 4).requires_grad_()
    loss = cross_entropy(logits.log_softmax(1), torch.full((2, 4, 4), UNLABELLED), mean=mean)
    loss.backward()
    assert loss == 0
    assert (logits.grad == 0).all()


@every_mean
def test_unlabelled_pixels_get_no_gradient_and_may_be_impossible(mean) -> None:
    log_probs = random(2, 3, 4, 4).log_softmax(1)
    log_probs[0, :, 0, 0] = -torch.inf
    log_probs.requires_grad_()
    label = torch.randint(0, 3, (2, 4, 4))
    label[0, 0] = UNLABELLED
    loss = cross_entropy(log_probs, label, mean=mean)
    loss.backward()
    assert loss.isfinite()
    assert (log_probs.grad[0, :, 0] == 0).all()
    assert (log_probs.grad[0, :, 1:].sum(dim=0) < 0).all()


def test_a_clicked_image_weighs_as_much_as_a_full_one() -> None:
    log_probs = torch.zeros(2, 2, 8, 8, dtype=torch.float64, requires_grad=True)
    label = torch.zeros(2, 8, 8, dtype=torch.long)
    label[1] = UNLABELLED
    label[1, 3, 3] = 1
    cross_entropy(log_probs, label).backward()
    pull = log_probs.grad.sum(dim=(1, 2, 3))
    torch.testing.assert_close(pull, torch.full((2,), -0.5, dtype=torch.float64))
    log_probs.grad = None
    cross_entropy(log_probs, label, mean="pixels").backward()
    torch.testing.assert_close(log_probs.grad.sum(dim=(1, 2, 3)), torch.tensor([-64.0, -1]).double() / 65)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_labels_of_any_integer_type(dtype) -> None:
    log_probs, label = random(3, 4, 5, 6).log_softmax(1), partial_label(3, 4, (5, 6))
    assert cross_entropy(log_probs, label.to(dtype)) == cross_entropy(log_probs, label)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_reduced_in_float32(dtype) -> None:
    log_probs = torch.full((1, 2, 256, 256), -8.0, dtype=dtype)
    loss = cross_entropy(log_probs, torch.zeros(1, 256, 256, dtype=torch.uint8))
    assert loss.dtype == torch.float32
    assert loss == 8


@every_mean
def test_gradcheck(mean) -> None:
    logits, label = random(3, 3, 3, 2).requires_grad_(), partial_label(3, 3, (3, 2))
    assert torch.autograd.gradcheck(lambda z: cross_entropy(z.log_softmax(1), label, mean=mean), logits, fast_mode=True)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("log_probs", "label", "settings", "message"),
    [
        (torch.zeros(2, 2, 4, 4), torch.zeros(2, 4, 5).long(), {}, r"do not fit: \(2, 2, 4, 4\) and \(2, 4, 5\)"),
        (torch.zeros(2, 2, 4, 4), torch.zeros(1, 4, 4).long(), {}, r"do not fit: \(2, 2, 4, 4\) and \(1, 4, 4\)"),
        (torch.zeros(2, 2), torch.zeros(2).long(), {}, "do not fit"),
        (torch.zeros(0, 2, 4, 4), torch.zeros(0, 4, 4).long(), {}, "do not fit"),
        (torch.zeros(1, 2, 4, 4), torch.zeros(1, 4, 4), {}, "of an integer type, not torch.float32 and torch.float32"),
        (torch.zeros(1, 2, 4, 4), torch.zeros(1, 4, 4).bool(), {}, "of an integer type.*torch.bool"),
        (torch.zeros(1, 2, 4, 4).long(), torch.zeros(1, 4, 4).long(), {}, "must be floating-point.*torch.int64"),
        (torch.zeros(1, 2, 4, 4), torch.zeros(1, 4, 4).long(), {"mean": "batch"}, "'classes' or 'pixels', not 'batch'"),
    ],
)
def test_refuses_what_does_not_fit(log_probs, label, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        cross_entropy(log_probs, label, **settings)


@every_mean
def test_soft_labels(mean) -> None:
    log_probs, target = random(3, 4, 5, 6).log_softmax(1), random(3, 4, 5, 6, seed=1).softmax(1)
    expected = -(target * log_probs).sum(1).mean()
    torch.testing.assert_close(cross_entropy(log_probs, target, mean=mean), expected)
    hard = torch.randint(0, 4, (3, 5, 6))
    one_hot = torch.nn.functional.one_hot(hard, 4).movedim(-1, 1).double()
    torch.testing.assert_close(cross_entropy(log_probs, one_hot, mean=mean), cross_entropy(log_probs, hard, mean=mean))


def test_a_soft_label_may_rule_out_what_is_impossible() -> None:
    log_probs = torch.tensor([0.0, -torch.inf]).reshape(1, 2, 1, 1).requires_grad_()
    loss = cross_entropy(log_probs, torch.tensor([1.0, 0.0]).reshape(1, 2, 1, 1))
    loss.backward()
    assert loss == 0
    assert log_probs.grad.isfinite().all()


def test_a_class_may_count_more() -> None:
    """Two labelled pixels of one image: (0.5 log 2 + 3 log 4) / 2."""
    log_probs = torch.tensor([[[[0.5, 0.75]], [[0.5, 0.25]]]]).log()
    found = cross_entropy(log_probs, torch.tensor([[[0, 1]]]), class_weight=[0.5, 3.0])
    torch.testing.assert_close(found, torch.tensor((0.5 * math.log(2) + 3 * math.log(4)) / 2))
    unlabelled = torch.tensor([[[0, 255]]])
    alike = cross_entropy(log_probs, unlabelled, class_weight=[1.0, 1.0])
    torch.testing.assert_close(alike, cross_entropy(log_probs, unlabelled))


def test_each_class_of_an_image_may_count_the_same() -> None:
    """Of one image two pixels of class 0 and one of class 1, of the other one of class 1: three pairs."""
    log_probs = random(2, 2, 1, 3).log_softmax(1)
    label = torch.tensor([[[0, 0, 1]], [[255, 1, 255]]])
    first = -(log_probs[0, 0, 0, 0] + log_probs[0, 0, 0, 1]) / 2
    expected = (first - log_probs[0, 1, 0, 2] - log_probs[1, 1, 0, 1]) / 3
    torch.testing.assert_close(cross_entropy(log_probs, label, mean="classes"), expected)
    weight = torch.tensor([1.0, 0.5], dtype=log_probs.dtype)
    halved = (first - log_probs[0, 1, 0, 2] - log_probs[1, 1, 0, 1] / 2) / 3
    torch.testing.assert_close(cross_entropy(log_probs, label, mean="classes", label_weight=weight), halved)
    nothing = torch.full_like(label, 255)
    assert cross_entropy(log_probs, nothing, mean="classes") == 0


@pytest.mark.parametrize(
    "wrong", [torch.full((1, 2, 4, 4), 0.5), torch.tensor([[3.0, -3.0]]).expand(16, 2).T.reshape(1, 2, 4, 4)]
)
def test_probabilities_and_logits_are_no_log_probabilities(wrong: torch.Tensor) -> None:
    label = torch.zeros(1, 4, 4, dtype=torch.long)
    with pytest.raises(
        ValueError, match=r"log-probabilities must be 0 or less, but there is .*: give logits\.log_softmax"
    ):
        cross_entropy(wrong, label)
    assert cross_entropy(wrong.log_softmax(1), label).isfinite()
