"""Ctrl-C, and SIGTERM, as schedulers send it: both stop a command where it is; it takes back what is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""The last one is what Windows sends in the place of SIGTERM."""


@contextmanager
def stoppable() -> Iterator[list[int]]:
    """Let SIGTERM stop what goes on as Ctrl-C does; gives the signals that came."""
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    # Not where somebody else has the say, as with a Ctrl-C that a shell's background jobs ignore.
    ways: dict[int, Any] = dict.fromkeys(STOPS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    ours = [number for number, way in ways.items() if _in_main_thread() and signal.getsignal(number) == way]
    for number in ours:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, ways[number])


@contextmanager
def shielded() -> Iterator[None]:
    """Put either off to the end of what must not be left half done."""
    came: list[int] = []
    numbers = STOPS if _in_main_thread() else ()
    before = {number: way for number in numbers if callable(way := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, way in before.items():
            signal.signal(number, way)
        if came:
            signal.raise_signal(came[0])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
