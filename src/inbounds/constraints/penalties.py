"""What a violation costs. Penalties act on a signed violation: positive is violated, zero or less is satisfied."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.constraints.multipliers import Multipliers

Penalty: TypeAlias = Callable[[Tensor], Tensor]


def quadratic(violation: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The paper's penalty, Eq. "lossForward1": the squared distance to the interval, exactly 0 inside it.

    Its gradient is Eq. "lossBackward1": `2 * violation` outside, exactly 0 inside.

    Example:
        >>> quadratic(torch.tensor([-5.0, 0.0, 3.0]))
        tensor([0., 0., 9.])
    """
    return violation.relu().square()


def hinge(violation: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The distance to the interval: a pull of constant strength however far the value is.

    Example:
        >>> hinge(torch.tensor([-5.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """
    return violation.relu()


@dataclass(frozen=True)
class LogBarrier:
    """The penalty that `log_barrier` returns."""

    t: float | Tensor

    def __call__(self, violation: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Price a signed violation."""
        t = self.t
        # For an extreme t, 1 / t^2 is 0 in float32, and its logarithm infinite.
        tiny = torch.finfo(violation.dtype).tiny
        edge = -(1 / t / t).clamp(min=tiny) if isinstance(t, Tensor) else -max(1 / t / t, tiny)
        # Each piece sees only arguments of its own side: the other side's gradient would be 0 * inf = NaN.
        inside = -torch.log(-violation.clamp(max=edge)) / t
        log_t = torch.log(t) if isinstance(t, Tensor) else math.log(t)
        outside = t * violation + 2 * log_t / t + 1 / t
        return torch.where(violation <= edge, inside, outside)


def log_barrier(t: float | Tensor) -> LogBarrier:
    """The log-barrier extension of Kervadec et al. (2022): finite everywhere, unlike a true barrier.

    `-log(-z) / t` for a violation `z <= -1 / t^2`, and from there on the tangent `t z - log(1 / t^2) / t + 1 / t`. It
    is convex and continuously differentiable, pushes away from the bounds already inside the interval, and approaches a
    hard constraint as `t` grows. It can be negative well inside the interval.

    `t` belongs to the unit of the statistic: the extension begins `1 / t^2` before a bound, so choose it such that this
    is small against the width of the interval. Otherwise the two sides pull against each other.

    Args:
        t: Its sharpness: a positive number, or a 0-d tensor that a schedule changes in place (`t.mul_(1.1)`).

    Example:
        >>> log_barrier(1.0)(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0., 1., 2.])
    """
    if isinstance(t, Tensor) and (t.ndim or not t.is_floating_point()):
        raise ValueError(f"t must be a number or a 0-d floating-point tensor, not {t.dtype} of shape {tuple(t.shape)}")
    if not (math.isfinite(float(t)) and t > 0):
        raise ValueError(f"t must be positive and finite, not {t}")
    return LogBarrier(t)


penalties: dict[str, Callable[..., Any]] = {
    "quadratic": quadratic,
    "hinge": hinge,
    "log_barrier": log_barrier,
    "multipliers": Multipliers,
}
"""By name, for settings: functions of a violation, or what makes one from its arguments. Add your own."""
