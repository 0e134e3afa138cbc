"""Simulated weak labels lie inside the truth, miss no class that is there, and can be repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from inbounds.annotations import UNLABELLED
from inbounds.store.seeds import (
    background,
    bounding_box,
    box,
    centroid,
    disc,
    erosion,
    scribble,
    strategies,
)

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
MARKS = {name: mark for name, mark in strategies.items() if name != "box"}
SQUARE = np.ones((3, 3), dtype=bool)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rectangle(shape: tuple[int, int], rows: slice, columns: slice, klass: int = 1) -> np.ndarray:
    truth = np.zeros(shape, np.uint8)
    truth[rows, columns] = klass
    return truth


def ring(side: int = 41, inner: float = 9, outer: float = 14) -> np.ndarray:
    rows, columns = np.indices((side, side)) - side // 2
    radius = np.hypot(rows, columns)
    return ((radius > inner) & (radius <= outer)).astype(np.uint8)


def pixels(label: np.ndarray, klass: int) -> list[list[int]]:
    return np.argwhere(label == klass).tolist()


@st.composite
def truths(draw) -> np.ndarray:
    """Blobs or single pixels of up to three classes, on slices of any small shape."""
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=24))
    if draw(st.booleans()):
        return draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 3)))
    truth = np.zeros(shape, np.uint8)
    for klass in (1, 2, 3):
        centre = [draw(st.integers(-2, side + 2)) for side in shape]
        radius = draw(st.floats(0, 9))
        rows, columns = np.indices(shape)
        truth[np.hypot(rows - centre[0], columns - centre[1]) <= radius] = klass
    return truth


@pytest.mark.parametrize("name", MARKS)
@given(truth=truths(), seed=st.integers(0, 1000))
def test_marks_lie_inside_the_truth_and_miss_no_class(name, truth, seed):
    label = MARKS[name](truth, [1, 3], rng(seed))
    assert label.shape == truth.shape
    assert label.dtype == np.uint8
    assert set(np.unique(label)) - {UNLABELLED} == set(np.unique(truth)) & {1, 3}
    marked = label != UNLABELLED
    np.testing.assert_array_equal(label[marked], truth[marked])


@pytest.mark.parametrize("name", strategies)
@given(truth=truths(), seed=st.integers(0, 1000))
def test_the_same_generator_gives_the_same_marks(name, truth, seed):
    before = truth.copy()
    first, second = (strategies[name](truth, [1, 2, 3], rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(truth, before)


@pytest.mark.parametrize("name", ["disc", "scribble"])
def test_other_random_numbers_give_other_marks(name):
    truth = rectangle((40, 40), slice(5, 35), slice(8, 30))
    assert len({strategies[name](truth, [1], rng(seed)).tobytes() for seed in range(8)}) > 4


@pytest.mark.parametrize("name", strategies)
def test_a_volume_is_refused(name):
    with pytest.raises(ValueError, match=r"slice by slice.*\(2, 4, 4\)"):
        strategies[name](np.zeros((2, 4, 4), np.uint8), [1], rng())


def test_erosion_by_hand():
    truth = rectangle((9, 9), slice(1, 6), slice(1, 8))  # 5 x 7: two erosions leave 1 x 3
    assert pixels(erosion(truth, [1], rng()), 1) == [[3, 3], [3, 4], [3, 5]]
    assert (erosion(truth, [1], rng(), iterations=1) == 1).sum() == 3 * 5
    assert (erosion(truth, [1], rng(), iterations=0) == 1).sum() == 5 * 7


def test_erosion_stops_after_ten():
    truth = rectangle((60, 60), slice(5, 55), slice(5, 55))  # 50 x 50
    assert (erosion(truth, [1], rng()) == 1).sum() == 30 * 30


def test_what_one_erosion_would_remove_is_kept_whole():
    truth = rectangle((9, 9), slice(2, 4), slice(1, 8))
    np.testing.assert_array_equal(erosion(truth, [1], rng()) == 1, truth == 1)


def test_erosion_begins_at_the_border_of_the_image():
    assert pixels(erosion(np.ones((3, 3), np.uint8), [1], rng()), 1) == [[1, 1]]


@given(truth=truths(), iterations=st.integers(0, 12))
def test_erosion_is_the_repeated_erosion_by_a_square(truth, iterations):
    mask = truth == 1
    wanted = mask
    for times in range(iterations, 0, -1):
        wanted = ndimage.binary_erosion(mask, SQUARE, iterations=times)
        if wanted.any():
            break
        wanted = mask
    np.testing.assert_array_equal(erosion(truth, [1], rng(), iterations=iterations) == 1, wanted)


@pytest.mark.parametrize(("radius", "count"), [(0, 1), (1, 9), (2, 21), (3, 37), (4, 69)])
def test_a_disc_inside_a_large_region_is_whole(radius, count):
    truth = np.ones((101, 101), np.uint8)
    whole = [int((disc(truth, [1], rng(seed), radius=radius) == 1).sum()) for seed in range(20)]
    assert max(whole) == count
    assert np.median(whole) == count


def test_the_centre_of_a_disc_may_be_any_pixel_of_the_region():
    truth = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 2]], np.uint8)
    drawn = [pixels(disc(truth, [1], rng(seed), radius=1), 1) for seed in range(60)]
    assert {tuple(at) for (at,) in drawn} == {(0, 0), (0, 2), (2, 0)}


def test_a_disc_is_cut_at_the_border_of_its_region():
    truth = rectangle((20, 20), slice(10, 11), slice(3, 18))  # one row: a disc of radius 2 is 5 long at most
    for seed in range(10):
        assert 3 <= (disc(truth, [1], rng(seed)) == 1).sum() <= 5


def test_the_centroid_of_a_rectangle_and_of_a_ring():
    assert pixels(centroid(rectangle((9, 9), slice(1, 6), slice(2, 5)), [1], rng()), 1) == [[3, 3]]
    label = centroid(ring(), [1], rng())
    ((row, column),) = pixels(label, 1)
    assert ring()[row, column] == 1
    assert np.hypot(row - 20, column - 20) == pytest.approx(9.2, abs=0.3)


def test_a_click_may_be_a_disc():
    assert len(pixels(centroid(np.ones((9, 9), np.uint8), [1], rng(), radius=1), 1)) == 9


def test_a_scribble_crosses_a_bar_along_its_middle():
    truth = rectangle((30, 60), slice(10, 21), slice(5, 55))
    label = scribble(truth, [1], rng(), share=1.0, width=1)
    rows, columns = np.nonzero(label == 1)
    assert np.ptp(columns) > 40
    middle = (columns > 12) & (columns < 48)
    assert np.abs(rows[middle] - 15).max() <= 2
    assert (label == 1).sum() < 70


@given(share=st.floats(0.1, 1), seed=st.integers(0, 100))
def test_a_scribble_is_one_thin_stroke_of_the_share_asked_for(share, seed):
    truth = rectangle((30, 70), slice(10, 21), slice(5, 65))
    stroke = scribble(truth, [1], rng(seed), share=share, width=2) == 1
    assert ndimage.label(stroke, SQUARE)[1] == 1
    assert np.ptp(np.nonzero(stroke)[1]) == pytest.approx(60 * share, abs=6)
    assert not ndimage.binary_erosion(stroke, SQUARE).any()


def test_a_scribble_bends_with_a_ring():
    label = scribble(ring(), [1], rng(), share=1.0, width=1)
    rows, columns = np.nonzero(label == 1)
    assert np.hypot(rows - 20, columns - 20)[3:-3].mean() == pytest.approx(11.5, abs=0.8)
    assert len(rows) > 25


@given(seed=st.integers(0, 100), distance=st.floats(0, 6))
def test_a_scribble_of_background_keeps_its_distance(seed, distance):
    truth = rectangle((64, 64), slice(25, 40), slice(20, 36), klass=2)
    label = scribble(truth, [0, 2], rng(seed), distance=distance)
    away = ndimage.distance_transform_edt(truth == 0)
    assert (label == 0).sum() > 30
    assert away[label == 0].min() >= distance
    assert (label == 2).any()


def test_background_has_a_scribble_even_on_an_empty_slice():
    assert (scribble(np.zeros((40, 40), np.uint8), [0], rng()) == 0).any()


@pytest.mark.parametrize("settings", [{"share": 0.0}, {"share": 1.5}, {"width": 0}])
def test_an_impossible_stroke_is_refused(settings):
    with pytest.raises(ValueError, match=str(next(iter(settings.values())))):
        scribble(np.ones((4, 4), np.uint8), [1], rng(), **settings)


def test_boxes_by_hand():
    truth = np.zeros((6, 8), np.uint8)
    truth[1, 1] = truth[2, 3] = 1
    truth[4, 6] = 2
    label = box(truth, [1, 2], rng())
    wanted = np.zeros((6, 8), np.uint8)
    wanted[1:3, 1:4] = wanted[4, 6] = UNLABELLED
    np.testing.assert_array_equal(label, wanted)
    assert [truth[bounding_box(truth == k)].size for k in (1, 2, 3)] == [6, 1, 0]
    assert [truth[bounding_box(truth == k, 2)].size for k in (1, 2)] == [5 * 6, 4 * 4]  # cut at the image's border
    assert (box(truth, [2], rng(), margin=2) == UNLABELLED).sum() == 4 * 4


@given(truth=truths(), margin=st.integers(0, 5))
def test_no_region_asked_for_leaves_its_box(truth, margin):
    label = box(truth, [1, 2], rng(), margin=margin)
    assert not np.isin(truth[label == 0], [1, 2]).any()
    assert set(np.unique(label)) <= {0, UNLABELLED}
    for klass in (1, 2):
        area = truth[bounding_box(truth == klass, margin)].size
        assert (truth == klass).sum() <= area <= (label == UNLABELLED).sum()


def test_a_slice_that_shows_nothing_is_background_throughout():
    assert (box(np.full((4, 4), 2, np.uint8), [1], rng()) == 0).all()


def test_a_negative_margin_is_refused():
    with pytest.raises(ValueError, match="not by -1"):
        box(np.ones((4, 4), np.uint8), [1], rng(), margin=-1)


@given(truth=truths(), seed=st.integers(0, 100), distance=st.floats(0, 8))
def test_background_is_background(truth, seed, distance):
    label = background(truth, [1], rng(seed), distance=distance)
    assert (label == 0).any() == (truth == 0).any()
    assert (truth[label == 0] == 0).all()
    assert set(np.unique(label)) <= {0, UNLABELLED}


def test_background_keeps_its_distance_from_every_class():
    truth = rectangle((64, 64), slice(25, 40), slice(20, 36), klass=2)
    away = ndimage.distance_transform_edt(truth == 0)
    for seed in range(10):
        label = background(truth, [1], rng(seed), distance=6)
        assert away[label == 0].min() > 6
        assert (label == 0).sum() > 30


def test_a_crowded_slice_still_gets_one_pixel_of_background():
    truth = rectangle((9, 9), slice(0, 9), slice(0, 7))
    assert pixels(background(truth, [1], rng()), 0) == [[0, 8]]


@pytest.mark.parametrize(("strategy", "setting"), [(erosion, "iterations"), (disc, "radius"), (centroid, "radius")])
def test_a_negative_number_is_refused(strategy, setting):
    with pytest.raises(ValueError, match="0 or more, not -1"):
        strategy(np.ones((4, 4), np.uint8), [1], rng(), **{setting: -1})


@pytest.mark.skipif(not (DATA / "acdc").is_dir(), reason=f"no ACDC in {DATA}")
def test_marks_on_real_hearts():
    nibabel = pytest.importorskip("nibabel")
    share = []
    for number in range(1, 100, 33):
        for file in sorted((DATA / "acdc").glob(f"patient{number:03d}/*_gt.nii.gz")):
            for truth in np.moveaxis(np.asarray(nibabel.load(file).dataobj).astype(np.uint8), -1, 0):
                for mark in MARKS.values():
                    label = mark(truth, [1, 2, 3], rng())
                    marked = label != UNLABELLED
                    assert (label[marked] == truth[marked]).all()
                    assert set(np.unique(label[marked])) == set(np.unique(truth)) - {0}
                share.append((erosion(truth, [3], rng()) == 3).sum() / 256**2)
    assert 0.0004 < np.mean(share) < 0.0016  # 0.00087 over all patients
