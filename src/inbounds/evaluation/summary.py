"""What a run achieved, from the table of all that was measured."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from inbounds.runs.table import Row

Summary = dict[str, dict[str, dict[str, float | int | None]]]
"""By metric, then class: `mean`, `std`, `median`, `n` and `n_nan`."""


def summarise(rows: Iterable[Row]) -> Summary:
    """What a run achieved: of each metric and class the `mean`, `std` and `median`, over slices or over volumes.

    NaN values are left out and counted: `n` values were averaged, `n_nan` did not exist. `std` is that of a sample
    (divided by n - 1). What cannot be computed is `None`, which JSON writes as null: a mean of no values, the spread
    of a single one.

    Example:
        >>> dice = {"ann": 0.5, "bob": 1.0, "eve": math.nan}
        >>> rows = [Row(epoch=9, split="test", case=case, metric="dice", value=value) for case, value in dice.items()]
        >>> summarise(rows)["dice"][""]
        {'mean': 0.75, 'std': 0.3535533905932738, 'median': 0.75, 'n': 2, 'n_nan': 1}
    """
    groups: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row.metric][row.klass].append(row.value)
    return {
        metric: {klass: _statistics(group) for klass, group in by_class.items()} for metric, by_class in groups.items()
    }


def _statistics(measured: list[float]) -> dict[str, float | int | None]:
    values = np.array(measured, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    with np.errstate(invalid="ignore"):  # an infinite value has no spread
        numbers = {
            "mean": float(values.mean()) if n else math.nan,
            "std": float(values.std(ddof=1)) if n > 1 else math.nan,
            "median": float(np.median(values)) if n else math.nan,
        }
    finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
    return {**finite, "n": n, "n_nan": len(measured) - n}
