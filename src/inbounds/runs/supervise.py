"""From settings to a supervision."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from inbounds.batches.fact_tensors import to_tensors
from inbounds.config import ConstraintSettings, ProposalSettings, Settings
from inbounds.constraints import Bounds, Common, Constraint, Fixed, Individual, Tags, hinge, log_barrier, quadratic
from inbounds.errors import BadInput, nearest
from inbounds.losses import Ascent, Exact, Proposals
from inbounds.regions import border, moment, size, statistics
from inbounds.store.store import Store
from inbounds.supervision import Supervision, recipes


def known_recipe(name: str) -> str:
    """The name of a recipe, or a refusal that names the nearest."""
    if name not in recipes:
        raise BadInput(f"no recipe {name!r}; {nearest(name, recipes)}")
    return name


def takes_common(recipe: str) -> bool:
    """Whether a recipe has one range for all images."""
    return "lower" in inspect.signature(recipes[recipe]).parameters


def supervision_of(settings: Settings, store: Store, classes: Sequence[str], facts: str | None) -> Supervision:
    """The supervision that the settings describe.

    Args:
        settings: Of the run.
        store: Where the facts are, for bounds that are fitted on a patient.
        classes: The chosen classes, in the order of the network's outputs 1, 2, ...
        facts: The name of the facts, if there are any.
    """
    build = recipes[known_recipe(settings.recipe)]
    takes = inspect.signature(build).parameters
    given: dict[str, Any] = {
        name: value
        for name in ("weight", "relative", "absolute", "centroid_weight")
        if (value := getattr(settings, name)) is not None
    }
    if takes_common(settings.recipe):
        given |= _common_range(settings, store, classes, facts)
    given |= _proposals(settings.proposals, settings.recipe, takes)
    if unused := [name for name in given if name not in takes]:
        raise BadInput(f"the recipe {settings.recipe!r} has no {unused[0]!r}; it takes {', '.join(takes) or 'nothing'}")
    try:
        made = _tightened(build(**given), settings.tighten)
        extra = [_constraint(written, classes, number) for number, written in enumerate(settings.constraints, start=1)]
        return replace(made, constraints=[*made.constraints, *extra])
    except ValueError as error:
        raise BadInput(str(error)) from None


def _tightened(made: Supervision, share: float) -> Supervision:
    """The same, aiming at sizes well within their bounds. Tags are left alone: they bound nothing that is close."""

    def aiming(one: Constraint) -> Constraint:
        return replace(one, tighten=share) if one.statistic == size and not isinstance(one.bounds, Tags) else one

    proposals = made.proposals
    if isinstance(proposals, Proposals):
        proposals = replace(proposals, constraint=aiming(proposals.constraint))
    return replace(made, constraints=[aiming(one) for one in made.constraints], proposals=proposals)


def _common_range(settings: Settings, store: Store, classes: Sequence[str], facts: str | None) -> dict[str, Any]:
    common = settings.common
    if common.patient is None:
        return {side: value for side in ("lower", "upper") if (value := getattr(common, side)) is not None}
    records = [record for record in store.records if record.patient == common.patient]
    if not records or facts is None:
        patients = sorted({record.patient for record in store.records})
        missing = f"no patient {common.patient!r}; {nearest(common.patient, patients)}"
        what = "there are no facts" if records else missing
        raise BadInput(f"{store.path}: common bounds cannot be fitted: {what}")
    table, _ = to_tensors(store, store.facts(facts), [store.class_index(name) for name in classes])
    rows = [position for record in records for position in record.range]
    try:
        fitted = Common.fit({name: fact[rows] for name, fact in table.items()})
    except ValueError as error:
        raise BadInput(f"{store.path}, patient {common.patient}: {error}") from None
    return {"lower": fitted.lower, "upper": fitted.upper}


def _proposals(written: ProposalSettings, recipe: str, takes: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    chosen = written.model_dump(exclude_none=True)
    if not chosen:
        return {}
    if "project" not in takes:
        raise BadInput(f"the recipe {recipe!r} makes no proposals: leave proposals.{next(iter(chosen))} out")
    given: dict[str, Any] = {"harden": chosen.pop("harden")} if "harden" in chosen else {}
    method = chosen.pop("method", "exact" if takes["project"].default == Exact() else "ascent")
    if method == "ascent":
        return given | {"project": Ascent(**chosen)}
    if chosen:
        raise BadInput(
            f"proposals.{next(iter(chosen))} belongs to the ascent: leave it out, or set proposals.method=ascent"
        )
    return given | {"project": Exact()}


def _constraint(written: ConstraintSettings, classes: Sequence[str], number: int) -> Constraint:
    chosen = None
    if written.classes is not None:
        if unknown := [name for name in written.classes if name not in classes]:
            raise BadInput(
                f"constraint {number}: class {unknown[0]!r} is not trained; trained are {', '.join(classes)}"
            )
        chosen = [classes.index(name) + 1 for name in written.classes]
    bounds: Bounds
    if written.bounds == "tags":
        bounds = Tags()
    elif written.bounds == "individual":
        bounds = Individual(written.relative, written.absolute, written.tight)
    else:
        bounds = (Common if written.bounds == "common" else Fixed)(written.lower, written.upper)
    penalty = {"quadratic": quadratic, "hinge": hinge}.get(written.penalty) or log_barrier(written.t)
    statistic = statistics[written.statistic]
    if statistic is moment:
        statistic = moment.using(order=written.order)
    elif statistic is border:
        statistic = border.using(edge=written.edge, reach=written.reach, framed=written.framed, power=written.power)
    return Constraint(
        statistic,
        bounds,
        penalty,
        classes=chosen,
        weight=written.weight,
        scope=written.scope,
        name=written.name or f"{written.statistic}_{number}",
        wish=written.wish,
        tighten=written.tighten,
        fades=written.fades,
    )
