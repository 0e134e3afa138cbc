"""Several processes that share a run or a batch, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent


def begin(ranks: int, command: Sequence[object], **environment: str) -> list[subprocess.Popen[str]]:
    """So many processes of a Python program, each told who it is; one needs to be told nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    both = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", **environment}
    many = {"MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    return [
        subprocess.Popen(
            [sys.executable, *map(str, command)],
            env={**both, **many, "RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else both,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


def threads_of_gloo() -> list[str]:
    """The threads of this process that are gloo's: such a one may abort a process that ends."""
    tasks = Path("/proc/self/task")  # of Linux alone
    names = [(task / "comm").read_text(encoding="utf-8") for task in tasks.iterdir()] if tasks.is_dir() else []
    return [name for name in names if "gloo" in name]


def ended(processes: Sequence[subprocess.Popen[str]], code: int = 0, seconds: float = 300) -> list[str]:
    """What each of them said in the end, all with this exit code."""
    said = [process.communicate(timeout=seconds) for process in processes]
    for process, (out, err) in zip(processes, said, strict=True):
        assert process.returncode == code, out + err
    return [out + err for out, err in said]
