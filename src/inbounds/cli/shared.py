"""What the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inbounds.errors import BadInput

if TYPE_CHECKING:
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
