"""Two commands on one path: one is stopped on its way while the other begins, and goes on afterwards, or is killed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

from torture.campaign import Result
from torture.commands import Killed
from torture.process import Command, Ended, Place, faults, run, start
from torture.watch import Stop

WAITS = 1.5
"""Seconds that the second has while the first stands still; it may wait for longer."""
LIMIT = 60.0


def case(
    number: int,
    name: str,
    command: Killed,
    changes: int,
    rng: random.Random,
    place: Place,
    as_ever: Callable[[], list[str]],
) -> Result:
    """Let a command meet itself. One of the two must win, or both one after the other.

    Args:
        number: Of the case.
        name: Of the command.
        command: The command.
        changes: How often it changes files.
        rng: What is drawn from.
        place: Where both run.
        as_ever: Says in the end what is not as an undisturbed command leaves it.
    """
    way = rng.choice(("stopped", "stopped", "killed", "at once"))
    event = rng.randint(1, max(1, changes))
    what = "both at once" if way == "at once" else f"the first {way} at change {event} of {changes}"
    result = Result(number, name, f"two, {way}", what)
    first = start(command.words, place, None if way == "at once" else Stop(signal.SIGSTOP, event))
    if way != "at once":
        _stands(first)
    second = start(command.words, place)
    begun = time.monotonic()
    while way != "at once" and second.running() and time.monotonic() - begun < WAITS:
        time.sleep(0.01)
    first.signal(signal.SIGKILL if way == "killed" else signal.SIGCONT)
    one, two = first.ended(LIMIT), second.ended(LIMIT)
    result.seconds, result.memory = max(one.seconds, two.seconds), max(one.memory, two.memory)
    result.outcome = f"{one.code} and {two.code}"
    ways = ((one, {0, -signal.SIGKILL} if way == "killed" else {0, 2}, second), (two, {0, 2}, first))
    for ended, codes, other in ways:
        result.problems += _wrong(ended, codes, other)
    if way != "killed" and one.code != 0 and two.code != 0:
        result.problems.append(f"neither did it: {_last(one)} | {_last(two)}")
    if one.code != 0 and two.code != 0:
        third = run([*command.words, *command.again], place, limit=LIMIT)
        result.problems += _wrong(third, {2} if third.code == 2 and "already" in third.err else {0}, second)
    result.problems += as_ever()
    return result


def _stands(command: Command) -> None:
    """Wait until it has stopped itself, or has ended."""
    begun = time.monotonic()
    while not command.stopped() and command.running() and time.monotonic() - begun < LIMIT:
        time.sleep(0.002)


def _wrong(ended: Ended, codes: set[int], other: Command) -> list[str]:
    wrong = faults(ended, codes, "beside another")
    if ended.code == 2 and not (str(other.process) in ended.err or "in use by" in ended.err or "already" in ended.err):
        wrong.append(f"the refusal does not say which process has it: {_last(ended)}")
    return wrong


def _last(ended: Ended) -> str:
    return (ended.err.strip().splitlines() or [""])[-1]
