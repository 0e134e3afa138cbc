"""The processes that train one run together, one a device: which of them this is, and whether the others are there.

Who starts them says so in variables: `torchrun`, `srun`, or `inbounds train` itself, which speaks as torchrun does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, NoReturn, TypeVar

import torch
from torch import distributed
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # which it does not export in its types

from inbounds.errors import BadInput
from inbounds.ranks import Part

T = TypeVar("T")

BEAT, SILENT = 2.0, 20.0
"""Seconds between two signs of life, and after how many without one a process is given up."""
MEETING = 300
"""Seconds that processes wait for each other to begin."""
LEFT = (
    "another of the {} processes that train together has ended, and so does this one. Every finished epoch is kept; go "
    "on with the same command and --resume"
)
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Left(RuntimeError):  # noqa: N818 (it names what happened)
    """One of the processes that train together is gone."""


@dataclass(frozen=True)
class Group:
    """Processes that train one run.

    Attributes:
        rank: The number of this one; the first, 0, is the only one that writes.
        ranks: How many there are.
        local: Its number among those of this machine, which is that of its GPU.
        here: How many are on this machine.
    """

    rank: int
    ranks: int
    local: int
    here: int

    @property
    def first(self) -> bool:
        """Whether this process writes and speaks."""
        return self.rank == 0

    def part(self, whole: int) -> Part:
        """What it holds of a batch of so many images."""
        return Part(self.rank, self.ranks, whole)

    def agree(self, make: Callable[[], T]) -> T:
        """What the first process makes, for all of them. Where it fails it says why, and the others end quietly."""
        if not self.first:
            made, value = self._told((False, None))
            if not made:
                raise SystemExit(2)
            answer: T = value
            return answer
        try:
            value = make()
        except BaseException:
            with suppress(RuntimeError):
                self._told((False, None))
            raise
        self._told((True, value))
        return value

    def _told(self, what: tuple[bool, Any]) -> tuple[bool, Any]:
        with leaving(self):
            box = [what]
            distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
            return box[0]

    def added(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all processes, in place."""
        distributed.all_reduce(x)
        return x

    def share(self, x: torch.Tensor, owner: int) -> None:
        """Give all processes what one of them has, in place."""
        distributed.broadcast(x, owner)


def variables(environment: dict[str, str] | None = None) -> dict[str, str] | None:
    """What torchrun says of a process, or Slurm in other words; nothing if it is alone."""
    there = dict(os.environ) if environment is None else environment
    if all(name in there for name in NAMES):
        return {name: there[name] for name in NAMES}
    tasks = there.get("SLURM_STEP_NUM_TASKS", "1")  # of `srun`: a batch script is no task of a step
    if int(tasks) < 2 or "SLURM_PROCID" not in there:
        return None
    per_machine = there.get("SLURM_STEP_TASKS_PER_NODE", tasks)
    counts = re.fullmatch(r"(\d+)(\(x\d+\))?", per_machine)
    if counts is None:
        raise BadInput(
            f"srun started {per_machine} processes on its machines: give each machine as many (--ntasks-per-node)"
        )
    address = there.get("MASTER_ADDR") or first_of(there.get("SLURM_STEP_NODELIST", "127.0.0.1"))
    port = 20_000 + (int(there.get("SLURM_JOB_ID", 0)) * 31 + int(there.get("SLURM_STEP_ID", 0))) % 20_000
    values = (
        there["SLURM_PROCID"],
        tasks,
        there["SLURM_LOCALID"],
        counts[1],
        address,
        there.get("MASTER_PORT", str(port)),
    )
    return dict(zip(NAMES, values, strict=True))


def first_of(machines: str) -> str:
    """The first machine of a list as Slurm writes it.

    Example:
        >>> first_of("gpu[07-09,12],login"), first_of("a,b")
        ('gpu07', 'a')
    """
    found = re.match(r"([^,\[]+)(?:\[(\w+))?", machines)
    return "127.0.0.1" if found is None else found[1] + (found[2] or "")


@cache
def joined() -> Group | None:
    """The processes that this one trains with, once all of them are there; nothing if it is alone."""
    said = variables()
    if said is None:
        return None
    for module in ("nn", "optim"):  # functions there hold the group that exists when they are defined, for ever
        importlib.import_module(f"torch.distributed.{module}")
    os.environ.update(said)
    rank, ranks, local, here = (int(said[name]) for name in NAMES[:4])
    if ranks % here:
        raise BadInput(f"{ranks} processes, {here} of them here: give each machine as many")
    gpu = torch.cuda.is_available() and local < torch.cuda.device_count()
    if gpu:
        torch.cuda.set_device(local)
    group = Group(rank, ranks, local, here)
    try:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=timedelta(seconds=MEETING))
        _watch(group)
        distributed.barrier() if not gpu else distributed.all_reduce(torch.zeros(1))
    except RuntimeError as error:
        raise BadInput(
            f"process {rank} of {ranks} did not find the others at {said['MASTER_ADDR']}:{said['MASTER_PORT']} "
            f"({str(error).splitlines()[0][:200]}); start all of them together, with one address"
        ) from None
    return group


@contextmanager
def leaving(group: Group | None) -> Iterator[None]:
    """Tell of a process that is gone by one kind of error, whatever the library that notices it says."""
    try:
        yield
    except RuntimeError as error:
        told = str(error)
        if group is None or not (
            isinstance(error, distributed.DistError) or re.search(r"gloo|NCCL|[Cc]onnection|peer", told)
        ):
            raise
        raise Left(LEFT.format(group.ranks)) from None


say: list[Callable[[str], None]] = [lambda sentence: print(f"Error: {sentence}", file=sys.stderr, flush=True)]
"""Who is told of a process that is gone while this one waits for it, and cannot be woken."""
_over = threading.Event()


def part_ways() -> None:
    """The run has ended: from here on each process may go when it likes.

    Threads of gloo let tensors go after a reduction, and if Python is ending then, they abort the process. They end
    with the group, which ends with the last that holds it: what wrapped a network may be left in a ring.
    """
    if distributed.is_initialized():
        _over.set()
        with suppress(RuntimeError):
            distributed.all_reduce(torch.zeros(1))
            gc.collect()
            distributed.destroy_process_group()


def stop_at_once() -> NoReturn:
    """End this process when another is gone, without waiting for it as libraries would at their end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _watch(group: Group) -> None:
    """Give signs of life from now on, and end this process soon after another gives none."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=SILENT / 2))
    keys = [f"inbounds/beat/{rank}" for rank in range(group.ranks)]
    store.set(keys[group.rank], "0")

    def beat() -> None:
        seen: dict[str, tuple[bytes, float]] = {}
        number = 0
        while not _over.wait(BEAT):
            number += 1
            try:
                store.set(keys[group.rank], str(number))
                now = time.monotonic()
                for key, value in zip(keys, store.multi_get(keys), strict=True):
                    if key not in seen or seen[key][0] != value:
                        seen[key] = value, now
                silent = any(now - since > SILENT for _, since in seen.values())
            except RuntimeError:
                silent = True  # who keeps the signs is gone
            if silent and not _over.wait(1):  # else the others tell it themselves
                say[0](LEFT.format(group.ranks))
                stop_at_once()

    distributed.all_reduce(torch.zeros(1))  # so that every key is there
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()

    def end() -> None:
        _over.set()
        thread.join(SILENT)  # a thread that Python ends in the midst of a call ends the process badly

    atexit.register(end)
