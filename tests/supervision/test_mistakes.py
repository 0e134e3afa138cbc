"""Mistakes that a library can see are refused, or warned of, with what was meant; right use says nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inbounds import (
    Annotation,
    Constraint,
    Fixed,
    Individual,
    Known,
    Loss,
    Regulariser,
    Scans,
    Supervision,
    cross_entropy,
    pairwise,
    size,
)

LABEL = torch.zeros(2, 4, 4, dtype=torch.long)
LOGITS = 3 * torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
WANTED = Constraint(size, Individual(relative=0.1))


def facts(*sizes: float) -> dict[str, torch.Tensor]:
    """The same sizes of three classes for two images."""
    return {"size": torch.tensor(sizes, dtype=torch.float32).reshape(1, 3, 1).expand(2, 3, 1)}


def test_probabilities_given_as_logits() -> None:
    with pytest.warns(UserWarning, match="look like probabilities.*without a softmax"):
        Supervision()(LOGITS.softmax(1), None, Annotation(LABEL))
    for logits in (LOGITS, torch.zeros(2, 3, 4, 4), torch.full((2, 2, 4, 4), 0.5), LOGITS.sigmoid()):
        Supervision()(logits, None, Annotation(LABEL))


@pytest.mark.parametrize("call", [size, lambda probs: Constraint(size, Fixed(1, 2))(probs)])
def test_logits_given_as_probabilities(call) -> None:
    with pytest.raises(ValueError, match=r"must be from 0 to 1, but there are -.* become.* \.softmax\(dim=1\)|softmax"):
        call(LOGITS)
    call(LOGITS.softmax(1))
    call(LOGITS.sigmoid())


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_is_looked_at_in_a_graph() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda z: Loss(Supervision())(z, LABEL) + size(z).sum(), fullgraph=True, backend="eager")
    assert compiled(LOGITS.softmax(1)).isfinite()


@pytest.mark.plain
@pytest.mark.parametrize("weight", [-0.1, torch.tensor(-1.0), float("inf"), float("nan"), "1", torch.ones(2)])
def test_weights_that_cannot_be(weight) -> None:
    for make in (lambda: Constraint(size, Fixed(1, 2), weight=weight), lambda: Regulariser(pairwise, weight=weight)):
        with pytest.raises(ValueError, match="weight must be a number"):
            make()


@pytest.mark.parametrize("weights", [[1, 1], [1, -1, 1]])
def test_class_weights_that_cannot_be(weights) -> None:
    with pytest.raises(ValueError, match="class_weight must be 3 numbers of 0 or more"):
        cross_entropy(LOGITS.log_softmax(1), LABEL, class_weight=weights)


@pytest.mark.parametrize("bounds", [Individual, Known])
def test_per_cent(bounds) -> None:
    with pytest.raises(ValueError, match=r"relative=10 is a margin of 1000%: 10 % is relative=0\.1"):
        bounds(relative=10)
    with pytest.warns(UserWarning, match=r"relative=1 is a margin of 100%: 1 % is relative=0\.01"):
        bounds(relative=1)
    bounds(relative=0.5)


def test_a_size_above_the_image() -> None:
    probs = LOGITS.softmax(1)
    with pytest.raises(ValueError, match=r"fact 'size' is 300 for image \(or scan\) 0, which measures 16 as a whole"):
        WANTED(probs, None, Annotation(LABEL, facts(0, 5, 300)))
    WANTED(probs, None, Annotation(LABEL, facts(0, 5, 16)))
    zoomed = facts(0, 5, 300) | {"cut": torch.ones(2, 3, 1)}
    WANTED(probs, None, Annotation(LABEL, zoomed))  # part of it may lie outside
    in_mm = Constraint(size.using(spacing=(5.0, 5.0)), Individual(relative=0.1))
    in_mm(probs, None, Annotation(LABEL, facts(0, 5, 300)))  # of 400 mm2
    volume = Constraint(size, Individual(relative=0.1), scope="volume")
    volume(probs, None, Annotation(LABEL, scan_facts={"size": torch.full((1, 3, 1), 30.0)}, scans=Scans.of("aa")))
    with pytest.raises(ValueError, match=r"is 33 .* measures 32 as a whole"):
        volume(probs, None, Annotation(LABEL, scan_facts={"size": torch.full((1, 3, 1), 33.0)}, scans=Scans.of("aa")))


def test_absent_with_a_size() -> None:
    present = {"present": torch.tensor([1.0, 1.0, 0.0]).reshape(1, 3, 1).expand(2, 3, 1)}
    with pytest.raises(ValueError, match=r"'size' is 7.0 at index \(0, 2, 0\), where 'present' is 0"):
        Annotation(LABEL, present | facts(0, 5, 7)).checked(3)
    for last in (0, torch.nan):
        Annotation(LABEL, present | facts(0, 5, last)).checked(3)


def test_bounds_on_scans_without_scans() -> None:
    volume = Constraint(size, Individual(relative=0.1), scope="volume")
    with pytest.raises(ValueError, match="does not say which slices make up a scan"):
        volume(LOGITS.softmax(1), None, Annotation(LABEL, facts(0, 5, 7)))
    volumes = Annotation(torch.zeros(2, 4, 4, 2, dtype=torch.long), facts(0, 5, 7))
    volume(torch.full((2, 3, 4, 4, 2), 1 / 3), None, volumes)  # each is a scan by itself
    known = Constraint(size, Known(), scope="volume")
    assert known(LOGITS.softmax(1), None, Annotation(LABEL, facts(0, 5, 7))) == 0  # nothing is known of scans


@pytest.mark.parametrize("wrong", [-1, 3, 254])
def test_another_ignore_index(wrong) -> None:
    label = LABEL.clone()
    label[1, 2, 3] = wrong
    with pytest.raises(ValueError, match=rf"label {wrong} at index \(1, 2, 3\) .*ignore_index={wrong}"):
        Supervision()(LOGITS, None, Annotation(label))
    assert Loss(Supervision(), ignore_index=wrong)(LOGITS, label) > 0


@pytest.mark.plain
def test_arrays_of_numpy() -> None:
    with pytest.raises(ValueError, match="label must be a tensor, not ndarray"):
        Annotation(np.zeros((1, 4, 4), np.int64))
    with pytest.raises(ValueError, match="fact 'size' must be a tensor, not ndarray"):
        Annotation(LABEL, {"size": np.zeros((2, 3, 1))})


def test_two_devices() -> None:
    elsewhere = {"size": torch.zeros(2, 3, 1, device="meta")}
    with pytest.raises(ValueError, match=r"fact 'size' is on meta, the label on cpu"):
        Annotation(LABEL, elsewhere)
    moved = Annotation(LABEL).to("meta")
    supervise = Supervision(constraints=[Constraint(size, Fixed(1, 2))])
    with pytest.raises(ValueError, match=r"annotation is on meta, the prediction on cpu: move it with annotation\.to"):
        supervise.others(LOGITS.softmax(1), None, moved)
    scheduled = Supervision(constraints=[Constraint(size, Fixed(1, 2), weight=torch.tensor(1.0))])
    with pytest.raises(ValueError, match="the weight of size is on cpu, the prediction on meta"):
        scheduled.others(LOGITS.to("meta"), None, moved)
