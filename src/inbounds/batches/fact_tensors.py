"""Facts, between a person's table in original pixels and tensors on the store's grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions import Geometry, statistics
from inbounds.regions.facts import range_of
from inbounds.regions.region import fact_name
from inbounds.store.facts import Fact, Facts, given_columns
from inbounds.store.record import Record
from inbounds.store.store import Store

Table = dict[str, Tensor]


def to_tensors(store: Store, facts: Facts | None, classes: Sequence[int]) -> tuple[Table, Table]:
    """What is known of every slice, and of every scan, on the store's grid.

    Sizes go through crop, pad and resize, positions too, and brightness becomes that of the stored image: of its first
    channel, the others being unknown. Chosen classes become columns 1, 2, ...; column 0 is the background, of which
    nothing is known. NaN means unknown. Where anybody gave a range, its ends are facts too, such as `size_min` and
    `size_max`. A scan's size, if nobody gave it, is the sum over its slices once all of them are known; `added_up` says
    so. Where slices were cropped and a region may reach beyond, `cut` says so; it is NaN where nobody knows. What is
    known of several classes together, or of a relation, has a name of its own, as `fact_name` gives it.

    Returns:
        Facts by name, `(N, K, M)` for slices and `(scans, K, M)` for scans.
    """
    column = {value: number for number, value in enumerate(classes, start=1)}
    order = {record.name: number for number, record in enumerate(store.records)}
    known, related = (
        [
            (fact, _on_grid(fact, store.records[order[fact.case]].geometry(fact.slice)))
            for fact in some
            if all(klass in column for region in fact.key[2] for klass in region)
        ]
        for some in (((), ()) if facts is None else (facts.rows, facts.relations))
    )
    width = {"present": 1}
    for name, columns in given_columns().items():
        ends = [end for end in range_of(name) if any(values.keys() & range_of(name) for _, values in known)]
        width |= dict.fromkeys((name, *ends), store.channels if columns.channels else len(columns.names))
    K, rows = len(column) + 1, (store.slices, len(store.records))
    slices, scans = ({name: torch.full((n, K, m), torch.nan) for name, m in width.items()} for n in rows)
    for fact, values in known:
        scan = order[fact.case]
        record = store.records[scan]
        if fact.slice is None:
            table, rows_of = scans, [scan]
        else:
            table, rows_of = slices, [record.first + number for number in record.showing(fact.slice)]
        for name, value in values.items():
            table[name][rows_of, column[fact.klass], : len(value)] = torch.tensor(value)
    relations = _relations(store, order, related, column, rows)
    for name in given_columns():
        if statistics[name].presence is not None:
            _add_up(store, name, slices, scans)
    if any(_may_be_cut(record) for record in store.records):
        _mark_cut(store, slices, scans)
    return slices | relations[0], scans | relations[1]


def _relations(
    store: Store,
    order: Mapping[str, int],
    known: Sequence[tuple[Fact, Mapping[str, Sequence[float]]]],
    column: Mapping[int, int],
    rows: Sequence[int],
) -> tuple[Table, Table]:
    """What is known of several classes together, and of relations, by names of their own."""
    tables: tuple[Table, Table] = {}, {}
    for fact, values in known:
        record, whole = store.records[order[fact.case]], fact.slice is None
        at = [order[fact.case]] if fact.slice is None else [record.first + n for n in record.showing(fact.slice)]
        regions = [[column[klass] for klass in region] for region in fact.regions]
        for name, value in values.items():
            wide = store.channels if name != "present" and _channels(fact, name) else len(value)
            empty = torch.full((rows[whole], 1, wide), torch.nan)
            tables[whole].setdefault(fact_name(name, *regions), empty)[at, 0, : len(value)] = torch.tensor(value)
    return tables


def _channels(fact: Fact, name: str) -> bool:
    return any(columns.channels for one, columns in fact.columns.items() if name in (one, *range_of(one)))


def _add_up(store: Store, name: str, slices: Table, scans: Table) -> None:
    """What nobody said of a scan, from its slices: their sum, that of their ranges, and presence."""
    sides = [side for side in (name, *range_of(name)) if side in scans]
    added = torch.zeros_like(scans["present"])
    for scan, record in enumerate(store.records):
        unknown = torch.stack([scans[side][scan] for side in sides]).isnan().all(dim=0)
        for side in sides:
            parts = slices[side][record.span]
            total = torch.where(parts.isnan(), slices[name][record.span], parts).sum(dim=0)
            scans[side][scan] = torch.where(unknown & ~parts.isnan().all(dim=0), total, scans[side][scan])
            added[scan] = torch.where(unknown & ~scans[side][scan].isnan(), 1, added[scan])
        known = scans[name][scan]
        implied = torch.where(known.isnan(), torch.nan, (known > 0).float())
        scans["present"][scan] = torch.where(scans["present"][scan].isnan(), implied, scans["present"][scan])
    if bool(added.any()):
        scans["added_up"] = added


def _may_be_cut(record: Record) -> bool:
    """Whether the fit left out part of the slices, and the truth cannot tell that it was background."""
    return record.fit.crops and not (record.truth and record.lost == 0)


def _mark_cut(store: Store, slices: Table, scans: Table) -> None:
    """Say where part of a region may lie outside the grid, which opens its lower bound; NaN where nobody knows."""
    region = region_cut(slices, store.shape)
    slices["cut"], scans["cut"] = (torch.zeros_like(table["present"]) for table in (slices, scans))
    for scan, record in enumerate(store.records):
        if _may_be_cut(record):
            slices["cut"][record.span] = torch.where(slices["present"][record.span] == 0, 0, region[record.span])
            scans["cut"][scan] = any_cut(slices["cut"][record.span], dim=0)


def any_cut(cut: Tensor, dim: int) -> Tensor:
    """Whether any of several is cut: 1 where one is, NaN where one may be, else 0."""
    sure = (cut == 1).any(dim=dim).to(cut.dtype)
    return torch.where((sure == 0) & cut.isnan().any(dim=dim), torch.nan, sure)


def region_cut(facts: Mapping[str, Tensor], sides: tuple[int, int], reach: float = 2.0) -> Float[Tensor, "n K 1"]:
    """Whether a region may reach outside, 1 or 0, NaN where its centre or its size is unknown.

    It is taken to stretch `reach` radii of a disc of its size from its centre.
    """
    worst = (("size", "size_max"), ("centroid", "centroid_min"), ("centroid", "centroid_max"))
    unknown = torch.full_like(next(iter(facts.values()))[..., :1], torch.nan)
    first, second = ([facts.get(name, unknown) for name in names] for names in zip(*worst, strict=True))
    size, low, high = (torch.where(one.isnan(), other, one) for one, other in zip(first, second, strict=True))
    radius = reach * (size / math.pi).sqrt()
    last = torch.stack([size.new_full((), side - 1) for side in sides])
    stays = ((low >= radius) & (high <= last - radius)).all(dim=-1, keepdim=True)
    known = ~torch.cat([size, low, high], dim=-1).isnan().any(dim=-1, keepdim=True)
    return torch.where(known, (~stays).to(size.dtype), torch.nan)


def _on_grid(fact: Fact, geometry: Geometry) -> dict[str, list[float]]:
    """The fact's numbers by name, those of statistics that somebody gave; an absent region measures nothing."""
    there = fact.is_present(geometry)
    values = {} if there is None else {"present": [float(there)]}
    for name, columns in fact.columns.items():
        sides = fact.values(columns, geometry)
        if there is False and statistics[name].presence is not None:
            sides = ([0.0], [math.nan], [math.nan])
        for side, numbers in zip((name, *range_of(name)), sides, strict=True):
            if not all(map(math.isnan, numbers)):
                values[side] = list(columns.to_grid(numbers, geometry))
    return values
