from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cases import BOUNDS, INDEX, PENALTIES, PLANE, STATISTICS, batch, constraint, measure, random, random_probs
from inbounds import (
    Annotation,
    Common,
    Constraint,
    Fixed,
    Individual,
    Interval,
    Scans,
    Tags,
    centroid,
    hinge,
    log_barrier,
    mean_intensity,
    quadratic,
    size,
)

every_statistic = pytest.mark.parametrize("name", STATISTICS)
HALF = torch.full((1, 2, 4, 4), 0.5)  # a soft size of 8 pixels


def known(present: float | None = None, measured: float | None = None) -> Annotation:
    facts = {"present": present, "size": measured}
    return Annotation(
        torch.full((1, 4, 4), 255),
        {name: torch.tensor([[[1.0], [fact]]]) for name, fact in facts.items() if fact is not None},
    )


@pytest.mark.parametrize(
    ("lower", "upper"), [(10.0, 12.0), (2.0, 5.0), (6.0, 9.0), (8.0, 8.0), (None, 3.0), (9.0, None)]
)
def test_gradient_is_the_papers(lower, upper) -> None:
    """Eq. "lossBackward1": `2 (V - a)` below, `2 (V - b)` above, 0 between; times the weight, over the scale."""
    logits = random(1, 2, 4, 4).requires_grad_()
    probs = logits.softmax(dim=1)
    probs.retain_grad()
    V = probs[0, 1].sum().item()
    Constraint(size, Fixed(lower, upper), weight=0.01)(probs).backward(retain_graph=True)
    if lower is not None and lower > V:
        pull = 2 * (V - lower)
    elif upper is not None and upper < V:
        pull = 2 * (V - upper)
    else:
        pull = 0.0
    expected = torch.zeros_like(probs)
    expected[:, 1] = 0.01 / 16 * pull
    torch.testing.assert_close(probs.grad, expected, rtol=1e-12, atol=0)
    (softmax,) = torch.autograd.grad(probs[0, 1].sum(), logits)
    torch.testing.assert_close(logits.grad, 0.01 / 16 * pull * softmax, rtol=1e-10, atol=1e-18)


def test_the_weight_means_what_it_meant() -> None:
    """0.01 on a 256x256 slice with 60 to 2000 pixels, as the authors write it: squared distance over the pixels."""
    probs = torch.full((1, 2, 256, 256), 0.5)
    assert Constraint(size, Common(60, 2000), weight=0.01)(probs, None, known_large()).item() == pytest.approx(
        0.01 * (32768 - 2000) ** 2 / 65536
    )


def known_large() -> Annotation:
    return Annotation(torch.full((1, 256, 256), 255), {"present": torch.ones(1, 2, 1)})


def test_the_mean_is_over_images_classes_and_components() -> None:
    probs = torch.stack([torch.full((3, 4, 4), 1 / 4), torch.full((3, 4, 4), 1 / 2)])  # sizes 4 and 8
    loss = Constraint(size, Fixed([0, 5], [6, 6]))
    assert loss(probs).item() == pytest.approx((0 + 1 + 4 + 4) / 4 / 16)
    where = Constraint(centroid, Fixed([[2.5, 0.5]], None), classes=[1])  # the centre is (1.5, 1.5)
    assert where(probs).item() == pytest.approx((1 + 0) / 2 / 32)


def test_the_weight_may_be_a_tensor() -> None:
    weight = torch.tensor(0.01)
    loss = Constraint(size, Fixed(4, 6), weight=weight)
    assert loss(HALF).item() == pytest.approx(0.0025)
    weight.mul_(2)
    assert loss(HALF).item() == pytest.approx(0.005)


def test_a_weight_means_the_same_in_pixels_and_in_mm() -> None:
    mm = Constraint(size.using(spacing=(0.5, 3)), Fixed(6, 9))
    assert mm(HALF).item() == Constraint(size, Fixed(4, 6))(HALF).item() == 0.25


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=list(PENALTIES))
@pytest.mark.parametrize(
    ("bounds", "annotation", "direction"),
    [
        (Fixed(9, None), None, 1),
        (Fixed(None, 7), None, -1),
        (Fixed(2, 7), None, -1),
        (Tags(), known(present=0), -1),
        (Common(9, 12), known(present=1), 1),
        (Common(2, 6), known(present=1), -1),
        (Common(9, 12), known(present=0), -1),
        (Individual(relative=0.1), known(1, 12), 1),
        (Individual(relative=0.1), known(1, 5), -1),
        (Individual(absolute=2), known(measured=12), 1),
        (Individual(absolute=2), known(measured=4), -1),
        (Individual(relative=0.1, tight="upper"), known(1, 5), -1),
        (Individual(relative=0.1), known(0, 0), -1),
    ],
)
def test_a_violated_bound_costs_and_pulls_back(penalty, bounds, annotation, direction) -> None:
    probs = HALF.clone().requires_grad_()
    loss = Constraint(size, bounds, penalty)(probs, None, annotation)
    assert loss > 0.01
    loss.backward()
    assert (probs.grad[:, 1] * direction < 0).all()
    assert (probs.grad[:, 0] == 0).all()


def test_a_present_region_of_less_than_a_pixel_costs() -> None:
    faint = torch.full((1, 2, 4, 4), 0.5 / 16, requires_grad=True)
    for bounds in (Tags(), Individual(relative=0.1, tight="upper")):
        loss = Constraint(size, bounds)(faint, None, known(1, 5))
        assert loss.item() == pytest.approx(0.25 / 16)


@pytest.mark.parametrize(
    ("bounds", "annotation"),
    [
        (Fixed(2, 9), None),
        (Fixed(8, 8), None),
        (Fixed(None, None), None),
        (Tags(), known(present=1)),
        (Tags(), known(present=torch.nan)),
        (Common(2, 9), known(present=1)),
        (Common(60, 70), known(present=torch.nan)),
        (Individual(relative=0.1), known(1, 8)),
        (Individual(relative=0.1), known(1, torch.nan)),
        (Individual(relative=0.1, tight="upper"), known(1, 16)),
    ],
)
@pytest.mark.parametrize("penalty", [quadratic, hinge])
def test_what_is_satisfied_or_unknown_costs_nothing(penalty, bounds, annotation) -> None:
    probs = HALF.clone().requires_grad_()
    loss = Constraint(size, bounds, penalty)(probs, None, annotation)
    loss.backward()
    assert loss == 0
    assert (probs.grad == 0).all()


def test_soft_and_hard_violation_differ() -> None:
    """Six pixels at 0.6 are a soft size of 3.6 and a hard one of 6; the rest, at 0.4, adds 4 and 0."""
    foreground = torch.full((4, 4), 0.4)
    foreground.view(-1)[:6] = 0.6
    probs = torch.stack([1 - foreground, foreground])[None]
    loss = Constraint(size, Fixed(6.5, 7))
    torch.testing.assert_close(loss.violation(probs), torch.tensor([[[0.6]]]))  # 7.6 - 7
    torch.testing.assert_close(loss.violation(probs, hard=True), torch.tensor([[[0.5]]]))  # 6.5 - 6
    inside = Constraint(size, Fixed(5, 7.7))
    torch.testing.assert_close(inside.violation(probs), torch.tensor([[[-0.1]]]))
    torch.testing.assert_close(inside.violation(probs, hard=True), torch.tensor([[[-1.0]]]))


def test_an_open_interval_is_never_violated() -> None:
    assert Constraint(size, Fixed(None, None)).violation(HALF).item() == -torch.inf


def test_hard_violation_keeps_classes_apart() -> None:
    probs = torch.tensor([0.2, 0.5, 0.3])[None, :, None, None].expand(1, 3, 4, 4)
    assert Constraint(size, Fixed(0, 0)).violation(probs, hard=True).flatten().tolist() == [16, 0]


def test_background_is_left_alone_unless_asked_for() -> None:
    probs = random_probs(1, 3, PLANE)
    assert Constraint(size, Fixed(0, 1)).values(probs).shape == (1, 2, 1)
    for classes in ([0], [2, 0], (1,)):
        expected = probs.sum(dim=(2, 3))[:, list(classes), None]
        torch.testing.assert_close(Constraint(size, Fixed(0, 1), classes=classes).values(probs), expected)


def test_the_scope_of_a_volume() -> None:
    probs = torch.stack([torch.full((2, 4, 4), share) for share in (0.25, 0.5, 0.125)])  # 4, 8 and 2 pixels
    annotation = Annotation(torch.full((3, 4, 4), 255), scans=Scans.of("aba"))
    loss = Constraint(size, Fixed(7, 9), scope="volume")
    assert loss.values(probs, None, annotation).flatten().tolist() == [6, 8]
    assert loss(probs, None, annotation).item() == 1 / 2 / 16  # two scans, divided by the pixels of one image
    assert Constraint(size, Fixed(7, 9)).values(probs, None, annotation).flatten().tolist() == [4, 8, 2]
    assert loss.values(probs).flatten().tolist() == [4, 8, 2]  # no scans given: each image is one


@every_statistic
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=list(PENALTIES))
@pytest.mark.parametrize("scope", ["image", "volume"])
def test_gradcheck(name, penalty, scope) -> None:
    logits, image, annotation = batch(2, (3, 4), torch.float64)
    wanted = constraint(name, (3, 4), BOUNDS["individual"], penalty, scope=scope)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: wanted(z.softmax(dim=1), image, annotation), logits, fast_mode=True)


soft = arrays("float64", (1, 2, 3, 4), elements=st.floats(0.15, 0.9)).map(torch.from_numpy)


@every_statistic
@settings(max_examples=20)
@given(probs=soft, below=st.floats(1e-6, 10), above=st.floats(1e-6, 10))
def test_inside_the_interval_all_is_exactly_zero(name, probs, below, above) -> None:
    image = random(1, 2, 3, 4, seed=1)
    probs = probs.requires_grad_()
    value = measure(name, probs, image)[0].detach()
    for penalty in (quadratic, hinge):
        loss = constraint(name, (3, 4), Fixed(value - below, value + above), penalty, classes=[0, 1])(probs, image)
        (gradient,) = torch.autograd.grad(loss, probs)
        assert loss == 0
        assert (gradient == 0).all()


@every_statistic
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=list(PENALTIES))
@settings(max_examples=10)
@given(probs=soft, far=st.floats(1e-2, 10), side=st.sampled_from([-1, 1]))
def test_outside_the_gradient_pulls_inward(name, penalty, probs, far, side) -> None:
    """Descent raises a value below its lower bound and lowers one above its upper; here the first component's."""
    image = random(1, 2, 3, 4, seed=1)
    probs = probs.requires_grad_()
    values = measure(name, probs, image)[0, 1]
    bound = torch.full((1, len(values)), -side * torch.inf)
    bound[0, 0] = values[0].item() + side * far
    bounds = Fixed(bound, None) if side > 0 else Fixed(None, bound)
    (descent,) = torch.autograd.grad(-constraint(name, (3, 4), bounds, penalty)(probs, image), probs)
    (rise,) = torch.autograd.grad(values[0], probs)
    assert side * (descent * rise).sum() > 0


def test_bounds_that_broadcast_are_taken_and_others_refused() -> None:
    class Given:
        def __init__(self, *shape: int) -> None:
            self.side = torch.full(shape, 9.0)

        def interval(self, knowledge):
            return Interval(self.side, None, trusted=True)

    for shape in [(), (1,), (2, 1), (3, 1, 1), (3, 2, 1)]:
        assert Constraint(size, Given(*shape))(torch.full((3, 3, 4, 4), 0.5)) == 1 / 16
    for shape in [(3,), (3, 1), (2, 1, 1), (3, 3, 1)]:
        with pytest.raises(ValueError, match=r"bounds of shape .* do not fit values of shape \(3, 2, 1\)"):
            Constraint(size, Given(*shape))(torch.full((3, 3, 4, 4), 0.5))


def test_names() -> None:
    assert Constraint(size, Fixed(1, 2)).name == "size"
    assert Constraint(mean_intensity, Fixed(1, 2), name="brightness").name == "brightness"


def test_can_be_copied_and_sent_to_another_process() -> None:
    """Launchers that spawn processes, and whole modules written to a file, pickle what they hold."""
    loss = Constraint(size, Fixed(4, 6), log_barrier(5.0), weight=0.01)
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert again(HALF) == loss(HALF)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"statistic": torch.sum}, "is no statistic"),
        ({"bounds": (60, 2000)}, "gives no bounds: use Tags"),
        ({"penalty": 2}, "the penalty must be a function of the violation, not 2"),
        ({"scope": "scan"}, "scope must be 'image' or 'volume', not 'scan'"),
        ({"classes": []}, r"classes must be different numbers of 0 or more, or several of them in brackets, not \[\]"),
        (
            {"classes": [1, 1]},
            r"classes must be different numbers of 0 or more, or several of them in brackets, not \[1, 1\]",
        ),
        (
            {"classes": [-1]},
            r"classes must be different numbers of 0 or more, or several of them in brackets, not \[-1\]",
        ),
        ({"classes": 1}, "classes must be"),
        ({"weight": torch.ones(2)}, "weight must be"),
        ({"weight": "much"}, "weight must be"),
        ({"weight": torch.nan}, "weight must be"),
    ],
)
def test_refuses_other_settings(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        Constraint(**{"statistic": size, "bounds": Fixed(1, 2), **wrong})


@pytest.mark.plain
@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (torch.zeros(1, 2, 4, 4, dtype=torch.int64), "floating-point tensor"),
        ("probs", "floating-point tensor.*not str"),
        (torch.zeros(2, 4), r"must be \(B, K, \*space\)"),
        (torch.zeros(0, 2, 4, 4), "an empty batch"),
        (torch.zeros(1, 1, 4, 4), r"classes \[\] cannot be constrained in a prediction of 1 classes"),
    ],
)
@pytest.mark.parametrize("hard", [None, False, True], ids=["loss", "soft", "hard"])
def test_refuses_other_probabilities(probs, message, hard) -> None:
    loss = Constraint(size, Fixed(1, 2))
    with pytest.raises(ValueError, match=message):
        loss(probs) if hard is None else loss.violation(probs, hard=hard)


def test_refuses_what_does_not_fit_the_prediction() -> None:
    with pytest.raises(ValueError, match=r"classes \[1, 3\] cannot be constrained in a prediction of 3 classes"):
        Constraint(size, Fixed(1, 2), classes=[1, 3])(random_probs(1, 3, PLANE))
    with pytest.raises(ValueError, match="fact 'size' has 2 columns, but the prediction has 3 classes"):
        Constraint(size, Individual(relative=0.1))(random_probs(1, 3, PLANE), None, known(measured=3))
    with pytest.raises(ValueError, match="annotation of 1 images for probabilities of 4"):
        Constraint(size, Fixed(1, 2))(random_probs(len(INDEX), 2, PLANE), None, known())
    with pytest.raises(ValueError, match="mean_intensity is measured on the image"):
        Constraint(mean_intensity, Fixed(1, 2))(HALF)


def test_a_violation_is_measured_by_what_is_typical() -> None:
    """8 pixels where 6 are allowed: 2 too many, or 0.4 of a typical region of 5; the number of pixels has no part."""
    loss = Constraint(size, Fixed(4, 6), weight=3, scale="typical", typical=5)
    assert float(loss(HALF)) == pytest.approx(3 * 0.4**2)
    assert float(loss.violation(HALF)) == 2  # what is reported keeps its unit
    per_class = Constraint(size, Fixed(4, 6), classes=[0, 1], penalty=hinge, scale="typical", typical=[5, 10])
    assert float(per_class(HALF)) == pytest.approx((0.4 + 0.2) / 2)
    where = Constraint(centroid, Fixed(2.5, None), penalty=hinge, scale="typical", typical=[[1.0, 4.0]])
    assert float(where(HALF)) == pytest.approx((1 + 0.25) / 2)
    probs = random(2, 3, 3, 3).softmax(dim=1).requires_grad_()
    torch.autograd.gradcheck(Constraint(size, Fixed(4, 5), scale="typical", typical=[2, 3]), probs)


@pytest.mark.parametrize("typical", [0, -1, float("nan"), float("inf"), [3, 0]])
def test_what_is_typical_is_positive_and_finite(typical) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Constraint(size, Fixed(4, 6), scale="typical", typical=typical)


def test_a_typical_scale_needs_what_is_typical() -> None:
    with pytest.raises(ValueError, match="needs what is typical of each class: see typical_values"):
        Constraint(size, Fixed(4, 6), scale="typical")


@pytest.mark.plain
def test_there_are_two_scales() -> None:
    with pytest.raises(ValueError, match="'natural' or 'typical'"):
        Constraint(size, Fixed(4, 6), scale="usual")
