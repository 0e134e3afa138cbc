"""`Loss` gives what the plain call gives, value and gradient, in every way in which other loops call it."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cases import PLANE, SPACES, batch
from inbounds import (
    UNLABELLED,
    Annotation,
    Constraint,
    Fixed,
    Individual,
    Loss,
    Regulariser,
    Supervision,
    cross_entropy,
    log_barrier,
    mean_intensity,
    pairwise,
    recipes,
    size,
)


def supervision(**settings) -> Supervision:
    """Labels, the size of each class, and its brightness."""
    weight = settings.get("weight", 0.1)
    return Supervision(
        constraints=[
            Constraint(size, Individual(relative=0.1), weight=weight),
            Constraint(mean_intensity, Fixed(0.9, None), weight=1.0),
        ],
        regularisers=settings.get("regularisers", ()),
    )


def gradient(total: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(total, inputs)


def same(one: Tensor, other: Tensor, *inputs: Tensor) -> None:
    """Value and gradients."""
    assert one.isfinite()
    assert one > 0
    torch.testing.assert_close(one, other)
    for mine, plain in zip(gradient(one, *inputs), gradient(other, *inputs), strict=True):
        assert mine.abs().max() > 0
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("ignore", [255, -1, 3, 7])
@pytest.mark.parametrize("form", ["plain", "channel", "float", "annotation"])
def test_the_plain_call(space, ignore, form) -> None:
    logits, image, known = batch(3, space)
    logits.requires_grad_()
    label = known.label.masked_fill(known.label == UNLABELLED, ignore)
    loss = Loss(supervision(), ignore_index=ignore)
    plain = supervision()(logits, image, known).total
    if form == "annotation":
        mine = loss(logits, replace(known, label=label), image)
    else:
        target = {"plain": label, "channel": label[:, None], "float": label[:, None].float()}[form]
        mine = loss(logits, target, image, **known.facts)
    same(mine, plain, logits)


@pytest.mark.parametrize("name", recipes)
def test_every_recipe(name) -> None:
    logits, image, known = batch(3, PLANE)
    logits.requires_grad_()
    terms = Loss(recipes[name]()).terms(logits, known, image)
    plain = recipes[name]()(logits, image, known)
    torch.testing.assert_close(terms.named, plain.named)
    same(terms.total, plain.total, logits)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype) -> None:
    """A layer in half precision before the loss, whose sums are in float32."""
    _, image, known = batch(3, PLANE)
    layer = nn.Conv2d(2, 3, 1)
    results = []
    for call in (lambda z: Loss(supervision())(z, known, image), lambda z: supervision()(z, image, known).total):
        with torch.autocast("cpu", dtype=dtype):
            logits = layer(image)
            assert logits.dtype == dtype
            results.append(call(logits))
        assert results[-1].dtype == torch.float32
    same(*results, *layer.parameters())


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_compiled(activation) -> None:
    """With outputs of deep supervision, as one graph."""
    torch._dynamo.reset()
    logits, image, known = batch(3, (8, 6))
    if activation == "sigmoid":
        logits, known = logits[:, 1:], replace(known, label=torch.full((4, 2, 8, 6), 255).random_(0, 2))
    loss = Loss(supervision(weight=torch.tensor(0.1)), activation=activation)
    outputs = [logits.requires_grad_(), functional.avg_pool2d(logits.detach(), 2).requires_grad_()]
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    same(compiled(outputs, known, image), loss(outputs, known, image), *outputs)
    before = compiled(outputs, known, image)
    loss.supervision.constraints[0].weight.mul_(2)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert compiled(outputs, known, image) > before


def test_constraints_act_on_the_finest_output_and_labels_on_all() -> None:
    logits, image, known = batch(3, (8, 6))
    coarse = torch.randn(4, 3, 4, 3)
    outputs = [logits.requires_grad_(), coarse.requires_grad_()]
    plain = supervision()(logits, image, known)
    enlarged = coarse.repeat_interleave(2, 2).repeat_interleave(2, 3)  # every click is compared with its pixel
    labels = (
        2 * cross_entropy(logits.log_softmax(1), known.label) + cross_entropy(enlarged.log_softmax(1), known.label)
    ) / 3
    expected = labels + plain.named["size"] + plain.named["mean_intensity"]
    terms = Loss(supervision()).terms(outputs, known, image)
    torch.testing.assert_close(terms.total, expected)
    torch.testing.assert_close(terms.named["size"], plain.named["size"])
    for order in ([0, 1], [1, 0]):  # whichever comes first
        levels = [[1, 0][n] for n in order]
        alone = Loss(supervision(), levels=levels)([outputs[n] for n in order], known, image)
        same(alone, supervision()(logits, image, known).total, logits)
    with pytest.raises(ValueError, match="2 outputs, and levels for 3"):
        Loss(supervision(), levels=[1, 1, 1])(outputs, known, image)


def test_deep_supervision_of_monai() -> None:
    """It shrinks the target for coarser outputs: constraints leave those alone, and all labels teach them."""
    losses = pytest.importorskip("monai.losses")
    logits, _, known = batch(3, (8, 6))
    outputs = [logits.requires_grad_(), torch.randn(4, 3, 4, 3).requires_grad_()]
    wanted = Supervision(constraints=supervision().constraints[:1])
    deep = losses.DeepSupervisionLoss(Loss(wanted), weights=[2 / 3, 1 / 3])
    less = replace(wanted, constraints=[replace(wanted.constraints[0], weight=0.1 * 2 / 3)])  # as labels count there
    same(deep(outputs, known), Loss(less)(outputs, known), *outputs)
    torch.testing.assert_close(deep(outputs[0], known), Loss(wanted)(outputs[0], known))


def test_a_list_of_labels_goes_with_a_list_of_outputs() -> None:
    """As nnU-Net gives them: those of the finest output count, where no click is lost."""
    logits, image, known = batch(3, (8, 6))
    outputs = [logits, torch.randn(4, 3, 4, 3)]
    targets = [known.label[:, None], known.label[:, None, ::2, ::2]]
    loss = Loss(supervision())
    torch.testing.assert_close(loss(outputs, targets, image, **known.facts), loss(outputs, known, image))


def test_one_output_of_a_sigmoid_is_two_classes() -> None:
    _, image, known = batch(2, PLANE)
    odds = torch.randn(4, 1, *PLANE).requires_grad_()
    both = torch.cat([torch.zeros_like(odds), odds], dim=1)
    same(Loss(supervision(), activation="sigmoid")(odds, known, image), supervision()(both, image, known).total, odds)
    label = known.label[:, None].float().masked_fill(known.label[:, None] == UNLABELLED, -1)
    alone = Loss(Supervision(), activation="sigmoid", ignore_index=-1)(odds, label)
    shown = [label[n] >= 0 for n in range(4)]
    each = [
        functional.binary_cross_entropy_with_logits(odds[n][one], label[n][one])
        for n, one in enumerate(shown)
        if one.any()
    ]
    torch.testing.assert_close(alone, sum(each) / len(each))


def test_several_outputs_of_a_sigmoid_overlap() -> None:
    """Each is two classes by itself; facts have a row for the background too."""
    logits = torch.randn(2, 3, 6, 5).requires_grad_()
    label = torch.full((2, 3, 6, 5), 0).random_(0, 3)  # 2: nobody has said
    sizes = torch.tensor([[[torch.nan], [5.0], [20.0], [torch.nan]], [[torch.nan], [25.0], [0.0], [10.0]]])
    wanted = Constraint(size, Individual(relative=0.1), weight=0.1)
    terms = Loss(Supervision(constraints=[wanted]), activation="sigmoid", ignore_index=2).terms(
        logits, label, size=sizes
    )
    shown = [
        functional.binary_cross_entropy_with_logits(z[y < 2], y[y < 2].float())
        for z, y in zip(logits.flatten(0, 1), label.flatten(0, 1), strict=True)
    ]
    torch.testing.assert_close(terms.named["labels"], sum(shown) / 6)
    probs = logits.sigmoid()
    background = (1 - probs).prod(dim=1, keepdim=True)
    known = Annotation(torch.full((2, 6, 5), 255), facts={"size": sizes})
    torch.testing.assert_close(terms.named["size"], wanted(torch.cat([background, probs], 1), None, known))
    assert (gradient(terms.total, logits)[0] != 0).any()
    weighed = Annotation(label, facts={"size": sizes}, label_weight=torch.tensor([0.0, 1.0]))
    loss = Loss(Supervision(), activation="sigmoid", ignore_index=2)
    torch.testing.assert_close(loss(logits, weighed), sum(shown[3:]) / 6)
    with pytest.raises(ValueError, match="proposals are of classes that exclude each other"):
        Loss(recipes["proposals_tags"](), activation="sigmoid")(logits, label.clamp(max=1))


class Own(nn.Module):
    """A label loss with state of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, log_probs: Tensor, label: Tensor) -> Tensor:
        return self.scale * cross_entropy(log_probs, label)


def scheduled() -> tuple[Loss, Tensor, Tensor]:
    weight, t = torch.tensor(0.1), torch.tensor(5.0)
    priced = Constraint(size, Individual(relative=0.1), log_barrier(t), weight=weight)
    return Loss(Supervision(Own(), [priced], regularisers=[Regulariser(pairwise, weight=weight)])), weight, t


def test_what_a_schedule_changes_is_part_of_the_state() -> None:
    logits, image, known = batch(3, PLANE)
    loss, weight, t = scheduled()
    assert set(loss.state_dict()) == {"constraints_size_weight", "constraints_size_penalty_t", "label_loss.scale"}
    weight.mul_(3)
    t.mul_(2)
    other, *_ = scheduled()
    before = other(logits, known, image)
    other.load_state_dict(loss.state_dict())
    assert other(logits, known, image) != before
    torch.testing.assert_close(other(logits, known, image), loss(logits, known, image))
    assert list(loss.parameters()) == [loss.supervision.label_loss.scale]


def test_moved_a_schedule_keeps_its_hold() -> None:
    loss, weight, t = scheduled()
    loss.to(torch.float64)
    assert weight.dtype == t.dtype == torch.float64
    assert loss.supervision.constraints[0].weight is weight
    weight.fill_(7)
    assert loss.state_dict()["constraints_size_weight"] == 7
    twin = copy.deepcopy(loss)
    twin.supervision.constraints[0].weight.fill_(1)
    assert twin.state_dict()["constraints_size_weight"] == 1
    assert weight == 7


def test_a_potential_moves_too() -> None:
    from inbounds import fraction

    potential = torch.rand(1, *PLANE)
    loss = Loss(Supervision(constraints=[Constraint(fraction.using(potential=potential), Fixed(0, 1))]))
    assert list(loss.state_dict()) == ["constraints_fraction_statistic_function_potential"]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"supervision": "known"}, "must be a Supervision, such as recipes"),
        ({"activation": "tanh"}, "'softmax' or 'sigmoid', not 'tanh'"),
        ({"levels": [1, -1]}, "levels must be numbers of 0 or more"),
        ({"levels": [0.0]}, "one above 0"),
    ],
    ids=str,
)
def test_refuses_settings(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        Loss(**{"supervision": Supervision(), **settings})


@pytest.mark.plain
@pytest.mark.parametrize(
    ("logits", "target", "message"),
    [
        (torch.randn(1, 3, 4, 4), torch.zeros(1, 4, 5), r"outputs of \(4, 4\) and labels of \(4, 5\)"),
        (torch.randn(2, 3, 4, 4), torch.zeros(1, 4, 4), r"labels of shape \(1, 4, 4\) do not fit"),
        (torch.randn(1, 3, 4, 4), torch.zeros(1, 3, 4, 4), r"for softmax they must be .* of class numbers"),
        (torch.randn(1, 3, 4, 4), torch.full((1, 4, 4), 0.5), "whole numbers: resample them by nearest"),
        (torch.randn(1, 3, 4, 4), torch.full((1, 4, 4), -1), r"label -1 at .*Loss\(\.\.\., ignore_index=-1\)"),
        (torch.randn(1, 3, 4, 4), torch.full((1, 4, 4), 3), r"label 3 at .* \(0 to 2\).*ignore_index=3"),
        (torch.randn(1, 3, 4, 4), "labels", "must be a tensor of labels or an Annotation, not str"),
        (torch.zeros(1, 3, 4, 4).long(), torch.zeros(1, 4, 4), "floating-point"),
    ],
)
def test_refuses_what_does_not_fit(logits, target, message) -> None:
    with pytest.raises(ValueError, match=message):
        Loss(Supervision())(logits, target)


def test_facts_stand_in_one_place() -> None:
    known = Annotation(torch.full((1, 4, 4), 255))
    with pytest.raises(ValueError, match="belong into the annotation, not beside it: size"):
        Loss(Supervision())(torch.randn(1, 2, 4, 4), known, size=torch.ones(1, 2, 1))


def test_numbers_are_looked_at() -> None:
    facts = {"present": torch.tensor([[[1.0], [0.0]]]), "size": torch.tensor([[[1.0], [9.0]]])}
    with pytest.raises(ValueError, match=r"'size' is 9.0 at index \(0, 1, 0\), where 'present' is 0"):
        Loss(supervision())(torch.randn(1, 2, 4, 4), torch.full((1, 4, 4), 255), torch.rand(1, 1, 4, 4), **facts)
    with pytest.warns(UserWarning, match="look like probabilities"):
        Loss(Supervision())(torch.randn(1, 2, 4, 4).softmax(1), torch.zeros(1, 4, 4))
