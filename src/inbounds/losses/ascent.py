"""The projection of Pathak et al. (2015): gradient ascent on the dual, as the paper runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, library

from inbounds.constraints import Interval
from inbounds.losses.projection import PARTS, Problem
from inbounds.ranks import Part
from inbounds.regions import Region, Scans
from inbounds.regions.scans import each, total

SETTLED = 1e-3
"""The authors' early stop: a multiplier has settled once it changes by less than this share of itself."""
JUDGED = {"off": 0, "authors": 1, "corrected": 2}
"""How many of an image's two multipliers must have settled for it to stop, the upper bound's first."""


@dataclass(frozen=True)
class Ascent:
    """Projected gradient ascent on the dual: from 0, a multiplier grows by `step_size` times its bound's violation.

    Violations are in pixels, multipliers never below 0, and `(0, 0)` becomes `(-1, 0)`, all as in the authors' code.
    The step suits images of 256x256: the steps overshoot for ever from about 400x400 on, and over whole scans. Bounds
    are met only as far as the steps have led. Several classes, which the authors left out, grow side by side.

    Args:
        step_size: Of the ascent.
        iterations: The proposal is computed so often.
        early_stop: `off`; `authors`: an image stops once its upper bound's multiplier changes by less than 0.1 %, as
            one of 0 does at once, so that a violated lower bound is never enforced; or `corrected`: once both
            multipliers do. A stopped image is frozen. On a GPU with one class it also saves its time; elsewhere the
            loop goes on, since to leave it the host would have to look at the device.
    """

    step_size: float = 5e-5
    iterations: int = 500
    early_stop: Literal["off", "authors", "corrected"] = "authors"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step_size) and self.step_size > 0):
            raise ValueError(f"the step_size of the ascent must be positive and finite, not {self.step_size}")
        if self.iterations < 1:
            raise ValueError(f"the ascent needs at least one iteration, not {self.iterations}")
        if self.early_stop not in ("off", "authors", "corrected"):
            raise ValueError(f"early_stop must be 'off', 'authors' or 'corrected', not {self.early_stop!r}")

    @torch.no_grad()
    def __call__(
        self,
        log_probs: Float[Tensor, "B K *space"],
        label: Integer[Tensor, "B *space"],
        interval: Interval,
        regions: Sequence[Region],
        scans: Scans | None = None,
        part: Part | None = None,
    ) -> Float[Tensor, "B K *space"]:
        """Project; arguments and result are those of `Exact`."""
        absent = (interval.lower == 0) & (interval.upper == 0)
        lower = interval.lower.masked_fill(absent, -1)
        problem = Problem.of(log_probs, label, lower, interval.upper, regions, scans, part)
        how = self.step_size, self.iterations, self.early_stop
        beta = _ascend(*problem.parts, *how) if part is None else _multipliers(problem, *how)
        return problem.shift(problem.log_probs, beta).reshape(log_probs.shape)


@library.custom_op(
    "inbounds::ascent", mutates_args=(), schema=f"({PARTS}, float step_size, int iterations, str early_stop) -> Tensor"
)
def _ascend(*settings: Any) -> Tensor:
    *parts, step_size, iterations, early_stop = settings
    return _multipliers(Problem.from_parts(*parts), step_size, iterations, early_stop)


@_ascend.register_fake
def _(*settings: Any) -> Tensor:
    return torch.empty_like(settings[2])


def _multipliers(problem: Problem, step_size: float, iterations: int, early_stop: str) -> Tensor:
    """The upper bounds' multipliers less the lower bounds', `(N, C)`."""
    log_probs, scans = problem.log_probs, problem.scans
    signs = torch.stack([torch.ones_like(problem.upper), -torch.ones_like(problem.lower)])
    offset = torch.stack([-problem.upper, problem.lower])
    multipliers = torch.zeros_like(offset)
    stopped = torch.zeros_like(offset[0, :, :1], dtype=torch.bool)
    odds = None
    if len(problem.regions) == 1:  # log-odds are quicker than a softmax
        odds = problem.odds(problem.against_others(log_probs, 0), 0)[:, 0].masked_fill(~problem.free[:, 0], -torch.inf)
        kernel = _kernel() if odds.is_cuda and odds.dtype == torch.float32 and scans is None else None
        if kernel is not None:
            return kernel(odds, problem.lower, problem.upper, step_size, iterations - 1, SETTLED, JUDGED[early_stop])
    for _ in range(iterations - 1):
        beta = multipliers[0] - multipliers[1]
        if odds is None:
            sizes = problem.sizes(problem.unlabelled(problem.shift(log_probs, beta).softmax(dim=1)))
        else:
            sizes = total((odds - each(beta, scans)).sigmoid().sum(dim=-1, keepdim=True), scans)
        violation = torch.addcmul(offset, signs, sizes)
        grown = torch.add(multipliers, violation, alpha=step_size).clamp(min=0)
        if early_stop != "off":
            settled = (grown - multipliers).abs() < SETTLED * (multipliers + 1e-10)
            judged = settled[: JUDGED[early_stop]]
            stopped = stopped | judged.all(dim=0).all(dim=1, keepdim=True)
            grown = torch.where(stopped, multipliers, grown)
        multipliers = grown
    return multipliers[0] - multipliers[1]


@cache
def _kernel() -> Callable[..., Tensor] | None:
    """All iterations in one launch, where Triton is installed, as it is with PyTorch for GPUs on Linux."""
    try:
        from inbounds.losses.ascent_triton import ascend
    except ImportError:
        return None
    return ascend
