"""`python -m inbounds.jobs FOLDER 0,1,2`: a process that does lines of a manifest, and ends with the one it is of."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from inbounds.jobs.work import work
from inbounds.stopping import stoppable


def main(folder: Path, numbers: list[int]) -> int:
    """Do the lines; 0 if all went well, 1 if some failed, and 128 and the signal that stopped it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with stoppable() as came:
        try:
            return 0 if work(folder, numbers) else 1
        except KeyboardInterrupt:
            return 128 + (came or [2])[0]


def _end_with_parent() -> None:
    """Whoever began this process keeps its input open as long as he lives, however that ends."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    code = main(Path(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")])
    sys.stdout.flush()
    os._exit(code)  # the thread that reads would hold the end up
