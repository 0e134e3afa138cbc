"""Every statistic once more, in slow loops over pixels, written from its formula and independent of the package.

A region of less than one pixel of probability is completed to one pixel, spread evenly over the image or scan.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

Index = list[int] | None


def _groups(batch: int, index: Index) -> list[list[int]]:
    """The images measured together: each alone, or the slices of each scan."""
    if index is None:
        return [[b] for b in range(batch)]
    return [[b for b in range(batch) if index[b] == scan] for scan in range(max(index) + 1)]


def _average(weights: list[float], values: list[float]) -> float:
    missing = max(0.0, 1 - sum(weights))
    whole = sum(values) / len(values)
    return (sum(w * v for w, v in zip(weights, values, strict=True)) + missing * whole) / (sum(weights) + missing)


def _pixels(probs: np.ndarray, k: int, slices: list[int]) -> list[tuple[tuple[int, ...], int, float]]:
    return [(p, b, float(probs[(b, k, *p)])) for b in slices for p in np.ndindex(*probs.shape[2:])]


def coordinates(probs: np.ndarray) -> np.ndarray:
    """The pixel indices of every image, `(B, dimensions, *space)`."""
    return np.broadcast_to(np.indices(probs.shape[2:], dtype=float), (len(probs), probs.ndim - 2, *probs.shape[2:]))


def _table(probs: np.ndarray, components: int, index: Index, entry: Callable[..., float]) -> np.ndarray:
    groups = _groups(len(probs), index)
    out = np.zeros((len(groups), probs.shape[1], components))
    for n, k, m in np.ndindex(*out.shape):
        out[n, k, m] = entry(_pixels(probs, k, groups[n]), m)
    return out


def size(probs: np.ndarray, index: Index = None) -> np.ndarray:
    return _table(probs, 1, index, lambda pixels, _: sum(w for _, _, w in pixels))


def fraction(probs: np.ndarray, potential: np.ndarray, index: Index = None) -> np.ndarray:
    def entry(pixels: list, m: int) -> float:
        return _average([w for _, _, w in pixels], [float(potential[(b, m, *p)]) for p, b, _ in pixels])

    return _table(probs, potential.shape[1], index, entry)


def variance(probs: np.ndarray, potential: np.ndarray, index: Index = None) -> np.ndarray:
    def entry(pixels: list, m: int) -> float:
        weights, values = [w for _, _, w in pixels], [float(potential[(b, m, *p)]) for p, b, _ in pixels]
        middle = _average(weights, values)
        return _average(weights, [(v - middle) ** 2 for v in values])

    return _table(probs, potential.shape[1], index, entry)


def centroid(probs: np.ndarray, index: Index = None) -> np.ndarray:
    return fraction(probs, coordinates(probs), index)


def spread(probs: np.ndarray, index: Index = None) -> np.ndarray:
    return variance(probs, coordinates(probs), index)


def moment(probs: np.ndarray, exponents: list[tuple[int, ...]], index: Index = None) -> np.ndarray:
    def entry(pixels: list, m: int) -> float:
        powers, weights = exponents[m], [w for _, _, w in pixels]
        middle = [_average(weights, [p[a] for p, _, _ in pixels]) for a in range(len(powers))]
        central = sum(w * math.prod((p[a] - middle[a]) ** powers[a] for a in range(len(powers))) for p, _, w in pixels)
        return central / max(1.0, sum(weights)) ** (1 + sum(powers) / len(powers))

    return _table(probs, len(exponents), index, entry)


def compactness(probs: np.ndarray, index: Index = None, smoothing: float = 1e-3) -> np.ndarray:
    axes = probs.ndim - 2

    def entry(pixels: list, _: int) -> float:
        chances = {(b, *p): w for p, b, w in pixels}
        found = 0.0
        for b in {b for _, b, _ in pixels}:
            for corner in np.ndindex(*(side + 1 for side in probs.shape[2:])):
                around = list(itertools.product((-1, 0), repeat=axes))
                near = [chances.get((b, *(c + s for c, s in zip(corner, step, strict=True))), 0.0) for step in around]
                slopes = [
                    sum(w if step[axis] == 0 else -w for w, step in zip(near, around, strict=True)) / 2 ** (axes - 1)
                    for axis in range(axes)
                ]
                found += math.sqrt(sum(slope**2 for slope in slopes) + smoothing**2) - smoothing
        return found**axes / max(1.0, sum(w for _, _, w in pixels)) ** (axes - 1)

    return _table(probs, 1, index, entry)


def border(
    probs: np.ndarray, image: np.ndarray, index: Index = None, edge: float = 0.1, reach: int = 3, power: float = 2
) -> np.ndarray:
    window = (2 * reach + 1) ** (probs.ndim - 2) - 1

    def entry(pixels: list, _: int) -> float:
        found = 0.0
        for (p, b, w), (q, c, v) in itertools.combinations(pixels, 2):
            if b == c and max(abs(i - j) for i, j in zip(p, q, strict=True)) <= reach:
                apart = sum((image[(b, m, *p)] - image[(b, m, *q)]) ** 2 for m in range(image.shape[1]))
                found += math.exp(-apart / (2 * edge**2)) * abs(w - v) ** power
        return found / (window / 2)

    return _table(probs, 1, index, entry)


def blocks(values: np.ndarray, stride: int | tuple[int, ...]) -> np.ndarray:
    """Means over blocks of pixels, at the far end over what is left of them."""
    space = values.shape[2:]
    sides = (stride,) * len(space) if isinstance(stride, int) else stride
    out = np.zeros((*values.shape[:2], *(-(-side // by) for side, by in zip(space, sides, strict=True))))
    for at in np.ndindex(*out.shape[2:]):
        block = tuple(slice(i * by, (i + 1) * by) for i, by in zip(at, sides, strict=True))
        part = values[(slice(None), slice(None), *block)]
        out[(slice(None), slice(None), *at)] = part.reshape(*values.shape[:2], -1).mean(axis=2)
    return out


def ties(image: np.ndarray, sigma: float, reach: int, spread: float) -> np.ndarray:
    """How much each pixel of one image `(channels, *space)` counts as a neighbour of each other one."""
    pixels = list(np.ndindex(*image.shape[1:]))
    out = np.zeros((len(pixels), len(pixels)))
    for (i, p), (j, q) in itertools.permutations(enumerate(pixels), 2):
        if max(abs(a - b) for a, b in zip(p, q, strict=True)) <= reach:
            apart = sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
            looks = sum((channel[p] - channel[q]) ** 2 for channel in image)
            out[i, j] = math.exp(-apart / (2 * spread**2) - looks / (2 * sigma**2))
    return out


def pairwise(
    probs: np.ndarray,
    image: np.ndarray,
    sigma: float = 0.1,
    reach: int = 5,
    spread: float = 6.0,
    stride: int | tuple[int, ...] = 2,
) -> np.ndarray:
    out = []
    for chances, looks in zip(blocks(probs, stride), blocks(image, stride), strict=True):
        near, flat = ties(looks, sigma, reach, spread), chances.reshape(len(chances), -1)
        pixels = range(flat.shape[1])
        energy = sum(near[i, j] * (1 - flat[:, i] @ flat[:, j]) for i in pixels for j in pixels)
        out.append(energy / len(pixels) / ((2 * reach + 1) ** (probs.ndim - 2) - 1))
    return np.array(out)


def normalised_cut(
    probs: np.ndarray,
    image: np.ndarray,
    sigma: float = 0.1,
    reach: int = 5,
    spread: float = 6.0,
    stride: int | tuple[int, ...] = 2,
) -> np.ndarray:
    """Without a guard for classes of less than a pixel."""
    out = []
    for chances, looks in zip(blocks(probs, stride), blocks(image, stride), strict=True):
        near = ties(looks, sigma, reach, spread)
        out.append(sum(s @ near @ (1 - s) / (near.sum(axis=1) @ s) for s in chances.reshape(len(chances), -1)))
    return np.array(out)


def ratio(probs: np.ndarray, index: Index = None) -> np.ndarray:
    sizes = size(probs, index)
    return sizes[:, :-1] / np.maximum(sizes[:, 1:], 1)


def offset(probs: np.ndarray, index: Index = None) -> np.ndarray:
    centres = centroid(probs, index)
    return centres[:, 1:] - centres[:, :-1]


def distance(probs: np.ndarray, index: Index = None, smoothing: float = 1e-3) -> np.ndarray:
    apart = offset(probs, index)
    return np.sqrt((apart**2).sum(axis=-1, keepdims=True) + smoothing**2) - smoothing


def inclusion(probs: np.ndarray, index: Index = None, reach: int = 1) -> np.ndarray:
    groups, space = _groups(len(probs), index), probs.shape[2:]
    out = np.zeros((len(groups), probs.shape[1] - 1, 1))
    for n, k, _ in np.ndindex(*out.shape):
        found = mass = 0.0
        for b in groups[n]:
            for p in np.ndindex(*space):
                near = [
                    q
                    for q in np.ndindex(*space)
                    if sum(i != j for i, j in zip(p, q, strict=True)) <= 1
                    and max(abs(i - j) for i, j in zip(p, q, strict=True)) <= reach
                ]
                found += probs[(b, k, *p)] * sum(probs[(b, k + 1, *q)] for q in near) / len(near)
                mass += probs[(b, k, *p)]
        missing = max(0.0, 1 - mass)
        out[n, k] = (found + missing) / (mass + missing)
    return out
