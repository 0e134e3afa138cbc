"""What a command does to the world outside of it, seen by an audit hook: counted, and stopped at a chosen event."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = frozenset(
    (
        *(f"os.{name}" for name in ("rename", "mkdir", "remove", "rmdir", "link", "symlink", "truncate")),
        *(f"shutil.{name}" for name in ("rmtree", "copyfile", "copytree", "move")),
        *("tempfile.mkdtemp", "tempfile.mkstemp", "fcntl.flock", "fcntl.lockf"),
    )
)
"""The events by which Python tells that it is about to change files, beside those of opening one for writing."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NETWORK = frozenset(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"))
PROGRAMS = frozenset(("git", "uname", Path(sys.executable).name))
"""What a command may start: the package asks for its commit and for the processor, and trains in processes."""


@dataclass(frozen=True)
class Stop:
    """When a command is sent a signal.

    Attributes:
        signal: Which.
        event: Before which of its changes to files, counted from 1; 0 for none.
        after: After so many seconds, if not at an event.
        group: Sent to every process that the command has started, as when a machine goes down.
    """

    signal: int
    event: int = 0
    after: float = 0.0
    group: bool = False


class Watch:
    """Counts the changes of this process to files, and notes what no command should do.

    Args:
        inside: The folder in which a command may do as it likes.
        places: Where it may read besides.
        notes: An open file that takes the notes, as lines of JSON.
        stop: When it is stopped, if at all.
    """

    def __init__(self, inside: Path, places: tuple[str, ...], notes: int, stop: Stop | None) -> None:
        self.inside, self.places, self.notes = str(inside.resolve()), places, notes
        self.stop = stop if stop and stop.event else None
        self.counter, self.changes = itertools.count(1), 0
        self.own = threading.local()
        self.noted: set[str] = set()

    def begin(self) -> None:
        """From now on, until the process ends."""
        sys.addaudithook(self._hear)

    def note(self, kind: str, what: object) -> None:
        """Write something down at once, as the process may be killed; the same thing once."""
        line = json.dumps({kind: what if isinstance(what, int | float) else str(what)}) + "\n"
        if line not in self.noted:
            self.noted.add(line)
            os.write(self.notes, line.encode())

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if getattr(self.own, "busy", False):
            return  # by this hook itself
        self.own.busy = True
        try:
            if event == "open":
                self._opened(args[0], args[2] if isinstance(args[2], int) else 0)
            elif event in CHANGES:
                if self._mine(args[0]):
                    self._change()
            elif event in NETWORK:
                self._connected(event, args)
            elif event == "subprocess.Popen":
                if Path(os.fsdecode(args[0])).name not in PROGRAMS:
                    self.note("program", args[0])
            elif event == "os.system" or (event == "pickle.find_class" and not args[0].startswith("inbounds.")):
                self.note("unpickled" if event.startswith("pickle") else "program", ".".join(map(str, args)))
        finally:
            self.own.busy = False

    def _opened(self, path: object, flags: int) -> None:
        if isinstance(path, int):
            return
        if flags & WRITING:
            if self._mine(path):
                self._change()
            elif os.fsdecode(path) != os.devnull:  # type: ignore[arg-type]
                self.note("wrote outside", path)
        elif not self._mine(path) and not self._full(path).startswith(self.places):
            self.note("read outside", f"{os.fsdecode(path)}, which is {self._full(path)}")  # type: ignore[arg-type]

    def _connected(self, event: str, args: tuple[Any, ...]) -> None:
        local = len(args) > 1 and isinstance(args[1], str | bytes)  # a socket that is a file
        if not local:
            self.note("network", f"{event} {args[1:] or args}")

    def _change(self) -> None:
        self.changes = next(self.counter)
        if self.stop is not None and self.changes == self.stop.event:
            os.kill(0 if self.stop.group else os.getpid(), self.stop.signal)

    def _mine(self, path: object) -> bool:
        """Whether a path lies in the folder; one that is relative to an open folder counts as if it did."""
        if isinstance(path, int):
            return True
        full = self._full(path)
        return full == self.inside or full.startswith(self.inside + os.sep)

    def _full(self, path: object) -> str:
        """Where a path leads, links followed."""
        return os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
