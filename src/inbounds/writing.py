"""Writing that never leaves half a file: under a temporary name, and renamed when complete."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput


@contextmanager
def aside(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that becomes `path`, if need be in the place of another, when all went well, else vanishes.

    What a killed process left behind under the temporary name is removed by the next one.
    """
    with writing(path):
        recover(path)
        path = path.resolve() if replace else path
        if not replace and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(f"{path}: already exists; remove it or choose another name")
        if not path.name:
            raise BadInput(f"{path}: the folder one is in cannot be made anew; choose another name")
        partial = path.with_name(f".{path.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir(parents=True)
            yield partial
            for file in sorted(partial.rglob("*")):
                if file.is_file():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
            if replace:
                shutil.rmtree(_before(path), ignore_errors=True)
                path.rename(_before(path))
            elif path.exists():
                path.rmdir()
            partial.rename(path)
            shutil.rmtree(_before(path), ignore_errors=True)
        except BaseException:
            recover(path)
            shutil.rmtree(partial, ignore_errors=True)
            raise


def recover(path: Path) -> None:
    """Bring back a folder whose replacement was killed between its two renamings."""
    path = path.resolve()
    if not path.exists() and _before(path).is_dir():
        _before(path).rename(path)


def _before(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")


@contextmanager
def file_aside(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` when all went well, and vanishes otherwise."""
    part = path.with_name(f".{path.name}.partial")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


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
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file whose first line names its columns."""
    with file_aside(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
