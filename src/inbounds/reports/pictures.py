"""Scans as small PNG images and masks as outlines, to be written into a page."""

from __future__ import annotations

import base64
import io

import numpy as np
from jaxtyping import Bool, Shaped, UInt8

Window = tuple[slice, slice]


def png(grey: UInt8[np.ndarray, "H W"]) -> str:
    """An 8-bit grey image as a data URI."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(grey).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def grey(stored: Shaped[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W"]:
    """A slice as a store keeps it, as 8-bit."""
    if stored.dtype == np.uint8:
        return stored
    return np.rint(stored.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def outline(mask: Bool[np.ndarray, "H W"]) -> str:
    """The edges between a region and what is around it as closed lines of an SVG path, in pixels.

    Example:
        >>> outline(np.array([[False, True]]))
        'M1 0h1v1h-1v-1'
    """
    inside = np.pad(mask, 1)
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for right, down in ((1, 0), (0, 1), (-1, 0), (0, -1)):  # along the sides of a pixel, clockwise
        first = (-1 - right - down) // 2, (-1 - right + down) // 2
        for y, x in (np.argwhere(inside & ~np.roll(inside, (right, -down), (0, 1))) + first).tolist():
            steps.setdefault((x, y), []).append((right, down))
    path = ""
    for x, y in list(steps):
        path += f"M{x} {y}" if steps[x, y] else ""
        while steps[x, y]:
            right, down = steps[x, y].pop()
            path += f"h{right}" if right else f"v{down}"
            x, y = x + right, y + down
    return path


def window(region: Bool[np.ndarray, "H W"], reach: float = 1.0) -> Window:
    """The surroundings of a region, `reach` times as far from its middle as it is wide; if none, the whole slice."""
    if not region.any():
        return slice(0, region.shape[0]), slice(0, region.shape[1])
    rows, columns = np.nonzero(region)
    half = round(reach * max(int(np.ptp(rows)), int(np.ptp(columns)))) + 8
    sides = []
    for places, side in zip((rows, columns), region.shape, strict=True):
        middle = (int(places.min()) + int(places.max()) + 1) // 2
        low = max(0, min(middle - half, side - 2 * half))
        sides.append(slice(low, min(side, low + 2 * half)))
    return sides[0], sides[1]
