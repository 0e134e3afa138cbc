"""Relations between regions: by hand, against slow oracles, by brute force over all masks, and as facts that move."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import oracles
from cases import SPACES, one_hot, random, random_probs, scans_of
from inbounds import (
    Annotation,
    Common,
    Constraint,
    Fixed,
    Individual,
    Patches,
    Tags,
    centroid,
    distance,
    hinge,
    inclusion,
    offset,
    ratio,
    size,
)
from inbounds.regions import FactColumns, Motion

RELATIONS = {"ratio": ratio, "inclusion": inclusion, "distance": distance, "offset": offset}
INF = math.inf
every_relation = pytest.mark.parametrize("name", RELATIONS)
every_space = pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])


@every_relation
@every_space
@pytest.mark.parametrize("of", [lambda _: None, scans_of], ids=["image", "scan"])
def test_agrees_with_a_slow_oracle_and_its_gradient_with_differences(name, space, of) -> None:
    scans = of(space)
    probs = random_probs(4, 3, space).requires_grad_()
    slow = getattr(oracles, name)(probs.detach().numpy(), None if scans is None else scans.index.tolist())
    torch.testing.assert_close(RELATIONS[name](probs, scans=scans).detach(), torch.from_numpy(slow))
    assert torch.autograd.gradcheck(lambda p: RELATIONS[name](p, scans=scans), probs, fast_mode=True)


@pytest.mark.parametrize("reach", [0, 1, 2])
@every_space
def test_surroundings_reach_as_far_as_asked(space, reach) -> None:
    probs = random_probs(2, 3, space)
    slow = oracles.inclusion(probs.numpy(), reach=reach)
    torch.testing.assert_close(inclusion(probs, reach=reach), torch.from_numpy(slow))


def test_nested_discs_are_included_and_one_that_touches_the_outside_is_not() -> None:
    grid = torch.cartesian_prod(torch.arange(21), torch.arange(21)).reshape(21, 21, 2).float()
    outer = (grid - 10).norm(dim=-1) < 8
    for middle, inside in ((10.0, True), (5.0, False)):
        inner = ((grid - middle).norm(dim=-1) < 4) & outer
        mask = torch.where(inner, 1, torch.where(outer, 2, 0))[None]
        constraint = Constraint(inclusion, Fixed(1 - 1e-6, None), classes=[1, (1, 2)])
        assert constraint.satisfied(one_hot(mask, 3, torch.float32))[0].tolist() == [inside]


@every_relation
def test_empty_regions_have_finite_values_and_gradients(name) -> None:
    probs = torch.zeros(1, 2, 5, 6, requires_grad=True)
    value = RELATIONS[name](probs)
    (gradient,) = torch.autograd.grad(value.sum(), probs)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert value.flatten()[0] == {"inclusion": 1}.get(name, 0)


def test_distances_in_mm() -> None:
    probs = torch.zeros(1, 2, 4, 5)
    probs[0, 0, 0, 0] = probs[0, 1, 3, 2] = 1
    torch.testing.assert_close(distance(probs, spacing=(2.0, 4.0)), torch.tensor([[[10.0]]]), atol=2e-3, rtol=0)
    torch.testing.assert_close(offset(probs, spacing=(2.0, 4.0)), torch.tensor([[[6.0, 8.0]]]))


def test_patches_measure_whole_scans() -> None:
    probs = random_probs(1, 3, (8, 6), dtype=torch.float32)
    cut = torch.cat([probs[:, :, :5], probs[:, :, 3:]])
    at = Patches.at(["a", "a"], torch.tensor([[0, 0], [3, 0]]), (5, 6), (8, 6))
    for one in (ratio, distance, offset):
        torch.testing.assert_close(one(cut, scans=at), one(probs))


def bounded(name: str, axes: int) -> Constraint:
    """A relation that few masks keep to, as costly for all of them."""
    bounds, weight = {
        "ratio": (Fixed(0.3, 0.7), 30),
        "inclusion": (Fixed(0.99, None), 30),
        "distance": (Fixed(1.2, 2.2), 600),
        "offset": (Fixed([[0.9, *[-INF] * (axes - 1)]], None), 600),
        "union": (Fixed(3, 4), 30),
    }[name]
    classes = [(1, 2)] if name == "union" else [1, (1, 2)] if name == "inclusion" else [1, 2]
    return Constraint(RELATIONS.get(name, size), bounds, penalty=hinge, classes=classes, weight=weight)


@pytest.mark.parametrize("space", [(2, 4), (2, 2, 2)], ids=["2d", "3d"])
@pytest.mark.parametrize("name", [*RELATIONS, "union"])
def test_descent_finds_nearly_the_best_of_all_masks_that_keep_to_it(name, space) -> None:
    """All 3^8 masks of a small image are looked at: which keep to the bounds, and which of them scores best?"""
    constraint, pixels = bounded(name, len(space)), math.prod(space)
    masks = torch.from_numpy(np.array(list(itertools.product(range(3), repeat=pixels)))).reshape(-1, *space)
    probs = one_hot(masks, 3, torch.float32)
    values = getattr(oracles, name if name in RELATIONS else "size")(
        (
            torch.stack(
                [probs[:, k] if isinstance(k, int) else probs[:, 1] + probs[:, 2] for k in constraint.classes], 1
            )
        ).numpy()
    )
    lower, upper = (side.numpy() for side in vars(constraint.interval(probs)).values())
    keeps = ((values >= lower) & (values <= upper)).all(axis=(1, 2))
    torch.testing.assert_close(constraint.satisfied(probs)[0], torch.from_numpy(keeps))
    assert 0 < keeps.mean() < 0.5
    reached = 0
    for seed in range(3):
        scores = random(1, 3, *space, seed=seed, dtype=torch.float32)
        best = float((probs[torch.from_numpy(keeps)] * scores).flatten(1).sum(1).max())
        logits = torch.zeros(1, 3, *space)
        logits += 0.1 * random(1, 3, *space, seed=seed + 10, dtype=torch.float32)
        logits.requires_grad_()
        adam = torch.optim.Adam([logits], lr=0.1)
        for step in range(200):
            adam.zero_grad()
            now = (logits * (1 + step / 100)).softmax(dim=1)
            (constraint(now) - (now * scores).sum()).backward()
            adam.step()
        mask = one_hot(logits.detach().max(dim=1).indices, 3, torch.float32)
        if constraint.satisfied(mask)[0].item():
            score = float((mask * scores).sum())
            assert score <= best + 1e-5
            reached += score > 0.85 * best
    assert reached >= 4 - len(space)


def known(**facts: list) -> Annotation:
    tensors = {name: torch.tensor(value)[None] for name, value in facts.items()}
    return Annotation(torch.full((1, 4, 5), 255), tensors).checked(3)


def annotated(facts: dict) -> Annotation:
    return Annotation(torch.full((1, 4, 5), 255), {name: torch.tensor(value)[None] for name, value in facts.items()})


PROBS = torch.full((1, 3, 4, 5), 1 / 3)
THERE = {"present": [[1.0], [1.0], [1.0]]}
PART = {"present": [[1.0], [1.0], [0.0]]}


def sides(constraint: Constraint, facts: dict) -> list:
    interval = constraint.interval(PROBS, None, annotated(facts).checked(3))
    return [side.expand(1, 1, -1).flatten().tolist() for side in (interval.lower, interval.upper)]


def test_a_union_takes_tags_common_ranges_and_numbers() -> None:
    both = {"size": [[math.nan], [4.0], [6.0]]}
    assert sides(Constraint(size, Tags(), classes=[(1, 2)]), PART) == [[1], [20]]
    assert sides(Constraint(size, Common(3, 7), classes=[(1, 2)]), PART) == [[3], [7]]
    assert sides(Constraint(size, Individual(relative=0.5), classes=[(1, 2)]), THERE | both) == [[5], [15]]
    own = both | {"size(1+2)": [[8.0]]}
    assert sides(Constraint(size, Individual(relative=0.5), classes=[(1, 2)]), THERE | own) == [[4], [12]]
    assert sides(Constraint(centroid, Individual(absolute=1.0), classes=[(1, 2)]), {"centroid(1+2)": [[2.0, 3.0]]}) == [
        [1, 2],
        [3, 4],
    ]


@every_relation
def test_relations_take_common_ranges_and_numbers_where_both_are_there(name) -> None:
    M = 2 if name == "offset" else 1
    common = Constraint(RELATIONS[name], Common(0.25, 0.5), classes=[1, 2])
    assert sides(common, THERE) == [[0.25] * M, [0.5] * M]
    assert sides(common, PART) == [[-INF] * M, [INF] * M]
    own = Constraint(RELATIONS[name], Individual(relative=0.5), classes=[1, 2])
    assert sides(own, {f"{name}(1:2)": [[0.5] * M]}) == [[0.25] * M, [0.75] * M]
    assert sides(own, {f"{name}_max(1:2)": [[0.5] * M]}) == [[-INF] * M, [0.5] * M]
    assert sides(own, PART | {f"{name}(1:2)": [[0.5] * M]}) == [[-INF] * M, [INF] * M]


def test_weights_of_classes() -> None:
    plain = Constraint(size, Fixed(None, 3), weight=0.01)
    alone = [Constraint(size, Fixed(None, 3), weight=0.01, classes=[k])(PROBS) for k in (1, 2)]
    weighed = Constraint(size, Fixed(None, 3), weight=0.01, class_weight=[3.0, 0.5])
    torch.testing.assert_close(plain(PROBS), (alone[0] + alone[1]) / 2)
    torch.testing.assert_close(weighed(PROBS), (3 * alone[0] + 0.5 * alone[1]) / 2)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"ratio is of 2 regions: name them"):
        Constraint(ratio, Fixed(0, 1))
    with pytest.raises(ValueError, match=r"different numbers"):
        Constraint(size, Fixed(0, 1), classes=[(1, 1)])
    with pytest.raises(ValueError, match=r"different numbers"):
        Constraint(size, Fixed(0, 1), classes=[(1, 2), (2, 1)])
    with pytest.raises(ValueError, match=r"class_weight must be numbers of 0 or more"):
        Constraint(size, Fixed(0, 1), class_weight=[-1.0])
    with pytest.raises(ValueError, match=r"called ratio\(1\+2\) or ratio\(1:2\)"):
        Constraint(ratio, Individual(relative=0.1), classes=[1, 2])(PROBS, None, annotated(THERE))
    with pytest.raises(ValueError, match="ratio is of 2 regions, one after the other, not of 1"):
        ratio(PROBS[:, :1])


def test_offsets_turn_with_their_images_and_distances_grow() -> None:
    quarter = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])
    motion = Motion((9, 9), quarter, torch.tensor([[3.0, 4.0]]), torch.tensor([2.0]), torch.ones(1), torch.zeros(1))
    facts = {"offset(1:2)": torch.tensor([[[1.0, 5.0]]]), "distance(1:2)": torch.tensor([[[7.0]]])}
    facts |= {"offset_min(1:2)": torch.tensor([[[math.nan, 5.0]]]), "offset_max(1:2)": torch.full((1, 1, 2), math.nan)}
    columns = offset.columns, distance.columns
    assert all(isinstance(one, FactColumns) for one in columns)
    moved = columns[0].follow(facts, "offset", motion) | columns[1].follow(facts, "distance", motion)
    torch.testing.assert_close(moved["offset(1:2)"], torch.tensor([[[-10.0, 2.0]]]))
    torch.testing.assert_close(moved["distance(1:2)"], torch.tensor([[[14.0]]]))
    torch.testing.assert_close(moved["offset_max(1:2)"], torch.tensor([[[-10.0, math.nan]]]), equal_nan=True)
