"""What the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.jobs.chunks import Hands
    from inbounds.jobs.status import Standing
    from inbounds.store.store import Store

StorePath = Annotated[Path, typer.Argument(help="The store: a folder made by `inbounds prepare`.")]
NewStore = Annotated[Path, typer.Argument(help="The store to make.")]
RunPath = Annotated[Path, typer.Argument(help="A run made by `inbounds train`.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of everything that is drawn.")]


def _trust(modules: list[str] | None) -> list[str] | None:
    for module in modules or []:
        from inbounds.config.build import trust

        trust(module)
    return modules


Imports = Annotated[
    list[str] | None,
    typer.Option("--import", callback=_trust, help="A module of yours that the run's settings name; repeatable."),
]


def _follow(wanted: bool) -> bool:
    from inbounds.scans.data_file import FOLLOW

    FOLLOW.set(wanted)
    return wanted


Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        callback=_follow,
        help="Read data files that a header (.mhd, .nhdr) names outside its folder; never out of an archive.",
    ),
]
Engine = StrEnum("Engine", ["local", "slurm", "ray"])
On = Annotated[
    Engine | None,
    typer.Option(help="Let others do it, some scans each: processes here, Slurm, or Ray.", show_default=False),
]
Asked = Annotated[
    Path | None, typer.Option("--cluster", help="What a cluster is asked for: TOML with [slurm] or [ray].")
]
Chunk = Annotated[int, typer.Option(min=1, help="With --on, scans in a task.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, for programs.")]


def answer(as_json: bool, words: str | Callable[[], object], **facts: Any) -> None:
    """The result of a command: words (or what prints them) for people, else facts as JSON, in which NaN is null."""
    if as_json:
        strict = json.loads(json.dumps(facts, default=str), parse_constant=lambda _: None)
        typer.echo(json.dumps(strict, indent=1))
    elif isinstance(words, str):
        typer.echo(words)
    else:
        words()


def say_notes(notes: Sequence[str], more: str) -> None:
    """The first of many notes, on stderr."""
    for note in [*notes[:10], *([f"and {len(notes) - 10} more{more}"] if len(notes) > 10 else [])]:
        typer.echo(f"Note: {note}", err=True)


def hands(on: Engine | None, asked: Path | None, chunk: int) -> Hands | None:
    """Who does work on many scans, if not this process."""
    if on is None:
        return None
    from inbounds.jobs.chunks import Hands
    from inbounds.jobs.cluster import read_cluster

    return Hands(on=on.value, cluster=read_cluster(asked), chunk=chunk)


class Told:
    """Says how much is done whenever that changes."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet, self.last = quiet, ""

    def __call__(self, found: list[Standing]) -> None:
        """Hear where all lines stand."""
        from inbounds.jobs.status import in_words

        if (words := in_words(found)) != self.last and not self.quiet:
            typer.echo(words, err=True)
        self.last = words


def open_store(path: Path) -> Store:
    """The store at a path."""
    from inbounds.store.store import Store

    return Store(path)


def listed(text: str) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def seed_numbers(text: str) -> list[int]:
    """Several seeds given as `0,1,2`."""
    parts = listed(text)
    if not parts or not all(part.isdigit() and int(part) < 2**63 for part in parts) or len(set(parts)) != len(parts):
        raise BadInput(f"--seeds {text}: give different whole numbers, such as 0,1,2")
    return [int(part) for part in parts]
