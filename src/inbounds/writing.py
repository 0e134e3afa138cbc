"""Writing that never leaves half a file: under a temporary name beside it, and renamed when complete.

A temporary name is that of what comes of it, with host, process and chance: `.store.node7-4711-0a1b2c3d.partial`. What
a killed process left under such a name is removed by the next that writes the same.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TextIO

from inbounds.errors import BadInput
from inbounds.locks import HOST, held, locked
from inbounds.stopping import shielded

_live: set[str] = set()
"""The temporary names that this process uses now."""

ESCAPED = "backslashreplace"
"""What is no character, as in names of files that are not UTF-8, becomes the escape that JSON has for it."""


@contextmanager
def aside(path: Path, *, replace: bool = False, alone: bool = False) -> Iterator[Path]:
    """A folder to fill that becomes `path`, if need be in the place of another, when all went well, else vanishes.

    The path is locked meanwhile, unless something else that is locked keeps others from it: then it is `alone`.
    """
    if not path.name:
        raise BadInput(f"{path}: the folder one is in cannot be made anew; choose another name")
    path = path.resolve() if replace else path
    with writing(path), _on_the_way(path, alone=alone) as partial:
        if not replace and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(f"{path}: already exists; remove it or choose another name")
        try:
            partial.mkdir()
            yield partial
            for file in sorted(partial.rglob("*")):
                if file.is_file():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
            put(partial, path)
        except BaseException:
            _recover(path)
            raise


@contextmanager
def file_aside(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` when all went well, and vanishes otherwise. The path is locked meanwhile."""
    with writing(path), _on_the_way(path) as part:
        yield part
        part.replace(path)


@contextmanager
def workspace(path: Path) -> Iterator[Path]:
    """A folder beside a path for what is needed on the way to it, which vanishes in the end. The path is locked."""
    with _on_the_way(path) as space:
        space.mkdir()
        yield space


def put(new: Path, path: Path) -> None:
    """Give a complete folder its name, in the place of what bears it now. The path is locked."""
    with shielded():
        if path.is_dir() and any(path.iterdir()):
            remove(_before(path))
            path.rename(_before(path))
        elif path.is_dir():
            path.rmdir()
        new.rename(path)
        remove(_before(path))


def mend(path: Path) -> None:
    """Bring back, before it is read, a folder whose replacement was killed between its two renamings."""
    path = path.resolve()
    if not path.exists() and _before(path).is_dir():
        with locked(path):  # while it is being replaced, its lock is held
            _recover(path)


def clear(path: Path) -> None:
    """Remove what dead processes left on their way to a path, which is locked: nobody else writes it now."""
    _recover(path)
    remove(_before(path))
    whose = re.compile(rf"\.{re.escape(path.name)}\.[\w-]+-\d+-[0-9a-f]{{8}}\.partial")
    if path.parent.is_dir():
        for left in path.parent.iterdir():
            if whose.fullmatch(left.name) and left.name not in _live:
                remove(left)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def _on_the_way(path: Path, *, alone: bool = False) -> Iterator[Path]:
    """A name beside a path to write under, which says whose it is; what bears it in the end is removed."""
    ours = not _live.isdisjoint(path.parts)
    with nullcontext() if ours or alone or held(path) else locked(path):
        new = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        if alone or held(path):
            clear(path)
        part = path.with_name(f".{path.name}.{HOST}-{os.getpid()}-{secrets.token_hex(4)}.partial")
        _live.add(part.name)
        try:
            yield part
        finally:
            with shielded(), suppress(OSError):
                remove(part)
                if new:
                    path.parent.rmdir()  # unless something is in it
            _live.discard(part.name)


def _recover(path: Path) -> None:
    if not path.exists() and _before(path).is_dir():
        _before(path).rename(path)


def _before(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell of a full disk or a forbidden place in one sentence."""
    try:
        yield
    except OSError as error:
        raise BadInput(
            f"{path}: could not be written ({error.strerror or error}), and nothing was left behind; make room on the "
            "disk or choose another place"
        ) from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON that people can read."""
    with file_aside(path) as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", errors=ESCAPED)


_TRIGGER = "(?='*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20])"
_BEGINS = "(?:^|(?<=[;,\t\r\n]))"
"""A cell begins here, or would for a spreadsheet that separates by other characters."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file whose first line names its columns."""
    with file_aside(path) as part, part.open("w", encoding="utf-8", newline="", errors=ESCAPED) as stream:
        write_lines(stream, [columns])
        write_lines(stream, rows)


def write_lines(stream: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows of cells as CSV, which no spreadsheet takes for formulas."""
    csv.writer(stream, lineterminator="\n").writerows([harmless(cell) for cell in row] for row in rows)


def harmless(cell: Any) -> Any:
    """A cell in which no spreadsheet finds a formula: text that looks like one gets an apostrophe in front.

    Names of scans and classes come from files of others. Numbers stay as they are, and `as_meant` takes it back.

    Example:
        >>> [harmless(cell) for cell in ("=1+1", "LV", "-1.5", -1.5, "a;@b")]
        ["'=1+1", 'LV', '-1.5', -1.5, "a;'@b"]
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    return re.sub(_BEGINS + _TRIGGER, "'", cell)


def as_meant(text: str) -> str:
    """What `harmless` was given."""
    return re.sub(f"{_BEGINS}'{_TRIGGER}", "", text) if "'" in text else text
