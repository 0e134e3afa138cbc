"""Facts, between a person's table in original pixels and tensors on the store's grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from inbounds.store.facts import Fact, Facts
from inbounds.store.record import Record
from inbounds.store.store import Store

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
    components, K = COMPONENTS | {"mean_intensity": store.channels}, len(column) + 1
    rows = (store.slices, len(store.records))
    slices, scans = ({name: torch.full((n, K, m), torch.nan) for name, m in components.items()} for n in rows)
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
        implied = torch.where(known.isnan(), torch.nan, (known > 0).float())
        scans["present"][scan] = torch.where(scans["present"][scan].isnan(), implied, scans["present"][scan])
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


def _on_grid(fact: Fact, record: Record) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    present, size = fact.is_present(record.spacing), fact.size(record.spacing)
    if present is not None:
        values["present"] = [float(present)]
        size = size if present else 0.0
    if size is not None:
        values["size"] = [size * record.fit.area]
    if fact.centroid_row is not None and fact.centroid_col is not None:
        values["centroid"] = list(record.fit.point(fact.centroid_row, fact.centroid_col))
    if fact.mean_intensity is not None:
        black, white = record.intensity
        values["mean_intensity"] = [(fact.mean_intensity - black) / (white - black)]
    return values
