"""Settings from what a person wrote: a recipe, then a TOML file, then single changes, each above the last."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from inbounds.config.build import arguments, check, expanded, known_recipe, modules_of, trust
from inbounds.config.settings import PARTS, ProposalSettings, Settings
from inbounds.errors import BadInput, nearest
from inbounds.reading import read_written
from inbounds.supervision import recipes

Content = dict[str, Any]
RIVALS = ((("relative",), ("absolute",)), (("patient",), ("lower", "upper")), (("mean", "sd"), ("lower", "upper")))
"""Arguments of bounds that exclude each other: one that is given takes the place of the others."""
LARGEST, DEEPEST = 1 << 20, 20
"""Bytes of a file of settings, and groups within groups."""
SHOWN = 200
"""Characters of a single setting that an error repeats."""
REMEDY = "give a file of settings in UTF-8"


def read_settings(
    recipe: str,
    file: Path | None = None,
    changes: Sequence[str] = (),
    *,
    layers: Sequence[Mapping[str, Any]] = (),
    shared: bool = False,
) -> Settings:
    """The settings of a run: of its recipe, then of layers and a TOML file, then single changes.

    Args:
        recipe: Expands to constraints and proposals.
        file: Settings as TOML.
        changes: Such as `training.epochs=50`; `weight=0.1` is short for `constraints.size.weight=0.1`, the weight of
            the recipe's own bounds.
        layers: Settings below those of the file. Unlike those of a person they name no code to import: they may come
            from a run that was handed over.
        shared: The same settings serve several recipes: what this one has no use for is left alone.

    Raises:
        BadInput: A key is unknown or a value does not fit; the message names it, and the nearest known key.
    """
    content: Content = {"recipe": known_recipe(recipe), **expanded(recipe)}
    steps: list[tuple[str, Content, Content]] = []
    for where, layer in [("settings", layer) for layer in layers] + _given(file, changes):
        usable = _usable(deepcopy(dict(layer)), content, where, recipe, shared)
        if usable.get("recipe", recipe) != recipe:
            raise BadInput(f"{where}: made for the recipe {usable['recipe']!r}, not for {recipe!r}")
        content = _merged(content, usable, where)
        steps.append((where, usable, content))
    written = {module for _, layer, _ in steps[len(layers) :] for module in modules_of(layer)}
    try:
        return _valid(content, written)
    except BadInput as error:
        raise BadInput(f"{_culprit(steps, written, str(error))}: {error}") from None


def _valid(content: Content, written: Set[str]) -> Settings:
    """The settings that were written down; of the modules they name, those that a person wrote are imported."""
    content = dict(content)
    for group in ("constraints", "regularisers"):
        if isinstance(terms := content.get(group), dict):
            content[group] = {name: term for name, term in terms.items() if term is not False}
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        raise BadInput(explain(error)) from None
    for module in sorted(written & modules_of(settings.model_dump())):
        trust(module)
    check(settings)
    return settings


def _culprit(steps: Sequence[tuple[str, Content, Content]], written: Set[str], problem: str) -> str:
    """The first layer with which settings have this problem, whatever values they have beside it."""

    def kind(text: str) -> tuple[str, str]:
        return text.partition(" ")[0], text.rpartition(": ")[2]

    for where, _, content in steps:
        try:
            _valid(content, written)
        except BadInput as error:
            if kind(str(error)) == kind(problem):
                return where
    return "settings"


def who_said(file: Path | None, changes: Sequence[str], problem: str) -> str:
    """Where a person wrote of what a problem begins with, such as `network`; nothing if nowhere."""
    path = re.split(r"[=:]", problem.removeprefix("settings: "), maxsplit=1)[0].split(".")
    path = path[: 1 if path[0] == "network" else 2]
    for where, layer in reversed(_given(file, changes)):
        inner: Any = layer
        for name in path:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if inner is not None:
            return where
    return ""


def _given(file: Path | None, changes: Sequence[str]) -> list[tuple[str, Content]]:
    """The layers that a person gave."""
    return _file(file) + [_change(text) for text in changes]


def _file(file: Path | None) -> list[tuple[str, Content]]:
    if file is None:
        return []
    text = read_written(file, LARGEST, REMEDY)
    try:
        return [(str(file), _parsed(text))]
    except ValueError as error:
        raise BadInput(f"{file}: cannot be read as TOML ({error}); {REMEDY}") from None


def _change(text: str) -> tuple[str, Content]:
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    where, (key, equals, value) = f"--set {shown}", text.partition("=")
    if not equals:
        raise BadInput(f"{where}: write it as key=value, such as training.epochs=50")
    if key.count(".") >= DEEPEST:
        raise BadInput(f"{where}: groups within groups, more than {DEEPEST} of them; write it as key=value")
    try:
        content: Any = _parsed(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        content = value.strip()  # a bare word is a string
    except ValueError as error:
        raise BadInput(f"{where}: {error}; write it as key=value") from None
    for name in reversed(key.strip().split(".")):
        content = {name: content}
    return where, content


def _parsed(text: str) -> Content:
    """What a text in TOML says, no deeper than settings are."""
    with suppress(RecursionError):
        content = tomllib.loads(text)
        level: list[Any] = [content]
        for _ in range(DEEPEST):
            within = [one.values() if isinstance(one, dict) else one for one in level]
            level = [inner for group in within for inner in group if isinstance(inner, dict | list)]
            if not level:
                return content
    raise ValueError(f"groups within groups, more than {DEEPEST} of them")


def _usable(layer: Content, content: Content, where: str, recipe: str, shared: bool) -> Content:
    """A layer without what this recipe has no use for, which is refused unless the layer serves others too."""
    if "weight" in layer:
        own = {"constraints": {"size": {"weight": layer.pop("weight")}}}
        layer = _merged(own, layer, where)

    def refuse(what: str, remedy: str) -> None:
        if not shared:
            raise BadInput(f"{where}: the recipe {recipe!r} {what}; {remedy}")

    if isinstance(layer.get("proposals"), dict) and "proposals" not in content:
        if unknown := [key for key in layer["proposals"] if key not in ProposalSettings.model_fields]:
            raise BadInput(f"{where}: unknown setting; {nearest(unknown[0], ProposalSettings.model_fields)}")
        refuse("makes no proposals", "leave it out, or train one of proposals_*")
        del layer["proposals"]
    constraints = layer.get("constraints")
    if not isinstance(constraints, dict):
        return layer
    for name, written in list(constraints.items()):
        if not isinstance(written, dict) or "statistic" in written:
            continue
        if name not in content.get("constraints", {}):
            elsewhere = {one for other in recipes for one in expanded(other).get("constraints", {})}
            if name not in elsewhere:
                raise BadInput(f"{where}: no recipe has bounds called {name!r}; {nearest(name, elsewhere)}")
            refuse(f"has no bounds called {name!r}", "leave it out, or write its statistic and bounds too")
            del constraints[name]
            continue
        if content["constraints"][name] is False:
            raise BadInput(f"{where}: nothing is known for the bounds called {name!r}; bring facts, or leave it out")
        bounds = written.get("bounds")
        kind = content["constraints"][name].get("bounds", {}).get("kind")
        if kind and isinstance(bounds, dict) and "kind" not in bounds:
            for key in [key for key in bounds if key not in arguments("bounds", kind)]:
                if key in arguments("bounds"):
                    takes = ", ".join(arguments("bounds", kind)) or "no arguments"
                    refuse(f"has {kind} bounds, without {key!r}", f"they take {takes}")
                    del bounds[key]
    return layer


def _merged(base: Any, layer: Any, where: str, key: str = "") -> Any:
    """Dictionaries key by key, all else by the later; a thing of another name replaces the one before.

    A constraint or a regulariser that is set to false is left out.
    """
    if layer is False:
        return False
    if key in PARTS and isinstance(layer, str):
        layer = {PARTS[key]: layer}
    if key == "settings" or not isinstance(base, dict | None) or (base is None and not isinstance(layer, dict)):
        return layer  # those of a network are its own
    base = base or {}
    if not isinstance(layer, dict):
        raise BadInput(f"{where}: {key or 'settings'} is a group of settings, not {layer!r}")
    if key in PARTS and layer.get(PARTS[key], base.get(PARTS[key])) != base.get(PARTS[key]):
        return dict(layer)
    for one, other in RIVALS if key == "bounds" else ():
        for mine, theirs in ((one, other), (other, one)):
            if any(name in layer for name in mine) and not any(name in layer for name in theirs):
                base = {name: value for name, value in base.items() if name not in theirs}
    return base | {name: _merged(base.get(name), value, where, name) for name, value in layer.items()}


def explain(error: ValidationError, model: type[BaseModel] = Settings) -> str:
    """The first thing that a model has to say against what a person wrote."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = (["weight"] if model is Settings else []) + keys(model)
        return f"unknown setting {key!r}; {nearest(key, known, cutoff=0.4)}"
    if first["type"] in ("model_type", "dict_type"):
        return f"{key} is a group of settings, not {first.get('input')!r}"
    return f"{key or 'settings'} is {first.get('input')!r}: {first['msg'].removeprefix('Value error, ')}"


def keys(model: type[BaseModel], before: str = "") -> list[str]:
    """All keys of a model, those of its groups with the group's name in front."""
    names = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            names += keys(inner, f"{before}{name}.")
        else:
            names.append(f"{before}{name}")
    return names
