"""Which voxels a stroke and a box label, against slow ways to say the same."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.errors import BadInput
from inbounds.studio.raster import outside, passed, stroke

SHAPE, SPACING = (3, 17, 23), (5.0, 1.5, 0.75)
coordinates = st.tuples(st.integers(-24, 200), st.integers(-24, 280)).map(lambda at: (at[0] / 8, at[1] / 8))


def near(line: list[tuple[float, float]], place: tuple[int, int], radius: float, mm: tuple[float, float]) -> bool:
    """Whether a place lies within so many mm of a line."""
    for one, other in pairwise(line if len(line) > 1 else line * 2):
        a, b, p = (np.array(point) * mm for point in (one, other, place))
        step = b - a
        along = 0.0 if not step.any() else float(np.clip((p - a) @ step / (step @ step), 0, 1))
        if np.linalg.norm(p - a - along * step) <= radius * (1 + 1e-9):
            return True
    return False


def stepped(line: list[tuple[float, float]]) -> set[tuple[int, int]]:
    """The pixels that many small steps along a line come by, but for those that a step only touches."""
    seen = {(math.floor(r + 0.5), math.floor(c + 0.5)) for r, c in line}
    for one, other in pairwise(line):
        places = np.linspace(one, other, 1009)
        inner = places[(np.abs((places + 0.5) % 1 - 0.5) < 0.5 - 1e-9).all(axis=1)]
        seen |= set(map(tuple, np.floor(inner + 0.5).astype(int).tolist()))
    return seen


@given(st.lists(coordinates, min_size=1, max_size=4), st.floats(0.1, 9))
def test_a_brush_labels_what_lies_within_its_radius(line: list[tuple[float, float]], radius: float) -> None:
    inside = {p for p in product(range(17), range(23)) if near(line, p, radius, SPACING[1:])}
    rows, columns = passed(np.array(line))
    inside |= {p for p in zip(rows.tolist(), columns.tolist(), strict=True) if 0 <= p[0] < 17 and 0 <= p[1] < 23}
    points = [(1.0, *point) for point in line]
    if not inside:
        with pytest.raises(BadInput, match="outside the scan"):
            stroke(points, 0, radius, SHAPE, SPACING)
        return
    where = np.unravel_index(stroke(points, 0, radius, SHAPE, SPACING), SHAPE)
    assert (where[0] == 1).all()
    assert set(zip(where[1].tolist(), where[2].tolist(), strict=True)) == inside


@given(st.lists(coordinates, min_size=1, max_size=4))
def test_a_line_passes_through_every_pixel_that_steps_along_it_come_by(line: list[tuple[float, float]]) -> None:
    rows, columns = passed(np.array(line))
    found = set(zip(rows.tolist(), columns.tolist(), strict=True))
    assert stepped(line) <= found
    # and through no other: each of them has a piece of the line within it
    assert all(near(line, place, 0.5 * math.sqrt(2) + 1e-9, (1, 1)) for place in found)


def test_other_planes_label_the_same_voxels() -> None:
    cube, mm = (9, 9, 9), (1.0, 1.0, 1.0)
    line = [(2.0, 3.0), (6.0, 5.0)]
    for through in range(3):
        points = [tuple(np.insert(np.array(point), through, 4.0).tolist()) for point in line]
        drawn = np.zeros(cube, bool)
        drawn.reshape(-1)[stroke(points, through, 1.5, cube, mm)] = True
        flat = drawn.take(4, axis=through)
        first = np.zeros(cube, bool)
        first.reshape(-1)[stroke([(4.0, *point) for point in line], 0, 1.5, cube, mm)] = True
        assert np.array_equal(flat, first[4])
        assert drawn.sum() == flat.sum()


def test_long_strokes_are_quick_and_absurd_ones_refused() -> None:
    shape, mm = (1, 512, 512), (1.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    walk = np.clip(256 + rng.normal(0, 3, (500, 2)).cumsum(axis=0), 0, 511)
    points = [(0.0, float(r), float(c)) for r, c in walk]
    assert len(stroke(points, 0, 4.0, shape, mm)) > 1000
    with pytest.raises(BadInput, match="draw it in parts"):
        stroke(points * 40, 0, 1000.0, shape, mm)


def test_a_box_leaves_out_what_lies_outside() -> None:
    where, inside, number = outside([(1, 5, 7), (1, 2, 3)], 0, SHAPE)
    out = np.zeros(SHAPE, bool)
    out.reshape(-1)[where] = True
    assert (inside, number) == (4 * 5, 1)
    assert not out[1, 2:6, 3:8].any()
    assert out[1].sum() == 17 * 23 - 20
    assert out.sum() == out[1].sum()
    with pytest.raises(BadInput, match="draw it on the image"):
        outside([(1, -5, -5), (1, -2, -3)], 0, SHAPE)
