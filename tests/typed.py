"""What type checkers see of the library, as its users write it: `make lint` reads it, nothing runs it."""

from __future__ import annotations

from typing import assert_type

import torch
from torch import Tensor

import inbounds as ib


@ib.statistic()
def dispersion(probs: Tensor, *, scans: ib.Scans | None = None) -> Tensor:
    spread = ib.spread(probs, scans=scans).sum(dim=-1, keepdim=True)
    return spread / ib.size(probs, scans=scans).clamp(min=1)


def _scale(probs: Tensor, power: int = 1, *, scans: ib.Scans | None = None) -> float:
    return float(probs[0, 0].numel()) ** power


@ib.statistic(scale=_scale, fact="mass")
def mass(probs: Tensor, power: int = 1, *, scans: ib.Scans | None = None) -> Tensor:
    return ib.size(probs, scans=scans) ** power


class OwnBounds:
    def interval(self, knowledge: ib.Knowledge) -> ib.Interval:
        return ib.Interval(knowledge.get("size"), None, trusted=True)


probs = torch.rand(2, 3, 8, 8).softmax(dim=1)
assert_type(dispersion(probs, scans=None), Tensor)
assert_type(mass(probs, 2), Tensor)
mass(probs, "two")  # type: ignore[arg-type]
dispersion(probs, power=2)  # type: ignore[call-arg]
bounds: ib.Bounds = OwnBounds()
constraints = [ib.Constraint(dispersion, bounds, weight=0.1), ib.Constraint(mass.using(power=2), ib.Fixed(None, 9))]
supervise = ib.Supervision(constraints=constraints)
known = ib.Annotation(torch.full((2, 8, 8), ib.UNLABELLED))
assert_type(supervise(probs.log(), None, known), ib.Terms)
assert_type(ib.recipes["known"](), ib.Supervision)
assert_type(ib.Loss(supervise).terms(probs.log(), known).total, Tensor)
assert_type(known.to("cpu", non_blocking=True), ib.Annotation)
assert_type(known[:1], ib.Annotation)
assert_type(ib.constraints.Common(1, 2), ib.Common)
