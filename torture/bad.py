"""A command with an input that is not as it should be."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
"""What may stand where something sensible should."""
LONG = [400 * word for word in WORDS["long"]]


@dataclass(frozen=True)
class Bad:
    """What is typed, and what may come of it.

    Attributes:
        words: What is typed.
        names: One of these is in the refusal, so that a person knows what it is about.
        what: What was done to the input.
        codes: With which a command may end: 0 if it can live with it, 2 if it refuses.
        seen: The change must not go unnoticed: 0 is wrong.
        limit: Seconds for it.
    """

    words: Sequence[object]
    names: Sequence[str]
    what: str
    codes: tuple[int, ...] = (0, 2)
    seen: bool = False
    limit: float = 30.0
