"""What can be wrong with what a user gives us, and what may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class BadInput(ValueError):  # noqa: N818 (it names what happened, as users read it)
    """A file, a value or a setting cannot be used. The message names it, says what is wrong and what to do.

    The command line prints the message and exits with code 2; there is no traceback to read.
    """


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
