"""Where intervals come from: what is known of an image, turned into bounds on a statistic.

Every kind of bounds answers one question, `interval(knowledge)`, where the knowledge holds the facts of the classes
to be constrained. It works for any statistic. What an absent region measures depends on the statistic: its size is
0, so `(0, 0)` suppresses it; its centroid or brightness does not exist, so those bounds are open.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.constraints.interval import Interval, Numbers
from inbounds.regions import Statistic, size
from inbounds.regions.facts import range_of
from inbounds.regions.region import fact_name
from inbounds.regions.statistic import Number


@dataclass(frozen=True)
class Knowledge:
    """What bounds may look at.

    Attributes:
        facts: Named facts of the constrained classes, `(N, C, M)`, NaN where unknown.
        like: A tensor of the shape `(N, C, M)`, type and device that the bounds should have.
        fact: The name of the fact that gives the statistic's value.
        presence: The smallest and largest value of a region that is there, if presence says anything.
        tags: Whether presence counts. Bounds on a whole volume are meant to do without.
    """

    facts: Mapping[str, Tensor]
    like: Float[Tensor, "N C M"]
    fact: str
    presence: tuple[Number, Number] | None
    tags: bool = True

    def get(self, name: str) -> Float[Tensor, "N C #M"]:
        """A fact by name."""
        if name not in self.facts:
            have = ", ".join(sorted(self.facts)) or "none"
            raise ValueError(
                f"the bounds need the fact {name!r}, which the annotation does not give (it gives: {have}). A fact "
                "known for some images only is NaN for the others; one of classes taken together, or of a relation, is "
                f"called {fact_name(name, (1, 2))} or {fact_name(name, 1, 2)}"
            )
        fact = self.facts[name]
        if fact.shape[:2] != self.like.shape[:2] or fact.shape[2] not in (1, self.like.shape[2]):
            raise ValueError(
                f"fact {name!r} of shape {tuple(fact.shape)} does not fit values of shape {tuple(self.like.shape)}; a "
                "statistic gives each class a row, takes classes together by classes=[(1, 2)], or says how many it "
                "relates"
            )
        return fact.to(self.like.dtype)


@runtime_checkable
class Bounds(Protocol):
    """Anything that turns knowledge into an interval `(N, C, M)`."""

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        ...


def _where_present(lower: Number, upper: Number, knowledge: Knowledge) -> Interval:
    """`lower` to `upper` where the region is present, the absent interval where it is not, open where unknown."""
    present = knowledge.get("present")
    least, most = _absent(knowledge)
    lower = torch.where(present == 1, lower, torch.where(present == 0, least, -torch.inf))
    upper = torch.where(present == 1, upper, torch.where(present == 0, most, torch.inf))
    like = knowledge.like
    return Interval(lower.to(like.dtype).expand_as(like), upper.to(like.dtype).expand_as(like), trusted=True)


def _absent(knowledge: Knowledge) -> tuple[float, float]:
    """The interval of a region that is not there."""
    return (0.0, 0.0) if knowledge.presence is not None else (-torch.inf, torch.inf)


@dataclass(frozen=True)
class Tags:
    """Image tags, Eq. "tag_bounds": a present region has between one pixel and all of them, an absent one none.

    `(1, |Omega|)` where present, `(0, 0)` where absent, open where nobody has said. Presence bounds a size only: for a
    statistic such as the centroid it says nothing, and the interval is open.
    """

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        lower, upper = knowledge.presence or (-torch.inf, torch.inf)
        return _where_present(lower, upper, knowledge)


@dataclass(frozen=True)
class _Range:
    """A range with one number for all classes, one for each, or one row for each with a number per component."""

    lower: Numbers | Tensor | None = None
    upper: Numbers | Tensor | None = None

    def __post_init__(self) -> None:
        lower, upper = (None if side is None else rows(side) for side in (self.lower, self.upper))
        interval = Interval(lower, upper)
        object.__setattr__(self, "lower", interval.lower.tolist())
        object.__setattr__(self, "upper", interval.upper.tolist())

    def sides(self, like: Float[Tensor, "N C M"]) -> tuple[Float[Tensor, "N C M"], Float[Tensor, "N C M"]]:
        """Both sides, written out on the device: a copy from the host could not be part of a CUDA graph."""
        return fill(self.lower, like), fill(self.upper, like)


def check_share(relative: float | None) -> None:
    """Refuse a margin that was meant as per cent."""
    if relative is not None and relative > 2:
        raise ValueError(f"relative={relative:g} is a margin of {relative:.0%}: 10 % is relative=0.1")
    if relative is not None and relative >= 1:
        warnings.warn(f"relative={relative:g} is a margin of {relative:.0%}: 1 % is relative=0.01", stacklevel=4)


def rows(side: Numbers | Tensor) -> Float[Tensor, "*C_M"]:
    """Numbers as a tensor `()` or `(C, M)`; a flat list is one number per class."""
    wanted = "a bound must be one number, one per class, or a row per class"
    try:
        tensor = torch.as_tensor(side, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{wanted}, not {side!r}") from None
    if isinstance(side, bool):
        raise ValueError(f"{wanted}, not {side!r}")
    if tensor.ndim > 2 or tensor.numel() == 0:
        raise ValueError(f"{wanted}, not shape {tuple(tensor.shape)}")
    return tensor.unsqueeze(-1) if tensor.ndim == 1 else tensor


def fill(side: object, like: Float[Tensor, "N C M"]) -> Float[Tensor, "N C M"]:
    """Numbers written out on the device, one for all or one for each class, or class and component."""
    if not isinstance(side, list):
        return torch.full_like(like, float(side))  # type: ignore[arg-type]
    N, C, M = like.shape
    if len(side) not in (1, C) or len(side[0]) not in (1, M):
        raise ValueError(
            f"bounds for {len(side)} classes and {len(side[0])} components do not fit {C} classes and {M} components"
        )
    columns = [like.new_full((N,), number) for row in side for number in row]
    return torch.stack(columns, dim=-1).reshape(N, len(side), len(side[0])).expand(N, C, M)


@dataclass(frozen=True)
class Fixed(_Range):
    """The same range for every image, whatever its facts and tags. Either side may be `None`.

    Args:
        lower: A number, one for each constrained class, or for each class a list with one number per component.
        upper: Likewise.
    """

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        return Interval(*self.sides(knowledge.like), trusted=True)


@dataclass(frozen=True)
class Common(_Range):
    """One range for all images in which the region is present, Eq. "common_bounds"; `(0, 0)` where it is absent.

    Open where presence is unknown. For statistics of which an absent region has no value, open there too.

    Args:
        lower: A number, one for each constrained class, or for each class a list with one number per component.
        upper: Likewise.

    Example:
        >>> Common(60, 2000)  # the paper's left ventricle
        Common(lower=60.0, upper=2000.0)
    """

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        return _where_present(*self.sides(knowledge.like), knowledge)

    @classmethod
    def around(cls, mean: float | Sequence[float], sd: float | Sequence[float], within: float = 2.0) -> Common:
        """The range of a population, `mean - within sd` to `mean + within sd`; two SD are 95 % of it.

        Args:
            mean: A number, or one for each constrained class.
            sd: Likewise.
            within: How many standard deviations.

        Example:
            >>> Common.around(142, 20)
            Common(lower=102.0, upper=182.0)
        """
        middle, width = rows(mean), within * rows(sd)
        if not bool((middle.isfinite() & width.isfinite() & (width >= 0)).all()):
            raise ValueError(f"a population has a finite mean and an SD of 0 or more, not {mean} and {sd}")
        return cls(middle - width, middle + width)

    @classmethod
    def fit(
        cls,
        facts: Mapping[str, Float[Tensor, "N K M"]],
        statistic: Statistic[...] = size,
        *,
        classes: Sequence[int] | None = None,
        relative: float = 0.1,
    ) -> Common:
        """The range seen in one fully annotated patient, widened: 0.9 times the smallest, 1.1 times the largest.

        Only slices that contain the region count, and of a range both ends. A value below zero is widened away from the
        others too.

        Args:
            facts: The facts of that patient's slices: the statistic's own, its ranges and, if there is one, `present`.
            statistic: What the range is of.
            classes: The classes that will be constrained; all but background if not given.
            relative: By how much to widen.

        Raises:
            ValueError: The patient never shows one of the classes, or the fact is missing.
        """
        names = (statistic.fact, *range_of(statistic.fact))
        unknown = next((torch.full_like(facts[name], torch.nan) for name in names if name in facts), None)
        if unknown is None:
            raise ValueError(f"a range of {statistic.fact} cannot be fitted: there are facts on {sorted(facts)} only")
        values, *ends = (facts.get(name, unknown) for name in names)
        lows, highs = (torch.where(end.isnan(), values, end) for end in ends)
        classes = range(1, values.shape[1]) if classes is None else classes
        if not classes or not all(0 <= k < values.shape[1] for k in classes):
            raise ValueError(f"classes {list(classes)} are not among the {values.shape[1]} of the facts")
        there = ~(lows.isnan() | highs.isnan()).any(dim=-1)
        if "present" in facts:
            there = there & (facts["present"][..., 0] == 1)
        if statistic.presence is not None:
            there = there & (highs > 0).all(dim=-1)
        lower, upper = [], []
        for k in classes:
            seen = there[:, k]
            if not seen.any():
                raise ValueError(f"class {k} appears in none of the {len(values)} slices: fit on another patient")
            low, high = lows[seen, k].amin(dim=0), highs[seen, k].amax(dim=0)
            lower.append((low - relative * low.abs()).tolist())
            upper.append((high + relative * high.abs()).tolist())
        return cls(lower, upper)


@dataclass(frozen=True)
class Individual:
    """A margin around what is known of each image, Eq. "indiv_bounds": `0.9 tau` to `1.1 tau`.

    Where a range is known, the facts `size_min` and `size_max` beside `size`, it is the interval, without a margin; an
    end that is NaN is open. `(0, 0)` where the region is known to be absent (open, if an absent region has no value),
    and open where nothing is known. Over whole volumes tags are not used: the fact alone decides.

    Args:
        relative: The margin as a share of the fact (of its absolute value).
        absolute: Or the margin in the statistic's own unit, such as 5 pixels for a centroid.
        tight: `both` sides, or the `upper` only: `(1, 1.1 tau)`, the paper's rows on spine and prostate, where presence
            alone gives the lower side.
        fact: The fact to go by, if not the one of the statistic's name.

    Example:
        >>> Individual(relative=0.1)  # 90 to 110 pixels for a region measured at 100
        Individual(relative=0.1, absolute=None, tight='both', fact=None)
    """

    relative: float | None = None
    absolute: float | None = None
    tight: Literal["both", "upper"] = "both"
    fact: str | None = None

    def __post_init__(self) -> None:
        margins = [m for m in (self.relative, self.absolute) if m is not None]
        if len(margins) != 1 or not 0 <= margins[0] < float("inf"):
            raise ValueError(
                f"give one margin, relative or absolute, of 0 or more: got relative={self.relative}, "
                f"absolute={self.absolute}"
            )
        check_share(self.relative)
        if self.tight not in ("both", "upper"):
            raise ValueError(f"tight must be 'both' or 'upper', not {self.tight!r}")

    def interval(self, knowledge: Knowledge) -> Interval:
        """The interval for each image, class and component."""
        name, like = self.fact or knowledge.fact, knowledge.like
        ends = [end for end in range_of(name) if end in knowledge.facts]
        nothing = torch.full_like(like, torch.nan) if ends else None
        value = knowledge.get(name).expand_as(like) if nothing is None or name in knowledge.facts else nothing
        margin = torch.full_like(value, self.absolute or 0) if self.relative is None else self.relative * value.abs()
        unknown = value.isnan()
        lower = torch.where(unknown, -torch.inf, value - margin)
        upper = torch.where(unknown, torch.inf, value + margin)
        if nothing is not None:
            low, high = (knowledge.get(end).expand_as(like) if end in ends else nothing for end in range_of(name))
            given = ~(low.isnan() & high.isnan())
            lower = torch.where(given, low.nan_to_num(-torch.inf), lower)
            upper = torch.where(given, high.nan_to_num(torch.inf), upper)
            value = torch.where(given, upper, value)
        if self.tight == "upper":
            if knowledge.presence is None:
                lower = torch.full_like(lower, -torch.inf)
            else:
                lower = torch.where(value > 0, upper.clamp(max=knowledge.presence[0]), lower)
        if knowledge.tags and "present" in knowledge.facts:
            absent = knowledge.get("present") == 0
            least, most = _absent(knowledge)
            lower, upper = torch.where(absent, least, lower), torch.where(absent, most, upper)
        return Interval(lower, upper, trusted=True)
