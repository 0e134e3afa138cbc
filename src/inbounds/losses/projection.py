"""The nearest probabilities that keep to given sizes: `min KL(Q || S)` subject to `lower <= sum_p Q_p <= upper`.

By duality `Q` is `S` with one number per image (or scan) and bounded class taken off the logits, `Q ~ S exp(-beta)`,
where `beta` is the upper bound's multiplier less the lower bound's. `Ascent` climbs the dual as Pathak et al. (2015)
do, `Exact` finds its top. Labelled pixels are held fixed. The number of steps is fixed: nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Integer, Shaped
from torch import Tensor, library

from inbounds.annotations import UNLABELLED
from inbounds.constraints import Interval
from inbounds.losses.feasible import EMPTY, nearest_bounds, per_class
from inbounds.ranks import Part
from inbounds.regions import Region, Scans
from inbounds.regions.region import members, select
from inbounds.regions.scans import each, total
from inbounds.regions.statistic import wide

SMALLEST = -104.0
"""The logarithm of what float32 no longer tells from 0. A probability of 0 counts as this: else it could never grow."""
FULL = 1 - 1e-6
"""And this share of all pixels is as much as a region can have."""
POINTS, ROUNDS, NEWTON = 16, 2, 3
"""Two rounds of 16 points enclose the root of a dual within 0.5 at worst; three Newton steps then leave about 1e-7."""
CYCLES, JOINT = 3, 20
"""With several classes: how often each is solved by itself, and the Newton steps that all then take together."""

PARTS = "Tensor log_probs, Tensor free, Tensor lower, Tensor upper, int[] regions, Tensor? index, int count"
"""A problem as an operator takes it, the classes of a region as the bits of a number. Long loops are operators of their
own: a compiler would unroll them."""

Projection: TypeAlias = Callable[..., Tensor]
"""From log-probabilities to the logits of a proposal: `Exact` tells what the arguments are."""


@dataclass(frozen=True)
class Problem:
    """What is projected, pixels in one row. Bounds are on the unlabelled pixels: what is labelled is taken off."""

    log_probs: Float[Tensor, "B K P"]
    free: Bool[Tensor, "B 1 P"]
    lower: Float[Tensor, "N C"]
    upper: Float[Tensor, "N C"]
    regions: Sequence[Region]
    scans: Scans | None
    part: Part | None = None

    @classmethod
    def of(
        cls,
        log_probs: Tensor,
        label: Tensor,
        lower: Tensor,
        upper: Tensor,
        regions: Sequence[Region],
        scans: Scans | None,
        part: Part | None = None,
    ) -> Problem:
        """From what a loss has; bounds are `(N, C, 1)`."""
        flat = label.flatten(1)
        counts = [sum((flat == k).sum(dim=1) for k in members(region)) for region in regions]
        labelled = total(torch.stack(counts, dim=1), scans)  # type: ignore[arg-type]
        values = log_probs.to(wide(log_probs.dtype)).flatten(2).clamp(min=SMALLEST)
        free = (flat == UNLABELLED)[:, None]
        return cls(values, free, lower[..., 0] - labelled, upper[..., 0] - labelled, regions, scans, part)

    @classmethod
    def from_parts(cls, *parts: Any) -> Problem:
        """The inverse of `parts`."""
        log_probs, free, lower, upper, masks, index, count = parts
        regions = [[k for k in range(log_probs.shape[1]) if mask >> k & 1] for mask in masks]
        return cls(log_probs, free, lower, upper, regions, None if index is None else Scans(index, count))

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor, list[int], Tensor | None, int]:
        """What an operator can take: tensors and numbers."""
        index, count = (None, 1) if self.scans is None else (self.scans.index, self.scans.count)
        masks = [sum(1 << k for k in members(region)) for region in self.regions]
        return self.log_probs, self.free, self.lower, self.upper, masks, index, count

    def possible(self) -> tuple[Problem, Bool[Tensor, " N"]]:
        """The same with the nearest bounds that can hold together, and whether these could."""
        pixels = self.sizes(self.free).to(self.lower.dtype)
        lower, upper, can = nearest_bounds(self.lower, self.upper, pixels, self.regions, self.log_probs.shape[1])
        return replace(self, lower=lower, upper=upper), can

    def sizes(self, probs: Shaped[Tensor, "B _ P"]) -> Tensor:
        """Of each image or scan."""
        return total(probs.sum(dim=-1), self.scans)

    def shift(self, logits: Float[Tensor, "B K P"], beta: Float[Tensor, "N C"]) -> Float[Tensor, "B K P"]:
        """Take the multipliers off the logits of their classes."""
        return logits - each(per_class(beta, self.regions, logits.shape[1]), self.scans)[..., None]

    def against_others(self, logits: Float[Tensor, "B K P"], number: int) -> Float[Tensor, "B K P"]:
        """The same logits with the classes of a region as log-odds, and the others as their shares of the rest."""
        mine = members(self.regions[number])
        others = torch.stack([logits[:, k] for k in range(logits.shape[1]) if k not in mine], dim=1)
        return logits - others.logsumexp(dim=1, keepdim=True)

    def odds(self, logits: Float[Tensor, "B K P"], number: int) -> Float[Tensor, "B 1 P"]:
        """The log-odds of a region, from logits that are those against others."""
        mine = members(self.regions[number])
        if len(mine) == 1:
            return logits[:, mine[0] : mine[0] + 1]
        return torch.stack([logits[:, k] for k in mine], dim=1).logsumexp(dim=1, keepdim=True)

    def unlabelled(self, probs: Float[Tensor, "B K P"]) -> Float[Tensor, "B C P"]:
        """The bounded regions, where pixels may change."""
        return select(probs, self.regions) * self.free


@dataclass(frozen=True)
class Exact:
    """The projection itself, to 1e-3 pixels or 1e-6 of the bound, whichever is more.

    The size of a class falls steadily in its multiplier. The root is enclosed by looking at many points at once, then
    met by Newton steps, which need no safeguard there: over a distance `e` the slope changes by a factor of at most
    `exp(e)`, so that a step leaves an error of about `e^2 / 2`. Several classes are solved in turn, then together, by
    Newton steps that the same property keeps from overshooting; where a network is certain beyond what float32 tells
    (logits of 80 apart), those may be too few. An image that keeps to its bounds stays as it is.

    Example:
        >>> half = torch.zeros(1, 2, 2, 2)  # 2 of 4 pixels, where 1 is allowed
        >>> Exact()(half, torch.full((1, 2, 2), 255), Interval([[[0.0]]], [[[1.0]]]), [1]).softmax(1)[0, 1]
        tensor([[0.2500, 0.2500],
                [0.2500, 0.2500]])
    """

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
        """Project.

        Args:
            log_probs: Of the network.
            label: Class of each pixel, 255 where unlabelled.
            interval: Bounds on the sizes in pixels, `(N, C, 1)`. Those that cannot hold together, as when more pixels
                are labelled than the upper bound allows, give way to the nearest that can (see `nearest_bounds`).
            regions: The bounded classes, or several taken together.
            scans: Which images make up a scan, if the sizes are of whole scans.
            part: Which images of the batch these are, where several processes share it.

        Returns:
            Logits, whose softmax is `Q` wherever a pixel is unlabelled.
        """
        problem, _ = Problem.of(log_probs, label, interval.lower, interval.upper, regions, scans, part).possible()
        if len(regions) == 1:
            return _solve_one(problem, problem.log_probs, 0)[1].reshape(log_probs.shape)
        logits: Tensor = _solve_several(*problem.parts) if part is None else _solve_all(problem)
        return logits.reshape(log_probs.shape)


def _solve_one(
    problem: Problem, logits: Float[Tensor, "B K P"], number: int
) -> tuple[Float[Tensor, "N 1"], Float[Tensor, "B K P"]]:
    """The multiplier of one class, the others being what they are, and the logits with it."""
    sizes, mine = problem.sizes, members(problem.regions[number])
    logits = problem.against_others(logits, number)
    odds = problem.odds(logits, number)
    least, most = odds.aminmax() if problem.part is None else problem.part.extremes(odds)
    movable = odds.masked_fill(~problem.free, -torch.inf)
    free, now = sizes(problem.free), sizes(movable.sigmoid())
    lower = torch.minimum(problem.lower[:, number : number + 1], FULL * free)
    upper = problem.upper[:, number : number + 1].clamp(min=EMPTY)
    wanted = torch.clamp(now, lower, upper)

    # Were all pixels alike, the root would be their odds less the wanted ones: it lies between those of the extremes.
    goal = (wanted / free).logit()
    shrink = wanted < now
    left = torch.where(shrink, 0, least - goal)
    width = torch.where(shrink, most - goal, goal - least)
    ticks = torch.arange(1, POINTS + 1, device=odds.device)
    for _ in range(ROUNDS):
        width = width / (POINTS + 1)
        points = each(left + width * ticks, problem.scans)
        larger = sizes((movable - points[..., None]).sigmoid()) > wanted
        left = left + width * larger.sum(dim=1, keepdim=True)

    # The rest is taken off what is left, not added to the multiplier: one float32 number could not be set so finely.
    half = width / 2
    coarse, fine = left + half, torch.zeros_like(left)
    movable = movable - each(coarse, problem.scans)[..., None]
    for _ in range(NEWTON):
        probs = (movable - each(fine, problem.scans)[..., None]).sigmoid()
        slope = sizes(probs - probs * probs).clamp(min=1e-12)
        fine = torch.clamp(fine + (sizes(probs) - wanted) / slope, -half, half)
    inside = wanted == now
    coarse, fine = coarse.masked_fill(inside, 0), fine.masked_fill(inside, 0)
    moved = logits - each(coarse, problem.scans)[..., None] - each(fine, problem.scans)[..., None]
    columns = [moved[:, k] if k in mine else logits[:, k] for k in range(logits.shape[1])]
    return coarse + fine, torch.stack(columns, dim=1)


@library.custom_op("inbounds::solve_several", mutates_args=(), schema=f"({PARTS}) -> Tensor")
def _solve_several(*parts: Any) -> Tensor:
    return _solve_all(Problem.from_parts(*parts))


@_solve_several.register_fake
def _(*parts: Any) -> Tensor:
    return torch.empty_like(parts[0])


def _solve_all(problem: Problem) -> Tensor:
    """Each class in turn, then all together, `(B, K, P)`."""
    beta = torch.zeros_like(problem.lower)
    for _ in range(CYCLES):
        for number in range(len(problem.regions)):
            before, own, after = beta[:, :number], beta[:, number : number + 1], beta[:, number + 1 :]
            others = problem.shift(problem.log_probs, torch.cat([before, torch.zeros_like(own), after], dim=1))
            beta = torch.cat([before, _solve_one(problem, others, number)[0], after], dim=1)
    return _solve_together(problem, beta)


def _solve_together(problem: Problem, beta: Float[Tensor, "N C"]) -> Float[Tensor, "B K P"]:
    """Newton's method on the dual of all classes; a class inside its bounds is led back to a multiplier of 0.

    A step is shortened to `log(1 + d) / d` of itself, `d` being the widest gap that it opens between two classes: as
    the dual is self-concordant in that measure, every step then gains, and close to the top it is a full one.
    """
    logits = problem.shift(problem.log_probs, beta).log_softmax(dim=1)
    lower = torch.minimum(problem.lower, FULL * problem.sizes(problem.free))
    upper = problem.upper.clamp(min=EMPTY)
    number = torch.arange(len(problem.regions), device=beta.device)
    same = number[:, None] == number
    K, both = logits.shape[1], [set(members(one)) for one in problem.regions]
    shared = [[sorted(one & other) for other in both] for one in both]
    for _ in range(JOINT):
        every = logits.exp() * problem.free
        by_class, probs = problem.sizes(every), select(every, problem.regions)
        sizes = select(by_class, problem.regions)
        none = torch.zeros_like(sizes[:, 0])
        meet = [torch.stack([sum((by_class[:, k] for k in some), none) for some in row], dim=1) for row in shared]
        curvature = torch.stack(meet, dim=1) - total(probs @ probs.mT, problem.scans)
        slope = curvature.diagonal(dim1=1, dim2=2).clamp(min=1e-12)
        above, below = sizes - upper, sizes - lower
        over, under = beta + above / slope > 0, beta + below / slope < 0
        residual = torch.where(over, above, torch.where(under, below, -beta))
        firm = torch.where(same, (1 + 1e-6) * slope[:, None], curvature)  # never singular
        step = _solve_linear(torch.where((over | under)[..., None], firm, same.to(firm.dtype)), residual)
        moves = per_class(step, problem.regions, K)
        gap = (moves.amax(dim=1, keepdim=True) - moves.amin(dim=1, keepdim=True)).clamp(min=1e-6)
        step = step * gap.log1p() / gap
        beta = beta + step
        logits = problem.shift(logits, step).log_softmax(dim=1)
    return logits


def _solve_linear(matrix: Float[Tensor, "N C C"], right: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
    """Elimination without pivoting, for matrices that need none; `torch.linalg` may wait for the device."""
    rows = torch.cat([matrix, right[..., None]], dim=-1)
    number = torch.arange(right.shape[1], device=right.device)[:, None]
    for k in range(right.shape[1]):
        pivot = rows[:, k : k + 1] / rows[:, k : k + 1, k : k + 1]
        rows = torch.where(number == k, pivot, rows - rows[:, :, k : k + 1] * pivot)
    return rows[..., -1]
