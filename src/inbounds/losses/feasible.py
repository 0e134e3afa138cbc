"""Bounds on sizes that cannot hold together, and the nearest that can."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, library

from inbounds.regions.region import Region, members, select

EMPTY = 5e-4
"""So many pixels stay of a class that should have none: no finite multiplier removes all of it."""
NOTHING = 0.01
"""Pixels by which bounds may be overstepped and still count as kept."""
ROUNDS = 100
"""Of accelerated projected gradient descent, with restarts: it has a number for each class, and none for a pixel."""


def per_class(values: Float[Tensor, "N C"], regions: Sequence[Region], K: int) -> Float[Tensor, "N K"]:
    """The sum over the regions that each class is part of: the transpose of `select`."""
    none = torch.zeros_like(values[:, 0])
    return torch.stack(
        [sum((values[:, r] for r, region in enumerate(regions) if k in members(region)), none) for k in range(K)], dim=1
    )


def nearest_bounds(
    lower: Float[Tensor, "N C"],
    upper: Float[Tensor, "N C"],
    pixels: Float[Tensor, "N 1"],
    regions: Sequence[Region],
    K: int,
) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"], Bool[Tensor, " N"]]:
    """Bounds that can hold together, and whether those given could.

    Sizes `v` of `K` classes that share `pixels` are looked for which minimise the sum of squared violations,

        sum_r max(0, lower_r - v_r, v_r - upper_r)^2     with v_r the sum over the classes of a region r,

    and bounds give way as far as these sizes violate them. How far each gives way is the same whatever the order of
    regions and classes, as the least squares are unique. A lower bound above its upper one gives way to their middle,
    as that does. Bounds that can hold stay as they are, but for `EMPTY` pixels.

    Args:
        lower: For each image and region, in pixels.
        upper: Likewise.
        pixels: How many there are.
        regions: What the bounds are of.
        K: How many classes there are.

    Example:
        >>> lower, upper = torch.tensor([[8.0, 6.0]]), torch.tensor([[9.0, 9.0]])
        >>> nearest_bounds(lower, upper, torch.tensor([[10.0]]), [1, 2], 3)[0].round()  # 14 of 10 pixels: both give 2
        tensor([[6., 4.]])
    """
    middle = torch.where(lower > upper, (lower + upper) / 2, lower)
    low, high = torch.minimum(lower, middle), torch.maximum(upper, middle)
    if len(regions) == 1:
        count = len(members(regions[0]))
        least = torch.minimum(torch.full_like(pixels, EMPTY), pixels / (2 * K))
        sizes = low.maximum(count * least).minimum(high).minimum(pixels - (K - count) * least).maximum(count * least)
    else:
        sizes = _sizes(low, high, pixels, [sum(1 << k for k in members(region)) for region in regions], K)
    violation = torch.maximum(lower - sizes, sizes - upper)
    return torch.minimum(lower, sizes), torch.maximum(upper, sizes), (violation <= NOTHING).all(dim=1)


@library.custom_op(
    "inbounds::feasible_sizes",
    mutates_args=(),
    schema="(Tensor lower, Tensor upper, Tensor pixels, int[] masks, int K) -> Tensor",
)
def _sizes(lower: Tensor, upper: Tensor, pixels: Tensor, masks: Sequence[int], K: int) -> Tensor:
    """The sizes of the regions. They are looked for as shares of what is left when each class has `EMPTY` pixels."""
    regions = [[k for k in range(K) if mask >> k & 1] for mask in masks]
    member = np.array([[float(k in region) for k in range(K)] for region in regions])
    step = 1 / float(np.linalg.eigvalsh(member @ member.T)[-1])
    exact = lower.dtype if lower.device.type == "mps" else torch.float64
    least = torch.minimum(torch.full_like(pixels, EMPTY, dtype=exact), pixels / (2 * K))
    left = (pixels - K * least).clamp(min=1e-6)
    base = least * select(torch.ones_like(least).expand(-1, K), regions)
    low, high = (lower - base) / left, (upper - base) / left
    shares = torch.full((len(lower), K), 1 / K, dtype=exact, device=lower.device)
    ahead, speed = shares, torch.ones_like(left)
    order = torch.arange(1, K + 1, device=lower.device)
    for _ in range(ROUNDS):
        found = select(ahead, regions)
        over = (found - high).clamp(min=0) - (low - found).clamp(min=0)
        moved = ahead - step * per_class(over, regions, K)
        falling = moved.sort(dim=1, descending=True).values.cumsum(dim=1)
        moved = (moved - ((falling - 1) / order).amax(dim=1, keepdim=True)).clamp(min=0)  # to shares that add up to 1
        back = ((ahead - moved) * (moved - shares)).sum(dim=1, keepdim=True) > 0
        faster = (1 + (1 + 4 * speed.square()).sqrt()) / 2
        ahead = torch.where(back, moved, moved + (speed - 1) / faster * (moved - shares))
        speed, shares = torch.where(back, 1, faster), moved
    return (base + left * select(shares, regions)).to(lower.dtype)


@_sizes.register_fake
def _(lower: Tensor, *_: object) -> Tensor:
    return torch.empty_like(lower)
