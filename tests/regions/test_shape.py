from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.measure import regionprops

from cases import SPACES, one_hot, random_probs
from inbounds import Scans, centroid, moment, size, spread
from inbounds.regions.shape import exponents

soft_regions = arrays("float64", (1, 2, 4, 6), elements=st.floats(0.1, 1)).map(torch.from_numpy)


def test_by_hand() -> None:
    probs = torch.zeros(1, 1, 4, 4)
    probs[0, 0, 1, 2], probs[0, 0, 3, 2] = 1, 0.5
    assert torch.allclose(centroid(probs), torch.tensor([5 / 3, 2.0]))
    assert torch.allclose(spread(probs), torch.tensor([8 / 9, 0.0]))  # (1 * (2/3)^2 + 0.5 * (4/3)^2) / 1.5
    assert torch.allclose(moment(probs, (2, 0)), torch.tensor(4 / 3 / 1.5**2))


def test_by_hand_in_a_2x2_image() -> None:
    probs = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]]])
    assert centroid(probs).tolist() == [[[0.5, 0.25]]]
    assert spread(probs).tolist() == [[[0.25, 0.1875]]]
    # sum (row - 1/2) (column - 1/4) S = 0.5 / 8 - 0.5 * 3 / 8 - 1 / 8 = -1 / 4, divided by V^2 = 4
    assert moment(probs, (1, 1)).tolist() == [[[-0.0625]]]


@pytest.mark.parametrize("space", [(9, 11), (5, 6, 7)])
def test_agrees_with_regionprops(space: tuple[int, ...]) -> None:
    mask = torch.randint(0, 4, (1, *space))
    probs, dimensions = one_hot(mask, 4), len(space)
    regions = regionprops(mask[0].numpy())
    assert len(regions) == 3
    for region in regions:
        k = region.label
        assert centroid(probs)[0, k].tolist() == pytest.approx(region.centroid)
        twice = [tuple(2 * (a == axis) for a in range(dimensions)) for axis in range(dimensions)]
        second = [region.moments_central[powers] / region.area for powers in twice]
        assert spread(probs)[0, k].tolist() == pytest.approx(second)
        for order in (2, 3):
            expected = [region.moments_normalized[powers] for powers in exponents(order, dimensions)]
            assert moment(probs, order)[0, k].tolist() == pytest.approx(expected, abs=1e-12)


def test_order_lists_its_exponents() -> None:
    assert exponents(2, 2) == [(2, 0), (1, 1), (0, 2)]
    assert len(exponents(2, 3)) == 6
    assert exponents((1, 2), 2) == [(1, 2)]


@pytest.mark.parametrize("space", SPACES)
def test_trivial_orders(space: tuple[int, ...]) -> None:
    probs = random_probs(2, 2, space)
    torch.testing.assert_close(moment(probs, 0), torch.ones(2, 2, 1, dtype=probs.dtype))
    torch.testing.assert_close(moment(probs, 1), torch.zeros(2, 2, len(space), dtype=probs.dtype))


def test_a_moment_of_order_two_is_a_normalised_spread() -> None:
    probs = random_probs(2, 3, (5, 6))
    torch.testing.assert_close(moment(probs, 2)[..., [0, 2]], spread(probs) / size(probs))


def test_a_stack_of_slices_measures_as_a_3d_image() -> None:
    probs, scans = random_probs(4, 2, (5, 6)), Scans.of("abab")
    for scan, slices in enumerate(([0, 2], [1, 3])):
        stack = probs[slices].movedim(0, 1)[None]
        torch.testing.assert_close(centroid(probs, scans=scans)[scan], centroid(stack)[0, :, 1:])
        torch.testing.assert_close(spread(probs, scans=scans)[scan], spread(stack)[0, :, 1:])
        for p, q in [(2, 0), (1, 1), (2, 1)]:
            # The same central moment; a stack of slices is normalised as the plane it is drawn in.
            exchange = size(stack)[0] ** ((p + q) / 3 - (p + q) / 2)
            torch.testing.assert_close(moment(probs, (p, q), scans=scans)[scan], moment(stack, (0, p, q))[0] * exchange)


def test_large_half_precision_images() -> None:
    ones = torch.ones(1, 1, 256, 256, dtype=torch.float16)
    torch.testing.assert_close(centroid(ones), torch.full((1, 1, 2), 127.5))
    torch.testing.assert_close(spread(ones), torch.full((1, 1, 2), (256**2 - 1) / 12))


@given(soft_regions, st.sampled_from([0, 1]))
def test_a_flip_mirrors_the_centroid_and_keeps_the_spread(probs, axis) -> None:
    flipped, mirrored = probs.flip(2 + axis), centroid(probs)
    mirrored[..., axis] = probs.shape[2 + axis] - 1 - mirrored[..., axis]
    torch.testing.assert_close(centroid(flipped), mirrored)
    torch.testing.assert_close(spread(flipped), spread(probs))
    sign = torch.tensor([(-1.0) ** powers[axis] for powers in exponents(3, 2)], dtype=torch.float64)
    torch.testing.assert_close(moment(flipped, 3), sign * moment(probs, 3))


@given(soft_regions)
def test_a_transposition_swaps_components(probs) -> None:
    turned = probs.transpose(2, 3)
    torch.testing.assert_close(centroid(turned), centroid(probs).flip(-1))
    torch.testing.assert_close(spread(turned), spread(probs).flip(-1))
    torch.testing.assert_close(moment(turned, 3), moment(probs, 3).flip(-1))


@given(soft_regions, st.integers(0, 5), st.integers(0, 5))
def test_a_translation_moves_the_centroid_alone(probs, down, right) -> None:
    moved = torch.nn.functional.pad(probs, (right, 5 - right, down, 5 - down))
    shift = torch.tensor([down, right], dtype=torch.float64)
    torch.testing.assert_close(centroid(moved), centroid(probs) + shift)
    torch.testing.assert_close(spread(moved), spread(probs))
    torch.testing.assert_close(moment(moved, 3), moment(probs, 3), atol=1e-9, rtol=1e-6)


def test_enlarging_keeps_normalised_moments() -> None:
    small = torch.zeros(1, 1, 40, 40)
    small[..., 3:18, 10:34] = 1
    large = torch.nn.functional.interpolate(small, scale_factor=3)
    torch.testing.assert_close(moment(large, 2), moment(small, 2), rtol=0.01, atol=1e-6)
    assert moment(small, 2)[0, 0, 0] != moment(small, 2)[0, 0, 2]


def test_scales_are_powers_of_the_diagonal() -> None:
    probs = torch.zeros(1, 2, 3, 4)
    assert (centroid.scale(probs), spread.scale(probs), moment.scale(probs, 2)) == (25, 625, 1)


@pytest.mark.plain
@pytest.mark.parametrize("order", [(2,), (1, 1, 1), (-1, 2), -1])
def test_refuses_an_order_that_does_not_fit(order) -> None:
    with pytest.raises(ValueError, match="does not fit images of 2 dimensions: give one exponent per axis"):
        moment(torch.zeros(1, 2, 4, 4), order)


def test_a_spacing_for_each_image_makes_positions_mm() -> None:
    probs = random_probs(2, 2, (5, 6))
    spacing = torch.tensor([[2.0, 0.5], [1.0, 3.0]], dtype=torch.float64)
    torch.testing.assert_close(centroid(probs, spacing), centroid(probs) * spacing[:, None])
    torch.testing.assert_close(spread(probs, spacing), spread(probs) * spacing[:, None].square())
    torch.testing.assert_close(centroid(probs, (2.0, 0.5)), centroid(probs) * torch.tensor([2.0, 0.5]))
    torch.testing.assert_close(centroid(probs, (9.0, 2.0, 0.5)), centroid(probs, (2.0, 0.5)))  # slices 9 mm apart
    torch.testing.assert_close(
        centroid.scale(probs, spacing).flatten(), torch.tensor([25 * 4 + 36 * 0.25, 25 + 36 * 9], dtype=torch.float64)
    )
    stack = centroid(probs, spacing[:1].expand(2, 2), scans=Scans.of("aa"))
    torch.testing.assert_close(stack, centroid(probs, scans=Scans.of("aa")) * spacing[0])
