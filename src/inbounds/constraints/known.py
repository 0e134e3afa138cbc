"""Bounds from all that is known of a region, each fact as far as it is given."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from inbounds.constraints.bounds import Fixed, Knowledge, check_share, fill
from inbounds.constraints.interval import Interval, Numbers
from inbounds.regions.facts import range_of


@dataclass(frozen=True)
class Known:
    """What all facts of an image, or of a scan, allow together: the intersection of what each of them says.

    | fact | says |
    |---|---|
    | `present` | 1 pixel or more (or all, where less is known to be there); none, where the region is absent |
    | the image's own size | that, within `relative` |
    | its own range | that, without a margin |
    | the range common to all | `lower` to `upper`, where the region is known to be there |

    Open where nothing is known; a fact that an annotation lacks is unknown. Over whole scans the facts of scans count
    alone, not what was added up from slices (where the fact `added_up` is 1). Facts that exclude each other are for
    `contradiction` to find; where nobody looked, the smaller is taken.

    Args:
        relative: The margin around a number, as a share of it.
        lower: Of the range common to all, if there is one: a number, or one for each constrained class.
        upper: Likewise.

    Example:
        >>> Known(upper=105)  # 85 to 105 pixels for a region measured at 100, 1 to 105 for one that is just there
        Known(relative=0.15, lower=None, upper=105.0)
    """

    relative: float = 0.15
    lower: Numbers | None = None
    upper: Numbers | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.relative < float("inf"):
            raise ValueError(f"the margin must be a share of 0 or more, not relative={self.relative}")
        check_share(self.relative)
        common = Fixed(self.lower, self.upper)  # looks at the numbers
        for side in ("lower", "upper"):
            if getattr(self, side) is not None:
                object.__setattr__(self, side, getattr(common, side))

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        open_side = torch.full_like(knowledge.like, torch.inf)
        lower, upper = -open_side, open_side
        for one in self._said(knowledge).values():
            lower, upper = torch.maximum(lower, one.lower), torch.minimum(upper, one.upper)
        return Interval(torch.minimum(lower, upper), upper, trusted=True)

    def contradiction(self, knowledge: Knowledge) -> tuple[tuple[int, ...], str, str] | None:
        """The first image, class and component of which two facts cannot both be true, and what these say.

        It looks at numbers, so it has its place before a training, not in it.
        """
        for (one, first), (other, second) in combinations(self._said(knowledge).items(), 2):
            lower, upper = torch.maximum(first.lower, second.lower), torch.minimum(first.upper, second.upper)
            empty = lower - upper > 1e-5 * lower.abs()  # what a table rounds is no contradiction
            if bool(empty.any()):
                at = tuple(empty.nonzero()[0].tolist())
                return at, f"{one} ({_text(first, at)})", f"{other} ({_text(second, at)})"
        return None

    def _said(self, knowledge: Knowledge) -> dict[str, Interval]:
        """What each fact says by itself, open where it says nothing."""
        name, like = knowledge.fact, knowledge.like
        unknown = torch.full_like(like, torch.nan)

        given = knowledge.facts.get("added_up", torch.zeros_like(unknown)) != 1

        def get(fact: str) -> Tensor:
            return torch.where(given, knowledge.get(fact), unknown) if fact in knowledge.facts else unknown

        present, value = get("present"), get(name)
        low, high = (get(end) for end in range_of(name))
        margin = self.relative * value.abs()
        said = {
            f"its own {name}": _interval(value - margin, value + margin),
            f"its own range of {name}": _interval(low, high),
        }
        if knowledge.presence is not None:
            absent = torch.where(present == 0, 0, unknown)
            least = torch.where(present == 1, knowledge.presence[0], absent)
            for most in (value + margin, high):  # a coarse grid may leave less than a pixel of what is there
                least = torch.where(most > 0, torch.minimum(least, most), least)
            said["presence"] = _interval(least, absent)
        if self.lower is not None or self.upper is not None:
            sides = (unknown if side is None else fill(side, like) for side in (self.lower, self.upper))
            said["the range common to all"] = _interval(*(torch.where(present == 1, one, unknown) for one in sides))
        return said


def _interval(lower: Tensor, upper: Tensor) -> Interval:
    """An interval whose unknown sides are open."""
    return Interval(
        torch.where(lower.isnan(), -torch.inf, lower), torch.where(upper.isnan(), torch.inf, upper), trusted=True
    )


def _text(interval: Interval, at: tuple[int, ...]) -> str:
    lower, upper = float(interval.lower[at]), float(interval.upper[at])
    if lower == upper:
        return f"{lower:.6g}"
    if upper == torch.inf:
        return f"at least {lower:.6g}"
    return f"at most {upper:.6g}" if lower == -torch.inf else f"{lower:.6g} to {upper:.6g}"
