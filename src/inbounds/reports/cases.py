"""Which cases to look at: chosen by a rule, never by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inbounds.reports.comparison import Result, classes_of
from inbounds.store.record import Record
from inbounds.store.store import Store


@dataclass(frozen=True)
class View:
    """A slice to look at, chosen by a rule: of the scan that is best, in the middle or worst for a class.

    Attributes:
        klass: The class; empty for all of them together.
        rank: `best`, `median`, `worst`; `first`, `middle`, `last` where no truth can tell.
        record: The scan.
        slice: Its slice with the largest true region of the class; the middle one without truth.
        score: The mean over runs (and classes) of the scan's DSC per volume; `None` without truth.
    """

    klass: str
    rank: str
    record: Record
    slice: int
    score: float | None

    @property
    def position(self) -> int:
        """Of the slice in the store's arrays."""
        return self.record.first + self.slice


def choose(results: Sequence[Result], split: str) -> list[View]:
    """For each class the best, the median and the worst scan, by the mean over runs of DSC per volume.

    Of equal scans the first by name comes first. A scan in which the class is neither there nor predicted is left out.
    """
    store = results[0].run.opened_store()
    return [view for klass in classes_of(results) for view in _choose(results, store, split, klass)]


def choose_for_page(results: Sequence[Result], split: str, many: int = 4) -> list[View]:
    """Several classes in one view; and class by class too, where there are not many and truth tells them apart."""
    classes = classes_of(results)
    together = _choose(results, results[0].run.opened_store(), split, "") if len(classes) > 1 else []
    one_by_one = len(classes) < many and all(view.score is not None for view in together)
    return together + (choose(results, split) if one_by_one else [])


def _choose(results: Sequence[Result], store: Store, split: str, klass: str) -> list[View]:
    tables = [table for result in results for name, table in result.cases.items() if klass in ("", name)]
    scores: dict[str, float] = {}
    for case in sorted({case for table in tables for case in table}):
        values = [table[case] for table in tables if not np.isnan(table.get(case, np.nan))]
        if values:
            scores[case] = float(np.mean(values))
    if not scores:
        if any(record.truth for record in store.records if record.split == split):
            return []
        order = [record.name for record in store.records if record.split == split]
        names = ("first", "middle", "last")
    else:
        order = sorted(scores, key=lambda case: (-scores[case], case))
        names = ("best", "median", "worst")
    ranks: dict[str, list[str]] = {}
    for rank, place in zip(names, (0, (len(order) - 1) // 2, len(order) - 1), strict=True):
        ranks.setdefault(order[place], []).append(rank)
    values = [store.class_index(name) for name in ([klass] if klass else classes_of(results))]
    views = []
    for case, names_of in ranks.items():
        record = store.cases[case]
        fullest = record.slices // 2
        if scores:
            truth = store.truth[record.span]
            fullest = int(np.isin(truth, values).sum(axis=(1, 2)).argmax())
        views.append(View(klass, " and ".join(names_of), record, fullest, scores.get(case)))
    return views
