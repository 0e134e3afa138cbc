"""The ascent for one class as one kernel on a GPU: its 500 sums over an image are each too little for a launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

BLOCK = 4096
"""How many pixels are summed at once."""


def ascend(
    odds: Float[Tensor, "B P"],
    lower: Float[Tensor, "B 1"],
    upper: Float[Tensor, "B 1"],
    step_size: float,
    iterations: int,
    settled: float,
    judged: int,
) -> Float[Tensor, "B 1"]:
    """The upper bound's multiplier less the lower bound's, for each image.

    Args:
        odds: The log-odds of the class, minus infinity at labelled pixels.
        lower: The lower bound, in pixels.
        upper: The upper bound.
        step_size: Of the ascent.
        iterations: Steps at most.
        settled: A multiplier has settled once it changes by less than this share of itself.
        judged: How many multipliers must have settled for an image to stop, the upper bound's first; 0 for no stop.
    """
    odds, beta = odds.contiguous(), torch.empty_like(lower)
    settings = odds.shape[1], step_size, iterations, settled, judged, BLOCK
    with torch.cuda.device_of(odds):
        _ascend[(len(odds),)](odds, lower.contiguous(), upper.contiguous(), beta, *settings, num_warps=16)
    return beta


@triton.jit
def _ascend(  # type: ignore[no-untyped-def]
    odds, lower, upper, beta, pixels, step_size, iterations, settled, JUDGED: tl.constexpr, BLOCK: tl.constexpr
):
    image = tl.program_id(0)
    least, most = tl.load(lower + image), tl.load(upper + image)
    over, under = tl.full([], 0.0, tl.float32), tl.full([], 0.0, tl.float32)
    step = 0
    while step < iterations:
        size = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, pixels, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(odds + image.to(tl.int64) * pixels + at, mask=at < pixels, other=-float("inf"))
            size += tl.sigmoid(x - (over - under))
        total = tl.sum(size, axis=0)
        next_over = tl.maximum(over + step_size * (total - most), 0.0)
        next_under = tl.maximum(under + step_size * (least - total), 0.0)
        step += 1
        if JUDGED > 0:
            stop = tl.abs(next_over - over) < settled * (over + 1e-10)
            if JUDGED > 1:
                stop = stop & (tl.abs(next_under - under) < settled * (under + 1e-10))
            step = tl.where(stop, iterations, step)
            next_over = tl.where(stop, over, next_over)
            next_under = tl.where(stop, under, next_under)
        over, under = next_over, next_under
    tl.store(beta + image, over - under)
