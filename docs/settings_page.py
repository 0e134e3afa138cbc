"""Prints the page of all settings, from the models that read them.

Write it anew with `python docs/settings_page.py > docs/settings.md`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from inbounds.config import settings as config

HEAD = """# Settings

Every key that a run understands. Give a few with `--set training.epochs=50 network.name=unet`, many as a TOML file with
`--config`, whose tables are the headings below. `inbounds train` chooses other values than these defaults, and prints
what it [chose](training.md#what-is-chosen); what a person sets counts above that.

This page is written by `docs/settings_page.py`.
"""
COLUMNS = "|key|default|values|what it does|\n|---|---|---|---|\n"
WORDS: dict[Any, str] = {
    bool: "true, false",
    int: "whole number",
    float: "number",
    str: "text",
    dict[str, Any]: "table",
    list[str]: "list of names",
    list[config.Weight]: "list of numbers",
    config.Devices: "1 to 1024",
    tuple[config.Side, config.Side, config.Side]: "three whole numbers, 1 or more",
}
LIMITS = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


def page() -> str:
    """All of it, in Markdown."""
    return HEAD + "".join(f"\n## {title}\n\n{about}\n\n{rows}" for title, about, rows in sections())


def sections() -> Iterator[tuple[str, str, str]]:
    """Heading, what the group is, and its table: first the keys that belong to no group."""
    fields = config.Settings.model_fields
    groups = {name: group for name, field in fields.items() if (group := group_of(field))}
    yield "At the top", summary(config.Settings), table(config.Settings, leaving_out=groups)
    for name, group in groups.items():
        several = get_origin(fields[name].annotation) is dict
        yield f"[{name}.NAME]" if several else f"[{name}]", summary(group), table(group)


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds, alone or by name."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def summary(model: type[BaseModel]) -> str:
    """The first paragraph of a model's docstring."""
    return " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())


def table(model: type[BaseModel], leaving_out: Collection[str] = ()) -> str:
    """A row for each key of a model."""
    words = docstrings(model)
    shown = {name: field for name, field in model.model_fields.items() if name not in leaving_out}
    rows = (f"|`{name}`|{default(field)}|{values(field)}|{words.get(name, '')}|\n" for name, field in shown.items())
    return COLUMNS + "".join(rows)


def default(field: FieldInfo) -> str:
    """As TOML would write it."""
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{list(value) if isinstance(value, tuple) else value}`"


def values(field: FieldInfo) -> str:
    """What a key may be, in words."""
    kind = field.annotation
    if get_origin(kind) is tuple:
        return "two numbers, 0 or more, below 1"
    if config.Ramp in get_args(kind):
        return "two shares, the second larger"
    kinds = [kind] if kind in WORDS or get_origin(kind) is Literal else [k for k in get_args(kind) if k is not NoneType]
    limits = {key: getattr(one, key) for one in field.metadata for key in LIMITS if hasattr(one, key)}
    words = [word for kind in kinds for word in choices(kind)]
    if {"ge", "le"} <= limits.keys():
        return f"{words[0].removesuffix('number')}{limits['ge']:,} to {limits['le']:,.0f}"
    return ", ".join([*words, *(LIMITS[key].format(limit) for key, limit in limits.items())])


def choices(kind: Any) -> list[str]:
    """The words for one type, or for each value that it allows."""
    if get_origin(kind) is not Literal:
        return [WORDS[kind]]
    return [f'`"{choice}"`' if isinstance(choice, str) else f"`{choice}`" for choice in get_args(kind)]


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """What stands below each field in the source."""
    (tree,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(tree, ast.ClassDef)
    words = {}
    for field, below in pairwise(tree.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            words[ast.unparse(field.target)] = " ".join(str(below.value.value).split())
    return words


if __name__ == "__main__":
    print(page(), end="")
