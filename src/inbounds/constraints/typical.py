"""How large a class usually is: what a violation is measured by where weights have no unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions import Statistic, size
from inbounds.regions.facts import range_of


def typical_values(
    facts: Mapping[str, Float[Tensor, "N K _"]],
    statistic: Statistic[...] = size,
    *,
    classes: Sequence[int] | None = None,
    pixels: float,
    share: float = 0.02,
) -> list[float]:
    """For each class the median of what is known of it where it is there, for `Constraint(scale="typical")`.

    A range counts by its middle, one that is open by the end that is known. Of a class whose presence alone is known,
    the typical value is a `share` of the pixels. Compute it once, from all that a training may see, never from a batch.

    Args:
        facts: Of the slices of a training set, or of its scans where whole scans are bounded.
        statistic: What is bounded.
        classes: The classes that are constrained; all but background if not given.
        pixels: Of an image, or of a scan, in the unit of the facts.
        share: Of the pixels, where no value is known.

    Example:
        >>> typical_values({"size": torch.tensor([[[0.0], [90.0]], [[0.0], [0.0]], [[0.0], [110.0]]])}, pixels=4096)
        [100.0]
    """
    if not facts:
        raise ValueError("there are no facts; where nothing is known, give a table of NaN with a column for each class")
    unknown = torch.full_like(next(iter(facts.values()))[..., :1], torch.nan)
    value, low, high = (facts.get(name, unknown) for name in (statistic.fact, *range_of(statistic.fact)))
    value = torch.where(value.isnan(), torch.stack([low, high]).nanmean(dim=0), value)
    found = []
    for k in range(1, value.shape[1]) if classes is None else classes:
        seen = value[:, k].flatten()
        seen = seen[seen > 0]  # which NaN is not
        found.append(float(seen.quantile(0.5)) if len(seen) else share * pixels)
    return found
