"""Many runs: side by side on one GPU, in processes of their own on a CPU or on several devices. Each is as if alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # which it does not export in its types

from inbounds.config.build import trust, trusted
from inbounds.errors import BadInput
from inbounds.locks import let_go, locked
from inbounds.runs.machine import cores, devices, on_gpu
from inbounds.runs.run import Run
from inbounds.training.data import Data
from inbounds.training.group import Left, joined, part_ways, say
from inbounds.training.loop import NotFinite, Progress, Trainer

Show = Callable[[Path, Progress], None]


def train_many(
    runs: Sequence[Run], *, resume: bool = False, show: Show = lambda _path, _progress: None
) -> dict[Path, str]:
    """Train several runs to their last epoch. One that fails, by a loss that is not finite, ends alone.

    On a GPU the runs take turns, a few steps each, on streams of their own: while one waits for the host or for its own
    last kernel, the others fill the device, and a slow one does not hold them up. Runs on the same data share it. On a
    CPU each run has a process; so many go at once as there are cores for the threads that each of them uses
    (`training.threads`). A run on several devices has a process for each; on GPUs, such runs follow each other, as they
    do in processes that somebody else started for all of them.

    Args:
        runs: Made by `Run.create`.
        resume: Go on with those that have begun.
        show: Receives a run's path and its progress.

    Returns:
        What went wrong, by the path of the run: nothing, if all is well.
    """
    epochs = {run.path: int(run.checkpoint.name) if resume and run.checkpoint else 0 for run in runs}
    left = [run for run in runs if run.epochs is None or epochs[run.path] < run.epochs]
    if joined() is not None:
        return _one_by_one(left, resume, show)
    together = [run for run in left if on_gpu(run.settings.training.device) and devices(run.settings.training) == 1]
    failures = _side_by_side(together, resume, show) if together else {}
    return failures | _in_processes([run for run in left if run not in together], resume, show)


def _one_by_one(runs: Sequence[Run], resume: bool, show: Show) -> dict[Path, str]:
    failures = {}
    for run in runs:
        try:
            Trainer(run, partial(show, run.path)).fit(resume=resume)
        except NotFinite as error:
            failures[run.path] = str(error)
    return failures


def _side_by_side(runs: Sequence[Run], resume: bool, show: Show) -> dict[Path, str]:
    data = Data()
    failures: dict[Path, str] = {}
    going = {run.path: Trainer(run, partial(show, run.path), data).steps(resume=resume) for run in runs}
    while going:
        all_wait = True
        for path, steps in list(going.items()):
            try:
                all_wait &= next(steps)
            except StopIteration:
                del going[path]
            except NotFinite as error:
                failures[path] = str(error)
                del going[path]
        if all_wait:
            time.sleep(0.0005)  # all runs wait for the GPU
    return failures


def _in_processes(runs: Sequence[Run], resume: bool, show: Show) -> dict[Path, str]:
    failures: dict[Path, str] = {}
    waiting, stores = list(runs), list[TCPStore]()
    going: dict[Connection, tuple[Run, BaseProcess]] = {}
    # A fresh process for each: forking one that has used threads may hang.
    context = multiprocessing.get_context("spawn")
    available = cores()
    try:
        while waiting or going:
            busy = sum(_threads(run) for run in {run.path: run for run, _ in going.values()}.values())
            while waiting and (not going or busy + _threads(waiting[0]) <= available):
                run = waiting.pop(0)
                busy += _threads(run)
                let_go(run.path)  # the process that trains it holds it
                for said in _meeting(devices(run.settings.training), stores):
                    ours, theirs = context.Pipe(duplex=False)
                    begun = context.Process(target=_alone, args=(run.path, resume, theirs, trusted(run.settings), said))
                    with _unheard():
                        begun.start()
                    theirs.close()
                    going[ours] = run, begun
            for connection in wait(list(going)):
                assert isinstance(connection, Connection)
                run, process = going[connection]
                try:
                    message: Progress | str = connection.recv()
                except EOFError:
                    process.join()
                    del going[connection]
                    others = [other for one, other in going.values() if one is run]
                    if process.exitcode and run.path not in failures:
                        failures[run.path] = _ended(run, process.exitcode)
                    for other in others if process.exitcode else ():
                        other.terminate()
                    continue
                if isinstance(message, str):
                    failures.setdefault(run.path, message)
                else:
                    show(run.path, message)
    finally:
        for _, process in going.values():
            process.terminate()
        for _, process in going.values():
            process.join()
    return failures


def _threads(run: Run) -> int:
    """The cores that a run takes: all of them on several GPUs."""
    training = run.settings.training
    number = devices(training)
    if number > 1 and (on_gpu(training.device) or training.threads is None):
        return cores()
    return number * (training.threads or torch.get_num_threads())


def _ended(run: Run, code: int) -> str:
    number = devices(run.settings.training)
    if number == 1:
        return f"{run.path}: its process ended with exit code {code}"
    return (
        f"{run.path}: one of its {number} processes ended with exit code {code}, and the others were stopped. Every "
        "finished epoch is kept; go on with the same command and --resume"
    )


def _meeting(number: int, stores: list[TCPStore]) -> list[dict[str, str]]:
    """What each of so many processes has to know to find the others, who meet at a store of ours; one needs nothing."""
    if number == 1:
        return [{}]
    stores.append(TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
    here = {
        "WORLD_SIZE": number,
        "LOCAL_WORLD_SIZE": number,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": stores[-1].port,
    }
    kept = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    both = {name: str(value) for name, value in here.items()} | kept
    return [{**both, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(number)]


def _alone(path: Path, resume: bool, pipe: Connection, modules: Sequence[str], said: dict[str, str]) -> None:
    """One run in a process of its own, or in one of several; what it tells goes through the pipe."""
    os.environ.update(said)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one hears Ctrl-C and ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(what: Progress | str) -> None:
        try:
            pipe.send(what)
        except OSError:  # nobody listens any more
            os._exit(1)

    try:
        for module in modules:
            trust(module)
        say[0] = lambda sentence: tell(f"{path}: {sentence}")
        group = joined()
        with locked(path, inside=True) if group is None or group.first else nullcontext():
            Trainer(Run.open(path), tell).fit(resume=resume)
        part_ways()
    except (NotFinite, BadInput) as error:
        tell(str(error))
    except Left as error:
        say[0](str(error))


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however it went: its run goes on when resumed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _unheard() -> Iterator[None]:
    """Processes that begin meanwhile never hear Ctrl-C, not even while they import."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would end what follows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
