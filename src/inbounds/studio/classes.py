"""The classes of a project, as what people did leaves them: names and colours by value, the background first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.studio.actions import DeleteClass, SetClass
from inbounds.studio.database import Action, Conflict

COLOURS = ("#ffb000", "#5db4e8", "#dc267f", "#3fd0a8", "#f0e442", "#fe6100", "#e8e8e8", "#8dd35f")
BACKGROUND = "#a58bff"
KINDS = ("class", "class_delete")

Classes = dict[int, tuple[str, str]]


def classes_of(actions: Iterable[Action]) -> Classes:
    """The classes after some actions."""
    found: Classes = {}
    for action in actions:
        value = action.content["value"]
        if action.kind == "class_delete":
            found.pop(value, None)
            continue
        before = found.get(value, ("", BACKGROUND if value == 0 else COLOURS[(value - 1) % len(COLOURS)]))
        found[value] = action.content["name"], action.content["colour"] or before[1]
    return dict(sorted(found.items()))


def first_classes(folder: Path, classes: Classes, asked: Sequence[str]) -> list[SetClass]:
    """What makes the classes of a new project; those that are asked for of an old one must be what it has."""
    asked = [name.strip() for name in asked]
    if classes and asked and asked != [name for name, _ in classes.values()]:
        have = ",".join(name for name, _ in classes.values())
        raise BadInput(f"{folder}: its classes are {have}; leave --classes out, and change them on the page")
    lower = [name.lower() for name in asked]
    if len(asked) == 1 or len(set(lower)) < len(lower) or not all(asked):
        raise BadInput(
            f"--classes {','.join(asked)}: name the background first, then at least one class, none of them twice"
        )
    if classes:
        return []
    names = asked or ["background", "region"]
    return [SetClass(who="inbounds", kind="class", value=value, name=name) for value, name in enumerate(names)]


def check_value(classes: Classes, value: int) -> None:
    """Refuse a class that is not there."""
    if value not in classes:
        raise BadInput(f"there is no class {value}; reload the page")


def check_name(classes: Classes, action: SetClass) -> None:
    """Refuse a name that another class has."""
    others = {name.lower() for value, (name, _) in classes.items() if value != action.value}
    if action.name.lower() in others:
        raise Conflict(f"there is a class {action.name} already; choose another name")


def check_unused(classes: Classes, action: DeleteClass, used: set[int]) -> None:
    """Refuse to delete what has labels or facts."""
    check_value(classes, action.value)
    if action.value in used:
        raise Conflict(f"{classes[action.value][0]} has labels or facts; remove them before you delete the class")
