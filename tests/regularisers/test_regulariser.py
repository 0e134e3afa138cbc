"""A regulariser: its mean, where it acts, and what it is called."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from inbounds import UNLABELLED, Annotation, Regulariser, Supervision, border
from inbounds.regularisers import regularisers


def share(probs: Tensor, _image: Tensor | None) -> Tensor:
    return probs.flatten(2).mean(dim=2)


def known(present: list[list[float]], **more: list[list[float]]) -> Annotation:
    facts = {
        name: torch.tensor(rows, dtype=torch.float32)[..., None] for name, rows in {"present": present, **more}.items()
    }
    return Annotation(torch.full((len(present), 2, 2), UNLABELLED), facts=facts)


PROBS = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])[..., None, None].expand(2, 3, 2, 2)


def test_the_mean_over_images_and_classes_but_the_background() -> None:
    assert Regulariser(share, weight=2.0)(PROBS, None).item() == pytest.approx(2 * (0.3 + 0.2 + 0.8 + 0.1) / 4)
    assert Regulariser(share, classes=[2])(PROBS, None).item() == pytest.approx((0.2 + 0.1) / 2)
    with pytest.raises(ValueError, match=r"classes \[3\] cannot be constrained in a prediction of 3 classes"):
        Regulariser(share, classes=[3])(PROBS, None)


def test_where_a_class_is_known_to_be_there_as_a_whole() -> None:
    acting = Regulariser(share, where="present")
    nan = float("nan")
    assert acting(PROBS, None, known([[nan, 1, 0], [nan, nan, 1]])).item() == pytest.approx((0.3 + 0.1) / 4)
    cut = known([[nan, 1, 0], [nan, nan, 1]], cut=[[0, 1, 0], [0, 0, 0]])
    assert acting(PROBS, None, cut).item() == pytest.approx(0.1 / 4)
    with pytest.raises(ValueError, match="acts where a class is present, which the annotation does not tell"):
        acting(PROBS, None, Annotation(torch.full((2, 2, 2), UNLABELLED)))


def test_a_value_an_image_is_of_all_classes_together() -> None:
    def first(probs: Tensor, _image: Tensor | None) -> Tensor:
        return probs[:, 0].flatten(1).mean(dim=1)

    assert Regulariser(first, weight=2.0)(PROBS, None).item() == pytest.approx(2 * (0.5 + 0.1) / 2)
    for wrong in ({"classes": [1]}, {"where": "present"}):
        with pytest.raises(ValueError, match="first is of all classes together: it takes no `classes`"):
            Regulariser(first, **wrong)(PROBS, None, known([[1, 1, 1], [1, 1, 1]]))


def test_a_term_of_one_class_does_not_see_the_others() -> None:
    """All classes are measured, and those asked for chosen: of one of two it is what it is alone."""
    probs, image = torch.rand(2, 2, 6, 6).softmax(1), torch.rand(2, 1, 6, 6)
    torch.testing.assert_close(Regulariser(border)(probs, image), border(probs[:, 1:], image).mean())


def test_it_is_a_term_of_the_loss_and_no_bound() -> None:
    logits, image = torch.randn(1, 2, 6, 6, requires_grad=True), torch.rand(1, 1, 6, 6)
    supervise = Supervision(regularisers=[Regulariser(partial(border, power=1.5), weight=3.0)])
    terms = supervise(logits, image, Annotation(torch.full((1, 6, 6), UNLABELLED)))
    assert list(terms.named) == ["labels", "border"]
    assert terms.total.item() == pytest.approx(3 * border(logits.softmax(1)[:, 1:], image, power=1.5).item())
    assert supervise.constraints == ()
    terms.total.backward()
    assert bool((logits.grad != 0).any())
    with pytest.raises(ValueError, match="two loss terms are called 'border'"):
        Supervision(regularisers=[Regulariser(border), Regulariser(border)])


@pytest.mark.plain
def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"schedule": "linear"}, {"where": "nowhere"}):
        with pytest.raises(ValueError, match="no regulariser with schedule"):
            Regulariser(share, **wrong)


@pytest.mark.parametrize("name", regularisers)
def test_every_term_has_a_value_an_image_or_a_class_and_no_gradient_where_it_is_nothing(name: str) -> None:
    logits, image = torch.randn(3, 2, 6, 6, requires_grad=True), torch.rand(3, 1, 6, 6)
    values = regularisers[name](logits.softmax(1), image)
    assert values.shape in ((3,), (3, 2))
    assert values.isfinite().all()
    if values.requires_grad:
        (grad,) = torch.autograd.grad(values.sum(), logits)
        assert grad.isfinite().all()
        assert grad.any()
    else:
        assert not values.any()
