"""Which images of a batch are slices of the same scan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from jaxtyping import Integer, Shaped
from torch import Tensor

from inbounds.ranks import Part
from inbounds.regions.holding import Holding


@dataclass(frozen=True, eq=False)
class Scans(Holding):
    """Slices that belong to one scan carry the same index.

    `index` counts from 0 within the batch, and `count` is a plain number, so that a statistic over whole scans has a
    shape known in advance: nothing is read back from the device. For slices named by anything else use `Scans.of`.
    Where several processes share a batch, slices of a scan may lie on any of them: its `part` makes sums those of all.

    Example:
        >>> Scans.of(["patient1_ED", "patient1_ED", "patient2_ED"])
        Scans(index=tensor([0, 0, 1]), count=2)
    """

    index: Integer[Tensor, " B"]
    count: int
    part: Part | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        kind = self.index.dtype
        if self.index.ndim != 1 or kind.is_floating_point or kind.is_complex or kind == torch.bool:
            raise ValueError(
                f"the scan index must be an integer tensor (B,), not {kind} of shape {tuple(self.index.shape)}"
            )
        if self.count < 1:
            raise ValueError(f"a batch holds at least one scan, not {self.count}")

    @classmethod
    def of(cls, names: Sequence[Hashable] | Tensor) -> Scans:
        """Number the scans in order of appearance; `names` gives, for each slice, anything that names its scan."""
        if isinstance(names, Tensor):
            names = cast(list[Hashable], names.tolist())
        if not names:
            raise ValueError("no slices: give one scan name for each slice of the batch")
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return cls(torch.tensor([order[name] for name in names]), len(order))

    def total(self, x: Shaped[Tensor, "B ..."]) -> Shaped[Tensor, "S ..."]:
        """Sum over the slices of each scan, in a fixed order."""
        if x.shape[0] != self.index.shape[0]:
            raise ValueError(f"the scan index names {self.index.shape[0]} slices, the batch holds {x.shape[0]}")
        scan = torch.arange(self.count, device=self.index.device)
        member = (scan[:, None] == self.index).reshape(self.count, -1, *(1,) * (x.ndim - 1))
        here = torch.where(member, x, 0).sum(dim=1)
        return here if self.part is None else self.part.total(here)

    def each(self, x: Shaped[Tensor, "S ..."]) -> Shaped[Tensor, "B ..."]:
        """Give every slice the value of its scan."""
        return x[self.index.long()]  # an 8-bit index would be taken for a mask


def total(x: Shaped[Tensor, "B ..."], scans: Scans | None) -> Shaped[Tensor, "N ..."]:
    """Sum over each scan, or leave images apart when there are no scans."""
    return x if scans is None else scans.total(x)


def each(x: Shaped[Tensor, "N ..."], scans: Scans | None) -> Shaped[Tensor, "B ..."]:
    """The inverse of `total` in shape: every image gets the value of its scan."""
    return x if scans is None else scans.each(x)
