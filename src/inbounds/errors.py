"""What can be wrong with what a user gives us, what may have been meant, and how a sentence says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class BadInput(ValueError):  # noqa: N818 (it names what happened, as users read it)
    """A file, a value or a setting cannot be used. The message names it, says what is wrong and what to do.

    The command line prints the message and exits with code 2; there is no traceback to read.
    """


def together(wrong: Sequence[BadInput]) -> BadInput:
    """The refusals of several scans as one, so that all can be mended at once."""
    said = list(dict.fromkeys(map(str, wrong)))
    if len(said) == 1:
        return wrong[0]
    return BadInput("; ".join(f"({number}) {one}" for number, one in enumerate(said, start=1)))


def each(work: Callable[[_Item], _Made], items: Iterable[_Item]) -> list[_Made]:
    """What comes of each item; where some are refused, all of these are named."""
    made: list[_Made] = []
    wrong: list[BadInput] = []
    for item in items:
        try:
            made.append(work(item))
        except BadInput as error:
            wrong.append(error)
    if wrong:
        raise together(wrong)
    return made


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that is most like this one, or all there are.

    Example:
        >>> nearest("tag", ["tags", "common"])
        "did you mean 'tags'?"
    """
    known = list(names)
    spelt = {other.lower(): other for other in reversed(known)}
    if near := get_close_matches(name.lower(), spelt, n=1, cutoff=cutoff):
        return f"did you mean {spelt[near[0]]!r}?"
    shown = known if len(known) <= 12 else [*known[:5], f"and {len(known) - 5} more"]
    return f"there are: {', '.join(shown) or 'none'}"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of many names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def reason(error: BaseException) -> str:
    """The first line of what an error of somebody else's says, or its kind if it says nothing."""
    return (str(error) or type(error).__name__).splitlines()[0]
