"""Progress of long work: a bar with the time left on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from rich.console import Console

T = TypeVar("T")
Track: TypeAlias = Callable[[Sequence[T]], Iterable[T]]
"""Wraps what is gone through one by one, to tell how far it is; `iter` tells nothing."""
LINES = 4


def bar(title: str, console: Console | None = None) -> Callable[[Sequence[T]], Iterator[T]]:
    """A function that wraps a sequence and tells how far through it we are."""
    console = console or Console(stderr=True)

    def track(items: Sequence[T]) -> Iterator[T]:
        if not console.is_terminal:
            said = 0
            for number, item in enumerate(items, start=1):
                yield item
                if number * LINES // len(items) > said:
                    said = number * LINES // len(items)
                    console.print(f"{title}: {number} of {len(items)}", highlight=False)
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console) as progress:
            yield from progress.track(items, description=title)

    return track
