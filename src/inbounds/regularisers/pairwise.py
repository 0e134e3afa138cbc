"""Neighbours that look alike should belong to the same class."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inbounds.regions.fractions import fit_to
from inbounds.regions.statistic import check_probs
from inbounds.regularisers.border import FURTHEST


def pairwise(
    probs: Float[Tensor, "B K *space"],
    image: Float[Tensor, "B channels *space"],
    *,
    sigma: float = 0.1,
    reach: int = 5,
    spread: float = 6.0,
    stride: int | Sequence[int] = 2,
) -> Float[Tensor, " B"]:
    """How likely neighbours that look alike are of different classes: `mean_i sum_j k_ij (1 - S_i . S_j) / n`.

    This is a Potts model made bilinear (Tang et al., 2018). The neighbours `j` of a pixel `i` are the `n` others of a
    window around it, and count the more the nearer they are and the more they look alike,
    `k_ij = exp(-|i - j|^2 / (2 spread^2) - |I_i - I_j|^2 / (2 sigma^2))`; channels of an image add up. What lies beyond
    the image counts 0. Of masks, it is 0 where all pixels are of one class, and grows with the length of border that no
    edge of the image accounts for; a prediction that cannot decide costs more than either.

    Probabilities and image are averaged over blocks of `stride` pixels beforehand, at the far end over what is left.

    Args:
        probs: Probabilities.
        image: What shows the edges. It gets no gradient.
        sigma: The difference in brightness that counts as an edge, where images go from 0 to 1.
        reach: How many blocks apart neighbours may be along each axis.
        spread: How many blocks apart they may be to count in full, or nearly so.
        stride: The side of a block in pixels, or one for each axis, such as `(1, 2, 2)` for thick slices.

    Example:
        >>> probs = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]])  # two pixels, of two classes
        >>> pairwise(probs, torch.zeros(1, 1, 1, 2), reach=1, spread=1e3, stride=1)  # one neighbour of eight
        tensor([0.1250])
        >>> pairwise(probs, torch.tensor([[[[0.0, 1.0]]]]), reach=1, spread=1e3, stride=1).round()
        tensor([0.])
    """
    blocks, pull, degree = pulled(probs, image, sigma, reach, spread, stride)
    alike = (blocks * pull).sum(dim=1)
    # The gradient is known: keeping all neighbours of all pixels for it would take much memory.
    energy = degree + alike.detach() - 2 * alike
    neighbours: int = (2 * reach + 1) ** (probs.ndim - 2) - 1
    return energy.flatten(1).mean(dim=1) / neighbours


def pulled(
    probs: Float[Tensor, "B K *space"],
    image: Float[Tensor, "B channels *space"],
    sigma: float,
    reach: int,
    spread: float,
    stride: int | Sequence[int],
) -> tuple[Float[Tensor, "B K *blocks"], Float[Tensor, "B K *blocks"], Float[Tensor, "B *blocks"]]:
    """Probabilities of blocks, and without gradient `sum_j k_ij S_j` and `sum_j k_ij` over the neighbours of each."""
    check_probs(probs)
    axes = probs.ndim - 2
    sides = [stride] * axes if isinstance(stride, int) else stride
    if not (sigma > 0 and spread > 0 and 1 <= reach <= FURTHEST):
        raise ValueError(
            f"sigma and spread must be above 0 and reach from 1 to {FURTHEST}, not {sigma}, {spread} and {reach}"
        )
    if len(sides) != axes or min(sides) < 1:
        raise ValueError(f"stride must be 1 or more, or that for each of {axes} axes, not {stride}")
    image = fit_to(probs, image)
    sides = [min(side, pixels) for side, pixels in zip(sides, probs.shape[2:], strict=True)]
    pool = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[axes - 1]
    blocks = pool(probs.to(image.dtype), sides, ceil_mode=True)
    with torch.no_grad():
        looks = pool(image, sides, ceil_mode=True) / (math.sqrt(2) * sigma)
        sums = _neighbours(torch.cat([blocks, torch.ones_like(blocks[:, :1])], dim=1), looks, reach, spread)
    return blocks, sums[:, :-1], sums[:, -1]


def _neighbours(
    values: Float[Tensor, "B C *space"], looks: Float[Tensor, "B M *space"], reach: int, spread: float
) -> Float[Tensor, "B C *space"]:
    """`sum_j k_ij v_j`, without any tensor that holds all neighbours of all pixels.

    All images lie behind one another in one row of pixels, with zeros after each line: neighbours a step apart are then
    everywhere the same number of places apart, and a step that leaves the image ends among zeros.
    """
    space = values.shape[2:]
    furthest = [min(reach, side - 1) for side in space]
    ends = [end for far in reversed(furthest) for end in (0, far)]
    padded = functional.pad(values, ends).transpose(0, 1)
    wide, row = padded.shape, padded.flatten(1)
    channels = functional.pad(looks, ends).transpose(0, 1).flatten(1)
    same, still = row.new_zeros(()), (0,) * len(space)
    sums = torch.zeros_like(row)
    for step in itertools.product(*(range(-far, far + 1) for far in furthest)):
        if step <= still:  # of two opposite steps one is enough, as a pair has two ends
            continue
        places = 0
        for along, side in zip(step, wide[2:], strict=True):
            places = places * side + along
        length, alike = row.shape[1] - places, same
        for channel in channels:
            apart = channel[places:] - channel[:length]
            alike = torch.addcmul(alike, apart, apart, value=-1)
        alike = alike.exp_()
        near = math.exp(-sum(along**2 for along in step) / (2 * spread**2))
        sums[:, :length].addcmul_(alike, row[:, places:], value=near)
        sums[:, places:].addcmul_(alike, row[:, :length], value=near)
    found = sums.view(wide).transpose(0, 1)
    for axis, side in enumerate(space, start=2):
        found = found.narrow(axis, 0, side)
    return found
