"""What is to be done, a piece a line: `manifest.jsonl`. A task is told this file's folder and the numbers of its lines.

manifest.jsonl          a line for each piece of work: what, where its result goes, and a hash of what decides it
attempts/0007.jsonl     when and where line 7 was begun, and how that ended
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from inbounds.described import Described, Digest, understood
from inbounds.errors import BadInput, some
from inbounds.locks import locked
from inbounds.reading import read_written
from inbounds.writing import file_aside

MANIFEST = "manifest.jsonl"
MOST = 1 << 30
REMEDY = "choose another folder, or remove this one"
Kind = Literal["train", "predict", "prepare"]


class Line(Described):
    """A piece of work.

    Attributes:
        task: What kind of work.
        place: The folder that it fills, within the manifest's; whoever works there holds its lock.
        about: What exactly.
        hash: Of kind, place and what of `about` decides the result.
    """

    task: Kind
    place: str
    about: dict[str, Any]
    hash: Digest


def line(task: Kind, place: str, about: Mapping[str, Any], *, beside: Sequence[str] = ()) -> Line:
    """A line; what is named in `beside`, such as where data lie, does not decide the result."""
    content = json.loads(json.dumps(about))
    decides = [task, place, {key: content[key] for key in content if key not in beside}]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    return Line(task=task, place=place, about=content, hash=digest)


def read_manifest(folder: Path) -> list[Line]:
    """The lines of a folder's manifest."""
    file = folder / MANIFEST
    if not file.is_file():
        raise BadInput(f"{folder}: nothing was begun there (no {MANIFEST} in it); check the name")
    lines = read_written(file, MOST, REMEDY).splitlines()
    return [understood(text, Line, f"{file}, line {n}: damaged", REMEDY, str(file)) for n, text in enumerate(lines)]


def write_manifest(folder: Path, lines: Sequence[Line]) -> list[Line]:
    """Write the manifest of a folder, or add to the one that is there: lines keep their numbers, as tasks know them.

    Raises:
        BadInput: A line that is there already is no longer wanted, or decides something else now.
    """
    wanted = {one.place: one for one in lines}
    if len(wanted) < len(lines):
        twice = next(one.place for n, one in enumerate(lines) if one.place in {other.place for other in lines[:n]})
        raise BadInput(f"{folder}: two of its runs would be called {twice!r}; give one another name")
    with locked(folder / MANIFEST):
        return _added(folder, wanted)


def _added(folder: Path, wanted: dict[str, Line]) -> list[Line]:
    """All lines, as they are written behind those that are there."""
    there = read_manifest(folder) if (folder / MANIFEST).is_file() else []
    changed = [old.place for old in there if old.place not in wanted or wanted[old.place].hash != old.hash]
    if changed:
        raise BadInput(
            f"{folder}: it was begun otherwise: {some(changed)} changed, or no longer wanted; runs may be added, but "
            "what was begun stays as it is: choose another folder"
        )
    all_lines = [wanted.pop(old.place) for old in there] + list(wanted.values())
    if all_lines != there:
        with file_aside(folder / MANIFEST) as part:
            text = "".join(json.dumps(one.model_dump(), ensure_ascii=False) + "\n" for one in all_lines)
            part.write_text(text, encoding="utf-8")
    return all_lines


def checked(line: Line, kind: type[Any], where: Path) -> Any:
    """What a line says, as the model of its kind of work has it."""
    return understood(json.dumps(line.about), kind, f"{where}: {line.place}: damaged", REMEDY, str(where))
