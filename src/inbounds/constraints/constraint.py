"""Constraint = statistic + bounds + penalty."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from inbounds.annotations import Annotation
from inbounds.constraints.bounds import Bounds, Knowledge, Tags, fill, rows
from inbounds.constraints.cut import cut_off
from inbounds.constraints.interval import Interval, Numbers
from inbounds.constraints.known import Known
from inbounds.constraints.multipliers import Multipliers
from inbounds.constraints.penalties import Penalty, quadratic
from inbounds.ranks import mean
from inbounds.regions import Patches, Scans, Statistic
from inbounds.regions.facts import range_of
from inbounds.regions.region import Region, consecutive, facts_of, is_of_several, members, select
from inbounds.regions.scans import total
from inbounds.regions.statistic import Probs, check_probs, may_look, most_probable, one_hot


@dataclass(frozen=True)
class Constraint:
    """Keep a statistic of the predicted region inside bounds.

    Called with probabilities it returns the loss
    `weight * mean(penalty(lower - value) + penalty(value - upper)) / scale`,
    the mean being over images (or scans), classes and components, an open side costing nothing. For size, quadratic and
    weight 0.01 this is the paper's `lambda C(V_S)` (Eq. "Cross-Entropy") divided by the number of pixels `|Omega|`, as
    in the authors' code: only with that division does their 0.01 make sense.

    With `scale="typical"` it is
    `weight * mean(penalty((lower - value) / typical) + penalty((value - upper) / typical))`:
    a weight then means the same for any grid, unit, class and penalty, and for slices as for whole scans.

    Args:
        statistic: What is measured: `size`, `centroid`, ... or your own, made with the `statistic` decorator.
        bounds: Where the interval comes from: `Known`, `Tags`, `Common`, `Individual`, `Fixed`, or your own.
        penalty: What a violation costs: `quadratic`, `hinge`, `log_barrier(t)` or any function of a signed violation;
            or `Multipliers`, which remember images.
        classes: Which regions are constrained, `[1, (2, 3)]` being class 1, and classes 2 and 3 taken together; every
            class but background (0) if not given. A relation is of each region and the next.
        weight: The paper's lambda: a number, or a 0-d tensor.
        scope: `image` measures each image; `volume` measures all slices of a scan together.
        name: What the loss term is called; the statistic's name if not given.
        ramp: `inbounds train` lets the weight rise from 0 to its full value between these shares of the training. In a
            loop of your own, give a tensor as weight and change it there.
        scale: What makes weights comparable: the statistic's `natural` scale, by which the penalty is divided, or what
            is `typical` of each class, by which the violation is divided before the penalty sees it.
        typical: With that scale, a positive number for each constrained class (or one for all, or for each class a list
            with one number per component), such as `typical_values` gives.
        class_weight: How much each region counts, or each relation: what it costs is multiplied by its number. All
            alike, as 1, if not given.

    Example:
        >>> loss = Constraint(size, Fixed(4, 6), weight=0.01)
        >>> loss(torch.full((1, 2, 4, 4), 0.5))  # 8 pixels, 2 too many: 0.01 * 2^2 / 16
        tensor(0.0025)
        >>> Constraint(size, Fixed(4, 6), scale="typical", typical=5)(torch.full((1, 2, 4, 4), 0.5))  # (2 / 5)^2
        tensor(0.1600)
    """

    statistic: Statistic[...]
    bounds: Bounds
    penalty: Penalty = quadratic
    classes: Sequence[Region] | None = None
    weight: float | Tensor = 1.0
    scope: Literal["image", "volume"] = "image"
    name: str = ""
    ramp: tuple[float, float] | None = None
    scale: Literal["natural", "typical"] = "natural"
    typical: Numbers | Tensor | None = None
    class_weight: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise ValueError(f"{self.statistic!r} is no statistic: decorate the function with @inbounds.statistic()")
        if not isinstance(self.bounds, Bounds):
            raise ValueError(
                f"{self.bounds!r} gives no bounds: use Tags, Common, Individual, Fixed, or write `interval`"
            )
        if not callable(self.penalty):
            raise ValueError(f"the penalty must be a function of the violation, not {self.penalty!r}")
        if self.scope not in ("image", "volume"):
            raise ValueError(f"scope must be 'image' or 'volume', not {self.scope!r}")
        if self.scale not in ("natural", "typical"):
            raise ValueError(f"scale must be 'natural' or 'typical', not {self.scale!r}")
        if self.scale == "typical":
            if self.typical is None:
                raise ValueError("a typical scale needs what is typical of each class: see typical_values")
            numbers = rows(self.typical)
            if not bool((numbers.isfinite() & (numbers > 0)).all()):
                raise ValueError(f"typical values must be positive and finite, not {self.typical}")
            object.__setattr__(self, "typical", numbers.tolist())
        if isinstance(self.bounds, Tags) and self.statistic.presence is None:
            warnings.warn(f"tags say nothing about {self.statistic.fact}: this constraint never acts", stacklevel=3)
        check_weight(self.weight)
        if self.classes is not None:
            object.__setattr__(self, "classes", _regions(self.classes))
        relates = self.statistic.relates
        if relates > 1 and (self.classes is None or len(self.classes) < relates):
            raise ValueError(
                f"{self.statistic.fact} is of {relates} regions: name them, such as classes=[1, (1, 2)], which is "
                "class 1 and classes 1 and 2 taken together"
            )
        if self.class_weight is not None:
            weights = rows(self.class_weight)
            if not bool((weights.isfinite() & (weights >= 0)).all()):
                raise ValueError(f"class_weight must be numbers of 0 or more, not {self.class_weight}")
            object.__setattr__(self, "class_weight", weights.tolist())
        if not self.name:
            object.__setattr__(self, "name", self.statistic.fact)

    def __call__(
        self, probs: Probs, image: Float[Tensor, "B M *space"] | None = None, annotation: Annotation | None = None
    ) -> Float[Tensor, ""]:
        """The weighted penalty. `image` is needed by intensity statistics, `annotation` by bounds that use facts."""
        # Both sides in one tensor: half as many small kernels.
        violation = torch.stack(self._sides(probs, image, annotation))
        if self.scale == "typical":
            cost = self._price(violation / fill(self.typical, violation[0]), annotation).sum(dim=0)
        else:
            scale = self.statistic.scale(probs, **self._inputs(image, annotation))
            cost = self._price(violation, annotation).sum(dim=0) / scale
        if self.class_weight is not None:
            cost = cost * fill(self.class_weight, cost)
        if annotation is not None and annotation.scans is not None and self._estimates(annotation):
            cost = annotation.scans.each(cost)  # every image answers for its scan
        return self.weight * mean(cost, None if annotation is None else annotation.part)

    def values(
        self, probs: Probs, image: Tensor | None = None, annotation: Annotation | None = None
    ) -> Float[Tensor, "N C M"]:
        """The statistic of the constrained classes, of each image or scan."""
        check_probs(probs)
        if annotation is not None and annotation.batch != probs.shape[0]:
            raise ValueError(f"annotation of {annotation.batch} images for probabilities of {probs.shape[0]}")
        if annotation is not None and self._estimates(annotation):
            return self._whole(probs, annotation)[0]
        classes = constrained(self.classes, probs.shape[1])
        given = self._inputs(image, annotation)
        if isinstance(scans := given["scans"], Patches) and annotation is not None:
            given["scans"] = self._calibrated(scans.chosen(classes), probs, annotation)
        return self.statistic(select(probs, classes), **given)

    def _estimates(self, annotation: Annotation) -> bool:
        """Whether scans are measured by some of their slices and what is remembered of the others."""
        return self.scope == "volume" and annotation.rest is not None

    def _whole(self, probs: Tensor, annotation: Annotation) -> tuple[Float[Tensor, "S C 1"], Bool[Tensor, "S C 1"]]:
        """The size of each scan so estimated, and whether all of it is known."""
        rest, scans, classes = annotation.rest, annotation.scans, constrained(self.classes, probs.shape[1])
        if rest is None or scans is None or self.statistic.presence is None:
            raise ValueError(f"{self.statistic.fact} of whole scans does not add up from slices: use batches of scans")
        sizes = self.statistic(select(probs, classes), **self.statistic.inputs(None, None))
        return rest.of(classes).whole(sizes, cut_off(probs, annotation, classes), scans)

    def groups(self, K: int) -> list[tuple[Region, ...]]:
        """What each row of values is of: a region, or the regions that are related."""
        return consecutive(constrained(self.classes, K), self.statistic.relates)

    def interval(self, probs: Probs, image: Tensor | None = None, annotation: Annotation | None = None) -> Interval:
        """The bounds of the constrained classes, of each image or scan."""
        return self._interval(self.values(probs, image, annotation), probs, image, annotation)

    def violation(
        self, probs: Probs, image: Tensor | None = None, annotation: Annotation | None = None, *, hard: bool = False
    ) -> Float[Tensor, "N C M"]:
        """By how much the nearer bound is overstepped, in the statistic's own unit; 0 or less means inside.

        Soft by default: of the probabilities, which the penalty acts on. With `hard`, of the mask that the network
        would output, in which every pixel belongs to its most probable class. The two can be far apart.
        """
        if hard:
            check_probs(probs)
            probs = one_hot(most_probable(probs), probs.shape[1]).to(probs.dtype)
        below, above = self._sides(probs, image, annotation)
        return torch.maximum(below, above)

    def satisfied(
        self, probs: Probs, image: Tensor | None = None, annotation: Annotation | None = None, *, hard: bool = False
    ) -> tuple[Bool[Tensor, " N"], Bool[Tensor, " N"]]:
        """Whether each image or scan keeps to all its bounds; and whether it has any: what is unknown is kept to."""
        return kept(self.violation(probs, image, annotation, hard=hard))

    def _sides(self, probs: Tensor, image: Tensor | None, annotation: Annotation | None) -> tuple[Tensor, Tensor]:
        values = self.values(probs, image, annotation)
        interval = self._interval(values, probs, image, annotation)
        return interval.lower - values, values - interval.upper

    def _interval(self, values: Tensor, probs: Tensor, image: Tensor | None, annotation: Annotation | None) -> Interval:
        presence = self.statistic.presence
        knowledge = Knowledge(
            facts=self._facts(probs.shape[1], annotation),
            like=values.detach(),
            fact=self.statistic.fact,
            presence=presence and presence(probs, **self._inputs(image, annotation)),
            tags=self.scope == "image",
        )
        interval = self.bounds.interval(knowledge)
        if self.scope == "volume" and probs.ndim == 4 and annotation is not None and annotation.scans is None:
            self._check_slices(annotation)  # a volume, or the only image, is a scan by itself
        if annotation is not None and self._estimates(annotation):
            # What is not known of a scan can only make it larger; slices that are cut count as remembered.
            lower = torch.where(self._whole(probs, annotation)[1], interval.lower, -torch.inf)
            interval = Interval(lower, interval.upper, trusted=True)
        elif annotation is not None and ((patches := self._patches(annotation)) or self._may_be_cut(annotation)):
            # Part of the region may lie outside the image: it can only be smaller, and its average may be any.
            classes = constrained(self.classes, probs.shape[1])
            cut = torch.zeros_like(values[:, :1, :1], dtype=torch.bool)
            if self._may_be_cut(annotation):
                cut = cut_off(probs, annotation, classes, self.scope)
            if patches is not None:
                cut = cut | ~patches.chosen(classes).complete()
            if self.statistic.relates > 1:
                cut = torch.stack([cut[:, n : n + values.shape[1]] for n in range(self.statistic.relates)]).any(dim=0)
            lower = torch.where(cut, -torch.inf, interval.lower)
            upper = interval.upper if presence is not None else torch.where(cut, torch.inf, interval.upper)
            interval = Interval(lower, upper, trusted=True)
        # Where regions may lie outside, as where augmentation enlarged them, a size may well be above the image's.
        partly = annotation is not None and (self._estimates(annotation) or self._may_be_cut(annotation))
        if may_look(values) and knowledge.presence is not None and not partly:
            self._check_sizes(knowledge, interval)
        for side in (interval.lower, interval.upper):
            lengths = zip(side.shape[::-1], values.shape[::-1], strict=False)
            if side.ndim > 3 or any(n not in (1, m) for n, m in lengths):
                raise ValueError(
                    f"bounds of shape {tuple(side.shape)} do not fit values of shape {tuple(values.shape)}"
                )
        return interval

    def _check_slices(self, annotation: Annotation) -> None:
        """Refuse bounds on scans where every slice would be taken for a scan."""
        if annotation.batch > 1 and (annotation.scan_facts or not isinstance(self.bounds, Known)):
            raise ValueError(
                f"{self.name} bounds whole scans, and the annotation does not say which slices make up a scan: give "
                "Annotation(scans=Scans.of(names))"
            )

    def _check_sizes(self, knowledge: Knowledge, interval: Interval) -> None:
        """Refuse a region that is larger than its image, unless part of it may lie outside."""
        assert knowledge.presence is not None
        most, own = knowledge.presence[1], getattr(self.bounds, "fact", None) or knowledge.fact
        for name in {own, *range_of(own)} & knowledge.facts.keys():
            # A scan of which the batch shows nothing measures nothing, and is not judged.
            above = (knowledge.facts[name] > 1.01 * most) & (most > 0) & (interval.lower > -torch.inf)
            if bool(above.any()):
                at = tuple(above.nonzero()[0].tolist())
                raise ValueError(
                    f"fact {name!r} is {float(knowledge.facts[name][at]):g} for image (or scan) {at[0]}, which "
                    f"measures {float(torch.as_tensor(most).max()):g} as a whole: check the unit"
                )

    def _facts(self, K: int, annotation: Annotation | None) -> Mapping[str, Tensor]:
        if annotation is None:
            return {}
        known = annotation.facts
        facts = dict(annotation.scan_facts if self.scope == "volume" else known)
        own = getattr(self.bounds, "fact", None) or self.statistic.fact
        names = (own, *range_of(own))
        added = self.scope == "volume" and not isinstance(self.bounds, Known)
        summed = added and self.statistic.presence is not None
        if summed and not any(name in facts for name in names):  # as the compiler can follow it
            facts |= {name: total(known[name], annotation.scans) for name in names if name in known}
        for name, fact in facts.items():
            if fact.shape[1] != (1 if is_of_several(name) else K):
                raise ValueError(f"fact {name!r} has {fact.shape[1]} columns, but the prediction has {K} classes")
        adds_up = self.statistic.presence is not None
        return facts_of(facts, constrained(self.classes, K), self.statistic.relates, names, adds_up=adds_up)

    def _price(self, violation: Float[Tensor, "2 N C M"], annotation: Annotation | None) -> Float[Tensor, "2 N C M"]:
        """The penalty, with open sides kept away from it: there is no logarithm of infinity."""
        if isinstance(self.penalty, Multipliers):
            if annotation is None:
                return self.penalty.price(violation, None)
            index = annotation.index if self.scope == "image" else annotation.scan_index
            # Scans that processes share have one value on all of them; images are each on one.
            together = self.scope == "volume" and annotation.scans is not None and annotation.scans.part is not None
            return self.penalty.price(violation, index, None if together else annotation.part)
        open_side = violation == -torch.inf
        return torch.where(open_side, 0, self.penalty(torch.where(open_side, -1, violation)))

    def _may_be_cut(self, annotation: Annotation) -> bool:
        return "cut" in (annotation.scan_facts if self.scope == "volume" else annotation.facts)

    def _inputs(self, image: Tensor | None, annotation: Annotation | None) -> dict[str, Tensor | Scans | None]:
        if annotation is None:
            return self.statistic.inputs(image, None)
        scans = annotation.scans if self.scope == "volume" else annotation.patches
        return self.statistic.inputs(image, scans)

    def _calibrated(self, patches: Patches, probs: Tensor, annotation: Annotation) -> Patches:
        """Patches whose rest is estimated as the bounds allow, where these are on sizes."""
        if patches.found is None or self.statistic.presence is None:
            return patches
        presence = self.statistic.presence(probs, **self._inputs(None, annotation))
        pixel, found = presence[0], patches.found
        facts = self._facts(probs.shape[1], annotation)
        knowledge = Knowledge(facts, found, self.statistic.fact, presence, self.scope == "image")
        bounds = self.bounds.interval(knowledge)
        return patches.within(bounds.lower / pixel, bounds.upper / pixel)

    def _patches(self, annotation: Annotation) -> Patches | None:
        """Which parts of what is measured the batch shows, where it does not show all."""
        scans = annotation.scans if self.scope == "volume" else annotation.patches
        return scans if isinstance(scans, Patches) else None


def check_weight(weight: object) -> None:
    """Refuse what cannot be the weight of a loss term."""
    if isinstance(weight, Tensor) and weight.ndim:
        raise ValueError(f"weight must be a number or a 0-d tensor, not of shape {tuple(weight.shape)}")
    if not isinstance(weight, Tensor | int | float) or not 0 <= float(weight) < math.inf:
        raise ValueError(f"weight must be a number of 0 or more, or a 0-d tensor with one, not {weight!r}")


def constrained(classes: Sequence[Region] | None, K: int) -> list[Region]:
    """The chosen regions of a prediction of `K` classes: every class but the background, if none are named."""
    chosen: list[Region] = list(range(1, K)) if classes is None else list(classes)
    if not chosen or max(k for region in chosen for k in members(region)) >= K:
        raise ValueError(f"classes {chosen} cannot be constrained in a prediction of {K} classes")
    return chosen


def _regions(classes: Sequence[Region]) -> tuple[Region, ...]:
    """Regions as they were meant: different from each other, each of different classes."""
    wrong = f"classes must be different numbers of 0 or more, or several of them in brackets, not {classes}"
    if isinstance(classes, int | str) or not classes:
        raise ValueError(wrong)
    found: list[Region] = []
    for region in classes:
        some = members(region)
        if not some or len(set(some)) < len(some) or not all(type(k) is int and k >= 0 for k in some):
            raise ValueError(wrong)
        found.append(some[0] if len(some) == 1 else tuple(sorted(some)))
    if len(set(found)) < len(found):
        raise ValueError(wrong)
    return tuple(found)


def kept(violation: Float[Tensor, "N *any"]) -> tuple[Bool[Tensor, " N"], Bool[Tensor, " N"]]:
    """From violations: whether each image or scan keeps to all bounds, and whether there are any."""
    flat = violation.flatten(1)
    return (flat <= 0).all(dim=1), (flat > -torch.inf).any(dim=1)
