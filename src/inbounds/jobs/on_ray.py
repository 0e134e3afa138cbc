"""Tasks on a Ray cluster that is there: of one whose node dies, Ray begins another elsewhere, which goes on."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput, reason
from inbounds.jobs.cluster import Cluster
from inbounds.jobs.task import Task

LOOK = 5.0
"""Seconds between looks at what is done."""


def do_lines(folder: str, numbers: Sequence[int], here: str) -> None:
    """What Ray runs."""
    Task(Path(folder), numbers, here).run()


def pack(folder: Path, cluster: Cluster) -> int:  # noqa: ARG001
    """So many lines in a task."""
    return cluster.ray.pack


def hand(folder: Path, groups: Sequence[Sequence[int]], cluster: Cluster, look: Callable[[], object]) -> None:
    """Begin tasks and wait for their ends; what became of their lines is in their folders."""
    ray, asked = _ray(), cluster.ray
    ours = not ray.is_initialized()
    try:
        if ours:
            ray.init(address=asked.address, log_to_driver=False, logging_level="warning")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(
            f"--on ray: no cluster at {asked.address} ({reason(error)}); begin one with `ray start --head`, or set "
            "ray.address"
        ) from None
    try:
        remote = ray.remote(do_lines).options(num_cpus=asked.cpus, num_gpus=asked.gpus, max_retries=asked.retries)
        going = [remote.remote(str(folder), list(group), str(Path.cwd())) for group in groups]
        while going:
            done, going = ray.wait(going, timeout=LOOK)
            look()
            for one in done:
                try:
                    ray.get(one)
                except ray.exceptions.RayError:  # too many nodes have died under it
                    continue
    finally:
        if ours:
            ray.shutdown()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise BadInput("--on ray needs Ray: pip install 'inbounds[ray]'") from None
