"""What labels and facts say of each other: where both cannot be true, somebody has to look again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.errors import some
from inbounds.store.facts import Fact, Facts, given_columns
from inbounds.store.record import Record
from inbounds.store.store import FULL, Store

MARGIN = 0.15
"""How far off sizes are, as a share, where nobody says so."""
UNIT = 3.0
"""Sizes that are so many times those of masks, or less than such a part of them, are in another unit."""
NAMED = 10
"""So many doubts of one kind are named one by one."""


@dataclass(frozen=True)
class Said:
    """The least and the most pixels of the original file that a fact leaves a region; absent is 0."""

    fact: Fact
    low: float
    high: float


def doubts(store: Store, annotation: str, facts: Facts, margin: float = MARGIN) -> list[str]:
    """Where facts say less than what is labelled, or less of a scan than of its slices, in sentences.

    Args:
        store: With the labels.
        annotation: Their name.
        facts: What is known.
        margin: How far off they may be, as a share.
    """
    labels = store.label(annotation)
    labelled, together = [], []
    for record, said in _by_record(store, facts):
        label = labels[record.span]
        sums: dict[int, float] = {}
        places = record.nearest()
        for one in said:
            fact, whole = one.fact, one.fact.slice is None
            # A pixel of a coarse grid may be labelled by less than all that it covers.
            seen = label if fact.slice is None else label[places[fact.slice]]
            least = np.count_nonzero(seen == fact.klass) / max(1, record.voxel if whole else record.fit.area)
            if _less(one.high, least, margin):
                labelled.append(f"{_where(store, fact)} has {one.high:g} px, and {math.ceil(least)} are labelled")
            if not whole:
                sums[fact.klass] = sums.get(fact.klass, 0) + one.low
        together += [
            f"{_where(store, one.fact)} has {one.high:g} px, and its slices {sums[one.fact.klass]:g}"
            for one in said
            if one.fact.slice is None and _less(one.high, sums.get(one.fact.klass, 0), margin)
        ]
    found = []
    if labelled:
        found.append(f"facts say less than {annotation!r} labels: {some(labelled, NAMED)}; correct one of them")
    if together:
        found.append(f"facts say less of a scan than of its slices: {some(together, NAMED)}; correct one of them")
    return found


def other_unit(store: Store, facts: Facts) -> list[str]:
    """A sentence where sizes are far from those of the full masks that some scans have."""
    ratios = []
    for record, said in _by_record(store, facts):
        if record.truth:
            truth = store.truth[record.span]
            for one in said:
                whole = one.fact.slice is None
                seen = truth if one.fact.slice is None else truth[record.nearest()[one.fact.slice]]
                real = np.count_nonzero(seen == one.fact.klass) / (record.voxel if whole else record.fit.area)
                if real and one.high and math.isfinite(one.high) and not (seen == UNLABELLED).any():
                    ratios.append((one.low + one.high) / 2 / real)
    middle = float(np.median(ratios)) if ratios else 1.0
    if 1 / UNIT <= middle <= UNIT:
        return []
    return [f"sizes are about {middle:.2g} times those of the masks of the same scans: are they in another unit?"]


def of_all(store: Store, facts: Facts) -> list[str]:
    """All that is doubtful of facts that are brought: beside the labels that people gave, and the masks."""
    own = [name for name in store.annotations if name != FULL and not store.about(name).get("simulated")]
    found = [doubt for name in own for doubt in doubts(store, name, facts)]
    return list(dict.fromkeys([*found, *(other_unit(store, facts) if store.has_truth else [])]))


def _less(high: float, least: float, margin: float) -> bool:
    """Whether what is said is less than what is there, by more than facts are off and tables are rounded."""
    return bool(high + 1 < least * (1 - margin) if high else least > 0)


def _by_record(store: Store, facts: Facts) -> Iterator[tuple[Record, Sequence[Said]]]:
    """What is said of sizes, scan by scan."""
    by_case: dict[str, list[Said]] = {}
    columns = given_columns()["size"]
    for fact in facts:
        geometry = store.cases[fact.case].geometry(fact.slice)
        value, low, high = (side[0] for side in fact.values(columns, geometry))
        if fact.is_present(geometry) is False:
            value = low = high = 0.0
        known = [number for number in (low, value, high) if not math.isnan(number)]
        if known:
            least = 0.0 if math.isnan(low) and math.isnan(value) else known[0]
            most = math.inf if math.isnan(high) and math.isnan(value) else known[-1]
            by_case.setdefault(fact.case, []).append(Said(fact, least, most))
    return ((store.cases[case], said) for case, said in by_case.items())


def _where(store: Store, fact: Fact) -> str:
    return (
        f"{fact.case}, {'the whole scan' if fact.slice is None else f'slice {fact.slice}'}, {store.classes[fact.klass]}"
    )
