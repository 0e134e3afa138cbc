"""Files that nobody should trust, made small: pipes, headers that point elsewhere, archives and streams that grow."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fails if what is inside takes longer, even where it waits for a pipe."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> Path:
    """A named pipe that nobody writes to."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes in folders")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def dead_socket(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A socket that nobody listens at; its name is given from within its folder, as such names must be short."""
    monkeypatch.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    return path


def device(path: Path) -> Path:
    """A link to zeros without end."""
    path.symlink_to("/dev/zero")
    return path
