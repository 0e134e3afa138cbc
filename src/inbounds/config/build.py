"""The one way from settings to objects: a network, a supervision."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inbounds.batches.fact_tensors import Table, to_tensors
from inbounds.config.settings import PARTS, Network, Settings
from inbounds.config.volumes import in_dimensions, patch_of
from inbounds.constraints import Bounds, Common, Constraint, Individual, Knowledge, Known, kinds, typical_values
from inbounds.constraints.constraint import constrained
from inbounds.constraints.penalties import Penalty, penalties
from inbounds.errors import BadInput, nearest, reason
from inbounds.losses import Proposals, cross_entropy, projections
from inbounds.memory import require
from inbounds.networks import InitialShare, Volumetric, build, networks
from inbounds.networks.build import built
from inbounds.networks.needs import weights, without_memory
from inbounds.networks.offline import offline
from inbounds.regions import Motion, Region, Statistic, statistics
from inbounds.regions.facts import range_of
from inbounds.regions.region import consecutive, fact_name, facts_of, spelled
from inbounds.regularisers import Regulariser, regularisers
from inbounds.store.facts import given_columns
from inbounds.store.store import Store
from inbounds.supervision import Supervision, recipes

REGISTRIES: dict[str, Mapping[str, Any]] = {
    "statistic": statistics,
    "bounds": kinds,
    "penalty": penalties,
    "term": regularisers,
    "project": projections,
    "network": networks,
}
GIVEN = {
    "statistic": ("probs", "image", "scans"),
    "term": ("probs", "image"),
    "penalty": ("violation", "images", "regions", "components", "values"),
}
"""Arguments that a thing gets when it is called, not from settings."""
_trusted: set[str] = set()


def trust(module: str) -> None:
    """Import a module that a person named, so that settings may use what is in it as `module:name`.

    Nothing else is ever imported: what a store or a run names must have been trusted before.
    """
    if module in _trusted:
        return
    sys.path.insert(0, str(Path.cwd()))
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever a module raises while it is imported
        raise BadInput(f"{module}: cannot be imported ({error!r}); check the name, and where it lies") from None
    finally:
        sys.path.pop(0)
    _trusted.add(module)


def modules_of(settings: Mapping[str, Any]) -> set[str]:
    """The modules whose code settings name as `module:name`."""
    parts = (name.partition(":") for name in _names(settings))
    return {module for module, colon, _ in parts if colon} - {"monai"}


def trusted(settings: Settings) -> list[str]:
    """Those of them that a person named."""
    return sorted(modules_of(settings.model_dump()) & _trusted)


def _names(content: Any, key: str = "") -> Iterable[str]:
    """The names of all things that settings choose."""
    if key in PARTS and isinstance(content, str):
        yield content
    if not isinstance(content, dict):
        return
    name = content.get(PARTS.get(key, "name" if key == "network" else ""))
    if isinstance(name, str):
        yield name
    for inner, value in content.items():
        yield from _names(value, inner)


def thing(what: str, name: Any) -> Any:
    """A thing by its name, or by `module:name` from a module that a person named."""
    known = REGISTRIES[what]
    if name in known:
        return known[name]
    module, colon, attribute = str(name).partition(":")
    if colon and module in _trusted:
        value: Any = getattr(sys.modules[module], attribute, None)
        if value is None:
            raise BadInput(f"{what} {name!r}: {module} has no {attribute!r}")
        return value
    if colon and module != "monai":
        raise BadInput(f"{what} {name!r}: no settings load code by themselves; name it with --import {module}")
    raise BadInput(f"no {what} {name!r}; {nearest(str(name), known)}")


def arguments(what: str, name: str = "") -> list[str]:
    """The arguments that settings may give a thing; of all things of its kind, if none is named."""
    if not name:
        return sorted({key for each in REGISTRIES[what] for key in arguments(what, each)})
    function = thing(what, name)
    names = inspect.signature(getattr(function, "function", function)).parameters
    fitted = ["patient", "mean", "sd"] if function is Common else []  # instead of a range
    return [key for key in names if key not in GIVEN.get(what, ())] + fitted


def _part(what: str, written: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A thing and its arguments, once the thing is known to take them."""
    label = PARTS[what]
    if label not in written:
        raise BadInput(f"{what}: say which, as {{{label} = ...}}; {nearest('', REGISTRIES[what])}")
    given = {key: value for key, value in written.items() if key != label}
    takes = arguments(what, written[label])
    for key in given:
        if key not in takes:
            raise BadInput(f"{what} {written[label]!r} has no argument {key!r}; {nearest(key, takes)}")
    return thing(what, written[label]), given


def check(settings: Settings) -> None:
    """Refuse what no run could do: a thing that does not exist or take its arguments, bounds that nobody can know."""
    for name, constraint in settings.constraints.items():
        with _naming(f"constraints.{name}"):
            statistic, _ = _part("statistic", constraint.statistic)
            if not isinstance(statistic, Statistic):
                raise BadInput(
                    f"{constraint.statistic['name']} is no statistic: decorate it with @inbounds.statistic()"
                )
            kind, given = _part("bounds", constraint.bounds)
            _part("penalty", constraint.penalty)
            if constraint.scale == "typical" and statistic.presence is None:
                raise BadInput(f'nothing is typical of {statistic.fact}; leave it at scale = "natural"')
            fact = given.get("fact") or statistic.fact
            augment = settings.augment
            turned = [name for name in ("flip", "quarter", "rotate") if getattr(augment, name)]
            if turned and kind in (kinds["common"], kinds["fixed"]) and _turns(statistic):
                raise BadInput(
                    f"{constraint.bounds['kind']} bounds on {statistic.fact} are the same for images that augmentation "
                    f"turns; set {' '.join(f'augment.{name}=false' for name in turned)}, or bring facts, which turn too"
                )
            if kind is kinds["individual"] and fact not in (columns := given_columns(statistic.relates)):
                known = ", ".join(columns)
                raise BadInput(f"individual bounds on {fact!r}, of which no fact exists; there are: {known}")
    for name, regulariser in settings.regularisers.items():
        with _naming(f"regularisers.{name}"):
            _part("term", regulariser.term)
    if settings.proposals is not None:
        with _naming("proposals"):
            _part("project", settings.proposals.project)


def _turns(statistic: Statistic[...]) -> bool:
    """Whether its values change when an image is turned upside down."""
    columns, one = statistic.columns, torch.ones(1)
    if columns is None or columns.channels:
        return False
    motion = Motion((2, 2), -torch.eye(2)[None], torch.zeros(1, 2), one, one, torch.zeros(1))
    value = torch.ones(1, 1, len(columns.names))
    return not torch.equal(columns.moved(value, motion), value)


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Say where in the settings something is wrong."""
    try:
        yield
    except Exception as error:  # whatever a thing of a person's own raises
        raise BadInput(f"{where}: {reason(error)}") from None


def known_recipe(name: str) -> str:
    """The name of a recipe, or a refusal that names the nearest."""
    if name not in recipes:
        raise BadInput(f"no recipe {name!r}; {nearest(name, recipes)}")
    return name


def expanded(recipe: str) -> dict[str, Any]:
    """The settings that a recipe stands for."""
    supervision = recipes[recipe]()
    content: dict[str, Any] = {}
    if supervision.constraints:
        content["constraints"] = {one.name: _written(one) for one in supervision.constraints}
    if isinstance(proposals := supervision.proposals, Proposals):
        project = _named("project", proposals.project)
        content["proposals"] = {"project": project, "harden": proposals.harden, "sides": proposals.sides}
    return content


def _written(constraint: Constraint) -> dict[str, Any]:
    bounds = _named("bounds", constraint.bounds)
    statistic = {"name": constraint.statistic.fact}
    scale = {} if constraint.scale == "natural" else {"scale": constraint.scale}
    return {"statistic": statistic, "bounds": bounds, "weight": constraint.weight, "scope": constraint.scope, **scale}


def _named(what: str, value: Any) -> dict[str, Any]:
    """A thing that remembers its arguments, as settings write it: its name, and what is not as by default."""
    name = next(name for name, kind in REGISTRIES[what].items() if kind is type(value))
    given = {each.name: getattr(value, each.name) for each in fields(value)}
    usual = {each.name: each.default for each in fields(value) if each.default is not MISSING}
    return {PARTS[what]: name} | {key: item for key, item in given.items() if key not in usual or usual[key] != item}


def network_of(settings: Network, channels: int, classes: int, patch: Sequence[int] | None = None) -> nn.Module:
    """The network that the settings describe, untrained. Nothing is fetched for it.

    One that sees volumes takes stacks of slices as `Volumetric` does, with windows as large as a patch.

    Raises:
        BadInput: There is no such network, or it does not take these settings.
    """
    name, given = settings.name, "".join(f", {key}={value}" for key, value in settings.settings.items())
    with _naming(f"network.name={name}"):
        shapes = without_memory(lambda: _network_of(settings, channels, classes))
    if shapes is not None:
        require(weights(shapes), f"network.name={name}{given[:200]}: the network", "choose a smaller one")
    made = _network_of(settings, channels, classes)
    return made if settings.dimensions == 2 else Volumetric(made, patch_of(patch), classes)


def _network_of(settings: Network, channels: int, classes: int) -> nn.Module:
    name = settings.name
    builder = thing("network", name) if ":" in name and not name.startswith("monai:") else None
    with _naming(f"network.name={name}"), offline():
        given = in_dimensions(settings)
        if builder is None:
            made = build(name, channels, classes, **given)
        else:
            made = built(name, builder, channels, classes, given)
    if not settings.initial_share:
        return made
    with _naming(f"network.initial_share={settings.initial_share}"):
        return InitialShare(made, settings.initial_share, classes)


def supervision_of(settings: Settings, store: Store, classes: Sequence[str], facts: str | None) -> Supervision:
    """The supervision that the settings describe.

    Args:
        settings: Of the run.
        store: Where the facts are, for bounds that are fitted on a patient.
        classes: The chosen classes, in the order of the network's outputs 1, 2, ...
        facts: The name of the facts, if there are any.
    """

    def chosen(name: str, written: Sequence[str] | None) -> list[Region] | None:
        return None if written is None else [_region(name, one, classes) for one in written]

    @cache
    def tables() -> tuple[Table, Table]:
        known = None if facts is None else store.facts(facts)
        return to_tensors(store, known, [store.class_index(name) for name in classes])

    constraints, terms, K = {}, [], len(classes) + 1
    for name, written in settings.constraints.items():
        with _naming(f"constraints.{name}"):
            statistic, given = _part("statistic", written.statistic)
            numbers = chosen(name, written.classes)
            bounds = _bounds(written.bounds, statistic, store, None if facts is None else tables, numbers, K)
            own = (fact := getattr(bounds, "fact", None) or statistic.fact, *range_of(fact))
            several = [
                group for group in _groups(statistic, numbers) if len(group) > 1 or not isinstance(group[0], int)
            ]
            if several and isinstance(bounds, Individual) and statistic.presence is None:
                table = tables()[written.scope == "volume"]
                if not any(fact_name(end, *group) in table for end in own for group in several):
                    called = spelled(several[0], ["background", *classes])
                    raise BadInput(f"nobody gave the {fact} of {called}; bring facts whose class is {called}")
            if isinstance(bounds, Known):
                _refuse_contradiction(bounds, statistic, store, classes, tables(), written.scope, numbers)
            typical = None
            if written.scale == "typical":
                typical = _typical(store, tables(), written.scope, statistic, numbers, K)
            constraints[name] = Constraint(
                statistic.using(**given) if given else statistic,
                bounds,
                _penalty(written.penalty),
                classes=numbers,
                weight=written.weight,
                scope=written.scope,
                name=name,
                ramp=written.ramp,
                scale=written.scale,
                typical=typical,
                class_weight=written.class_weight,
            )
    for name, regulariser in settings.regularisers.items():
        with _naming(f"regularisers.{name}"):
            term, given = _part("term", regulariser.term)
            how = regulariser.model_dump(include={"weight", "schedule", "where"})
            of = None if regulariser.classes is None else _classes(name, regulariser.classes, classes)
            terms.append(Regulariser(partial(term, **given), classes=of, name=name, **how))
    proposals = None
    if settings.proposals is not None:
        with _naming("proposals"):
            project, given = _part("project", settings.proposals.project)
            how = settings.proposals.model_dump(include={"harden", "sides"})
            if "size" not in constraints:
                raise BadInput("they keep to bounds called 'size', and there are none")
            proposals = Proposals(constraints["size"], project(**given), **how)
    with _naming("settings"):
        weights = settings.training.class_weight
        if weights is not None and len(weights) != len(classes) + 1:
            raise BadInput(
                f"training.class_weight: {len(weights)} weights for {len(classes) + 1} classes; give as many"
            )
        label_loss = partial(cross_entropy, class_weight=weights, mean=settings.training.label_mean)
        return Supervision(label_loss, list(constraints.values()), proposals, terms)


def _classes(name: str, written: Iterable[str], classes: Sequence[str]) -> list[int]:
    """Classes by the numbers of the network's outputs."""
    names = list(written)
    if unknown := [klass for klass in names if klass not in classes]:
        raise BadInput(f"{name}: class {unknown[0]!r} is not trained; trained are {', '.join(classes)}")
    return [classes.index(klass) + 1 for klass in names]


def _region(name: str, written: str, classes: Sequence[str]) -> Region:
    """A class, or several as `LV+MYO`, by the numbers of the network's outputs."""
    numbers = _classes(name, [written] if written in classes else map(str.strip, written.split("+")), classes)
    return numbers[0] if len(numbers) == 1 else tuple(sorted(numbers))


def _groups(statistic: Statistic[...], regions: Sequence[Region] | None) -> list[tuple[Region, ...]]:
    """What values are of, where regions are named."""
    return [] if regions is None else consecutive(regions, statistic.relates)


def _of_regions(table: Table, statistic: Statistic[...], regions: Sequence[Region]) -> Table:
    """What is known of some regions, or of relations between them."""
    names = (statistic.fact, *range_of(statistic.fact))
    return facts_of(table, regions, statistic.relates, names, adds_up=statistic.presence is not None)


def _refuse_contradiction(
    bounds: Known,
    statistic: Statistic[...],
    store: Store,
    classes: Sequence[str],
    tables: tuple[Table, Table],
    scope: str,
    chosen: Sequence[Region] | None,
) -> None:
    """Refuse facts that cannot all be true, before anything is trained on them."""
    regions = constrained(chosen, len(classes) + 1)
    facts = _of_regions(tables[scope == "volume"], statistic, regions)
    if statistic.fact not in facts:
        return
    presence = statistic.presence and statistic.presence(torch.empty(1, 1, *store.shape))
    found = bounds.contradiction(Knowledge(facts, facts[statistic.fact], statistic.fact, presence))
    if found is None:
        return
    (row, column, _), one, other = found
    if scope == "volume":
        where = store.records[row].name
    else:
        record = next(record for record in store.records if row in record.range)
        where = f"{record.name}, slice {row - record.first}"
    name = spelled(consecutive(regions, statistic.relates)[column], ["background", *classes])
    raise BadInput(
        f"{store.path}: {where}, class {name}: {one} and {other} exclude each other, in pixels of the store's grid; "
        "correct one of them"
    )


def _typical(
    store: Store,
    tables: tuple[Table, Table],
    scope: str,
    statistic: Statistic[...],
    chosen: Sequence[Region] | None,
    K: int,
) -> list[float]:
    """What is typical of each class in the training set, on the store's grid: of its slices, or of its scans."""
    depths = [record.slices for record in store.records if record.split == "train"]
    if not depths:
        raise BadInput(f"{store.path}: no scan is in the split 'train'")
    pixels = math.prod(store.shape) * (sum(depths) / len(depths) if scope == "volume" else 1)
    regions = constrained(chosen, K)
    known = _of_regions(in_training(store, tables, scope), statistic, regions)
    return typical_values(known, statistic, classes=range(len(regions)), pixels=pixels)


def in_training(store: Store, tables: tuple[Table, Table], scope: str) -> Table:
    """What is known of the slices of the training set, or of its scans."""
    numbers = [n for n, record in enumerate(store.records) if record.split == "train"]
    rows = numbers if scope == "volume" else [row for n in numbers for row in store.records[n].range]
    return {name: fact[rows] for name, fact in tables[scope == "volume"].items()}


def _penalty(written: Mapping[str, Any]) -> Penalty:
    function, given = _part("penalty", written)
    if "violation" not in inspect.signature(function).parameters:
        return function(**given)  # type: ignore[no-any-return]
    return partial(function, **given) if given else function


def _bounds(
    written: Mapping[str, Any],
    statistic: Statistic[...],
    store: Store,
    tables: Callable[[], tuple[Table, Table]] | None,
    chosen: Sequence[Region] | None,
    K: int,
) -> Bounds:
    kind, given = _part("bounds", written)
    patient = given.pop("patient", None) if kind is Common else None
    if kind is Common and {"mean", "sd"} & set(given):
        if set(given) != {"mean", "sd"} or patient is not None:
            raise ValueError("give mean and sd, or lower and upper, or a patient to fit them on")
        return Common.around(**given)
    if patient is None:
        return kind(**given)  # type: ignore[no-any-return]
    if given:
        raise ValueError("give lower and upper, or a patient to fit them on, not both")
    if isinstance(patient, bool | list | dict):
        raise ValueError(f"a patient is a name, not {patient!r}")
    patient = str(patient)
    records = [record for record in store.records if record.patient == patient]
    if not records or tables is None:
        patients = sorted({record.patient for record in store.records})
        what = "there are no facts" if records else f"no patient {patient!r}; {nearest(patient, patients)}"
        raise BadInput(f"{store.path}: common bounds cannot be fitted: {what}")
    table, _ = tables()
    rows = [position for record in records for position in record.range]
    known = _of_regions(
        {name: fact[rows] for name, fact in table.items()}, statistic, regions := constrained(chosen, K)
    )
    with _naming(f"{store.path}, patient {patient}"):
        return Common.fit(known, statistic, classes=range(len(consecutive(regions, statistic.relates))))
