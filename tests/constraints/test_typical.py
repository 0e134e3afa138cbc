"""A weight without a unit means the same whatever the grid, the unit, the class, the scope and the penalty."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cases import PENALTIES, random
from inbounds import Annotation, Constraint, Individual, Scans, size
from inbounds.constraints import typical_values

NAN = torch.nan


def facts(*sizes: float, name: str = "size") -> dict[str, Tensor]:
    """One class beside the background, an image for each size."""
    return {name: torch.tensor([[[NAN], [one]] for one in sizes])}


def test_the_median_of_what_is_there() -> None:
    assert typical_values(facts(90, 0, NAN, 110, 400), pixels=4096) == [110]
    assert typical_values(facts(90, 0, 110), pixels=4096) == [100]


def test_a_range_counts_by_its_middle_and_an_open_one_by_its_end() -> None:
    table = facts(NAN, NAN, NAN, 7) | facts(10, 60, NAN, 1, name="size_min") | facts(30, NAN, 50, 2, name="size_max")
    assert typical_values(table, pixels=4096) == [35]  # the median of 20, 60, 50 and 7
    del table["size"]
    assert typical_values(table, pixels=4096) == [35]  # the median of 20, 60, 50 and 1.5


def test_where_tags_alone_are_known_it_is_a_share_of_the_pixels() -> None:
    table = {"present": torch.ones(2, 3, 1), "size": torch.full((2, 3, 1), NAN)}
    table["size"][0, 2] = 50
    assert typical_values(table, pixels=1000) == [20, 50]
    assert typical_values(table, classes=[2, 1], pixels=1000, share=0.1) == [50, 100]


def test_without_any_table_nothing_is_typical() -> None:
    with pytest.raises(ValueError, match="there are no facts"):
        typical_values({}, pixels=16)


def priced(probs: Tensor, given: Tensor, penalty: str, scans: Scans | None = None, **settings: object) -> Tensor:
    """The loss of a single class whose sizes are given, by what is typical of them."""
    background = torch.full_like(given, NAN)
    table = {"size": torch.stack([background, given], dim=1)[..., None]}
    label = torch.full((probs.shape[0], *probs.shape[2:]), 255)
    known = Annotation(label, table) if scans is None else Annotation(label, {}, table, scans)
    typical = typical_values(table, pixels=1)
    bounds = Individual(relative=0.1)
    scope = "image" if scans is None else "volume"
    settings = {"statistic": size, "scope": scope, **settings}
    loss = Constraint(bounds=bounds, penalty=PENALTIES[penalty], scale="typical", typical=typical, **settings)
    return loss(probs, None, known)


def some_probs(side: int = 96) -> Tensor:
    probs = random(3, 1, side, side) * 0.2
    return torch.cat([1 - probs, probs], dim=1)


GIVEN = torch.tensor([300.0, 1000.0, 4000.0], dtype=torch.float64)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)


@every_penalty
def test_the_same_shape_twice_as_fine_costs_the_same(penalty: str) -> None:
    probs = some_probs()
    fine = probs.repeat_interleave(2, -1).repeat_interleave(2, -2)
    torch.testing.assert_close(priced(fine, 4 * GIVEN, penalty), priced(probs, GIVEN, penalty))


@every_penalty
def test_padding_and_cropping_cost_nothing(penalty: str) -> None:
    probs = some_probs()
    padded = torch.nn.functional.pad(probs, (16, 32, 48, 0))
    torch.testing.assert_close(priced(padded, GIVEN, penalty), priced(probs, GIVEN, penalty))
    torch.testing.assert_close(priced(padded[..., 48:, 16:-32], GIVEN, penalty), priced(probs, GIVEN, penalty))


@every_penalty
def test_small_and_large_classes_cost_the_same(penalty: str) -> None:
    """The same share too large, of a class a tenth the size; and both in one constraint."""
    probs = some_probs()
    large, small = probs[:, 1:], probs[:, 1:] / 10
    both = torch.cat([1 - large - small, large, small], dim=1)
    sizes = torch.stack([GIVEN * NAN, GIVEN, GIVEN / 10], dim=1)[..., None]
    known = Annotation(torch.full((3, 96, 96), 255), {"size": sizes})
    settings = {"penalty": PENALTIES[penalty], "scale": "typical", "typical": typical_values(known.facts, pixels=1)}
    one, other = (
        Constraint(size, Individual(relative=0.1), classes=[k], **(settings | {"typical": t}))
        for k, t in zip((1, 2), settings["typical"], strict=True)
    )
    torch.testing.assert_close(one(both, None, known), other(both, None, known))
    together = Constraint(size, Individual(relative=0.1), **settings)(both, None, known)
    torch.testing.assert_close(together, one(both, None, known))


@every_penalty
def test_slices_and_volumes_cost_the_same(penalty: str) -> None:
    """Scans of five equal slices are five times as large as a slice, and as much too large."""
    probs = some_probs()
    slices = probs.repeat_interleave(5, dim=0)
    scans = Scans.of([n for n in range(3) for _ in range(5)])
    torch.testing.assert_close(priced(slices, 5 * GIVEN, penalty, scans), priced(probs, GIVEN, penalty))
    volume = probs[:, :, None].expand(-1, -1, 5, -1, -1)
    torch.testing.assert_close(priced(volume, 5 * GIVEN, penalty), priced(probs, GIVEN, penalty))


@every_penalty
def test_pixels_and_mm_cost_the_same(penalty: str) -> None:
    probs = some_probs()
    in_mm = size.using(spacing=(0.5, 3.0))
    torch.testing.assert_close(priced(probs, 1.5 * GIVEN, penalty, statistic=in_mm), priced(probs, GIVEN, penalty))
