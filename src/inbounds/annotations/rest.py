"""What a batch does not show of its scans, so that bounds on whole scans act on a few of their slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from inbounds.ranks import Part
from inbounds.regions.holding import Holding
from inbounds.regions.region import Region, any_of, select
from inbounds.regions.scans import Scans


@dataclass(frozen=True, eq=False)
class Rest(Holding):
    """The last known sizes of slices, from which the size of a scan is estimated.

    A scan measures what its slices in the batch measure, with gradient, and what its other slices measured when they
    were last seen. A slice that is there several times counts once, by the mean of its copies. One that may have been
    cut off counts by what is remembered of it. Sizes are remembered in pixels before any zoom.

    Attributes:
        same: 1 where an image and another of the whole batch are the same slice.
        zoom: By what factor each image was enlarged.
        stored: What is remembered of each image's slice.
        seen: Whether anything is.
        others: The sum of what is remembered of the other slices of each scan.
        complete: Whether all of those were seen; until then the scan may be larger, and only upper bounds act.
        part: Which images of the batch are here, where several processes share it.

    Example:
        >>> one = torch.ones(1, 1, 1)
        >>> rest = Rest(one[0], one[0, 0], one, one > 0, 7 * one, one > 0)  # a slice of a scan, whose others have 7
        >>> rest.whole(5 * one, one < 0, Scans(torch.tensor([0]), 1))[0]
        tensor([[[12.]]])
    """

    same: Float[Tensor, "B W"]
    zoom: Float[Tensor, " B"]
    stored: Float[Tensor, "B K 1"]
    seen: Bool[Tensor, "B K 1"]
    others: Float[Tensor, "S K 1"]
    complete: Bool[Tensor, "S K 1"]
    part: Part | None = None

    def of(self, regions: Sequence[Region]) -> Rest:
        """The same of some regions."""
        every: dict[str, Any] = {name: ~any_of(~getattr(self, name), regions) for name in ("seen", "complete")}
        return replace(self, stored=select(self.stored, regions), others=select(self.others, regions), **every)

    def each(
        self, sizes: Float[Tensor, "B K 1"], cut: Bool[Tensor, "B K 1"]
    ) -> tuple[Float[Tensor, "B K 1"], Bool[Tensor, "B K 1"]]:
        """The size of each image's slice, and whether it was measured now: of some copy that was not cut."""
        whole = (~cut).to(sizes.dtype)[..., 0]
        plain = sizes[..., 0] / self.zoom.square()[:, None]
        copies = self._over_copies(whole)
        mean = self._over_copies(plain * whole) / copies.clamp(min=1)
        measured = (copies > 0)[..., None]
        return torch.where(measured, mean[..., None], self.stored), measured

    def _over_copies(self, x: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """The sum over all copies of an image's slice. A matrix product might be rounded to half precision."""
        return (self.same[..., None] * (x if self.part is None else self.part.gathered(x))).sum(dim=1)

    def whole(
        self, sizes: Float[Tensor, "B K 1"], cut: Bool[Tensor, "B K 1"], scans: Scans
    ) -> tuple[Float[Tensor, "S K 1"], Bool[Tensor, "S K 1"]]:
        """The size of each scan, and whether all of it is known."""
        now, measured = self.each(sizes, cut)
        copies = self.same.sum(dim=1)[:, None, None]
        unknown = scans.total((~(measured | self.seen)).to(sizes.dtype)) > 0
        return scans.total(now / copies) + self.others, self.complete & ~unknown
