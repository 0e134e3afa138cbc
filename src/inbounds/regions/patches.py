"""Which part of its scan each image of a batch shows, so that a whole organ is measured from patches of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from inbounds.regions.region import Region, select
from inbounds.regions.scans import Scans

Whole = Float[Tensor, "S K *scan"] | Sequence[Float[Tensor, "K ..."]]


@dataclass(frozen=True, eq=False)
class Patches(Scans):
    """Patches of scans, and what is estimated of the rest of these: a whole is what they show and what lies outside.

    In the place of `Scans`, it makes `size`, `centroid` and `spread` those of whole scans. Patches count with gradient;
    a voxel that several of them show counts once, and one beyond the scan not at all. The rest counts as `estimated` by
    somebody who has seen it, such as an averaged network, and gets no gradient. Without an estimate, a scan that the
    patches do not cover may be larger: of bounds on its size only the upper side acts, and none on its centre and
    spread.

    Attributes:
        places: Where each voxel lies in its scan along each axis, in voxels from the scan's middle.
        copies: How many voxels of the batch show what one voxel of the scan is; infinite beyond the scan.
        sides: The voxels of each scan along each axis.
        outside: The sums, over what the patches do not show, of probability, and of each coordinate and its square
            times probability. NaN is unknown.
        found: What was found in all of each scan, in voxels.

    Example:
        >>> patches = Patches.at(["a", "a"], torch.tensor([[0], [2]]), (3,), (5,))  # voxels 0 to 2, and 2 to 4
        >>> size(torch.ones(2, 1, 3), scans=patches)  # the third voxel is in both
        tensor([[[5.]]])
        >>> one = Patches.at(["a"], torch.tensor([[0]]), (3,), (5,)).estimated(torch.full((1, 1, 5), 0.5))
        >>> size(torch.ones(1, 1, 3), scans=one)  # 3 seen, and two halves
        tensor([[[4.]]])
    """

    places: Float[Tensor, "B D *space"]
    copies: Float[Tensor, "B *space"]
    sides: Integer[Tensor, "S D"]
    outside: Float[Tensor, "S K M"] | None = None
    found: Float[Tensor, "S K 1"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        batch, axes = self.places.shape[:2]
        if batch != self.index.shape[0] or (batch, *self.places.shape[2:]) != tuple(self.copies.shape):
            raise ValueError(
                f"places {tuple(self.places.shape)} and copies {tuple(self.copies.shape)} must be (B, D, *space) and "
                f"(B, *space) with B={self.index.shape[0]} patches"
            )
        if tuple(self.sides.shape) != (self.count, axes):
            raise ValueError(
                f"sides must be ({self.count}, {axes}), for each scan its voxels along each axis, not "
                f"{tuple(self.sides.shape)}"
            )
        if self.outside is not None and (self.outside.shape[0], self.outside.shape[2]) != (self.count, 1 + 2 * axes):
            raise ValueError(
                f"outside must be ({self.count}, K, {1 + 2 * axes}), not {tuple(self.outside.shape)}: `estimated` "
                "makes it from probabilities of whole scans"
            )

    @classmethod
    def at(
        cls,
        names: Sequence[Hashable] | Tensor,
        offset: Tensor,
        patch: Sequence[int],
        scan: Sequence[int] | Integer[Tensor, "S D"],
    ) -> Patches:
        """Patches that were cut from scans.

        Args:
            names: What names the scan of each patch.
            offset: The voxel of the scan at which each patch begins; negative where it begins before the scan.
            patch: The sides of a patch.
            scan: Those of all scans, or a row for each in the order in which they come.
        """
        named, axes = Scans.of(names), len(patch)
        device = offset.device
        index, count = named.index.to(device), named.count
        sides = torch.as_tensor(scan, device=device).expand(count, -1)
        if offset.is_floating_point() or tuple(offset.shape) != (len(index), axes) or sides.shape[1] != axes:
            raise ValueError(
                f"for {len(index)} patches of {axes} axes the offsets must be whole numbers ({len(index)}, {axes}) and "
                f"the scans have {axes} sides, not {offset.dtype} {tuple(offset.shape)} and {sides.shape[1]} sides"
            )
        inside = torch.ones(len(index), *patch, dtype=torch.bool, device=device)
        cover = (index[:, None] == index).float().reshape(len(index), len(index), *(1,) * axes)
        places = []
        for axis, side in enumerate(patch):
            shape = [side if other == axis else 1 for other in range(axes)]
            at = offset[:, axis, None] + torch.arange(side, device=device)
            end = sides[index.long(), axis, None]
            inside = inside & ((at >= 0) & (at < end)).reshape(-1, *shape)
            begins = offset[None, :, axis, None]
            covered = (at[:, None] >= begins) & (at[:, None] < begins + side)
            cover = cover * covered.reshape(*covered.shape[:2], *shape)
            places.append((at - (end - 1) / 2).reshape(-1, *shape).expand(-1, *patch))
        copies = torch.where(inside, cover.sum(dim=1), math.inf)
        return cls(index, count, torch.stack(places, dim=1), copies, sides)

    def estimated(self, whole: Whole) -> Patches:
        """The same, with the rest of each scan as these probabilities of all of it have it.

        They are looked up where the patches lie, so that patches that agree with them change nothing.
        """
        sums, shown = [], []
        for one in whole:
            sums.append(Patches.over(one.detach()))
            shown.append(one.detach())
        inside = torch.zeros_like(torch.stack(sums))
        index = self.index.tolist()
        for number, scan in enumerate(index):
            seen = self._looked_up(shown[scan], number)
            inside[scan] += self._moments(seen[None], slice(number, number + 1))[0]
        made = torch.stack(sums)
        return replace(self, outside=made - inside, found=made[..., :1])

    @staticmethod
    def over(probs: Float[Tensor, "K *scan"]) -> Float[Tensor, "K M"]:
        """The sums over a whole scan, from which those over its patches are taken away."""
        dtype = torch.promote_types(probs.dtype, torch.float32)
        first, second = [], []
        for axis, side in enumerate(probs.shape[1:]):
            others = [1 + other for other in range(probs.ndim - 1) if other != axis]
            line = probs.sum(dim=others, dtype=dtype) if others else probs.to(dtype)
            at = torch.arange(side, device=probs.device, dtype=dtype) - (side - 1) / 2
            first.append((line * at).sum(dim=1))
            second.append((line * at.square()).sum(dim=1))
        return torch.stack([probs.flatten(1).sum(dim=1, dtype=dtype), *first, *second], dim=1)

    def _looked_up(self, whole: Float[Tensor, "K *scan"], number: int) -> Float[Tensor, "K *space"]:
        """What a whole scan has at the voxels of a patch, the nearest ones."""
        sides = torch.tensor(whole.shape[1:], device=whole.device)
        at = self.places[number].to(whole.device) + ((sides - 1) / 2).reshape(-1, *(1,) * (whole.ndim - 1))
        places = [
            one.round().long().clamp(0, side - 1) for one, side in zip(at.unbind(0), whole.shape[1:], strict=True)
        ]
        found: Tensor = whole[(slice(None), *places)]  # type: ignore[index]  # a tuple of tensors after a slice
        return found

    def _moments(self, probs: Float[Tensor, "b K *space"], some: slice) -> Float[Tensor, "b K M"]:
        """The sums over some patches, each by itself."""
        seen = self._weighed(probs, some)
        places = self.places[some].to(seen.dtype)
        lines = [places[:, None, axis] for axis in range(places.shape[1])]
        powers = [*lines, *(line.square() for line in lines)]
        return torch.stack([seen.flatten(2).sum(2), *((seen * one).flatten(2).sum(2) for one in powers)], dim=2)

    def _weighed(self, probs: Tensor, some: slice = slice(None)) -> Tensor:
        dtype = torch.promote_types(probs.dtype, torch.float32)
        return probs.to(dtype) / self.copies[some].to(dtype)[:, None]

    def _known(self, component: int, like: Tensor) -> Tensor:
        """What is estimated of the rest; 0 where nothing is."""
        if self.outside is None:
            return like.new_zeros(())
        return self.outside[..., component : component + 1].to(like.dtype).nan_to_num(0.0)

    def mass(self, probs: Float[Tensor, "B K *space"]) -> Float[Tensor, "S K 1"]:
        """The voxels of each whole scan."""
        inside = Scans.total(self, self._weighed(probs).flatten(2).sum(dim=2, keepdim=True))
        return inside + self._known(0, inside)

    def first(self, probs: Float[Tensor, "B K *space"]) -> Float[Tensor, "S K D"]:
        """The sums of their coordinates, each from the middle of its scan."""
        seen, parts = self._weighed(probs), []
        for axis in range(self.axes):
            place = self.places[:, None, axis].to(seen.dtype)
            inside = Scans.total(self, (seen * place).flatten(2).sum(dim=2, keepdim=True))
            parts.append(inside + self._known(1 + axis, inside))
        return torch.cat(parts, dim=2)

    def second(self, probs: Float[Tensor, "B K *space"], centre: Float[Tensor, "S K D"]) -> Float[Tensor, "S K D"]:
        """The sums of their squared distances along each axis from a centre, which is given from the middle too."""
        seen, parts = self._weighed(probs), []
        each = self.each(centre).reshape(*probs.shape[:2], self.axes, *(1,) * (probs.ndim - 2))
        for axis in range(self.axes):
            away = self.places[:, None, axis].to(seen.dtype) - each[:, :, axis]
            inside = Scans.total(self, (seen * away.square()).flatten(2).sum(dim=2, keepdim=True))
            at = centre[..., axis : axis + 1]
            mass, first, second = (self._known(n, inside) for n in (0, 1 + axis, 1 + self.axes + axis))
            parts.append(inside + second - 2 * at * first + at.square() * mass)
        return torch.cat(parts, dim=2)

    @property
    def axes(self) -> int:
        """How many axes a scan has."""
        return self.places.shape[1]

    @property
    def voxels(self) -> Float[Tensor, "S 1 1"]:
        """How many voxels each scan has."""
        return self.sides.to(self._exact).prod(dim=1)[:, None, None]

    @property
    def _exact(self) -> torch.dtype:
        """What voxels are counted in; some devices have no float64."""
        return torch.float32 if self.sides.device.type == "mps" else torch.float64

    def complete(self) -> Bool[Tensor, "S K 1"]:
        """Whether all of a scan is known: the patches cover it, or somebody has seen the rest, and found something.

        Who found less than a voxel of a region in all of a scan cannot say where the rest of it lies.
        """
        covered = Scans.total(self, (1 / self.copies.to(self._exact)).flatten(1).sum(dim=1))[:, None, None]
        whole = covered > self.voxels * (1 - 1e-6) - 0.5
        if self.outside is None:
            return whole
        seen = ~self.outside[..., :1].isnan()
        return whole | (seen if self.found is None else seen & (self.found >= 1))

    def rim(self) -> Bool[Tensor, "B *space"]:
        """The voxels at the border of the scan, or beyond it."""
        last = self.each((self.sides - 1) / 2).reshape(*self.places.shape[:2], *(1,) * (self.places.ndim - 2))
        return (self.places.abs() >= last).any(dim=1)

    def chosen(self, regions: Sequence[Region]) -> Patches:
        """The same, of some regions."""
        outside, found = (None if sums is None else select(sums, regions) for sums in (self.outside, self.found))
        return replace(self, outside=outside, found=found)

    def within(self, lower: Float[Tensor, "S K 1"], upper: Float[Tensor, "S K 1"]) -> Patches:
        """The same, with as much of the rest as if what was found in each scan lay inside these bounds.

        Who finds twice too much of a region, finds too much of it outside of a patch too. An estimate that keeps to the
        bounds stays as it is.
        """
        if self.outside is None or self.found is None:
            return self
        found = self.found.clamp(min=1e-6)
        share = (found.maximum(lower).minimum(upper) / found).nan_to_num(1.0)
        return replace(self, outside=self.outside * share)

    def total(self, x: Tensor) -> Tensor:
        """Refused: what patches have does not add up, as they may overlap and leave out a part."""
        raise ValueError(
            f"a quantity of shape {tuple(x.shape)} does not add up over patches; size, centroid and spread can be "
            "measured of whole scans from patches, other statistics of whole images alone"
        )
