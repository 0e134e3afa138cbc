from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import BOUNDS, PLANE, SPACES, STATISTICS, batch, constraint, random
from inbounds import (
    UNLABELLED,
    Annotation,
    Common,
    Constraint,
    Fixed,
    Individual,
    Supervision,
    Tags,
    centroid,
    cross_entropy,
    fraction,
    hinge,
    log_barrier,
    mean_intensity,
    moment,
    quadratic,
    size,
    spread,
    variance_intensity,
)


def supervision(space=PLANE) -> Supervision:
    """Labels, and a violated constraint on every statistic."""
    constraints = [constraint(name, space, Fixed(1000, None), weight=0.1, name=name) for name in STATISTICS]
    return Supervision(constraints=constraints)


@pytest.mark.parametrize("space", SPACES)
def test_the_total_is_the_sum_of_its_named_terms(space) -> None:
    logits, image, annotation = batch(3, space)
    total, named = supervision(space)(logits, image, annotation)
    assert list(named) == ["labels", *STATISTICS]
    assert all(term > 0 for term in named.values())
    torch.testing.assert_close(total, sum(named.values()))


def test_each_term_is_what_it_says() -> None:
    logits, image, annotation = batch(3, PLANE)
    wanted = Constraint(size, BOUNDS["individual"], weight=0.1)
    named = Supervision(constraints=[wanted])(logits, image, annotation).named
    torch.testing.assert_close(named["labels"], cross_entropy(logits.log_softmax(1), annotation.label))
    torch.testing.assert_close(named["size"], wanted(logits.softmax(1), image, annotation))


def test_only_the_total_carries_a_gradient() -> None:
    logits, image, annotation = batch(3, PLANE)
    total, named = supervision()(logits.requires_grad_(), image, annotation)
    assert total.requires_grad
    assert not any(term.requires_grad for term in named.values())


@pytest.mark.parametrize("shift", [-1000.0, 3.0, 1000.0])
def test_a_constant_added_to_the_logits_changes_nothing(shift) -> None:
    logits, image, annotation = batch(3, PLANE, torch.float64)
    torch.testing.assert_close(
        supervision()(logits + shift, image, annotation).total, supervision()(logits, image, annotation).total
    )


@settings(max_examples=10)
@given(st.floats(-1e4, 1e4))
def test_extreme_logits_stay_finite(scale) -> None:
    logits, image, annotation = batch(2, (3, 4))
    logits = (scale * logits).requires_grad_()
    total = Supervision(constraints=[Constraint(size, Tags())])(logits, image, annotation).total
    total.backward()
    assert total.isfinite()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits(dtype) -> None:
    logits, image, annotation = batch(3, PLANE)
    half = logits.to(dtype).requires_grad_()
    total, named = supervision()(half, image, annotation)
    assert total.dtype == torch.float32
    for name, term in supervision()(half.detach().float(), image, annotation).named.items():
        torch.testing.assert_close(named[name], term)
    total.backward()
    assert half.grad.isfinite().all()


def test_half_precision_sizes_do_not_overflow() -> None:
    logits = torch.zeros(1, 2, 512, 512, dtype=torch.float16, requires_grad=True)
    annotation = Annotation(torch.full((1, 512, 512), UNLABELLED, dtype=torch.uint8))
    total, _ = Supervision(constraints=[Constraint(size, Fixed(60, 2000))])(logits, None, annotation)
    assert total.item() == pytest.approx((2**17 - 2000) ** 2 / 2**18)
    total.backward()
    assert (logits.grad[:, 1] > 0).all()


def test_hybrid_by_annotation_alone() -> None:
    """An image with a complete label and unknown facts is fully supervised; its neighbour is weakly so."""
    logits = random(2, 2, *PLANE)
    label = torch.full((2, *PLANE), UNLABELLED)
    label[0] = torch.randint(0, 2, PLANE)
    label[1, 2, 3] = 1
    facts = {"present": torch.tensor([[[torch.nan]] * 2, [[1.0]] * 2])}
    weak = Constraint(size, Common(1, 3))
    total, named = Supervision(constraints=[weak])(logits, None, Annotation(label, facts))
    full = torch.nn.functional.cross_entropy(logits[:1], label[:1])
    click = -logits.log_softmax(1)[1, 1, 2, 3]
    torch.testing.assert_close(named["labels"], (full + click) / 2)
    alone = Annotation(label[1:], {"present": facts["present"][1:]})
    torch.testing.assert_close(named["size"], weak(logits[1:].softmax(1), None, alone) / 2)
    torch.testing.assert_close(total, named["labels"] + named["size"])


def test_another_label_loss() -> None:
    logits, image, annotation = batch(2, PLANE)
    supervise = Supervision(lambda log_probs, label: log_probs.exp().sum() * 0 + label.ndim)
    assert supervise(logits, image, annotation).total == 3


def test_labels_that_count_less_leave_constraints_alone() -> None:
    logits, image, annotation = batch(2, PLANE)
    supervise = Supervision(constraints=[Constraint(size, Fixed(0, 1), weight=1.0)])
    alike, less = (
        supervise(logits, image, replace(annotation, label_weight=c)).named for c in (None, torch.full((4,), 0.1))
    )
    torch.testing.assert_close(less["labels"], 0.1 * alike["labels"])
    assert alike["labels"] > 0
    assert less["size"] == alike["size"] > 0


def free_logits(constraints, annotation, image=None, space=(12, 12), rate=0.1, steps=250) -> torch.Tensor:
    """The probabilities that the constraints alone make of free logits. Many small steps: run without shape checks."""
    logits = (0.1 * random(annotation.batch, 2, *space, dtype=torch.float32)).requires_grad_()
    supervise = Supervision(constraints=constraints)
    optimiser = torch.optim.Adam([logits], lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        supervise(logits, image, annotation).total.backward()
        optimiser.step()
    return logits.detach().softmax(1)


def nothing(batch: int = 1, space=(12, 12), **facts) -> Annotation:
    tensors = {name: torch.tensor([[[0.0] * len(fact), fact]] * batch) for name, fact in facts.items()}
    return Annotation(torch.full((batch, *space), UNLABELLED), tensors)


IMAGE = torch.linspace(0, 1, 144).reshape(1, 1, 12, 12)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("wanted", "facts"),
    [
        (Constraint(size, Fixed(10, 14)), {}),
        (Constraint(size, Fixed(100, None), hinge), {}),
        (Constraint(size, Fixed(10, 14), log_barrier(5.0)), {}),
        (Constraint(size, Common(10, 14)), {"present": [1.0]}),
        (Constraint(size, Common(100, 120)), {"present": [1.0]}),
        (Constraint(size, Individual(relative=0.1)), {"size": [20.0]}),
        (Constraint(size, Individual(absolute=3), hinge), {"size": [110.0]}),
        (Constraint(size, Individual(relative=0.1, tight="upper")), {"size": [20.0]}),
        (Constraint(size, Individual(relative=0.1), scope="volume"), {"size": [20.0]}),
        (Constraint(centroid, Fixed([[2, 7]], [[3, 8]]), weight=100), {}),
        (Constraint(centroid, Individual(absolute=0.5), log_barrier(5.0), weight=100), {"centroid": [3.0, 8.0]}),
        (Constraint(spread, Fixed(3, 5), weight=1000), {}),
        (Constraint(spread, Fixed(15, 17), weight=1000), {}),
        (Constraint(moment.using(order=(2, 0)), Fixed(0.1, 0.12), weight=1000), {}),
        (Constraint(mean_intensity, Fixed(0.7, 0.8)), {}),
        (Constraint(variance_intensity, Fixed(0.02, 0.03)), {}),
        (Constraint(fraction.using(potential=IMAGE[0]), Fixed(0.1, 0.2), hinge), {}),
    ],
    ids=lambda case: f"{case.name}-{type(case.bounds).__name__}" if isinstance(case, Constraint) else "",
)
def test_free_logits_land_inside_the_interval(wanted, facts) -> None:
    annotation = nothing(**facts)
    start = torch.full((1, 2, 12, 12), 0.5)
    assert (wanted.violation(start, IMAGE, annotation) > 0).any()
    probs = free_logits([wanted], annotation, IMAGE)
    interval = wanted.interval(probs, IMAGE, annotation)
    slack = 0.01 * interval.upper.clamp(min=1, max=144)
    assert (wanted.violation(probs, IMAGE, annotation) <= slack).all()


@pytest.mark.plain
def test_free_logits_of_an_absent_region_vanish() -> None:
    for penalty in (quadratic, hinge, log_barrier(5.0)):
        probs = free_logits([Constraint(size, Tags(), penalty)], nothing(present=[0.0]), rate=0.5)
        assert size(probs)[0, 1, 0] < 0.5  # of 72 pixels at the start


@pytest.mark.plain
def test_free_logits_under_size_and_centroid_land_where_asked() -> None:
    wanted = [
        Constraint(size, Fixed(20, 24), weight=1),
        Constraint(centroid, Fixed([[2, 8]], [[2.5, 8.5]]), weight=100),
    ]
    probs = free_logits(wanted, nothing(), steps=500)
    V, (row, column) = size(probs)[0, 1, 0], centroid(probs)[0, 1]
    assert 19.9 <= V <= 24.1
    assert 1.95 <= row <= 2.55
    assert 7.95 <= column <= 8.55
    quarter = probs[0, 1, :6, 6:].sum()
    assert quarter > 0.7 * V  # a quarter of it at the start


def test_refuses_two_terms_of_one_name() -> None:
    twice = [Constraint(size, Fixed(1, 2)), Constraint(size, Fixed(1, 2))]
    with pytest.raises(ValueError, match="two loss terms are called 'size': give one of them another"):
        Supervision(constraints=twice)
    with pytest.raises(ValueError, match="two loss terms are called 'labels'"):
        Supervision(constraints=[Constraint(size, Fixed(1, 2), name="labels")])
    assert len(Supervision(constraints=[twice[0], Constraint(size, Fixed(1, 2), name="other")]).constraints) == 2


@pytest.mark.plain
def test_refuses_a_constraint_that_is_no_list() -> None:
    with pytest.raises(ValueError, match="constraints"):
        Supervision(constraints=Constraint(size, Fixed(1, 2)))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("logits", "label", "message"),
    [
        (torch.zeros(1, 2, 4, 4), torch.zeros(1, 4, 5).long(), r"\(1, 2, 4, 4\) and labels of shape \(1, 4, 5\)"),
        (torch.zeros(2, 2, 4, 4), torch.zeros(1, 4, 4).long(), "do not fit"),
        (torch.zeros(1, 2, 4, 4).long(), torch.zeros(1, 4, 4).long(), "floating-point"),
        (torch.zeros(0, 2, 4, 4), torch.zeros(0, 4, 4).long(), "an empty batch"),
        (torch.zeros(4, 4), torch.zeros(4, 4).long(), r"must be \(B, K, \*space\)"),
    ],
)
def test_refuses_logits_and_labels_that_do_not_fit(logits, label, message) -> None:
    with pytest.raises(ValueError, match=message):
        Supervision()(logits, None, Annotation(label))


def test_refuses_facts_of_other_classes_and_a_missing_image() -> None:
    annotation = Annotation(torch.zeros(1, *PLANE, dtype=torch.long), {"present": torch.ones(1, 3, 1)})
    with pytest.raises(ValueError, match="fact 'present' has 3 columns, but the prediction has 2 classes"):
        Supervision(constraints=[Constraint(size, Tags())])(torch.zeros(1, 2, *PLANE), None, annotation)
    with pytest.raises(ValueError, match="mean_intensity is measured on the image"):
        Supervision(constraints=[Constraint(mean_intensity, Fixed(0, 1))])(torch.zeros(1, 2, *PLANE), None, annotation)


@pytest.mark.plain
def test_refuses_an_image_of_another_size() -> None:
    logits, image, annotation = batch(3, PLANE)
    bright = Supervision(constraints=[Constraint(mean_intensity, Fixed(0, 1))])
    with pytest.raises(ValueError, match="does not fit probabilities of shape"):
        bright(logits, image[..., 1:], annotation)


def test_a_constraint_of_no_weight_is_only_watched() -> None:
    logits, image, annotation = batch(3, PLANE)
    watched = Constraint(mean_intensity, Fixed(100, None), weight=0)
    supervise = Supervision(constraints=[watched])
    assert supervise.constraints == (watched,)
    assert list(supervise(logits, None, annotation).named) == ["labels"]  # not even the image is asked for
    scheduled = Supervision(constraints=[Constraint(size, Fixed(100, None), weight=torch.zeros(()))])
    assert list(scheduled(logits, image, annotation).named) == ["labels", "size"]


def test_proposals_complete_the_labels_for_any_label_loss() -> None:
    logits, image, annotation = batch(2, PLANE)
    seen = []

    def complete(log_probs, known):
        assert known is annotation
        return log_probs.argmax(1)

    def label_loss(log_probs, label):
        seen.append(label)
        return log_probs.sum() * 0

    Supervision(label_loss, proposals=complete)(logits, image, annotation)
    assert (seen[0] == logits.argmax(1)).all()
