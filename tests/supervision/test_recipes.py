from __future__ import annotations

import pytest
import torch

from inbounds import (
    UNLABELLED,
    Annotation,
    Ascent,
    Common,
    Exact,
    Individual,
    Scans,
    Tags,
    centroid,
    quadratic,
    recipes,
    size,
)

NAMES = [
    "known",
    "full",
    "partial",
    "tags",
    "common",
    "individual",
    "individual_upper",
    "volume",
    "centroid",
    "compact",
]
PROPOSALS = ["proposals_tags", "proposals_common", "proposals_individual", "proposals_volume"]


def test_a_dict_of_names() -> None:
    assert isinstance(recipes, dict)
    assert list(recipes) == NAMES + PROPOSALS
    assert recipes.get("indiv") is None


@pytest.mark.parametrize(
    ("name", "answer"),
    [("indiv", "no recipe 'indiv'; did you mean 'individual'?"), ("xyz", "no recipe 'xyz'; there are: known, full")],
)
def test_a_recipe_that_is_not_there_is_answered_with_what_there_is(name, answer) -> None:
    with pytest.raises(KeyError) as error:
        recipes[name]
    assert str(error.value.args[0]).startswith(answer)


@pytest.mark.parametrize("name", ["full", "partial"])
def test_labels_alone(name) -> None:
    assert recipes[name]().constraints == ()


@pytest.mark.parametrize(
    ("name", "bounds", "weight", "scope"),
    [
        ("tags", Tags(), 0.01, "image"),
        ("common", Common(60, 2000), 0.01, "image"),
        ("individual", Individual(relative=0.1), 0.05, "image"),
        ("individual_upper", Individual(relative=0.1, tight="upper"), 0.01, "image"),
        ("volume", Individual(relative=0.1), 0.01, "volume"),
    ],
)
def test_the_settings_of_the_papers_rows(name, bounds, weight, scope) -> None:
    (wanted,) = recipes[name]().constraints
    assert (wanted.statistic, wanted.penalty) == (size, quadratic)
    assert (wanted.bounds, wanted.weight, wanted.scope, wanted.classes) == (bounds, weight, scope, None)


def test_centroid_is_common_and_a_place() -> None:
    where_and_how_large = recipes["centroid"]().constraints
    assert where_and_how_large[0] == recipes["common"]().constraints[0]
    assert where_and_how_large[1].statistic == centroid
    assert where_and_how_large[1].bounds == Individual(absolute=5.0)


def test_settings_are_keywords() -> None:
    (wanted,) = recipes["common"](lower=80, upper=1100, weight=0.5, classes=[3]).constraints
    assert (wanted.bounds, wanted.weight, wanted.classes) == (Common(80, 1100), 0.5, (3,))
    assert recipes["volume"](relative=0.0).constraints[0].bounds == Individual(relative=0.0)


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        ("full", {}, {}),
        ("tags", {"present": [0.0]}, {"size": 0.01 * 128**2 / 256}),
        ("common", {"present": [1.0]}, {"size": 0.01 * 28**2 / 256}),
        ("individual", {"present": [1.0], "size": [100.0]}, {"size": 0.05 * 18**2 / 256}),
        ("individual_upper", {"present": [1.0], "size": [100.0]}, {"size": 0.01 * 18**2 / 256}),
        ("volume", {"size": [100.0]}, {"size": 0.01 * 18**2 / 256}),
        (
            "centroid",  # the centre of the image, (7.5, 7.5), is 2 too far right
            {"present": [1.0], "centroid": [7.5, 0.5]},
            {"size": 0.01 * 28**2 / 256, "centroid": 10 * 2**2 / 2 / 512},
        ),
    ],
)
def test_by_hand(name, facts, expected) -> None:
    """A 16x16 image at one half everywhere: a soft size of 128 pixels."""
    label = torch.full((1, 16, 16), UNLABELLED)
    label[0, 3, 3] = 1
    annotation = Annotation(label, {key: torch.tensor([[fact, fact]]) for key, fact in facts.items()})
    settings = {"upper": 100} if name in ("common", "centroid") else {}
    named = recipes[name](**settings)(torch.zeros(1, 2, 16, 16), None, annotation).named
    assert {key: term.item() for key, term in named.items()} == pytest.approx(
        {"labels": 0.693147, **expected}, rel=1e-4
    )


def test_individual_upper_leaves_small_regions_alone() -> None:
    annotation = Annotation(
        torch.full((1, 16, 16), UNLABELLED),
        {name: torch.full((1, 2, 1), v) for name, v in (("size", 200.0), ("present", 1.0))},
    )
    logits = torch.zeros(1, 2, 16, 16)
    assert recipes["individual"]()(logits, None, annotation).total > 0
    assert recipes["individual_upper"]()(logits, None, annotation).total == 0


def test_volume_adds_slices_and_needs_no_tags() -> None:
    annotation = Annotation(
        torch.full((2, 16, 16), UNLABELLED), scan_facts={"size": torch.full((1, 2, 1), 200.0)}, scans=Scans.of("aa")
    )
    named = recipes["volume"]()(torch.zeros(2, 2, 16, 16), None, annotation).named
    assert named["size"].item() == pytest.approx(0.01 * 36**2 / 256)


@pytest.mark.parametrize(
    ("name", "bounds", "scope", "project", "sides"),
    [
        ("proposals_tags", Tags(), "image", Ascent(5e-5, 500, "authors"), "upper"),
        ("proposals_common", Common(60, 2000), "image", Ascent(5e-5, 500, "authors"), "both"),
        ("proposals_individual", Individual(relative=0.1), "image", Ascent(5e-5, 500, "authors"), "both"),
        ("proposals_volume", Individual(relative=0.1), "volume", Exact(), "both"),
    ],
)
def test_the_settings_of_the_proposal_rows(name, bounds, scope, project, sides) -> None:
    supervision = recipes[name](classes=[1])
    (watched,) = supervision.constraints
    assert (watched.statistic, watched.bounds, watched.weight, watched.scope) == (size, bounds, 0, scope)
    made = supervision.proposals
    assert made.constraint == watched
    assert (made.project, made.harden, made.sides) == (project, True, sides)


def test_proposals_train_towards_the_bounds() -> None:
    """An image of 128 soft pixels, of which 90 to 110 are wanted: pixels below the cut are trained to background."""
    logits = torch.linspace(-1, 1.2, 256).reshape(1, 1, 16, 16)
    logits = torch.cat([torch.zeros_like(logits), logits], dim=1).requires_grad_()
    facts = {"size": torch.full((1, 2, 1), 100.0), "present": torch.ones(1, 2, 1)}
    annotation = Annotation(torch.full((1, 16, 16), UNLABELLED), facts)
    total, named = recipes["proposals_individual"](project=Exact())(logits, None, annotation)
    assert list(named) == ["labels"]
    total.backward()
    pull = logits.grad[0, 1].flatten()
    wanted = int((pull < 0).sum())
    assert (pull[-wanted:] < 0).all()
    assert 0 < wanted < int((logits[0, 1] > 0).sum())
    soft = recipes["proposals_individual"](project=Exact(), harden=False)(logits, None, annotation)
    assert soft.total > 0


def test_the_tags_row_never_asks_for_more() -> None:
    """A present region of no pixels is left as it is: the upper bound alone is used."""
    logits = torch.tensor([5.0, -5.0]).reshape(1, 2, 1, 1).expand(1, 2, 4, 4)
    annotation = Annotation(torch.full((1, 4, 4), UNLABELLED), {"present": torch.ones(1, 2, 1)})
    made = recipes["proposals_tags"](project=Exact(), harden=False).proposals(logits.log_softmax(1), annotation)
    torch.testing.assert_close(made, logits.softmax(1))


def test_compact_asks_for_less_border() -> None:
    """A line of twelve pixels has far more border than a square of as many; the size is the same."""
    line, square = torch.zeros(2, 1, 2, 16, 16)
    line[:, 1], square[:, 1] = -20.0, -20.0
    line[0, 1, 2, 2:14], square[0, 1, 2:5, 2:6] = 20.0, 20.0
    known = Annotation(torch.full((1, 16, 16), 255), facts={"present": torch.ones(1, 2, 1)})
    costs = [recipes["compact"]()(image, None, known).named["compactness"].item() for image in (line, square)]
    assert costs[0] > 0 == costs[1]
