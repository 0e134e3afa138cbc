"""Regions of several classes, and what is known of them from what is known of their parts."""

from __future__ import annotations

import math

import pytest
import torch

from inbounds.regions.region import any_of, fact_name, facts_of, select, spelled, suffixes

NAN = math.nan
SIZE = ("size", "size_min", "size_max")


def row(*numbers: float) -> torch.Tensor:
    """One image, one number a class."""
    return torch.tensor(numbers)[None, :, None]


def of(facts: dict, regions: list, relates: int = 1, names: tuple = SIZE, adds_up: bool = True) -> dict:
    return {
        name: fact[0, :, 0].tolist() for name, fact in facts_of(facts, regions, relates, names, adds_up=adds_up).items()
    }


def same(found: list, wanted: list) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(found, wanted, strict=True))


def test_probabilities_of_several_classes_add_up() -> None:
    probs = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    torch.testing.assert_close(select(probs, [(1, 2), 3, (0, 3)]), torch.tensor([[0.5, 0.4, 0.5]]))
    torch.testing.assert_close(select(probs, [2, 0]), torch.tensor([[0.3, 0.1]]))
    assert select(probs, [1, 2]).data_ptr() == probs[:, 1:].data_ptr()  # a view: nothing is copied


def test_names() -> None:
    assert fact_name("size", (2, 1)) == "size(1+2)"
    assert fact_name("ratio", 1, (3, 2)) == "ratio(1:2+3)"
    assert spelled([(1, 2), 3], ["background", "LV", "MYO", "RV"]) == "LV+MYO:RV"
    assert suffixes(["size", "size(1+2)", "present", "size_min(1+2)", "ratio(1:2)"]) == ["", "(1+2)", "(1:2)"]


def test_any_of_is_one_where_one_is_and_unknown_where_none_is_known_to_be() -> None:
    tags = torch.tensor([[1.0, NAN, 0.0, 0.0]])
    assert same(any_of(tags, [(0, 1), (1, 2), (2, 3), 0])[0].tolist(), [1, NAN, 0, 1])
    assert any_of(tags == 1, [(0, 1), (2, 3)]).tolist() == [[True, False]]


def test_sizes_and_tags_of_several_classes_follow_from_their_parts() -> None:
    facts = {"size": row(NAN, 30, 50, NAN), "present": row(NAN, 1, 1, 0)}
    found = of(facts, [(1, 2), (1, 3), 2])
    assert same(found["size"], [80, NAN, 50])
    assert same(found["present"], [1, 1, 1])


def test_ranges_add_up_with_numbers_and_do_not_come_from_numbers_alone() -> None:
    facts = {"size": row(NAN, 30, NAN, 20), "size_min": row(NAN, NAN, 40, NAN), "size_max": row(NAN, NAN, 60, NAN)}
    found = of(facts, [(1, 2), (1, 3)])
    assert same(found["size"], [NAN, 50])
    assert same(found["size_min"], [70, NAN])
    assert same(found["size_max"], [90, NAN])


def test_what_was_said_of_both_together_counts_above_their_sum() -> None:
    facts = {"size": row(NAN, 30, 50), "size_min": row(NAN, 20, 40), "size_max": row(NAN, 40, 60)}
    found = of(facts | {"size(1+2)": torch.tensor([[[75.0]]])}, [(1, 2)])
    assert same([*found["size"], *found["size_min"], *found["size_max"]], [75, NAN, NAN])
    found = of(facts | {"size(1+2)": torch.tensor([[[NAN]]])}, [(1, 2)])
    assert same([*found["size"], *found["size_min"], *found["size_max"]], [80, 60, 100])


def test_averages_of_several_classes_are_not_sums() -> None:
    facts = {"centroid": row(NAN, 3, 5), "centroid(1+2)": torch.tensor([[[4.5]]])}
    names = ("centroid", "centroid_min", "centroid_max")
    assert same(of(facts, [(1, 2), 1], names=names, adds_up=False)["centroid"], [4.5, 3])
    del facts["centroid(1+2)"]
    assert same(of(facts, [(1, 2), 1], names=names, adds_up=False)["centroid"], [NAN, 3])


@pytest.mark.parametrize(
    ("tags", "own", "wanted"),
    [((1, 1), NAN, 1), ((1, 0), NAN, 0), ((NAN, 0), NAN, 0), ((1, NAN), NAN, NAN), ((1, 1), 0, 0), ((1, NAN), 1, 1)],
)
def test_a_relation_is_there_if_all_its_regions_are_unless_somebody_said(tags, own, wanted) -> None:
    facts = {
        "present": row(NAN, *tags),
        "ratio(1:2)": torch.tensor([[[0.5]]]),
        "present(1:2)": torch.tensor([[[float(own)]]]),
    }
    found = of(facts, [1, 2], relates=2, names=("ratio", "ratio_min", "ratio_max"), adds_up=False)
    assert same(found["ratio"], [0.5])
    assert same(found["present"], [wanted])


def test_relations_of_three_regions_are_of_each_and_the_next() -> None:
    facts = {
        "present": row(NAN, 1, 1, NAN),
        "ratio(1:2)": torch.tensor([[[0.5]]]),
        "ratio(3:1)": torch.tensor([[[9.0]]]),
    }
    found = of(facts, [1, 2, 3], relates=2, names=("ratio", "ratio_min", "ratio_max"), adds_up=False)
    assert same(found["ratio"], [0.5, NAN])
    assert same(found["present"], [1, NAN])
