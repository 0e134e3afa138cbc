"""What holds tensors moves, is pinned and compares as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

H = TypeVar("H", bound="Holding")


@dataclass(frozen=True, eq=False)
class Holding:
    """A dataclass of tensors, of tensors by name, and of other such classes."""

    def mapped(self: H, change: Callable[[Tensor], Tensor]) -> H:
        """The same with every tensor changed."""
        return replace(self, **{name: _mapped(part, change) for name, part in vars(self).items()})

    def to(self: H, device: torch.device | str, *, non_blocking: bool = False) -> H:
        """The same on another device."""
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self: H) -> H:
        """The same in memory from which a GPU copies without waiting: a `DataLoader` calls it."""
        return self.mapped(Tensor.pin_memory)

    def __eq__(self, other: object) -> bool:
        """Whether all is the same, number for number and type for type, wherever it lies; NaN is equal to NaN."""
        return type(self) is type(other) and _same(self, other)

    __hash__ = None  # type: ignore[assignment]  # as of lists: what holds tensors can be changed in place


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(one, change) for name, one in value.items()}
    return value.mapped(change) if isinstance(value, Holding) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        one, other = one.detach().cpu(), other.detach().cpu()
        return bool(torch.isclose(one, other, rtol=0, atol=0, equal_nan=True).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, Holding) and type(one) is type(other):
        return all(_same(part, getattr(other, name)) for name, part in vars(one).items())
    return not isinstance(one, Tensor) and not isinstance(other, Tensor) and bool(one == other)
