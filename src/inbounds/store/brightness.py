"""Brightness as a store keeps it: which of a scan's values are black and white, and every other between them.

A scan is looked at a few slices at a time, in its own type, so that beside its voxels next to nothing is held. The
percentiles are those of NumPy, to the last bit: each lies between two voxels of a known rank, and the value of a rank
is found digit by digit, by counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float32, Shaped

from inbounds.scans.format import slabs
from inbounds.store.depth import between
from inbounds.store.grid import GridWindow

Window = tuple[float, float]

EXTREMES = (0.1, 99.9)
"""The percentiles that are black and white where no window is given."""
DIGIT = 16
"""Bits that are counted at once."""


def black_and_white(image: Shaped[np.ndarray, "channels slices rows columns"], window: Window | None) -> list[Window]:
    """Of each channel, the values that become black and white: a window's, or with 0.1 % of the voxels beyond each.

    Where these two are the same, they are the least and the greatest value.
    """
    ends = []
    for channel in image:
        low, high = window or percentiles(channel, EXTREMES)
        if high <= low:
            low, high = channel.min(), channel.max()
        ends.append((float(low), float(high)))
    return ends


def scaled(
    image: Shaped[np.ndarray, "channels slices rows columns"], ends: Sequence[Window]
) -> Float32[np.ndarray, "channels slices rows columns"]:
    """Brightness to 0..1, by the values of black and white of each channel."""
    made = np.empty(image.shape, dtype=np.float32)
    for channel, (low, high) in enumerate(ends):
        voxels = image[channel].astype(np.float64)  # in float32, a small range far from zero would be lost
        made[channel] = np.clip((voxels - low) / (high - low), 0, 1)
    return made


def on_grid(
    image: Shaped[np.ndarray, "channels slices rows columns"],
    fit: GridWindow,
    dtype: str,
    ends: Sequence[Window],
    slices: int | None = None,
) -> Iterator[Shaped[np.ndarray, "some channels H W"]]:
    """A scan as a store keeps it, a few slices at a time: scaled, on the grid, and 8-bit (0..255) or float16 (0..1).

    Where it is to have another number of `slices`, they are interpolated.
    """
    count = slices or image.shape[1]
    for some in slabs(count, fit.pixels):
        piece = scaled(between(image, some, count), ends)
        fitted = np.stack([fit.image(channel) for channel in piece], axis=1)
        stored = np.rint(fitted * 255).clip(0, 255) if dtype == "uint8" else fitted
        yield stored.astype(dtype)


def percentiles(channel: Shaped[np.ndarray, "slices rows columns"], shares: Sequence[float]) -> list[float]:
    """What `np.percentile` gives for the voxels as float64, without a copy of them.

    Example:
        >>> percentiles(np.arange(11, dtype=np.uint8).reshape(1, 1, 11), (0, 25, 100))
        [0.0, 2.5, 10.0]
    """
    last = channel.size - 1
    places = [last * (share / 100) for share in shares]
    ranks = sorted({min(int(place) + more, last) for place in places for more in (0, 1)})
    values = dict(zip(ranks, _values(channel, ranks), strict=True))
    found = []
    for place in places:
        low, high = values[min(int(place), last)], values[min(int(place) + 1, last)]
        part = place - int(place)
        # As NumPy does it: from the nearer of the two.
        found.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
    return found


def _values(channel: np.ndarray, ranks: Sequence[int]) -> list[float]:
    """The voxels of some ranks, counted from 0, as if all were sorted."""
    bits = 8 * _keys(channel[:0]).dtype.itemsize
    digit = min(bits, DIGIT)
    begun, left = [0] * len(ranks), list(ranks)  # the digits that are known of each, and its rank among those alike
    for shift in range(bits - digit, -1, -digit):
        counts = {start: np.zeros(1 << digit, dtype=np.int64) for start in begun}
        for some in slabs(len(channel), channel[0].size):
            keys = _keys(channel[some])
            digits = (keys >> shift & (1 << digit) - 1).astype(np.intp)
            for start, count in counts.items():
                chosen = digits if shift + digit == bits else digits[keys >> (shift + digit) == start]
                count += np.bincount(chosen, minlength=1 << digit)
        for n, start in enumerate(begun):
            below = np.cumsum(counts[start])
            place = int(np.searchsorted(below, left[n], side="right"))
            left[n] -= int(below[place - 1]) if place else 0
            begun[n] = start << digit | place
    return [_value(key, channel.dtype) for key in begun]


def _keys(voxels: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 on that are in the order of the voxels, as flat as can be."""
    kind, size = voxels.dtype.kind, voxels.dtype.itemsize
    if kind == "f" and size > 8:
        voxels, size = voxels.astype(np.float64), 8
    flat = np.ascontiguousarray(voxels.astype(voxels.dtype.newbyteorder("="), copy=False)).reshape(-1)
    keys: np.ndarray = flat.view(f"u{size}")
    sign = keys.dtype.type(1 << 8 * size - 1)
    if kind == "i":
        keys = keys ^ sign
    elif kind == "f":
        keys = np.where(keys & sign, ~keys, keys | sign)
    return keys


def _value(key: int, dtype: np.dtype) -> float:
    """The voxel that has a key."""
    kind, size = dtype.kind, min(dtype.itemsize, 8)
    sign, every = 1 << 8 * size - 1, (1 << 8 * size) - 1
    if kind == "i":
        key ^= sign
    elif kind == "f":
        key = key ^ sign if key & sign else key ^ every
    value = np.array([key], dtype=f"u{size}").view(f"{'u' if kind == 'b' else kind}{size}")
    return float(value[0]) + 0.0  # of the two zeros, the usual one
