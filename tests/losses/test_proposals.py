"""The projection against SciPy's constrained optimiser and against a pixel-by-pixel ascent, and its promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cases import random
from inbounds import (
    UNLABELLED,
    Annotation,
    Ascent,
    Constraint,
    Exact,
    Fixed,
    Individual,
    Interval,
    Proposals,
    Scans,
    centroid,
    size,
)
from inbounds.regions.region import select

INF = math.inf
every_method = pytest.mark.parametrize("project", [Exact(), Ascent(early_stop="off")], ids=["exact", "ascent"])


def interval(lower: list, upper: list) -> Interval:
    """Rows of one number per class."""
    return Interval(torch.tensor(lower).float()[..., None], torch.tensor(upper).float()[..., None])


def unlabelled(B: int, *space: int) -> torch.Tensor:
    return torch.full((B, *space), UNLABELLED)


def prediction(B: int, K: int, *space: int, seed: int = 0, spread: float = 4.0) -> torch.Tensor:
    noise = torch.randn(B, K, *space, generator=torch.Generator().manual_seed(seed))
    return (spread * noise).log_softmax(1)


def sizes(logits: torch.Tensor) -> torch.Tensor:
    """Soft sizes `(B, K)`, in double precision."""
    return logits.double().softmax(1).flatten(2).sum(-1)


def meets(sizes: torch.Tensor, lower: float, upper: float) -> bool:
    """Whether sizes keep to their bounds as closely as promised."""
    low = lower - max(1e-3, 1e-6 * abs(lower)) if lower > -INF else -INF
    high = upper + (1e-2 if upper == 0 else max(1e-3, 1e-6 * upper)) if upper < INF else INF
    return bool(((sizes >= low) & (sizes <= high)).all())


def by_scipy(probs: np.ndarray, lower: list[float], upper: list[float], classes: list[int]) -> np.ndarray:
    """The `Q` of least `KL(Q || S)` with every pixel on the simplex and the sizes in bounds; `probs` is `(K, P)`."""
    K, P = probs.shape

    def divergence(q: np.ndarray) -> float:
        q = q.reshape(K, P)
        return float((q * np.log(q / probs)).sum())

    def gradient(q: np.ndarray) -> np.ndarray:
        return (np.log(q.reshape(K, P) / probs) + 1).ravel()

    def total_of(k: int) -> np.ndarray:
        row = np.zeros((K, P))
        row[k] = 1
        return row.ravel()

    simplex = np.tile(np.eye(P), (1, K))
    rules = [{"type": "eq", "fun": lambda q: simplex @ q - 1, "jac": lambda _: simplex}]
    rows = [sum(total_of(k) for k in ([one] if isinstance(one, int) else one)) for one in classes]
    for row, low, high in zip(rows, lower, upper, strict=True):
        rules.append({"type": "ineq", "fun": lambda q, r=row, b=low: r @ q - b, "jac": lambda _, r=row: r})
        rules.append({"type": "ineq", "fun": lambda q, r=row, b=high: b - r @ q, "jac": lambda _, r=row: -r})
    found = minimize(
        divergence,
        probs.ravel(),
        jac=gradient,
        constraints=rules,
        bounds=[(1e-9, 1)] * (K * P),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success, found.message
    return found.x.reshape(K, P)


@pytest.mark.parametrize(
    ("K", "classes", "lower", "upper"),
    [
        (2, [1], [1.0], [3.0]),
        (2, [1], [11.0], [13.0]),
        (2, [1], [9.0], [9.0]),
        (2, [0], [2.0], [4.0]),
        (3, [2], [0.5], [2.0]),
        (3, [1, 2], [1.0, 1.0], [2.0, 3.0]),
        (3, [1, 2], [7.0, 0.0], [8.0, 1.0]),
        (3, [1, 2], [4.0, 0.0], [16.0, 16.0]),
        (3, [2, 1], [6.0, 7.0], [6.0, 16.0]),
        (3, [(1, 2)], [3.0], [4.0]),
        (3, [(1, 2)], [13.0], [14.0]),
        (4, [(1, 2), 3], [2.0, 6.0], [3.0, 7.0]),
        (3, [1, (1, 2)], [1.0, 3.0], [2.0, 4.0]),
        (3, [1, 2, (1, 2)], [1.0, 1.0, 0.0], [9.0, 9.0, 3.0]),
        (4, [(1, 2), (2, 3)], [9.0, 9.0], [9.0, 9.0]),
    ],
)
def test_minimises_the_divergence(K, classes, lower, upper) -> None:
    log_probs = prediction(1, K, 4, 4, seed=3, spread=1.0)
    ours = Exact()(log_probs, unlabelled(1, 4, 4), interval([lower], [upper]), classes).softmax(1)
    theirs = by_scipy(log_probs[0].flatten(1).double().exp().numpy(), lower, upper, classes)
    np.testing.assert_allclose(ours[0].flatten(1).numpy(), theirs, atol=2e-4)


@pytest.mark.parametrize("side", [4, 32, 256])
@pytest.mark.parametrize("spread", [0.0, 0.3, 4.0, 20.0, 1e4])
def test_meets_its_bounds(side, spread) -> None:
    log_probs, n = prediction(2, 2, side, side, spread=spread), side**2
    for lower, upper in [(0, 0), (1, n), (0.01 * n, 0.011 * n), (0.5 * n, 0.5 * n), (0.9 * n, INF), (-INF, 0.05 * n)]:
        made = Exact()(log_probs, unlabelled(2, side, side), interval([[lower]] * 2, [[upper]] * 2), [1])
        assert meets(sizes(made)[:, 1], lower, upper), (lower, upper, sizes(made)[:, 1])


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.1, 1.0, 5.0, 30.0]),
    st.floats(0, 60),
    st.floats(0, 60),
    st.integers(0, 20),
)
def test_any_prediction_any_bounds(seed, spread, one, other, labelled) -> None:
    lower, upper = min(one, other), max(one, other)
    log_probs, label = prediction(1, 2, 8, 8, seed=seed, spread=spread), unlabelled(1, 8, 8)
    label.view(-1)[:labelled] = torch.arange(labelled) % 2
    made = Proposals(Constraint(size, Fixed(lower, upper), weight=0), harden=False)(log_probs, Annotation(label))
    assert made.isfinite().all()
    torch.testing.assert_close(made.sum(1), torch.ones(1, 8, 8))
    seeds = int((label == 1).sum())  # as few or as many as the labelled pixels leave
    nearest = max(lower, seeds), max(upper, seeds)
    nearest = (min(nearest[0], 64 - int((label == 0).sum())), nearest[1])
    total = made[:, 1].double().sum()
    assert nearest[0] - 1e-3 <= total <= nearest[1] + 2e-3
    before = (log_probs[:, 1] - log_probs[:, 0])[label == UNLABELLED]
    after = made[:, 1][label == UNLABELLED]
    order = before.argsort()
    assert (after[order].diff() >= -1e-6).all()  # a shift of logits keeps the order of pixels


@every_method
def test_leaves_what_is_allowed_alone(project) -> None:
    log_probs = prediction(2, 3, 8, 8)
    now = sizes(log_probs).float()
    allowed = interval((now[:, 1:] - 0.5).tolist(), (now[:, 1:] + 0.5).tolist())
    made = project(log_probs, unlabelled(2, 8, 8), allowed, [1, 2])
    torch.testing.assert_close(made.softmax(1), log_probs.exp(), rtol=1e-5, atol=1e-6)
    alone = project(log_probs[:, :2].log_softmax(1), unlabelled(2, 8, 8), interval([[0]] * 2, [[64]] * 2), [1])
    torch.testing.assert_close(alone.softmax(1), log_probs[:, :2].softmax(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("lower", "upper"), [(60, 2000), (30000, 31000), (40000, 50000), (-INF, 20000)])
def test_both_methods_agree_where_the_ascent_converges(lower, upper) -> None:
    log_probs, label = prediction(2, 2, 256, 256, spread=1.0), unlabelled(2, 256, 256)
    label[:, 100:105, 100:105] = 1
    bounds = interval([[lower]] * 2, [[upper]] * 2)
    exact, ascent = (
        project(log_probs, label, bounds, [1]).softmax(1) for project in (Exact(), Ascent(early_stop="off"))
    )
    torch.testing.assert_close(ascent, exact, rtol=0, atol=2e-3)


def test_both_methods_agree_on_several_classes() -> None:
    log_probs, bounds = prediction(2, 3, 64, 64, spread=1.0), interval([[500, 2000]] * 2, [[600, 2500]] * 2)
    made = [p(log_probs, unlabelled(2, 64, 64), bounds, [1, 2]) for p in (Exact(), Ascent(5e-4, 500, "off"))]
    torch.testing.assert_close(made[1].softmax(1), made[0].softmax(1), rtol=0, atol=1e-3)


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("spread", [0.3, 4.0, 20.0])
def test_several_classes_meet_their_bounds(K, spread) -> None:
    log_probs, C = prediction(3, K, 32, 32, spread=spread), K - 1
    for low, high in [(0, 0), (50, 60), (300, 310), (200, INF), (-INF, 20), (0, 1024)]:
        made = Exact()(log_probs, unlabelled(3, 32, 32), interval([[low] * C] * 3, [[high] * C] * 3), range(1, K))
        assert meets(sizes(made)[:, 1:], low, high), (low, high, sizes(made))


@every_method
def test_labelled_pixels_are_held(project) -> None:
    """Twelve of sixteen pixels are labelled 1 and at most ten may be: the other four become background."""
    label = unlabelled(1, 4, 4)
    label[0, :3] = 1
    log_probs = torch.full((1, 2, 4, 4), 0.5).log()
    for lower, upper in [(0, 10), (0, 0), (10, 10)]:
        proposals = Proposals(Constraint(size, Fixed(lower, upper), weight=0), project)
        if project == Exact():
            assert proposals(log_probs, Annotation(label))[0].tolist() == [[1] * 4] * 3 + [[0] * 4]
        soft = Proposals(proposals.constraint, project, harden=False)(log_probs, Annotation(label))
        assert (soft[0, 1, :3] == 1).all()
        assert soft[0, 1, 3].sum() < (1e-2 if project == Exact() else 2.0)
    complete = torch.randint(0, 2, (1, 4, 4))
    assert (Proposals(Constraint(size, Fixed(3, 3)), project)(log_probs, Annotation(complete)) == complete).all()


@every_method
@pytest.mark.parametrize("classes", [[1], [1, 2]])
def test_extreme_probabilities_stay_finite(project, classes) -> None:
    log_probs = torch.tensor([0.0, 1.0, 1e-30, 0.5] * 4).reshape(1, 1, 4, 4)
    log_probs = torch.cat([1 - log_probs, log_probs, torch.zeros_like(log_probs)], dim=1).log()
    for low, high in [(0, 0), (1, 2), (5, 5)]:
        bounds = interval([[low] * len(classes)], [[high] * len(classes)])
        made = project(log_probs, unlabelled(1, 4, 4), bounds, classes)
        assert made.softmax(1).isfinite().all()
        if project == Exact():
            assert meets(sizes(made)[:, classes], low, high)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype) -> None:
    log_probs = prediction(1, 2, 16, 16).to(dtype)
    made = Exact()(log_probs, unlabelled(1, 16, 16).to(torch.uint8), interval([[20]], [[30]]), [1])
    assert made.dtype == torch.promote_types(dtype, torch.float32)
    assert meets(sizes(made)[:, 1], 20, 30)


@pytest.mark.parametrize("K", [2, 3])
def test_volumes_have_one_multiplier_a_scan(K) -> None:
    """Scans of two slices and one: as one image of all slices side by side, each."""
    log_probs = prediction(3, K, 6, 6)
    scans, classes = Scans.of(["a", "b", "a"]), list(range(1, K))
    facts = {"size": torch.full((2, K, 1), 8.0)}
    annotation = Annotation(unlabelled(3, 6, 6), scan_facts=facts, scans=scans)
    bounded = Constraint(size, Individual(relative=0.0), weight=0, scope="volume")
    made = Proposals(bounded, harden=False)(log_probs, annotation)
    for slices in ([0, 2], [1]):
        side_by_side = torch.cat([log_probs[s : s + 1] for s in slices], dim=2)
        eight = interval([[8.0] * (K - 1)], [[8.0] * (K - 1)])
        alone = Exact()(side_by_side, unlabelled(*side_by_side.shape[:1], *side_by_side.shape[2:]), eight, classes)
        torch.testing.assert_close(torch.cat([made[s : s + 1] for s in slices], dim=2), alone.softmax(1))
    assert meets(scans.total(made.double().flatten(2).sum(-1))[:, 1:], 8, 8)


def by_hand(log_probs: torch.Tensor, lower: float, upper: float, ascent: Ascent) -> tuple[float, int]:
    """The authors' loop over one image of two classes: the multiplier it ends with, and the steps it took."""
    p, high, low = log_probs[0, 1].double().exp().numpy(), 0.0, 0.0
    for step in range(ascent.iterations):
        odds = p / (1 - p) * math.exp(low - high)
        total = float((odds / (1 + odds)).sum())
        new_high = max(0.0, high + ascent.step_size * (total - upper))
        new_low = max(0.0, low + ascent.step_size * (lower - total))
        settled = [abs(new - old) / (old + 1e-10) < 1e-3 for new, old in ((new_high, high), (new_low, low))]
        if (ascent.early_stop == "authors" and settled[0]) or (ascent.early_stop == "corrected" and all(settled)):
            break
        if step < ascent.iterations - 1:
            high, low = new_high, new_low
    return high - low, step


@pytest.mark.parametrize("early_stop", ["off", "authors", "corrected"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 40), (200, 220), (120, 130), (1, 256), (-1, 0)])
def test_the_ascent_step_by_step(early_stop, lower, upper) -> None:
    ascent = Ascent(step_size=2e-3, iterations=60, early_stop=early_stop)
    log_probs = prediction(1, 2, 16, 16, spread=1.0)
    beta, _ = by_hand(log_probs, lower, upper, ascent)
    made = ascent(log_probs, unlabelled(1, 16, 16), interval([[lower]], [[upper]]), [1])
    expected = log_probs.clone()
    expected[:, 1] -= beta
    torch.testing.assert_close(made.softmax(1), expected.softmax(1), rtol=1e-4, atol=1e-5)


def test_the_authors_early_stop_never_enforces_a_lower_bound() -> None:
    log_probs, wanted = prediction(1, 2, 16, 16, spread=1.0), interval([[200]], [[220]])
    before = sizes(log_probs)[0, 1]
    authors, corrected, off = (
        sizes(Ascent(2e-3, 500, stop)(log_probs, unlabelled(1, 16, 16), wanted, [1]))[0, 1]
        for stop in ("authors", "corrected", "off")
    )
    assert authors == pytest.approx(before.item())
    assert corrected == pytest.approx(200, abs=2)
    assert off == pytest.approx(200, abs=0.1)


def test_images_stop_one_by_one() -> None:
    """A batch gives what each of its images gives alone."""
    log_probs, ascent = prediction(3, 2, 16, 16, spread=1.0), Ascent(2e-3, 100, "corrected")
    lower, upper = [[0], [200], [-1]], [[256], [210], [0]]
    together = ascent(log_probs, unlabelled(3, 16, 16), interval(lower, upper), [1])
    for b in range(3):
        alone = ascent(log_probs[b : b + 1], unlabelled(1, 16, 16), interval([lower[b]], [upper[b]]), [1])
        torch.testing.assert_close(together[b : b + 1], alone)


def test_no_gradient_passes() -> None:
    logits = random(1, 2, 4, 4, dtype=torch.float32).requires_grad_()
    for harden in (True, False):
        made = Proposals(Constraint(size, Fixed(3, 4)), harden=harden)(
            logits.log_softmax(1), Annotation(unlabelled(1, 4, 4))
        )
        assert not made.requires_grad


@pytest.mark.plain
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ascent(step_size=0), "step_size of the ascent must be positive"),
        (lambda: Ascent(iterations=0), "at least one iteration"),
        (lambda: Ascent(early_stop="on"), "early_stop must be"),
        (lambda: Proposals(Constraint(size, Fixed(1, 2)), sides="lower"), "sides must be"),
        (lambda: Proposals(Constraint(centroid, Fixed(1, 2))), "sizes in pixels"),
        (lambda: Proposals(Constraint(size.using(spacing=(2, 2)), Fixed(1, 2))), "sizes in pixels"),
    ],
)
def test_refuses(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("classes", "lower", "upper", "wanted"),
    [
        ([1, 2], [12.0, 10.0], [16.0, 16.0], [9.0, 7.0]),  # 22 of 16 pixels: both give 3
        ([1, 2], [16.0, 1.0], [16.0, 1.0], [15.5, 0.5]),
        ([1, (1, 2)], [8.0, 0.0], [9.0, 4.0], [6.0, 6.0]),  # a part of 8 in a whole of 4: they meet
    ],
)
def test_bounds_that_cannot_hold_together_give_way_to_the_nearest_that_can(classes, lower, upper, wanted) -> None:
    log_probs, known = prediction(1, 3, 4, 4, seed=5), Annotation(unlabelled(1, 4, 4))
    made = Exact()(log_probs, known.label, interval([lower], [upper]), classes)
    found = select(sizes(made), classes)[0]
    torch.testing.assert_close(found, torch.tensor(wanted).double(), atol=0.02, rtol=0)
    for bounds, can in ((Fixed(lower, upper), False), (Fixed(None, upper), True)):
        assert Proposals(Constraint(size, bounds, weight=0, classes=classes)).possible(log_probs, known).item() == can


@pytest.mark.parametrize("holds", [True, False], ids=["possible", "impossible"])
def test_the_order_of_classes_does_not_matter(holds) -> None:
    log_probs, generator = prediction(3, 4, 8, 8, seed=7), torch.Generator().manual_seed(1)
    lower = torch.tensor([[20.0, 10.0, 5.0], [30.0, 2.0, 4.0], [10.0, 30.0, 1.0]]) * (1 if holds else 3)
    first = Exact()(log_probs, unlabelled(3, 8, 8), Interval(lower[..., None], lower[..., None] + 2), [1, 2, 3])
    for _ in range(5):
        order = torch.randperm(3, generator=generator)
        mixed = Interval(lower[:, order, None], lower[:, order, None] + 2)
        again = Exact()(log_probs, unlabelled(3, 8, 8), mixed, (order + 1).tolist())
        torch.testing.assert_close(again.softmax(1), first.softmax(1), atol=1e-4, rtol=0)
        names = torch.cat([torch.zeros(1, dtype=torch.long), order + 1])  # the network's outputs change places
        renamed = Exact()(log_probs[:, names], unlabelled(3, 8, 8), mixed, [1, 2, 3])
        torch.testing.assert_close(renamed.softmax(1), first.softmax(1)[:, names], atol=1e-4, rtol=0)
    assert meets(sizes(first)[:, 1], *(10, 32)) or not holds


def test_more_labelled_than_allowed_is_told_and_what_is_labelled_stays() -> None:
    label = unlabelled(2, 4, 4)
    label[:, 0] = 1
    proposals = Proposals(Constraint(size, Fixed(1, [2, 3]), weight=0), harden=False)
    known = Annotation(torch.stack([label[0], unlabelled(1, 4, 4)[0]]))
    log_probs = prediction(2, 3, 4, 4)
    assert proposals.possible(log_probs, known).tolist() == [False, True]
    made = proposals(log_probs, known).flatten(2).sum(-1)
    torch.testing.assert_close(made[0, 1], torch.tensor(4.0), atol=0.02, rtol=0)


def test_all_classes_together_cannot_be_bounded() -> None:
    everything = Proposals(Constraint(size, Fixed(1, 2), weight=0, classes=[(0, 1)]))
    with pytest.raises(ValueError, match="all classes together have all pixels"):
        everything(prediction(1, 2, 4, 4), Annotation(unlabelled(1, 4, 4)))
