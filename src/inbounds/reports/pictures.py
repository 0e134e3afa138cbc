"""Scans as small PNG images and masks as outlines, to be written into a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Bool, Shaped, UInt8

Window = tuple[slice, slice]


def png(grey: UInt8[np.ndarray, "H W"]) -> str:
    """An 8-bit grey image as a data URI."""
    height, width = grey.shape
    lines = np.pad(grey, ((0, 0), (1, 0)))  # each line begins with its filter, 0 for none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in parts)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def grey(stored: Shaped[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W"]:
    """A slice as a store keeps it, as 8-bit."""
    if stored.dtype == np.uint8:
        return stored
    return np.rint(stored.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def outline(mask: Bool[np.ndarray, "H W"]) -> str:
    """The edges between a region and what is around it as an SVG path, in pixels.

    Example:
        >>> outline(np.array([[False, True]]))
        'M1 0h1M1 1h1M1 0v1M2 0v1'
    """
    inside = np.pad(mask, 1)
    across = inside[1:, 1:-1] != inside[:-1, 1:-1]
    down = (inside[1:-1, 1:] != inside[1:-1, :-1]).T
    parts = [f"M{start} {line}h{length}" for line, start, length in _stretches(across)]
    parts += [f"M{line} {start}v{length}" for line, start, length in _stretches(down)]
    return "".join(parts)


def _stretches(edges: Bool[np.ndarray, "lines places"]) -> list[tuple[int, int, int]]:
    """Line, start and length of every unbroken stretch."""
    steps = np.diff(np.pad(edges, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    lines, starts = np.nonzero(steps == 1)
    _, stops = np.nonzero(steps == -1)
    return [(int(n), int(a), int(b - a)) for n, a, b in zip(lines, starts, stops, strict=True)]


def window(region: Bool[np.ndarray, "H W"]) -> Window:
    """The surroundings of a region, as far again as it is wide; the whole slice if there is none."""
    if not region.any():
        return slice(0, region.shape[0]), slice(0, region.shape[1])
    rows, columns = np.nonzero(region)
    half = max(int(np.ptp(rows)), int(np.ptp(columns))) + 8
    sides = []
    for places, side in zip((rows, columns), region.shape, strict=True):
        middle = (int(places.min()) + int(places.max()) + 1) // 2
        low = max(0, min(middle - half, side - 2 * half))
        sides.append(slice(low, min(side, low + 2 * half)))
    return sides[0], sides[1]
