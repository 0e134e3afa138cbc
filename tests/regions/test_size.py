from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.measure import regionprops

from cases import SPACES, one_hot
from inbounds import Scans, size


def test_by_hand() -> None:
    probs = torch.tensor([[[[0.25, 0.5], [1.0, 0.0]], [[0.75, 0.5], [0.0, 1.0]]]])
    assert size(probs)[..., 0].tolist() == [[1.75, 2.25]]
    assert size(probs, spacing=(2, 3))[..., 0].tolist() == [[10.5, 13.5]]


def test_by_hand_over_a_scan() -> None:
    probs = torch.stack([torch.full((1, 4, 4), share) for share in (0.25, 0.5, 1.0)])
    assert size(probs, scans=Scans.of("aba")).tolist() == [[[20.0]], [[8.0]]]
    assert size(probs, spacing=(0.5, 0.5), scans=Scans.of("aba")).tolist() == [[[5.0]], [[2.0]]]


@pytest.mark.parametrize(("space", "spacing"), [((9, 11), (0.5, 2.0)), ((5, 6, 7), (3.0, 0.5, 0.25))])
def test_agrees_with_regionprops(space: tuple[int, ...], spacing: tuple[float, ...]) -> None:
    mask = torch.randint(0, 4, (1, *space))
    pixels, mm = size(one_hot(mask, 4)), size(one_hot(mask, 4), spacing=spacing)
    for region in regionprops(mask[0].numpy()):
        assert pixels[0, region.label, 0] == region.area
    for region in regionprops(mask[0].numpy(), spacing=spacing):
        assert mm[0, region.label, 0] == pytest.approx(region.area)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_65536_half_precision_ones(dtype: torch.dtype) -> None:
    ones = torch.ones(1, 2, 256, 256, dtype=dtype)
    assert size(ones).tolist() == [[[65536.0], [65536.0]]]
    assert size(ones, spacing=(2, 2)).tolist() == [[[262144.0], [262144.0]]]
    assert size(ones.expand(3, -1, -1, -1), scans=Scans.of("aaa"))[0, 0, 0] == 3 * 65536


@pytest.mark.parametrize("space", SPACES)
def test_gradient_is_one_pixel_everywhere(space: tuple[int, ...]) -> None:
    probs = torch.zeros(2, 2, *space, requires_grad=True)
    size(probs, spacing=(0.5,) * len(space)).sum().backward()
    assert torch.equal(probs.grad, torch.full_like(probs, 0.5 ** len(space)))


def test_scale_is_the_number_of_pixels_in_squared_units() -> None:
    probs = torch.zeros(1, 2, 4, 5)
    assert size.scale(probs) == 20
    assert size.using(spacing=(2, 3)).scale(probs) == 20 * 6**2


@given(arrays("float64", (1, 2, 4, 5), elements=st.floats(0, 1)), st.sampled_from([(2,), (3,), (2, 3)]))
def test_a_flip_keeps_the_size(probs, axes) -> None:
    probs = torch.from_numpy(probs)
    torch.testing.assert_close(size(probs.flip(axes)), size(probs))


@pytest.mark.plain
@pytest.mark.parametrize("spacing", [(1,), (1, 1, 1, 1), (1, 0), (1, -2)])
def test_refuses_a_spacing_that_does_not_fit(spacing) -> None:
    with pytest.raises(ValueError, match=r"spacing .* does not fit images of 2 dimensions: it must be one positive"):
        size(torch.zeros(1, 2, 4, 4), spacing=spacing)


def test_slices_with_their_distance_give_a_volume() -> None:
    assert size(torch.ones(1, 1, 4, 4), spacing=(5, 2, 0.5)).item() == 16 * 5


def test_a_spacing_for_each_image() -> None:
    probs = torch.ones(2, 1, 2, 3)
    spacing = torch.tensor([[2.0, 0.5], [1.0, 3.0]])
    assert size(probs, spacing).flatten().tolist() == [6, 18]
    assert size(probs, spacing, scans=Scans.of("aa")).item() == 24
    assert size(probs, torch.tensor([[4.0, 1.0, 1.0], [5.0, 1.0, 1.0]])).flatten().tolist() == [24, 30]
    assert size.scale(probs, spacing).flatten().tolist() == [6, 6 * 9]
    lower, upper = size.presence(probs, spacing)
    assert (lower.flatten().tolist(), upper.flatten().tolist()) == ([1, 3], [6, 18])
