"""A batch that several processes share: each holds a part of its images, and all know the sums over all of it.

Every process computes the loss of the whole batch, whose value is therefore the same everywhere. The gradient of each
is of its own images alone, times the number of processes: so it is their mean, which data-parallel training takes, that
is the gradient of the loss. With `f` the loss and `s = sum_r s_r(w)` a sum to which process `r` adds `s_r`:
`mean_r (R df/ds ds_r/dw) = df/ds ds/dw`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, distributed


@dataclass(frozen=True)
class Part:
    """Which images of a batch this process holds.

    Images are dealt out in order, as evenly as they can be. Where there are fewer than processes, one that would have
    none takes the first image as a stand-in, which does not count: so all of them do the same, and wait for each other.

    Attributes:
        rank: The number of this process.
        ranks: How many processes there are.
        whole: How many images the batch has.

    Example:
        >>> [Part(rank, 3, 8).own for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        >>> Part(0, 3, 2).counts
        False
    """

    rank: int
    ranks: int
    whole: int

    @property
    def own(self) -> slice:
        """The images that are here, the stand-in included."""
        first, last = self._ends
        return slice(first, last) if self.counts else slice(0, 1)

    @property
    def counts(self) -> bool:
        """Whether they count."""
        first, last = self._ends
        return first < last

    @property
    def _ends(self) -> tuple[int, int]:
        return self.rank * self.whole // self.ranks, (self.rank + 1) * self.whole // self.ranks

    def take(self, x: Shaped[Tensor, "W ..."]) -> Shaped[Tensor, "B ..."]:
        """What belongs to the images here, of something that all images of the batch have."""
        return x[self.own]

    def total(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """The sum over all processes; gradients come back from all of them."""
        made: Tensor = _Total.apply(x, self.counts)  # type: ignore[no-untyped-call]
        return made

    def gathered(self, x: Shaped[Tensor, "B ..."]) -> Shaped[Tensor, "W ..."]:
        """The rows of all images of the batch, in its order; gradients come back from all processes."""
        first, last = self._ends
        before, after = (x.new_zeros((rows, *x.shape[1:])) for rows in (first, self.whole - last))
        made: Tensor = _Total.apply(torch.cat([before, x[: last - first], after]), True)  # type: ignore[no-untyped-call]
        return made

    def ratio(self, total: Shaped[Tensor, ""], count: Shaped[Tensor, ""] | int) -> Shaped[Tensor, ""]:
        """A sum over all processes, divided by how many it is of; 0 of none.

        All that follows is the same on every process, so that no gradient has to travel.
        """
        counted = count.to(total.dtype) if isinstance(count, Tensor) else torch.full_like(total, count)
        both = torch.stack([total, counted])
        sums: Tensor = _Closing.apply(both, self.counts, self.ranks)  # type: ignore[no-untyped-call]
        return sums[0] / sums[1].detach().clamp(min=1)

    def extremes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the most on any process."""
        least, most = x.detach().aminmax()
        ends = torch.stack([-least, most])
        distributed.all_reduce(ends, distributed.ReduceOp.MAX)
        return -ends[0], ends[1]


def mean(x: Shaped[Tensor, "..."], part: Part | None) -> Shaped[Tensor, ""]:
    """The mean of what the images here have, or of those of the whole batch."""
    return x.mean() if part is None else part.ratio(x.sum(), x.numel())


def ratio(total: Shaped[Tensor, ""], count: Shaped[Tensor, ""], part: Part | None) -> Shaped[Tensor, ""]:
    """A sum by how many it is of, of the images here or of the whole batch; 0 of none."""
    return total / count.clamp(min=1) if part is None else part.ratio(total, count)


def _summed(x: Tensor, counts: bool) -> Tensor:
    summed = x.detach().clone(memory_format=torch.contiguous_format)
    if not counts:
        summed.zero_()
    distributed.all_reduce(summed)
    return summed


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: bool) -> Tensor:
        ctx.counts = counts
        return _summed(x, counts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        summed = _summed(gradient, True)
        return summed if ctx.counts else torch.zeros_like(summed), None


class _Closing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: bool, ranks: int) -> Tensor:
        ctx.share = ranks if counts else 0
        return _summed(x, counts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient * ctx.share, None, None
