"""Brightness of a store: as the percentiles of the whole volume would have it, bit for bit, without a copy of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.scans import format as scans
from inbounds.store.brightness import Window, black_and_white, on_grid, percentiles, scaled
from inbounds.store.grid import GridWindow

DTYPES = ("b1", "u1", "i1", "u2", "i2", ">i2", "u4", "i4", "u8", "i8", "f2", "f4", ">f4", "f8", "g")


def normalise(image: np.ndarray) -> tuple[np.ndarray, Window]:
    ends = black_and_white(image, None)
    return scaled(image, ends), ends[0]


def at_once(image: np.ndarray, fit: GridWindow, dtype: str, window: Window | None) -> tuple[np.ndarray, Window]:
    """The formula in its shortest form: the volume as float64, all at once."""
    ends, planes = [], np.empty(image.shape, dtype=np.float32)
    for channel, measured in enumerate(image):
        voxels = measured.astype(np.float64)
        low, high = window or np.percentile(voxels, (0.1, 99.9))
        if high <= low:
            low, high = float(voxels.min()), float(voxels.max())
        ends.append((float(low), float(high)))
        planes[channel] = np.clip((voxels - low) / (high - low), 0, 1)
    fitted = np.stack([fit.image(channel) for channel in planes], axis=1)
    stored = np.rint(fitted * 255).clip(0, 255) if dtype == "uint8" else fitted
    return stored.astype(dtype), ends[0]


def drawn(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values of all signs and sizes, many of them alike."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.3
    if kind.kind == "f":
        values = rng.normal(0, 1, shape) * 10.0 ** rng.integers(-3, 4, shape)
        return np.where(rng.random(shape) < 0.2, 0, values).astype(kind)
    info = np.iinfo(kind)
    wide = rng.integers(info.min, info.max, shape, dtype=kind.newbyteorder("="), endpoint=True)
    return np.where(rng.random(shape) < 0.5, wide, wide % 7).astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_percentiles_are_those_of_numpy_to_the_last_bit(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "PIECE", 100)  # in many pieces
    for seed, shape in enumerate([(1, 1, 1), (1, 1, 2), (3, 5, 7), (20, 9, 11), (4, 37, 41)]):
        volume = drawn(dtype, shape, seed)
        shares = (0.0, 0.1, 25.0, 50.0, 63.7, 99.9, 100.0)
        assert percentiles(volume, shares) == np.percentile(volume.astype(np.float64), shares).tolist()


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40), st.floats(0, 100))
def test_percentiles_of_any_numbers(numbers: list[float], share: float) -> None:
    volume = np.array(numbers).reshape(1, 1, -1)
    with np.errstate(over="ignore"):
        assert percentiles(volume, [share]) == [float(np.percentile(volume, share))]


@pytest.mark.parametrize("window", [None, (-20.0, 35.5)])
@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("stored", ["u1", "i2", ">i2", "u2", "i4", "f4", "f8"])
def test_a_store_in_pieces_is_that_of_the_volume_at_once(
    stored: str, dtype: str, window: Window | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = [
        GridWindow.pad((23, 31), (32, 16)),
        GridWindow.zoom((23, 31), (48, 48)),
        GridWindow.resize((23, 31), (32, 32)),
        GridWindow.metric((23, 31), (16, 16), (0.7, 0.9), 1.4),
    ]
    image = np.stack([drawn(stored, (13, 23, 31), seed) for seed in range(2)])
    for fit in fits:
        wanted, ends = at_once(image, fit, dtype, window)
        for piece in (1, 5000, 1 << 21):
            monkeypatch.setattr(scans, "PIECE", piece)
            found = black_and_white(image, window)
            np.testing.assert_array_equal(np.concatenate(list(on_grid(image, fit, dtype, found))), wanted)
            assert found[0] == ends


class TestBrightness:
    def test_black_and_white_are_all_but_the_extremes(self) -> None:
        image = np.arange(10_001, dtype=np.int16).reshape(1, 1, 73, 137)
        scaled, (black, white) = normalise(image)
        assert (black, white) == pytest.approx((10, 9990))
        assert scaled.dtype == np.float32
        np.testing.assert_allclose(scaled, np.clip((image - 10) / 9980, 0, 1), atol=1e-6)

    @pytest.mark.parametrize("offset", [1e9, -1e9, 2.0**40])
    def test_a_small_range_far_from_zero_is_kept(self, offset: float) -> None:
        steps = np.arange(8, dtype=np.float64).reshape(1, 2, 2, 2)
        scaled, _ = normalise(steps + offset)
        np.testing.assert_allclose(scaled, normalise(steps)[0], atol=1e-4)
        assert np.isfinite(scaled).all()

    def test_one_bright_voxel_is_enough(self) -> None:
        image = np.zeros((1, 10, 40, 40), np.uint8)
        image[0, 5, 3, 4] = 9
        scaled, ends = normalise(image)
        assert ends == (0, 9)
        assert scaled.sum() == scaled[0, 5, 3, 4] == 1

    def test_channels_are_scaled_each_by_itself(self) -> None:
        image = np.stack([np.arange(64), 1000 * np.arange(64)]).reshape(2, 1, 8, 8)
        scaled, _ = normalise(image)
        np.testing.assert_allclose(scaled[0], scaled[1], atol=1e-6)
