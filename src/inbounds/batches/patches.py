"""Patches of scans, gathered and augmented on the device, with all that is known of the scans they are from.

A patch is looked up in its scan: each of its voxels has a place there, wherever augmentation takes it. So facts stay
what they are in the scan, and nothing black comes into the frame where the scan goes on.

A batch of patches is a batch of their slices, one behind the other, as a network of volumes takes them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from inbounds.annotations.annotation import UNLABELLED, Annotation
from inbounds.batches.augment import Augment
from inbounds.batches.samples import Batch, Samples
from inbounds.ranks import Part
from inbounds.regions import Patches
from inbounds.regions.facts import range_of

CUBIC = 2.0
"""Slices that lie at most so many pixels apart: volumes are then turned and zoomed along all axes."""
CLICKS = 1_000_000
"""So many labelled voxels of a class are chosen from, at most."""


@dataclass(frozen=True)
class Shown:
    """What a batch of patches shows.

    Attributes:
        places: Slice, row and column of each voxel in its scan, `(B, 3, d, h, w)`.
        centred: The same from the middle of the scan.
        rows: The stored slice that it lies in, and its row and column there, the nearest that there are.
        inside: Whether it lies in its scan.
        copies: How many voxels show what one of the scan is, along all axes and within slices.
        scan: The number of each patch's scan.
    """

    places: Float[Tensor, "B 3 d h w"]
    centred: Float[Tensor, "B 3 d h w"]
    rows: tuple[Tensor, Tensor, Tensor]
    inside: Tensor
    copies: tuple[Tensor, Tensor]
    scan: Int[Tensor, " B"]


@runtime_checkable
class Estimate(Protocol):
    """What somebody has found in whole scans."""

    def outside(self, shown: Shown) -> tuple[Float[Tensor, "B K 7"], Float[Tensor, "B K 1"]]:
        """The sums over what patches do not show of their scans, and what was found in all of these."""
        ...

    def outside_of_slices(self, shown: Shown) -> tuple[Float[Tensor, "N K 5"], Float[Tensor, "N K 1"]]:
        """The same of their slices."""
        ...


class PatchSamples:
    """Patches of all scans of a `Samples`, whose slices lie on the device.

    Args:
        samples: The slices, their labels and facts.
        patch: Slices, rows and columns.
        augment: What changes patches; its shifts are superfluous.
        thick: How many pixels the slices lie apart.
        of_slices: Whether something is known of slices: patches then keep to these, turned and zoomed within them.
        around_labels: The share of patches that lie around labelled voxels.
        estimate: Of the rest of the scans, if there is one.
    """

    def __init__(
        self,
        samples: Samples,
        patch: tuple[int, int, int],
        augment: Augment,
        *,
        thick: float = 1.0,
        of_slices: bool = False,
        around_labels: float = 0.5,
        estimate: Estimate | None = None,
    ) -> None:
        self.samples, self.patch, self.augment, self.thick = samples, patch, augment, thick
        self.of_slices, self.around_labels, self.estimate = of_slices, around_labels, estimate
        self.cubic = not of_slices and 1 / CUBIC <= thick <= CUBIC
        device = samples.device
        self.shape = tuple(samples.labels.shape[1:])
        self.depths = torch.tensor([record.slices for record in samples.records], device=device)
        self.firsts = torch.tensor(samples.firsts[:-1], device=device)
        self.sides = torch.stack([self.depths, *(torch.full_like(self.depths, side) for side in self.shape)], dim=1)
        axes = [torch.arange(side, device=device) - (side - 1) / 2 for side in patch]
        self.grid = torch.stack(torch.meshgrid(*axes, indexing="ij")).reshape(3, -1)
        self.within = torch.tensor(self.shape, device=device)
        self.size = torch.tensor(patch, device=device)
        self.clicked = self._clicked()

    @property
    def voxels(self) -> int:
        """How many there are in all scans."""
        return len(self.samples) * self.samples.pixels

    def _clicked(self) -> list[Int[Tensor, " n"]]:
        """Where each class is labelled; where every voxel is, background is left out."""
        labels = self.samples.resident.flatten()
        values = (
            [*range(self.samples.classes)] if bool((labels == UNLABELLED).any()) else [*range(1, self.samples.classes)]
        )
        found = [(labels == value).nonzero()[:, 0].cpu() for value in values]
        generator = torch.Generator().manual_seed(0)
        some = [
            one if len(one) <= CLICKS else one[torch.randperm(len(one), generator=generator)[:CLICKS]] for one in found
        ]
        return [one for one in some if len(one)]

    def draw(self, count: int, generator: torch.Generator) -> Int[Tensor, " count"]:
        """A voxel for each of some patches: labelled ones and any, in turn, as their shares have it."""
        anywhere = torch.randint(self.voxels, (count,), generator=generator)
        if not self.clicked:
            return anywhere
        which = torch.randint(len(self.clicked), (count,), generator=generator).tolist()
        chance = torch.rand(count, generator=generator).tolist()
        labelled = [self.clicked[k][int(part * len(self.clicked[k]))] for k, part in zip(which, chance, strict=True)]
        order = torch.arange(count)
        due = ((order + 1) * self.around_labels).floor() > (order * self.around_labels).floor()
        return torch.where(due, torch.stack(labelled), anywhere)

    def batch(
        self, index: Int[Tensor, " B"], part: Part | None = None, generator: torch.Generator | None = None
    ) -> Batch:
        """Patches that hold some voxels, somewhere in them, augmented; of a batch that is shared, those of a part."""
        device = self.samples.device
        chance = torch.rand(len(index) if part is None else part.whole, 13, generator=generator, device=device)
        chance = chance if part is None else part.take(chance)
        shown = self._shown(index.to(device), chance)
        image = self._image(shown)
        gain = torch.exp((chance[:, 3] * 2 - 1) * math.log(self.augment.contrast)).reshape(-1, 1, 1, 1, 1)
        offset = ((chance[:, 4] * 2 - 1) * self.augment.brightness).reshape(-1, 1, 1, 1, 1)
        changed = torch.where(shown.inside[:, None], image * gain + offset, 0)
        return Batch(_slices(changed), replace(self._annotation(shown), part=part))

    def slices_of(self, index: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """The slices that voxels lie in."""
        return index // math.prod(self.shape)

    def _shown(self, index: Tensor, chance: Tensor) -> Shown:
        height, width = self.shape
        row = index // (height * width)
        scan = self.samples.scans.index[row]
        voxel = torch.stack([row - self.firsts[scan], index // width % height, index % width], dim=1)
        sides = self.sides[scan]
        begin = voxel - (chance[:, :3] * self.size).floor().long()
        room = sides - self.size
        begin = torch.where(room >= 0, torch.minimum(begin.clamp(min=0), room), room.div(2, rounding_mode="floor"))
        matrix, factor, within = self._matrix(chance)
        middle = begin + (self.size - 1) / 2
        # Written out, because a matrix product may be rounded to half precision, which moves voxels.
        moved = torch.stack([matrix[:, :, axis, None] * self.grid[axis] for axis in range(3)]).sum(dim=0)
        places = (moved + middle[..., None]).reshape(-1, 3, *self.patch)
        last = (sides - 1)[..., None, None, None]
        inside = ((places > -0.5) & (places < last + 0.5)).all(dim=1)
        # A turn about the middle may come to lie between two voxels: which of them is the nearest must not depend on
        # rounding.
        near = (places + 1e-4).round().long().clamp(min=0).minimum(last.long())
        rows = self.firsts[scan].reshape(-1, 1, 1, 1) + near[:, 0], near[:, 1], near[:, 2]
        copies = [torch.where(inside, one.reshape(-1, 1, 1, 1), math.inf) for one in (factor, within)]
        return Shown(places, places - last / 2, rows, inside, (copies[0], copies[1]), scan)

    def _matrix(self, chance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From a patch to its scan, about its middle; and how many voxels of it are one there, and within a slice."""
        augment, count = self.augment, len(chance)
        one, zero = torch.ones(count, device=chance.device), torch.zeros(count, device=chance.device)
        angles = (chance[:, 5:8] * 2 - 1) * math.radians(augment.rotate)
        turn = angles[:, 0]
        if augment.quarter:
            turn = turn + (chance[:, 8] * 4).floor() * (math.pi / 2)
        cos, sin = turn.cos(), turn.sin()
        matrix = _rows([one, zero, zero], [zero, cos, -sin], [zero, sin, cos])
        if self.cubic:
            for axis in (1, 2):
                cos, sin = angles[:, axis].cos(), angles[:, axis].sin()
                there, back = sin / self.thick, -sin * self.thick
                if axis == 1:
                    tilt = _rows([cos, zero, there], [zero, one, zero], [back, zero, cos])
                else:
                    tilt = _rows([cos, there, zero], [back, cos, zero], [zero, zero, one])
                matrix = tilt @ matrix
        if augment.flip:
            signs = torch.where(chance[:, 9:12] < 0.5, -1.0, 1.0)
            if augment.flip == "rows":
                signs = torch.stack([one, signs[:, 1], one], dim=1)
            elif augment.flip == "columns":
                signs = torch.stack([one, one, signs[:, 2]], dim=1)
            matrix = matrix * signs[:, None]
        zoom = torch.exp((chance[:, 12] * 2 - 1) * math.log(augment.zoom))
        scale = torch.stack([zoom if self.cubic else one, zoom, zoom], dim=1)
        return matrix / scale[:, None], scale.prod(dim=1), scale[:, 1:].prod(dim=1)

    def _image(self, shown: Shown) -> Float[Tensor, "B C d h w"]:
        """The image at the places of a patch, interpolated linearly; black beyond the scan."""
        images = self.samples.images
        assert isinstance(images, Tensor)
        low = shown.places.floor()
        part = shown.places - low
        last = (self.sides[shown.scan] - 1)[..., None, None, None]
        first = self.firsts[shown.scan].reshape(-1, 1, 1, 1)
        steps = (0, 1) if self.cubic else (0,)
        total = torch.zeros(len(shown.places), images.shape[1], *self.patch, device=images.device)
        for step in itertools.product(steps, (0, 1), (0, 1)):
            at = [low[:, axis].long() + one for axis, one in enumerate(step)]
            weight = torch.ones_like(low[:, 0])
            for axis, one in enumerate(step):
                if axis or self.cubic:
                    weight = weight * (part[:, axis] if one else 1 - part[:, axis])
                weight = torch.where((at[axis] >= 0) & (at[axis] <= last[:, axis]), weight, 0)
            z, y, x = (one.clamp(min=0).minimum(last[:, axis]) for axis, one in enumerate(at))
            for channel in range(images.shape[1]):
                total[:, channel] += weight * images[first + z, channel, y, x].float()
        return total / 255 if images.dtype == torch.uint8 else total

    def _annotation(self, shown: Shown) -> Annotation:
        samples, (rows, _, _) = self.samples, shown.rows
        batch, depth = len(shown.scan), self.patch[0]
        label = torch.where(shown.inside, samples.resident[shown.rows], UNLABELLED).flatten(0, 1)
        slices = rows[:, :, 0, 0].flatten()
        there = shown.inside.flatten(2).any(dim=2).flatten()
        known = there if self.of_slices else torch.zeros_like(there)
        facts = {
            name: torch.where(known.reshape(-1, 1, 1), fact[slices], torch.nan) for name, fact in samples.facts.items()
        }
        owner = torch.arange(batch, device=slices.device).repeat_interleave(depth)
        order = torch.arange(batch * depth, device=slices.device)
        sides = self.sides[shown.scan]
        places = shown.centred.transpose(1, 2).flatten(0, 1)
        outside = (None, None) if self.estimate is None else self.estimate.outside(shown)
        of_slices: tuple[Tensor | None, Tensor | None] = None, None
        if self.estimate is not None and self.of_slices:
            of_slices = self.estimate.outside_of_slices(shown)
        whole = Patches(owner, batch, places, shown.copies[0].flatten(0, 1), sides, *outside)
        alone = Patches(
            order,
            len(order),
            places[:, 1:],
            shown.copies[1].flatten(0, 1),
            self.within.expand(len(order), 2),
            *of_slices,
        )
        weight = samples.label_weight
        rim = (places[:, 1:].abs() > ((self.within - 1) / 2 - 1).reshape(2, 1, 1)).any(dim=1)
        return Annotation(
            label,
            facts,
            in_space({name: fact[shown.scan] for name, fact in samples.scan_facts.items()}),
            whole,
            None if weight is None else weight[slices],
            rim,
            patches=alone,
            index=slices,
            scan_index=shown.scan,
        )


def in_space(facts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Facts of scans as those of volumes: of a position, rows and columns alone are known."""
    positions = [one for name in ("centroid", "offset") for one in (name, *range_of(name))]
    padded = {
        name: torch.cat([torch.full_like(fact[..., :1], torch.nan), fact], dim=2)
        for name, fact in facts.items()
        if name.partition("(")[0] in positions
    }
    return {**facts, **padded}


def whole_volume(labels: Integer[Tensor, "d h w"]) -> tuple[Patches, Patches]:
    """One volume that is shown as it is, as a part of a scan and of its slices."""
    depth, *sides = labels.shape
    device, order = labels.device, range(depth)
    at = torch.tensor([[z, 0, 0] for z in order], device=device)
    whole = Patches.at([0] * depth, at, (1, *sides), (depth, *sides))
    flat = Patches(whole.index, 1, whole.places[:, :, 0], whole.copies[:, 0], whole.sides)
    return flat, Patches.at(order, torch.zeros(depth, 2, dtype=torch.long, device=device), sides, sides)


def _slices(volumes: Float[Tensor, "B C d h w"]) -> Float[Tensor, "N C h w"]:
    return volumes.transpose(1, 2).flatten(0, 1)


def _rows(*rows: list[Tensor]) -> Float[Tensor, "B 3 3"]:
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
