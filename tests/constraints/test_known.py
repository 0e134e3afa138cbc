"""All that is known of a region, together."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inbounds import Annotation, Constraint, Scans, centroid, size
from inbounds.constraints import Individual, Knowledge, Known, Tags

INF, NAN = torch.inf, torch.nan


def facts(**given: list[float]) -> dict[str, Tensor]:
    """Of one class beside the background, a number for each image."""
    return {name: torch.tensor([[[NAN], [one]] for one in numbers]) for name, numbers in given.items()}


def bounds_of(bounds: Known, table: dict[str, Tensor], **settings) -> list[tuple[float, float]]:
    n = len(next(iter(table.values())))
    annotation = Annotation(torch.full((n, 20, 20), 255), table)
    interval = Constraint(size, bounds, **settings).interval(torch.full((n, 2, 20, 20), 0.5), None, annotation)
    return list(zip(interval.lower.flatten().tolist(), interval.upper.flatten().tolist(), strict=True))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, (-INF, INF)),
        ({"present": 1}, (1, INF)),
        ({"present": 0}, (0, 0)),
        ({"size": 100}, (85, 115)),
        ({"size": 0}, (0, 0)),
        ({"size_min": 90, "size_max": 200}, (90, 200)),
        ({"size_max": 200}, (-INF, 200)),
        ({"present": 1, "size_max": 200}, (1, 200)),
        ({"present": 1, "size": 100, "size_min": 90, "size_max": 200}, (90, 115)),
        ({"present": 1, "size": 0.4}, (0.46, 0.46)),  # a coarse grid: as much as may be there
    ],
)
def test_what_is_said_intersects(known: dict[str, float], expected: tuple[float, float]) -> None:
    everything = {"present": NAN, "size": NAN, "size_min": NAN, "size_max": NAN} | known
    assert bounds_of(Known(), facts(**{name: [one] for name, one in everything.items()}))[0] == pytest.approx(expected)
    if known:  # what an annotation lacks altogether is unknown
        found = bounds_of(Known(), facts(**{name: [one] for name, one in known.items()}))
        assert found[0] == pytest.approx(expected)


def test_the_range_common_to_all_acts_where_the_region_is_there() -> None:
    table = facts(present=[1, 0, NAN, 1, NAN], size=[NAN, NAN, NAN, 100, 100])
    common = [(60, 105), (0, 0), (-INF, INF), (85, 105), (85, 115)]
    assert bounds_of(Known(lower=60, upper=105), table) == [pytest.approx(one) for one in common]
    assert bounds_of(Known(upper=[105]), table)[0] == (1, 105)
    assert bounds_of(Known(relative=0.02), table)[3] == pytest.approx((98, 102))


def test_scans_go_by_their_own_facts() -> None:
    """Slices are not added up; a scan said to lack a region lacks it."""
    slices = facts(size=[10.0, 20.0, 30.0, 40.0])
    scan_facts = facts(present=[NAN, 0, 1], size=[NAN, NAN, 200])
    scans = Scans(torch.tensor([0, 0, 1, 2]), 3)
    annotation = Annotation(torch.full((4, 20, 20), 255), slices, scan_facts, scans)
    wanted = Constraint(size, Known(), scope="volume")
    interval = wanted.interval(torch.full((4, 2, 20, 20), 0.5), None, annotation)
    torch.testing.assert_close(interval.lower.flatten(), torch.tensor([-INF, 0, 170]))
    torch.testing.assert_close(interval.upper.flatten(), torch.tensor([INF, 0, 230]))
    bare = Annotation(annotation.label, slices, {}, scans)
    assert wanted.interval(torch.full((4, 2, 20, 20), 0.5), None, bare).lower.isinf().all()


def test_presence_says_nothing_of_a_centre() -> None:
    table = facts(present=[1, 0])
    annotation = Annotation(torch.full((2, 20, 20), 255), table)
    interval = Constraint(centroid, Known()).interval(torch.full((2, 2, 20, 20), 0.5), None, annotation)
    assert interval.lower.isinf().all()
    assert interval.upper.isinf().all()


@settings(max_examples=60)
@given(st.sampled_from([0.0, 1.0, NAN]), st.one_of(st.just(NAN), st.floats(1, 300)), st.floats(0, 0.5))
def test_it_is_tags_and_individual_together(present: float, measured: float, relative: float) -> None:
    measured = 0.0 if present == 0 and measured == measured else measured
    table = facts(present=[present], size=[measured])
    found = bounds_of(Known(relative), table)[0]
    parts = [bounds_of(one, table)[0] for one in (Tags(), Individual(relative=relative))]
    assert found[0] == pytest.approx(max(low for low, _ in parts))
    assert min(found[1], 400) == pytest.approx(min(*(high for _, high in parts), 400))  # no more than all pixels


@pytest.mark.parametrize("settings", [{"relative": -0.1}, {"relative": INF}, {"lower": 5, "upper": 3}])
def test_refuses_what_is_no_range(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"share of 0 or more|lies above"):
        Known(**settings)


def contradiction(bounds: Known, table: dict[str, Tensor]) -> tuple[tuple[int, ...], str, str] | None:
    return bounds.contradiction(Knowledge(table, next(iter(table.values())), "size", (1.0, 400.0)))


@pytest.mark.parametrize(
    ("bounds", "known", "one", "other"),
    [
        (Known(), {"present": 0, "size": 100}, "its own size (85 to 115)", "presence (0)"),
        (Known(), {"present": 1, "size": 0}, "its own size (0)", "presence (at least 1)"),
        (
            Known(),
            {"size": 100, "size_min": 120},
            "its own size (85 to 115)",
            "its own range of size (at least 120)",
        ),
        (
            Known(upper=80),
            {"present": 1, "size": 100},
            "its own size (85 to 115)",
            "the range common to all (at most 80)",
        ),
        (Known(lower=60), {"present": 1, "size_max": 50}, "its own range of size (at most 50)", "(at least 60)"),
    ],
)
def test_what_cannot_be_true_is_found(bounds: Known, known: dict[str, float], one: str, other: str) -> None:
    table = facts(**{name: [NAN, value] for name, value in known.items()})
    at, first, second = contradiction(bounds, table)
    assert at == (1, 1, 0)
    assert first == one
    assert other in second


def test_what_can_be_true_is_left_alone() -> None:
    table = facts(present=[1, 0, NAN, 1], size=[100, 0, NAN, 0.3], size_min=[100.0001, NAN, NAN, NAN])
    assert contradiction(Known(relative=0, upper=100), table) is None
    assert bounds_of(Known(), facts(present=[0], size=[100])) == [(0, 0)]  # where nobody looked, the smaller
