"""Other processes that are at work beside a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from inbounds.locks import locked
with locked(Path(sys.argv[1]), inside=len(sys.argv) > 2):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(path: Path, *how: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a path, until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path), *how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
