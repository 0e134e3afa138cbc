"""Facts, between a person's table in original pixels and tensors on the store's grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from inbounds.annotations.facts import Fact, Facts
from inbounds.datasets.store import Record, Store

COMPONENTS = {"present": 1, "size": 1, "centroid": 2, "mean_intensity": 1}
Table = dict[str, Tensor]


def to_tensors(store: Store, facts: Facts | None, classes: Sequence[int]) -> tuple[Table, Table]:
    """What is known of every slice, and of every scan, on the store's grid.

    Sizes go through crop, pad and resize, positions too, and brightness becomes that of the stored image: of its first
    channel, the others being unknown. Chosen classes become columns 1, 2, ...; column 0 is the background, of which
    nothing is known. NaN means unknown. A scan's size, if nobody gave it, is the sum over its slices once all of them
    are known. Where slices were cropped and a region may reach beyond, `cut` says so.

    Returns:
        Facts by name, `(N, K, M)` for slices and `(scans, K, M)` for scans.
    """
    column = {value: number for number, value in enumerate(classes, start=1)}
    rows = (store.slices, len(store.records))
    components = COMPONENTS | {"mean_intensity": store.channels}
    slices, scans = ({name: _unknown(n, len(column) + 1, m) for name, m in components.items()} for n in rows)
    order = {record.name: number for number, record in enumerate(store.records)}
    for fact in facts or ():
        if fact.klass not in column:
            continue
        scan = order[fact.case]
        record = store.records[scan]
        table, row = (scans, scan) if fact.slice is None else (slices, record.first + fact.slice)
        for name, value in _on_grid(fact, record).items():
            table[name][row, column[fact.klass], : len(value)] = torch.tensor(value)
    for scan, record in enumerate(store.records):
        total = slices["size"][record.first : record.first + record.slices].sum(dim=0)
        scans["size"][scan] = torch.where(scans["size"][scan].isnan(), total, scans["size"][scan])
        known = scans["size"][scan]
        told = torch.where(known.isnan(), torch.nan, (known > 0).float())
        scans["present"][scan] = torch.where(scans["present"][scan].isnan(), told, scans["present"][scan])
    if any(_may_be_cut(record) for record in store.records):
        _mark_cut(store, slices, scans)
    return slices, scans


def _may_be_cut(record: Record) -> bool:
    """Whether the fit left out part of the slices, and the truth cannot tell that it was background."""
    return record.fit.crops and not (record.truth and record.lost == 0)


def _mark_cut(store: Store, slices: Table, scans: Table) -> None:
    """Say where part of a region may lie outside the grid, which opens its lower bound."""
    stays = region_stays(slices["centroid"], slices["size"], store.shape)
    slices["cut"], scans["cut"] = (torch.zeros_like(table["present"]) for table in (slices, scans))
    for scan, record in enumerate(store.records):
        if _may_be_cut(record):
            here = slice(record.first, record.range.stop)
            cut = ~stays[here] & (slices["present"][here, :, 0] != 0)
            slices["cut"][here] = cut[..., None].float()
            scans["cut"][scan] = cut.any(dim=0)[:, None].float()


def region_stays(
    centroid: Float[Tensor, "n K 2"], size: Float[Tensor, "n K 1"], sides: tuple[int, int], reach: float = 2.0
) -> Bool[Tensor, "n K"]:
    """Whether a region that stretches `reach` radii of a disc of its size from its centre is inside; unknown is no."""
    radius = reach * (size / math.pi).sqrt()
    last = torch.stack([size.new_full((), side - 1) for side in sides])
    return ((centroid >= radius) & (centroid <= last - radius)).all(dim=-1)


def _unknown(rows: int, columns: int, components: int) -> Tensor:
    return torch.full((rows, columns, components), torch.nan)


def _on_grid(fact: Fact, record: Record) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    present, size = fact.is_present(record.spacing), fact.size(record.spacing)
    if present is not None:
        found["present"] = [float(present)]
        size = size if present else 0.0
    if size is not None:
        found["size"] = [size * record.fit.area]
    if fact.centroid_row is not None and fact.centroid_col is not None:
        found["centroid"] = list(record.fit.point(fact.centroid_row, fact.centroid_col))
    if fact.mean_intensity is not None:
        black, white = record.intensity
        found["mean_intensity"] = [(fact.mean_intensity - black) / (white - black)]
    return found


@dataclass(frozen=True)
class Noise:
    """How far off a person is.

    Attributes:
        size: Standard deviation of sizes, as a share of the size.
        position: Standard deviation of centroids along each axis, in pixels of the store's grid.
    """

    size: float = 0.0
    position: float = 0.0

    def factor(self, rng: np.random.Generator) -> float:
        """What a size is multiplied by: never less than a tenth."""
        return max(0.1, 1 + float(rng.normal(0, self.size))) if self.size else 1.0


def measure(
    store: Store, record: Record, truth: np.ndarray, classes: Sequence[int], rng: np.random.Generator, noise: Noise
) -> list[Fact]:
    """The facts that a careful person would write down for one scan: of each slice, and of the whole."""
    depth, height, width = record.spacing
    images = store.images[record.range.start : record.range.stop, 0].astype(np.float32)
    if store.dtype == np.uint8:
        images /= 255
    black, white = record.intensity
    edge = np.array(record.fit.original) - 0.5
    most = float(np.prod(record.fit.original))
    rows: list[Fact] = []
    for klass in classes:
        voxels, bright = 0.0, 0.0
        for number, (mask, image) in enumerate(zip(truth == klass, images, strict=True)):
            pixels = float(mask.sum()) / record.fit.area
            if not pixels:
                rows.append(Fact(record.name, number, klass, present=False, size_px=0, size_mm2=0))
                continue
            centre = np.argwhere(mask).mean(axis=0) + rng.normal(0, noise.position, size=2)
            row, col = np.clip(record.fit.point_back(*centre), -0.5, edge).tolist()
            mean = float(image[mask].mean())
            told = min(pixels * noise.factor(rng), most)
            rows.append(
                Fact(
                    record.name,
                    number,
                    klass,
                    present=True,
                    size_px=told,
                    size_mm2=told * height * width,
                    centroid_row=row,
                    centroid_col=col,
                    mean_intensity=black + mean * (white - black),
                )
            )
            voxels += pixels
            bright += pixels * mean
        told = min(voxels * noise.factor(rng), most * record.slices)
        rows.append(
            Fact(
                record.name,
                None,
                klass,
                present=voxels > 0,
                size_px=told,
                volume_ml=told * depth * height * width / 1000,
                mean_intensity=black + bright / voxels * (white - black) if voxels else None,
            )
        )
    return rows
