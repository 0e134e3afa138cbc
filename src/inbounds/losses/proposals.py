"""Lagrangian proposals (Pathak et al., 2015), the paper's rival: full labels synthesised from what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from inbounds.annotations import UNLABELLED, Annotation
from inbounds.constraints import Constraint, Interval
from inbounds.constraints.constraint import constrained
from inbounds.losses.projection import Exact, Problem, Projection
from inbounds.regions import Region, Scans, size
from inbounds.regions.region import members
from inbounds.regions.statistic import most_probable, one_hot


@dataclass(frozen=True)
class Proposals:
    """Complete labels by the nearest prediction that keeps to its bounds; a supervision then trains on those.

    The prediction `S` is projected to `min KL(Q || S)` subject to `lower <= size of Q <= upper`, labelled pixels being
    held fixed, and hardened to a mask: every unlabelled pixel gets its most probable class. No gradient passes.

    Args:
        constraint: The bounds on the size in pixels: its classes and scope count, its weight and penalty do not.
        project: How: `Exact()`, or the paper's `Ascent()`.
        harden: Give a mask `(B, *space)`, as the paper does; otherwise the probabilities `Q`, `(B, K, *space)`.
        sides: `both` bounds, or the `upper` alone, as the authors do with tags.

    Example:
        >>> at_most_one = Constraint(size, Fixed(None, 1), weight=0)
        >>> logits = torch.tensor([[[[0.0, 0.0]], [[1.0, 2.0]]]])  # both pixels would be 1
        >>> Proposals(at_most_one)(logits.log_softmax(1), Annotation(torch.tensor([[[255, 255]]])))
        tensor([[[0, 1]]])
    """

    constraint: Constraint
    project: Projection = Exact()  # noqa: RUF009
    harden: bool = True
    sides: Literal["both", "upper"] = "both"

    def __post_init__(self) -> None:
        if self.constraint.statistic != size:
            raise ValueError(f"proposals keep to sizes in pixels, not to {self.constraint.statistic.fact}")
        if self.sides not in ("both", "upper"):
            raise ValueError(f"sides must be 'both' or 'upper', not {self.sides!r}")

    @torch.no_grad()
    def __call__(self, log_probs: Float[Tensor, "B K *space"], annotation: Annotation) -> Shaped[Tensor, "B ..."]:
        """The labels to train on."""
        label, K = annotation.label, log_probs.shape[1]
        shared = {} if annotation.part is None else {"part": annotation.part}
        logits = self.project(log_probs, label, *self._bounds(log_probs, annotation), **shared)
        known = label != UNLABELLED
        if self.harden:
            return torch.where(known, label.long(), most_probable(logits))
        return torch.where(known[:, None], one_hot(label, K).to(logits.dtype), logits.softmax(dim=1))

    @torch.no_grad()
    def possible(self, log_probs: Float[Tensor, "B K *space"], annotation: Annotation) -> Bool[Tensor, " N"]:
        """Whether all bounds of an image, or of a scan, can hold together, given its pixels and its labels.

        Where they cannot, the `Exact` projection keeps to the nearest that can.
        """
        interval, regions, scans = self._bounds(log_probs, annotation)
        problem = Problem.of(
            log_probs, annotation.label, interval.lower, interval.upper, regions, scans, annotation.part
        )
        return problem.possible()[1]

    def _bounds(self, log_probs: Tensor, annotation: Annotation) -> tuple[Interval, list[Region], Scans | None]:
        bounded, K = self.constraint, log_probs.shape[1]
        scans = annotation.scans if bounded.scope == "volume" else None
        regions = constrained(bounded.classes, K)
        if any(len(members(region)) == K for region in regions):
            raise ValueError("all classes together have all pixels: proposals cannot bound them")
        bounds = bounded.interval(log_probs.exp(), None, annotation)
        shape = (log_probs.shape[0] if scans is None else scans.count, len(regions), 1)
        lower, upper = (side.expand(shape) for side in (bounds.lower, bounds.upper))
        if self.sides == "upper":
            lower = torch.full_like(lower, -torch.inf)
        return Interval(lower, upper, trusted=True), regions, scans
