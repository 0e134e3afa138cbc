from __future__ import annotations

import pytest
import torch

from inbounds import UNLABELLED, Annotation, Common, Individual, Scans, Tags, centroid, quadratic, recipes, size

NAMES = ["full", "partial", "tags", "common", "individual", "individual_upper", "volume", "centroid"]


def test_a_plain_dict_of_names() -> None:
    assert type(recipes) is dict
    assert list(recipes) == NAMES


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
