"""Slices on the grid and back: nothing moves, nothing is lost unnoticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from inbounds.store.grid import GridWindow
from making import disc

FITS = {"pad": GridWindow.pad, "resize": GridWindow.resize, "axial": GridWindow.axial}
sides = st.integers(1, 24)
shapes = st.tuples(sides, sides)


def drawn(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(np.array([0, 1, 2, 255], np.uint8), (2, *shape))


@pytest.mark.parametrize(
    ("original", "shape", "top", "left"),
    [
        ((216, 256), (256, 256), -20, 0),
        ((5, 4), (8, 8), -2, -2),  # one more before than after
        ((8, 9), (5, 5), 1, 2),
        ((3, 9), (6, 6), -2, 1),  # padded along one axis, cropped along the other
    ],
)
def test_padding_and_cropping_keep_the_middle(original, shape, top, left) -> None:
    fit = GridWindow.pad(original, shape)
    assert (fit.top, fit.left, fit.height, fit.width, fit.scale, fit.area) == (top, left, *shape, (1, 1), 1)


def test_padding_by_hand() -> None:
    slices = np.array([[[1, 2, 3]]], np.uint8)
    assert GridWindow.pad((1, 3), (3, 2)).label(slices, outside=9).tolist() == [[[9, 9], [1, 2], [9, 9]]]
    assert GridWindow.pad((1, 3), (3, 4)).image(slices.astype(np.float64)).tolist() == [
        [[0] * 4, [0, 1, 2, 3], [0] * 4]
    ]


def test_resizing_by_hand() -> None:
    fit = GridWindow.resize((1, 2), (2, 4))
    assert fit.scale == (2, 2)
    assert fit.area == 4
    assert fit.label(np.array([[[1, 2]]], np.uint8), outside=9).tolist() == [[[1, 1, 2, 2]] * 2]
    np.testing.assert_allclose(fit.image(np.array([[[0.0, 4.0]]])), [[[0, 1, 3, 4]] * 2])


@pytest.mark.parametrize("side", [256, 160, 96])
def test_zooming_shows_the_same_field_alike_whatever_its_pixels(side) -> None:
    coarse, fine = (disc((256 * n, 212 * n), (120 * n, 110 * n), 20 * n).astype(np.uint8)[None] for n in (1, 2))
    fits = [GridWindow.zoom(mask.shape[1:], (side, side)) for mask in (coarse, fine)]
    assert [fit.scale for fit in fits] == [(1, 1), (0.5, 0.5)]
    assert fits[0] == GridWindow.pad((256, 212), (side, side))
    placed = [fit.label(mask, outside=0) for fit, mask in zip(fits, (coarse, fine), strict=True)]
    assert (placed[0] != placed[1]).sum() < 0.05 * placed[0].sum()
    spots = np.argwhere(placed[1])[:, 1:].mean(axis=0)
    np.testing.assert_allclose(spots, fits[1].point(240, 220), atol=0.6)
    images = [fit.image(mask * 1.0) for fit, mask in zip(fits, (coarse, fine), strict=True)]
    assert np.abs(images[0] - images[1]).mean() < 0.01


@pytest.mark.parametrize("original", [(300, 200), (100, 256), (31, 17)])
@pytest.mark.parametrize("shape", [(256, 256), (64, 48)])
def test_zooming_keeps_pixels_square_and_the_middle_in_the_middle(original, shape) -> None:
    fit = GridWindow.zoom(original, shape)
    assert fit.scale[0] == pytest.approx(fit.scale[1], rel=0.5 / min(fit.height, fit.width))
    assert fit.scale[0] == pytest.approx(256 / max(original), rel=0.5 / fit.height)
    middle = fit.point(*((side - 1) / 2 for side in original))
    np.testing.assert_allclose(middle, [(side - 1) / 2 for side in shape], atol=fit.scale[0])


@pytest.mark.parametrize("pixel", [0.8, 1.0, 2.0])
def test_in_millimetres_organs_have_one_size_whatever_their_pixels(pixel) -> None:
    coarse, fine = (disc((64 * n, 48 * n), (30 * n, 22 * n), 12 * n).astype(np.uint8)[None] for n in (1, 2))
    uneven = coarse.repeat(2, axis=2)  # pixels half as wide as high
    areas = []
    for mask, spacing in ((coarse, (1.6, 1.6)), (fine, (0.8, 0.8)), (uneven, (1.6, 0.8))):
        fit = GridWindow.metric(mask.shape[1:], (80, 72), spacing, pixel)
        assert fit.scale == pytest.approx([has / pixel for has in spacing], rel=0.02)
        areas.append(int(fit.label(mask, outside=0).sum()))
    assert areas == pytest.approx([np.pi * (12 * 1.6 / pixel) ** 2] * 3, rel=0.05)


def test_an_axial_slice_of_the_spine_becomes_a_square() -> None:
    fit = GridWindow.axial((305, 39), (256, 256))
    assert (fit.top, fit.left, fit.height, fit.width) == (60, -73, 185, 185)
    assert fit.area == pytest.approx((256 / 185) ** 2)
    assert GridWindow.axial((100, 39), (64, 64)).top == 0  # too short to cut
    slices = np.zeros((1, 305, 39), np.uint8)
    slices[:, 150:156, 16:23] = 1
    assert fit.label(slices, 0).sum() == pytest.approx(42 * fit.area, rel=0.1)


@given(original=shapes, shape=shapes, seed=st.integers(0, 99))
def test_padding_and_back_is_the_identity_inside_the_window(original, shape, seed) -> None:
    slices, fit = drawn(original, seed), GridWindow.pad(original, shape)
    grid = fit.label(slices, outside=7)
    assert grid.shape == (2, *shape)
    back = fit.back(grid, outside=9)
    kept = back != 9
    np.testing.assert_array_equal(back[kept], slices[kept])
    assert kept.sum() == 2 * min(original[0], shape[0]) * min(original[1], shape[1])
    assert (grid != 7).sum() == kept.sum()


@given(original=shapes, more=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_enlarging_and_back_is_the_identity(original, more) -> None:
    shape = (original[0] + more[0], original[1] + more[1])
    slices, fit = drawn(original), GridWindow.resize(original, shape)
    np.testing.assert_array_equal(fit.back(fit.label(slices, outside=0)), slices)


@given(data=st.data(), rows=st.integers(181, 200), columns=st.integers(1, 60))
def test_axial_and_back_is_the_identity_inside_the_window(data, rows, columns) -> None:
    fit = GridWindow.axial((rows, columns), (256, 256))
    slices = data.draw(hnp.arrays(np.uint8, (1, rows, columns), elements=st.integers(0, 1), fill=st.just(1)))
    back = fit.back(fit.label(slices, outside=0), outside=9)
    kept = back != 9
    assert kept.sum() == (rows - 120) * min(columns, rows - 120)
    np.testing.assert_array_equal(back[kept], slices[kept])


@given(original=st.tuples(*[st.integers(12, 40)] * 2), shape=st.tuples(*[st.integers(12, 40)] * 2))
def test_a_ramp_stays_linear(original, shape) -> None:
    """Brightness on the grid is that of the place it came from, away from the edges, where there is no more ramp.

    Where the slice shrinks it is smoothed by a sampled filter, whose centre is true to a tenth of a pixel.
    """
    fit = GridWindow.resize(original, shape)
    rows, columns = np.indices(original)
    grid = fit.image((3.0 * rows - 2.0 * columns)[None])[0]
    margin = [int(np.ceil(max(scale, 1 / scale, 1) / 2)) + 1 for scale in fit.scale]
    inside = tuple(slice(m, n - m) for m, n in zip(margin, shape, strict=True))
    row = np.array([fit.point_back(i, 0)[0] for i in range(shape[0])])[:, None]
    column = np.array([fit.point_back(0, j)[1] for j in range(shape[1])])
    # The filter's weights are those at pixel centres: over all these lengths it is off by 0.086 pixels at most.
    within = 1e-4 + 0.09 * sum(slope for slope, scale in zip((3, 2), fit.scale, strict=True) if scale < 1)
    np.testing.assert_allclose(grid[inside], (3 * row - 2 * column)[inside], atol=within)


@given(data=st.data(), name=st.sampled_from(sorted(FITS)))
def test_a_drawn_blob_lands_where_its_point_does(data, name) -> None:
    lengths = st.integers(30, 60)
    original, shape = data.draw(st.tuples(lengths, lengths)), data.draw(st.tuples(lengths, lengths))
    fit = FITS[name](original, shape)
    centre = [data.draw(st.floats(side / 2 - 2, side / 2 + 2)) for side in original]
    rows, columns = np.indices(original)
    blob = np.exp(-((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2) / (2 * 1.7**2))[None]
    image, label = fit.image(blob)[0], fit.label((blob > 0.2).astype(np.uint8), outside=0)[0]
    weights = np.indices(shape).reshape(2, -1)
    np.testing.assert_allclose((weights * image.ravel()).sum(axis=1) / image.sum(), fit.point(*centre), atol=0.06)
    np.testing.assert_allclose(np.argwhere(label).mean(axis=0), fit.point(*centre), atol=0.8)
    np.testing.assert_allclose(fit.point_back(*fit.point(*centre)), centre, atol=1e-9)


@given(original=shapes, shape=shapes, seed=st.integers(0, 99))
def test_what_the_window_leaves_out_is_counted(original, shape, seed) -> None:
    slices = drawn(original, seed)
    kept = GridWindow.pad(original, shape).label(slices, outside=0)
    foreground = [int(((x == 1) | (x == 2)).sum()) for x in (slices, kept)]
    assert GridWindow.pad(original, shape).lost(slices) == foreground[0] - foreground[1]
    assert GridWindow.resize(original, shape).lost(slices) == 0


@pytest.mark.parametrize("shape", [(64, 96), (96, 40), (32, 24)])
def test_sizes_scale_by_the_area_of_a_pixel(shape) -> None:
    mask = disc((64, 48), (30, 22), 12).astype(np.uint8)[None]
    fit = GridWindow.resize((64, 48), shape)
    assert fit.label(mask, outside=0).sum() == pytest.approx(mask.sum() * fit.area, rel=0.03)


@given(original=shapes, shape=shapes)
def test_a_grid_pixel_takes_the_class_its_centre_lies_in(original, shape) -> None:
    fit = GridWindow.resize(original, shape)
    number = np.arange(original[0], dtype=np.uint8)[None, :, None].repeat(original[1], axis=2)
    row = np.array([fit.point_back(i, 0)[0] for i in range(shape[0])])
    # A centre on the edge between two pixels belongs to either.
    assert (np.abs(fit.label(number, outside=0)[0, :, 0] - row) <= 0.5 + 1e-9).all()
