"""A task of any engine: a process of its own that does lines, watched, stopped in time, and begun again if it dies.

The engine's own process only watches: signals that it knows how to take, and memory that runs out, do not mix with
what is computed.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DEATHS = 10
"""So often a process is begun again; before that, a line gives up that gets nowhere."""
GRACE = 20.0
"""Seconds that a process has to stop in order."""
POLL = 0.2
ORDERLY = {0, 1, 128 + signal.SIGINT, 128 + signal.SIGTERM}
"""With these codes a process ends that says itself what became of its lines."""
DEAF = [getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name)]
"""What schedulers send to a task and all that it began, and what would end a process that does not expect it."""


class Task:
    """Some lines of a manifest.

    Args:
        folder: Where the manifest lies.
        numbers: Of the lines.
        here: Where paths in the manifest are seen from; as here, if not given.
        threads: Of each process; as many as there are cores for it, if 0.
    """

    def __init__(self, folder: Path, numbers: Sequence[int], here: str | None = None, *, threads: int = 0) -> None:
        self.command = [sys.executable, "-m", "inbounds.jobs", str(folder), ",".join(map(str, numbers))]
        allotted = str(threads or os.environ.get("SLURM_CPUS_PER_TASK") or "")
        self.environment = {**({"OMP_NUM_THREADS": allotted} if allotted else {}), **os.environ}
        self.here = here
        self.child: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def run(self) -> None:
        """Do the lines; what became of them is in their folders."""
        for _ in range(DEATHS):
            if self.stopped:
                break
            with _deaf():
                self.child = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, cwd=self.here, env=self.environment, start_new_session=True
                )
            try:
                code = self._ended()
            except BaseException:
                self.stop()
                raise
            finally:
                assert self.child.stdin is not None
                self.child.stdin.close()
            if code in ORDERLY:
                break

    def stop(self) -> None:
        """Let the process end where it is; it goes on from there another time."""
        self.stopped = True
        if self.child is not None and self.child.poll() is None:
            self.child.terminate()
            if self._ended(GRACE) is None:
                self.child.kill()
                self._ended(GRACE)

    def _ended(self, seconds: float = math.inf) -> int | None:
        """The code with which the process ended. A signal may stop it amid this very wait, so that nothing blocks."""
        assert self.child is not None
        until = time.monotonic() + seconds
        while (code := self.child.poll()) is None and time.monotonic() < until:
            time.sleep(POLL)
        return code


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that begin meanwhile, and those that they begin, never hear some signals."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEAF)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
