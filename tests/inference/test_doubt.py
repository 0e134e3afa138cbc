"""What speaks against a mask, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inbounds.inference.doubt import PARTS, Doubt, apart, in_pieces, outside, shared
from inbounds.inference.largest import keep_largest


def test_parts_add_up_to_one_number() -> None:
    assert Doubt().total == 0
    assert Doubt(range=0.5, pieces=0.2).total == pytest.approx(0.6)
    assert Doubt(range=0, edge=1, mirrored=0.3).total == 1
    assert tuple(Doubt.__dataclass_fields__) == PARTS


def test_the_largest_part_is_the_reason() -> None:
    assert Doubt(range=0.1, mirrored=0.3, runs=math.nan).reason == "mirrored images give another mask"
    assert Doubt(range=0.0).reason == ""


@pytest.mark.parametrize(
    ("volume", "far"), [(10, 0), (15, 0), (20, 0), (5, 0.5), (0, 1), (40, 0.5), (80, 0.75)], ids=str
)
def test_outside_a_range(volume: float, far: float) -> None:
    assert outside(volume, (10, 20)) == far


def test_a_class_that_may_be_absent_is_no_doubt_when_it_is() -> None:
    assert outside(0, (0, 20)) == 0
    assert outside(3, (0, 0)) == 1


def test_disagreement_is_the_mean_over_the_others() -> None:
    """Class 1: 2 pixels against the same 2, then against 1 of them: DSC 1 and 2/3. Class 2: none, then one."""
    mask = np.array([[[1, 1, 0, 0]]], np.uint8)
    others = np.array([[[[1, 1, 0, 0]]], [[[1, 0, 0, 2]]]], np.uint8)
    assert apart(shared(mask, others, 3)) == pytest.approx([1 / 6, 0.5, 0])
    assert np.isnan(apart(shared(mask, others[:0], 2))).all()


def test_what_lies_beside_the_largest_piece() -> None:
    mask = np.array([[[1, 1, 1, 0, 1, 2]]], np.uint8)
    assert in_pieces(mask, keep_largest(mask), 3) == [0.25, 0, 0]


def test_where_training_found_nothing_an_empty_mask_is_in_doubt() -> None:
    assert outside(0.0, (0.0, 0.0)) == 1
    assert outside(5.0, (0.0, 0.0)) == 1
