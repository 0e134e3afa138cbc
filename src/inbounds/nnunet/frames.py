"""Where nnU-Net's patches lie in their scans, and what was found in the rest of these."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import add

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inbounds.regions import Patches

FINE = 32
"""What is kept of a scan has cells that measure this part of a patch along each axis."""


@dataclass(frozen=True)
class Frames:
    """What each patch of a batch shows of its scan, or of a slice of it, in voxels of this.

    Attributes:
        matrix: From a voxel of the patch to one of the scan, both as seen from the patch's middle.
        middle: Where the patch's middle lies.
        begin: The first voxel of what nnU-Net cuts out before it turns and zooms that; a patch is black beyond.
        end: The one after the last.
        sides: Those of the scan, or slice.
        slices: Which slice of its scan each patch is of; none, of scans.
    """

    matrix: Float[Tensor, "B D D"]
    middle: Float[Tensor, "B D"]
    begin: Float[Tensor, "B D"]
    end: Float[Tensor, "B D"]
    sides: Float[Tensor, "B D"]
    slices: Sequence[int] | None = None

    @classmethod
    def of(cls, rows: Float[Tensor, "B 7 3"], axes: int, device: torch.device) -> Frames:
        """From what the loader hands on; of slices, the last two axes."""
        last = rows[..., 3 - axes :].to(device, non_blocking=True)
        slices = None if axes == 3 else [int(at) for at in rows[:, 3, 0]]
        middle, begin, end, sides = last[:, 3:].unbind(1)
        return cls(last[:, 3 - axes : 3], middle, begin, end, sides, slices)

    def patches(self, space: Sequence[int]) -> Patches:
        """These patches, of each of which nothing is known but what it shows."""
        batch, axes = self.middle.shape
        device = self.middle.device
        grid = [
            _along(torch.arange(side, device=device) - (side - 1) / 2, axis, axes) for axis, side in enumerate(space)
        ]
        inside = torch.ones(batch, *space, dtype=torch.bool, device=device)
        places = []
        for axis in range(axes):
            # Written out, because a matrix product may be rounded to half precision, which moves voxels.
            moved = functools.reduce(add, [_each(self.matrix[:, axis, on], axes) * grid[on] for on in range(axes)])
            place = moved + _each(self.middle[:, axis], axes)
            begin, end = _each(self.begin[:, axis], axes), _each(self.end[:, axis], axes)
            inside = inside & (place > begin - 0.5) & (place < end - 0.5)
            places.append(place - _each((self.sides[:, axis] - 1) / 2, axes))
        zoom = 1 / torch.linalg.det(self.matrix).abs()
        copies = torch.where(inside, _each(zoom, axes), math.inf)
        return Patches(torch.arange(batch, device=device), batch, torch.stack(places, dim=1), copies, self.sides.long())

    def share(self, number: int, edges: Sequence[Tensor], space: Sequence[int]) -> Float[Tensor, "*cells"]:
        """How much of each cell of its scan a patch shows: all, nothing, or at its rim a part."""
        axes, shown = len(edges), torch.ones((), device=self.middle.device)
        away = []
        for axis, edge in enumerate(edges):
            low, high = edge[:-1], edge[1:]
            kept = high.minimum(self.end[number, axis]) - low.maximum(self.begin[number, axis])
            shown = shown * _along((kept / (high - low)).clamp(0, 1), axis, axes)
            away.append(_along((low + high - 1) / 2 - self.middle[number, axis], axis, axes))
        back = torch.linalg.inv(self.matrix[number])
        for axis, side in enumerate(space):
            place = functools.reduce(add, [back[axis, on] * away[on] for on in range(axes)])
            wide = functools.reduce(add, [back[axis, on].abs() * edges[on][1] for on in range(axes)])
            shown = shown * ((side / 2 - place.abs()) / wide + 0.5).clamp(0, 1)
        return shown


class Rest:
    """What a network found in whole scans when it last looked: mean probabilities of cells of a few voxels.

    What lies outside of a patch is what was found in the cells that it does not show. Of a scan at which nobody has
    looked nothing is known.

    Args:
        patch: The sides of patches; of slices, two.
    """

    def __init__(self, patch: Sequence[int]) -> None:
        self.cell = [1] * (3 - len(patch)) + [max(1, side // FINE) for side in patch]
        self.found: dict[str, tuple[Float[Tensor, "k *cells"], tuple[int, ...]]] = {}

    def keep(self, key: str, logits: Float[Tensor, "K d h w"]) -> None:
        """What was found in a scan; of the background nothing is kept."""
        slabs = [slab.float().softmax(dim=0)[1:] for slab in logits.split(self.cell[0], dim=1)]
        cells = [functional.avg_pool3d(slab, self.cell, ceil_mode=True) for slab in slabs]
        self.found[key] = torch.cat(cells, dim=1).half().cpu(), tuple(logits.shape[1:])

    def behind(self, frames: Frames, patches: Patches, keys: Sequence[str]) -> Patches:
        """The same patches, with what was found in the rest of each scan, or of a slice of it."""
        known = [key for key in keys if key in self.found]
        if not known:
            return patches
        device, space = patches.places.device, patches.places.shape[2:]
        classes = 1 + len(self.found[known[0]][0])
        outside = torch.full((len(keys), classes, 1 + 2 * len(space)), torch.nan, device=device)
        whole = outside[..., :1].clone()
        for number, key in enumerate(keys):
            if key in self.found:
                sums, edges = self._sums(key, None if frames.slices is None else frames.slices[number], device)
                rest = sums * (1 - frames.share(number, edges, space))
                outside[number, 1:, 0], whole[number, 1:, 0] = rest.flatten(1).sum(dim=1), sums.flatten(1).sum(dim=1)
        return replace(patches, outside=outside, found=whole)

    def _sums(self, key: str, at: int | None, device: torch.device) -> tuple[Tensor, list[Tensor]]:
        """How many voxels were found in each cell of a scan or slice, and where cells begin and end along each axis."""
        cells, sides = self.found[key]
        cell = self.cell
        if at is not None:
            cells, sides, cell = cells[:, at], sides[1:], cell[1:]
        sums, edges = cells.to(device).float(), []
        for axis, (side, step) in enumerate(zip(sides, cell, strict=True)):
            edges.append(torch.tensor([*range(0, side, step), side], device=device, dtype=torch.float32))
            sums = sums * _along(edges[-1].diff(), axis, len(sides))
        return sums, edges


def _along(line: Tensor, axis: int, axes: int) -> Tensor:
    """Numbers along one of some axes."""
    return line.reshape([-1 if on == axis else 1 for on in range(axes)])


def _each(number: Tensor, axes: int) -> Tensor:
    """A number for each patch."""
    return number.reshape(-1, *(1,) * axes)
