"""Those who do tasks, behind one door: what is not done is handed out until all is, or nothing comes of it any more."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.jobs.attempts import note
from inbounds.jobs.cluster import Cluster
from inbounds.jobs.status import Standing, standings

POLL = 2.0
"""Seconds between looks at what others do."""
RARELY = 20
"""Looking takes one part in so many of the time."""


def carry_out(
    folder: Path,
    on: str,
    cluster: Cluster,
    heard: Callable[[list[Standing]], object] = lambda _: None,
    *,
    waits: bool = True,
) -> list[Standing]:
    """Have all lines of a manifest done that are not; what failed before is tried again.

    Args:
        folder: Where the manifest lies.
        on: Who does it: `local`, `slurm` or `ray`, each a module `on_...`.
        cluster: What that one is asked for.
        heard: Hears where all lines stand, now and then.
        waits: Until all is done; else only until it is handed over, where an engine can do without us.

    Returns:
        Where all lines stand.
    """
    engine = importlib.import_module(f"inbounds.jobs.on_{on}")
    if not (waits or hasattr(engine, "submit")):
        raise BadInput(f"--no-wait: tasks end with the command that began them on {on!r}; leave it out")
    for one in standings(folder):
        if one.state in ("failed", "died"):
            note(folder, one.number, "asked")
    before: list[tuple[int, int, int]] | None = None
    next_look = 0.0

    def look() -> None:
        nonlocal next_look
        if (start := time.monotonic()) >= next_look:  # a look at thousands of folders takes its time
            heard(standings(folder))
            next_look = time.monotonic() + RARELY * (time.monotonic() - start)

    while True:
        found = standings(folder)
        heard(found)
        left = [one.number for one in found if one.state in ("waiting", "died")]
        if not left and waits and any(one.state == "running" for one in found):  # for somebody else
            time.sleep(POLL)
            continue
        now = [(one.number, one.epoch, one.attempts) for one in found if one.number in left]
        if not left or now == before:  # all is done, or was handed out and not even begun
            return found
        before, pack = now, engine.pack(folder, cluster)
        groups = [left[first : first + pack] for first in range(0, len(left), pack)]
        if not waits:
            engine.submit(folder, groups, cluster)
            return standings(folder)
        engine.hand(folder, groups, cluster, look)
