"""The supervisions of the paper by name.

Each takes its settings as keywords; the defaults are those of the paper's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from inbounds.constraints import Common, Constraint, Individual, Known, Tags
from inbounds.constraints.bounds import Bounds
from inbounds.constraints.interval import Numbers
from inbounds.errors import nearest
from inbounds.losses import Ascent, Exact, Projection, Proposals
from inbounds.regions import Region, compactness, size
from inbounds.regions import centroid as centroid_of
from inbounds.supervision.supervision import Supervision

Classes: TypeAlias = Sequence[Region] | None
Scope: TypeAlias = Literal["image", "volume"]
Sides: TypeAlias = Literal["both", "upper"]
ASCENT, EXACT = Ascent(), Exact()


def _sized(bounds: Bounds, weight: float, classes: Classes, scope: Scope = "image") -> Supervision:
    return Supervision(constraints=[Constraint(size, bounds, weight=weight, classes=classes, scope=scope)])


def known(*, relative: float = 0.15, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """Labelled pixels and all that is known of sizes, of slices and of whole scans: presence, numbers, ranges."""
    slices = Constraint(size, Known(relative=relative), weight=weight, classes=classes)
    return Supervision(constraints=[slices, replace(slices, scope="volume", name="volume")])


def full() -> Supervision:
    """Cross-entropy on complete labels."""
    return Supervision()


def partial() -> Supervision:
    """Cross-entropy on the labelled pixels alone: the paper's lower baseline."""
    return Supervision()


def tags(*, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """Labelled pixels, and whether the region is there."""
    return _sized(Tags(), weight, classes)


def common(*, lower: Numbers = 60, upper: Numbers = 2000, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """Labelled pixels, tags, and one size range for all: 60 to 2000 pixels for the left ventricle in ACDC."""
    return _sized(Common(lower, upper), weight, classes)


def individual(*, relative: float = 0.1, weight: float = 0.05, classes: Classes = None) -> Supervision:
    """Labelled pixels, tags, and each image's own size within 10 %. Weight 0.05, as the authors ran it on ACDC."""
    return _sized(Individual(relative=relative), weight, classes)


def individual_upper(*, relative: float = 0.1, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """As `individual` with the upper side tight only, `(1, 1.1 tau)`: the paper's rows on spine and prostate."""
    return _sized(Individual(relative=relative, tight="upper"), weight, classes)


def volume(*, relative: float = 0.1, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """Labelled pixels and the volume of each whole scan within 10 %, without tags. A batch holds whole scans."""
    return _sized(Individual(relative=relative), weight, classes, scope="volume")


def centroid(
    *,
    lower: Numbers = 60,
    upper: Numbers = 2000,
    weight: float = 0.01,
    absolute: float = 5.0,
    centroid_weight: float = 10.0,
    classes: Classes = None,
) -> Supervision:
    """As `common`, and the centre of each region within 5 pixels of where a person put it.

    The paper proposes this as future work and gives no weight. A region 20 pixels off along one axis of a 256x256 image
    costs as much as one about 240 pixels too large.
    """
    sized = common(lower=lower, upper=upper, weight=weight, classes=classes)
    where = Constraint(centroid_of, Individual(absolute=absolute), weight=centroid_weight, classes=classes)
    return Supervision(constraints=[*sized.constraints, where])


def compact(*, upper: Numbers = 20, weight: float = 0.01, classes: Classes = None) -> Supervision:
    """As `tags`, and no region with more border for its size than allowed: a disc has 14, a square 16."""
    shape = Constraint(compactness, Common(None, upper), weight=weight, classes=classes)
    return Supervision(constraints=[*tags(classes=classes).constraints, shape])


def _proposed(
    bounds: Bounds, project: Projection, harden: bool, classes: Classes, sides: Sides = "both", scope: Scope = "image"
) -> Supervision:
    bounded = _sized(bounds, 0.0, classes, scope)
    return replace(bounded, proposals=Proposals(bounded.constraints[0], project, harden, sides))


def proposals_tags(*, project: Projection = ASCENT, harden: bool = True, classes: Classes = None) -> Supervision:
    """Lagrangian proposals from labelled pixels and tags. As the authors ran it, absence alone acts: `(0, 0)`."""
    return _proposed(Tags(), project, harden, classes, sides="upper")


def proposals_common(
    *,
    lower: Numbers = 60,
    upper: Numbers = 2000,
    project: Projection = ASCENT,
    harden: bool = True,
    classes: Classes = None,
) -> Supervision:
    """Lagrangian proposals from labelled pixels, tags, and one size range for all."""
    return _proposed(Common(lower, upper), project, harden, classes)


def proposals_individual(
    *, relative: float = 0.1, project: Projection = ASCENT, harden: bool = True, classes: Classes = None
) -> Supervision:
    """Lagrangian proposals from labelled pixels, tags, and each image's own size within 10 %."""
    return _proposed(Individual(relative=relative), project, harden, classes)


def proposals_volume(
    *, relative: float = 0.1, project: Projection = EXACT, harden: bool = True, classes: Classes = None
) -> Supervision:
    """Lagrangian proposals from labelled pixels and the volume of each whole scan, which the paper could not run."""
    return _proposed(Individual(relative=relative), project, harden, classes, scope="volume")


Recipe: TypeAlias = Callable[..., Supervision]


class _Recipes(dict[str, Recipe]):
    """Recipes by name; a name that is not there is answered with what there is."""

    def __missing__(self, name: str) -> Recipe:
        raise KeyError(f"no recipe {name!r}; {nearest(name, self)}")


_DIRECT: tuple[Recipe, ...] = (
    known,
    full,
    partial,
    tags,
    common,
    individual,
    individual_upper,
    volume,
    centroid,
    compact,
)
_PROPOSED: tuple[Recipe, ...] = (proposals_tags, proposals_common, proposals_individual, proposals_volume)
recipes = _Recipes({recipe.__name__: recipe for recipe in (*_DIRECT, *_PROPOSED)})
