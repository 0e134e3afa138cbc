"""How much of a region's border lies where the image has no edge."""

from __future__ import annotations

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inbounds.regions.fractions import fit_to
from inbounds.regions.statistic import check_probs

FURTHEST = 16
"""Pixels apart: the time grows with the square of it, or in 3-D with the cube."""


def border(
    probs: Float[Tensor, "B K *space"],
    image: Float[Tensor, "B channels *space"],
    *,
    edge: float = 0.1,
    reach: int = 3,
    framed: bool = False,
    power: float = 2,
) -> Float[Tensor, "B K"]:
    """How far neighbours that look alike differ: `sum w_pq |S_p - S_q|^power` over pairs of pixels.

    Pairs are at most `reach` pixels apart along each axis, and the sum is divided by the number of pairs that belong to
    a pixel (half of its neighbours). A pair of the same brightness counts 1, a pair whose brightness differs by `d`
    counts `exp(-d^2 / (2 edge^2))`. So of a mask it grows with the length of border that no edge of the image accounts
    for. Lowering it asks a region to end at edges, and to fill the space between them. With a power of 2 it is
    the energy that a random walker minimises (Grady, 2006), and slow changes of probability cost less than steps; with
    a power of 1 it is a total variation, to which both are the same, and regions become sharp and rather small.

    The sum is divided by the number of pixels of one image. Empty region: 0.

    Args:
        probs: Probabilities.
        image: What shows the edges. It gets no gradient.
        edge: The difference in brightness that counts as an edge, where images go from 0 to 1.
        reach: How far apart two pixels of a pair may be along each axis.
        framed: Beyond the image there is no region, and it looks as at its rim: what reaches the rim has a border
            there. Without, a region that fills the image has none.
        power: Of the difference in probability, 1 or more. Of a mask, all powers find the same.

    Example:
        >>> image = torch.tensor([[[[0.0, 0.0, 1.0]]]])
        >>> border(torch.tensor([[[[1.0, 1.0, 0.0]]]]), image, reach=1).round()
        tensor([[0.]])
        >>> border(torch.tensor([[[[1.0, 0.0, 0.0]]]]), image, reach=1)  # one pair in four, over three pixels
        tensor([[0.0833]])
    """
    check_probs(probs)
    if not edge > 0 or not 1 <= reach <= FURTHEST:
        raise ValueError(f"edge must be above 0 and reach from 1 to {FURTHEST}, not {edge} and {reach}")
    if not power >= 1:
        raise ValueError(f"power must be 1 or more, not {power}")
    image = fit_to(probs, image)
    probs = probs.to(image.dtype)
    with torch.no_grad():
        # Not framed, all is infinitely bright beyond the image, so that no pixel of it forms a pair with what is there.
        looks = _wider(image, reach, None if framed else math.inf)
        chances = _wider(probs, reach, 0.0)
        pull = torch.zeros_like(chances)
        still = (0,) * (probs.ndim - 2)
        for step in itertools.product(range(-reach, reach + 1), repeat=len(still)):
            if step <= still:  # of two opposite steps one is enough, as a pair has two ends
                continue
            one, other = _ends(looks, step, reach)
            alike = torch.exp((one - other).square().sum(dim=1, keepdim=True) / (-2 * edge**2))
            one, other = _ends(chances, step, reach)
            apart = one - other
            force = alike * (apart if power == 2 else apart.sign() * apart.abs() ** (power - 1))
            one, other = _ends(pull, step, reach)
            one += force
            other -= force
        for axis, side in enumerate(probs.shape[2:], start=2):
            pull = pull.narrow(axis, reach, side)
        pull = pull * (2 / ((2 * reach + 1) ** (probs.ndim - 2) - 1))
        energy: Tensor = (probs * pull).flatten(2).sum(dim=2)
    # The gradient is known: keeping all neighbours of all pixels for it would take much memory.
    energy = energy + power * ((probs - probs.detach()) * pull).flatten(2).sum(dim=2)
    return energy / math.prod(probs.shape[2:])


def _wider(x: Float[Tensor, "B C *space"], by: int, beyond: float | None) -> Float[Tensor, "B C *wide"]:
    """More pixels on every side: of one value, or of that at the rim."""
    sides = [by] * (2 * (x.ndim - 2))
    return functional.pad(x, sides, mode="replicate") if beyond is None else functional.pad(x, sides, value=beyond)


def _ends(
    wider: Float[Tensor, "B C *wide"], step: tuple[int, ...], by: int
) -> tuple[Float[Tensor, "B C *pairs"], Float[Tensor, "B C *pairs"]]:
    """The first and the second ends, as views, of pairs of pixels a step apart: all of which one is in the image."""
    one = other = wider
    for axis, along in enumerate(step, start=2):
        length = wider.shape[axis] - 2 * by + abs(along)
        one = one.narrow(axis, by - max(along, 0), length)
        other = other.narrow(axis, by + min(along, 0), length)
    return one, other
