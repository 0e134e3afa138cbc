"""The range in which a statistic should lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Numbers: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]] | Sequence[Sequence[Sequence[float]]]


@dataclass(frozen=True, init=False, eq=False)
class Interval:
    """`lower <= value <= upper`, for each image, class and component: `(N, K, M)` or anything that broadcasts to it.

    An open side is `None`, or infinite where it is open for some entries only. `lower == upper` asks for equality.

    Built by a person or read from a file, the numbers are looked at: NaN, or a lower bound above its upper
    bound, is refused with the offending index. Inside a forward pass `trusted=True` skips this, because looking at
    numbers costs a round trip to the device; shapes and types are checked always.

    Example:
        >>> Interval(60, 2000).lower
        tensor(60.)
        >>> Interval([[[60.0], [10.0]]], None).upper
        tensor(inf)
    """

    lower: Float[Tensor, "*#bounds"]
    upper: Float[Tensor, "*#bounds"]

    def __init__(self, lower: Tensor | Numbers | None, upper: Tensor | Numbers | None, trusted: bool = False) -> None:
        low = _tensor(-torch.inf if lower is None else lower, upper, "lower")
        high = _tensor(torch.inf if upper is None else upper, lower, "upper")
        try:
            shape = torch.broadcast_shapes(low.shape, high.shape)
        except RuntimeError:
            raise ValueError(
                f"lower of shape {tuple(low.shape)} and upper of shape {tuple(high.shape)} do not fit together"
            ) from None
        if len(shape) > 3:
            raise ValueError(f"bounds must be (N, K, M) or broadcast to it, but their shape is {tuple(shape)}")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        if not trusted:
            _look(low.expand(shape), high.expand(shape))


def _tensor(side: Tensor | Numbers, other: object, name: str) -> Tensor:
    """One side as a floating-point tensor; numbers take the type and device of the other side, if that has one."""
    like = other if isinstance(other, Tensor) else torch.empty(())
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    try:
        tensor = side if isinstance(side, Tensor) else torch.as_tensor(side, dtype=dtype, device=like.device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a number, nested lists of numbers or a tensor, not {side!r}") from None
    if tensor.dtype == torch.bool or tensor.is_complex() or isinstance(side, bool):
        raise ValueError(f"{name} must hold real numbers, not {torch.bool if isinstance(side, bool) else tensor.dtype}")
    return tensor if tensor.is_floating_point() else tensor.to(dtype)


def _look(lower: Tensor, upper: Tensor) -> None:
    for name, side, never in (("lower", lower, torch.inf), ("upper", upper, -torch.inf)):
        bad = side.isnan() | (side == never)
        if bool(bad.any()):
            at = tuple(bad.nonzero()[0].tolist())
            remedy = "leave the side open with None or an infinity of the right sign"
            raise ValueError(f"{name} is {float(side[at])} at index {at}: {remedy}")
    above = lower > upper
    if bool(above.any()):
        at = tuple(above.nonzero()[0].tolist())
        raise ValueError(f"lower {float(lower[at])} lies above upper {float(upper[at])} at index {at}")
