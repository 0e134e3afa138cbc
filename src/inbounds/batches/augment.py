"""Augmentation of whole batches on the device. What happens to an image happens to what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.fact_tensors import any_cut, region_cut
from inbounds.batches.samples import Batch
from inbounds.regions import Motion, statistics
from inbounds.regions.facts import range_of, turned
from inbounds.store.facts import given_columns


@dataclass(frozen=True)
class Augment:
    """Random flips, turns, shifts, zooms and changes of brightness, one of each per image (per scan, for whole scans).

    Image, label, truth and facts move together: a zoom scales sizes, a flip mirrors centroids, a change of contrast
    changes the mean intensity. Where a region may have left the frame, the fact `cut` says so: its lower bounds open,
    and its centre and brightness become unknown. It is NaN where nobody knows, as without a centre: what reaches the
    `rim` then decides. What comes into the frame is black and unlabelled.

    Attributes:
        flip: Mirror rows, columns, both or neither; with `"columns"`, change left and right alone (with `"rows"`, top
            and bottom).
        quarter: Turn by 0, 90, 180 or 270 degrees (square images only).
        rotate: Turn freely, by up to so many degrees either way.
        translate: Shift along each axis by up to this share of the image's side.
        zoom: Enlarge or shrink by up to this factor: 1.2 stands for 1/1.2 to 1.2.
        contrast: Multiply the brightness by up to this factor or its inverse.
        brightness: Add up to this much, where the image runs from 0 to 1.
        reach: How far a region may stretch from its centre, in radii of a disc of its size. With a known centre and
            size it says whether the region may have left the frame; raise it for long or scattered regions.
    """

    flip: bool | Literal["rows", "columns"] = False
    quarter: bool = False
    rotate: float = 0.0
    translate: float = 0.0
    zoom: float = 1.0
    contrast: float = 1.0
    brightness: float = 0.0
    reach: float = 2.0

    def __post_init__(self) -> None:
        if self.zoom < 1 or self.contrast < 1:
            raise ValueError(f"zoom and contrast are factors of 1 or more, not {self.zoom} and {self.contrast}")
        if self.rotate < 0 or self.translate < 0 or self.brightness < 0:
            raise ValueError("rotate, translate and brightness are 0 or more")
        if self.flip not in (False, True, "rows", "columns"):
            raise ValueError(f'flip is true, false, "rows" or "columns", not {self.flip!r}')

    @property
    def stays_on_grid(self) -> bool:
        """Whether pixels only change places, so that nothing can leave the frame and nothing is interpolated."""
        return self.rotate == 0 and self.translate == 0 and self.zoom == 1

    def __call__(
        self, batch: Batch, truth: Tensor | None = None, generator: torch.Generator | None = None
    ) -> tuple[Batch, Tensor | None]:
        """A changed batch, and the truth changed with it if it is given (for looking, never for a loss).

        Where several processes share a batch, each draws for all of it, so that numbers are those of one process.
        """
        annotation = batch.annotation
        scans = annotation.scans
        shared = annotation.part if scans is None else None
        draws = annotation.batch if scans is None else scans.count
        chance = torch.rand(shared.whole if shared else draws, 9, generator=generator, device=batch.image.device)
        chance = shared.take(chance) if shared else chance
        motion = self._motion(batch.image, chance)
        each = motion if scans is None else motion.each(scans)
        image = batch.image * each.gain[:, None, None, None] + each.offset[:, None, None, None]
        grid = _grid(image, each)
        image = functional.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        label = _sample(annotation.label, grid, outside=UNLABELLED)
        facts = self._facts(dict(annotation.facts), each)
        scan_facts = {}
        if annotation.scan_facts:
            # A scan is cut where any of its slices is.
            cut = None
            if scans is not None and "cut" in facts:
                sure, unknown = (scans.total(one.float()) > 0 for one in (facts["cut"] == 1, facts["cut"].isnan()))
                cut = torch.where(unknown & ~sure, torch.nan, sure.float())
            scan_facts = self._facts(dict(annotation.scan_facts), motion, cut)
        rim = None if annotation.rim is None else _sample(annotation.rim, grid, outside=0)
        if not self.stays_on_grid:
            rim = _rim(grid, each) if rim is None else rim | _rim(grid, each)
        changed = replace(annotation, label=label, facts=facts, scan_facts=scan_facts, rim=rim)
        moved = Batch(image, changed, None if self.zoom == 1 else each.factor)
        return moved, None if truth is None else _sample(truth, grid, outside=0)

    def _motion(self, image: Tensor, chance: Tensor) -> Motion:
        """What is drawn: one of each for an image or scan."""
        height, width = image.shape[-2:]
        angle = (chance[:, 0] * 2 - 1) * math.radians(self.rotate)
        if self.quarter:
            if height != width:
                raise ValueError(f"quarter turns need square images, not {height}x{width}")
            angle = angle + (chance[:, 1] * 4).floor() * (math.pi / 2)
        cos, sin = angle.cos(), angle.sin()
        turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], dim=-2)
        if self.flip:
            signs = torch.where(chance[:, 2:4] < 0.5, -1.0, 1.0)
            if isinstance(self.flip, str):
                signs[:, 1 if self.flip == "rows" else 0] = 1.0
            turn = turn * signs[:, None, :]
        side = torch.stack([chance.new_full((), height), chance.new_full((), width)])
        shift = (chance[:, 4:6] * 2 - 1) * self.translate * side
        factor = torch.exp((chance[:, 6] * 2 - 1) * math.log(self.zoom))
        gain = torch.exp((chance[:, 7] * 2 - 1) * math.log(self.contrast))
        offset = (chance[:, 8] * 2 - 1) * self.brightness
        return Motion((height, width), turn, shift, factor, gain, offset)

    def _facts(self, facts: dict[str, Tensor], motion: Motion, cut: Tensor | None = None) -> dict[str, Tensor]:
        for name, columns in (*given_columns().items(), *given_columns(2).items()):
            facts |= columns.follow(facts, name, motion)
        if self.stays_on_grid or not facts:
            return facts
        if cut is None:
            cut = torch.where(_whole_frame_stays(motion)[:, None, None], 0, region_cut(facts, motion.sides, self.reach))
            if "present" in facts:
                cut = torch.where(facts["present"] == 0, 0, cut)
        if "cut" in facts:
            cut = any_cut(torch.stack([cut, facts["cut"]]), dim=0)
        gone = cut == 1
        for name in [name for name in given_columns() if statistics[name].presence is None]:
            facts |= {one: torch.where(gone, torch.nan, facts[one]) for one in (name, *range_of(name)) if one in facts}
        return facts | {"cut": cut}


def _grid(image: Tensor, motion: Motion) -> Float[Tensor, "n H W 2"]:
    """For each pixel of the result where it comes from, in the coordinates of `grid_sample`."""
    height, width = image.shape[-2:]
    axes = [torch.arange(side, device=image.device, dtype=image.dtype) for side in (height, width)]
    pixels = torch.stack(torch.meshgrid(axes, indexing="ij"), dim=-1).reshape(1, -1, 2)
    middle = motion.middle()
    centred = (pixels - middle - motion.shift[:, None, :]) / motion.factor[:, None, None]
    source = turned(motion.turn.transpose(1, 2), centred) + middle
    row, column = source.unbind(-1)
    grid = torch.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], dim=-1)
    return grid.reshape(-1, height, width, 2)


def _sample(label: Tensor, grid: Tensor, *, outside: int) -> Tensor:
    """Nearest neighbours; `grid_sample` fills with 0, so labels are moved until the filling is 0."""
    moved = (label.to(grid.dtype) - outside)[:, None]
    taken = functional.grid_sample(moved, grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return (taken[:, 0] + outside).round().to(label.dtype)


def _rim(grid: Float[Tensor, "n H W 2"], motion: Motion) -> Bool[Tensor, "n H W"]:
    """Pixels within one of the frame as it was, wherever it lies now, and the outermost ring."""
    height, width = motion.sides
    sides = torch.stack([grid.new_full((), width), grid.new_full((), height)])
    # How far a pixel lies outside the frame along each axis, in pixels of the result; inside it is negative.
    beyond = ((grid.abs() - 1) * sides / 2 * motion.factor[:, None, None, None]).amax(dim=-1)
    rim = beyond.abs() <= 1
    rim[:, 0] = rim[:, -1] = rim[:, :, 0] = rim[:, :, -1] = True
    return rim


def _whole_frame_stays(motion: Motion) -> Bool[Tensor, " n"]:
    height, width = motion.sides
    ends = [[r, c] for r in (0.0, height - 1.0) for c in (0.0, width - 1.0)]
    corners = torch.stack([torch.stack([motion.turn.new_full((), v) for v in corner]) for corner in ends])
    moved = motion.points(corners.expand(len(motion.turn), -1, -1))
    slack = 1e-3
    return ((moved >= -slack) & (moved <= 2 * motion.middle() + slack)).all(dim=-1).all(dim=-1)
