"""Tasks in processes of this machine: packs of runs one after the other, other work on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from inbounds.jobs.cluster import Cluster
from inbounds.jobs.manifest import read_manifest
from inbounds.jobs.task import Task
from inbounds.jobs.training import AT_ONCE
from inbounds.runs.machine import cores, on_gpu

LOOK = 10.0
"""Seconds between looks at what is done."""


def pack(folder: Path, cluster: Cluster) -> int:  # noqa: ARG001
    """Training shares a GPU, or finds cores by itself; other work has a process for each line."""
    return AT_ONCE if all(line.task == "train" for line in read_manifest(folder)) else 1


def hand(folder: Path, groups: Sequence[Sequence[int]], cluster: Cluster, look: Callable[[], object]) -> None:
    """Do tasks; what became of their lines is in their folders."""
    one_by_one = pack(folder, cluster) > 1 or on_gpu("auto")
    tasks = [Task(folder, group, threads=0 if one_by_one else 1) for group in groups]
    with ThreadPoolExecutor(1 if one_by_one else cores()) as pool:
        going: set[Future[None]] = {pool.submit(task.run) for task in tasks}
        try:
            while going:
                done, going = wait(going, timeout=LOOK, return_when=FIRST_COMPLETED)
                look()
                for each in done:
                    each.result()
        except BaseException:
            for task in tasks:
                task.stop()
            raise
