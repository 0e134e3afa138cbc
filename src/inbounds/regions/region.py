"""A region is a class, or several classes taken together; and what facts say of such regions.

The probability of several classes is the sum of theirs. What is known of them stands under a name of its own:
`size(1+2)` is the size of classes 1 and 2 together, `ratio(1:2)` the ratio of class 1 to class 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Shaped
from torch import Tensor

Region: TypeAlias = int | Sequence[int]
"""A class, or several."""


def members(region: Region) -> tuple[int, ...]:
    """The classes of a region."""
    return (region,) if isinstance(region, int) else tuple(region)


def select(x: Shaped[Tensor, "B K *rest"], regions: Sequence[Region]) -> Shaped[Tensor, "B R *rest"]:
    """Some regions of `(B, K, ...)`. Indexing with a list would copy that list to the device at every step.

    Example:
        >>> select(torch.tensor([[0.5, 0.25, 0.25]]), [1, (0, 2)])
        tensor([[0.2500, 0.7500]])
    """
    classes = [members(region) for region in regions]
    flat = [k for some in classes for k in some]
    if len(flat) == len(classes) and flat == list(range(flat[0], flat[-1] + 1)):
        return x[:, flat[0] : flat[-1] + 1]
    parts = [[x[:, k] for k in some] for some in classes]
    return torch.stack([sum(some[1:], some[0]) for some in parts], dim=1)


def any_of(x: Shaped[Tensor, "B K *rest"], regions: Sequence[Region]) -> Shaped[Tensor, "B R *rest"]:
    """Whether any class of a region has it; of numbers the largest, NaN where one is NaN and none is 1."""
    classes = [members(region) for region in regions]
    if all(len(some) == 1 for some in classes):
        return select(x, regions)
    parts = [torch.stack([x[:, k] for k in some]) for some in classes]
    if x.dtype == torch.bool:
        return torch.stack([some.any(dim=0) for some in parts], dim=1)
    return torch.stack([torch.where((some == 1).any(dim=0), 1, some.amax(dim=0)) for some in parts], dim=1)


def consecutive(regions: Sequence[Region], relates: int) -> list[tuple[Region, ...]]:
    """What each value of a statistic is of: a region, or a region and those that follow it."""
    return [tuple(regions[first : first + relates]) for first in range(len(regions) - relates + 1)]


def spelled(group: Sequence[Region], names: Sequence[str]) -> str:
    """Regions by the names of classes, background first: `LV+MYO`, `LV:RV`."""
    return ":".join("+".join(names[k] for k in members(region)) for region in group)


def fact_name(name: str, *regions: Region) -> str:
    """Under which name a fact stands that is of several classes, or of several regions.

    Example:
        >>> fact_name("size", (1, 2)), fact_name("ratio", 1, (1, 2))
        ('size(1+2)', 'ratio(1:1+2)')
    """
    return f"{name}({':'.join('+'.join(map(str, sorted(members(region)))) for region in regions)})"


def is_of_several(name: str) -> bool:
    """Whether a fact has a column of its own, and not one for each class."""
    return name.endswith(")")


def suffixes(names: Iterable[str]) -> list[str]:
    """The regions that facts are of, as their names have it; nothing for facts of classes."""
    return list(dict.fromkeys(f"({name.partition('(')[2]}" if is_of_several(name) else "" for name in names))


def facts_of(
    facts: Mapping[str, Tensor], regions: Sequence[Region], relates: int, names: Sequence[str], *, adds_up: bool
) -> dict[str, Tensor]:
    """What is known of regions, from what is known of classes and of these regions themselves.

    Of several classes together: what somebody said of them; else their sum, if the statistic adds up and all parts are
    known. They are there if one of them is, and absent if all are. A relation is known if somebody gave it, and there
    if all its regions are.

    Args:
        facts: Of classes, `(N, K, M)`, and of regions, `(N, 1, M)`, as `fact_name` calls them.
        regions: Which regions.
        relates: How many of them a value is of.
        names: The fact and its ends, `size`, `size_min`, `size_max`.
        adds_up: Whether that of several classes is the sum of theirs.
    """
    plain = {name: fact for name, fact in facts.items() if not is_of_several(name)}
    if relates == 1 and all(len(members(region)) == 1 for region in regions):
        return {name: select(fact, regions) for name, fact in plain.items()}
    groups = consecutive(regions, relates)
    found: dict[str, Tensor] = {}
    for name in ("cut", "added_up"):
        if name in plain and relates == 1:
            found[name] = any_of(plain[name], regions)
    there = None
    if "present" in plain:
        each = any_of(plain["present"], regions)
        windows = torch.stack([each[:, n : n + len(groups)] for n in range(relates)])
        there = torch.where((windows == 0).any(dim=0), 0, windows.amin(dim=0))
    said = [{name: facts[key][:, 0] for name in names if (key := fact_name(name, *group)) in facts} for group in groups]
    for name in names:
        columns = [_column(plain, name, names[0], group, own, adds_up) for group, own in zip(groups, said, strict=True)]
        if known := [column for column in columns if column is not None]:
            unknown = torch.full_like(known[0], torch.nan)
            found[name] = torch.stack([unknown if column is None else column for column in columns], dim=1)
    own_tags = [facts.get(fact_name("present", *group)) for group in groups]
    if given := [tag for tag in own_tags if tag is not None]:
        unknown = torch.full_like(given[0], torch.nan)
        own_there = torch.cat([unknown if tag is None else tag for tag in own_tags], dim=1)
        there = own_there if there is None else torch.where(own_there.isnan(), there, own_there)
    return found if there is None else found | {"present": there}


def _column(
    plain: Mapping[str, Tensor],
    name: str,
    value: str,
    group: Sequence[Region],
    own: Mapping[str, Tensor],
    adds_up: bool,
) -> Tensor | None:
    """A fact of one region or relation, `(N, M)`; `None` where nobody can say anything."""
    one = group[0]
    added = None
    if len(group) == 1 and name in plain and (adds_up or len(members(one)) == 1):
        parts = torch.stack([plain[name][:, k] for k in members(one)])
        nothing = parts.isnan().all(dim=0)
        if name != value and value in plain:  # an end that is not known is the number itself
            parts = torch.where(parts.isnan(), torch.stack([plain[value][:, k] for k in members(one)]), parts)
        added = torch.where(nothing, torch.nan, parts.sum(dim=0))
    if not own:
        return added
    said = ~torch.stack([fact.isnan() for fact in own.values()]).all(dim=0)
    mine = own.get(name, torch.full_like(next(iter(own.values())), torch.nan))
    return mine if added is None else torch.where(said, mine, added)
