"""Thousands of scans, some of them a line: what becomes of a chunk lies in a hidden folder beside the result.

.RESULT.jobs/manifest.jsonl     a line for each chunk
.RESULT.jobs/parts/0003.json    what became of chunk 3, written when all of it is done
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inbounds.described import Described
from inbounds.errors import BadInput
from inbounds.jobs.cluster import Cluster
from inbounds.jobs.engine import carry_out
from inbounds.jobs.manifest import MANIFEST, Kind, Line, line, read_manifest, write_manifest
from inbounds.jobs.status import Standing
from inbounds.scans.scan import stem
from inbounds.writing import remove


class Hands(Described):
    """Who does chunks, and how large they are.

    Attributes:
        on: The engine.
        cluster: What it is asked for.
        chunk: Scans in a line.
    """

    on: str
    cluster: Cluster
    chunk: int


def folder_of(result: Path) -> Path:
    """Where the chunks of a result are."""
    return result.with_name(f".{result.name}.jobs")


def part(number: int) -> str:
    """Where it is told what became of a chunk."""
    return f"parts/{number:04d}.json"


def progress(place: Path) -> tuple[int, int | None, bool]:
    """Whether a chunk is done, counted as one epoch."""
    done = place.is_file()
    return int(done), 1, done


def planned(kind: Kind, chunks: Sequence[Mapping[str, Any]]) -> list[Line]:
    """A line for each chunk."""
    return [line(kind, part(number), about) for number, about in enumerate(chunks)]


def begun(result: Path, lines: Sequence[Line]) -> bool:
    """Whether these very chunks of a result were begun before."""
    folder = folder_of(result)
    there = read_manifest(folder) if (folder / MANIFEST).is_file() else []
    return [one.hash for one in there] == [one.hash for one in lines]


def do(result: Path, lines: Sequence[Line], hands: Hands, heard: Callable[[list[Standing]], object]) -> list[Path]:
    """Have the chunks of a result done, but for what was done before; where it is told what became of each.

    Raises:
        BadInput: Some could not be done; what is done stays, for the next time.
    """
    folder = folder_of(result)
    if not begun(result, lines):
        remove(folder)
        write_manifest(folder, lines)
    found = carry_out(folder, hands.on, hands.cluster, heard)
    if left := [one for one in found if one.state != "done"]:
        why = next((one.why for one in left if one.why), f"its tasks never began; see what {hands.on} says of them")
        raise BadInput(f"{why} ({len(left)} of {len(found)} tasks are not done; the same command goes on with them)")
    return [folder / part(number) for number in range(len(found))]


def stamp(files: Iterable[Path]) -> str:
    """Which files these are now: another size or time of one of them, or of what is called as it, is another stamp."""
    told = []
    for file in files:
        beside = file.iterdir() if file.is_dir() else file.parent.glob(f"{_plain(stem(file))}*")
        for one in sorted(beside):
            about = one.stat()
            told.append((one.name, about.st_size, about.st_mtime_ns))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _plain(name: str) -> str:
    """A name in which no character stands for others."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
