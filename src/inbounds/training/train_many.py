"""Many runs at once: side by side on one GPU, in processes of their own on a CPU. Each is as if it were alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from inbounds.config.build import trust, trusted
from inbounds.errors import BadInput
from inbounds.locks import let_go, locked
from inbounds.runs.machine import cores, on_gpu
from inbounds.runs.run import Run
from inbounds.training.data import Data
from inbounds.training.loop import NotFinite, Progress, Trainer

Show = Callable[[Path, Progress], None]


def train_many(
    runs: Sequence[Run], *, resume: bool = False, show: Show = lambda _path, _progress: None
) -> dict[Path, str]:
    """Train several runs to their last epoch. One that fails, by a loss that is not finite, ends alone.

    On a GPU the runs take turns, a few steps each, on streams of their own: while one waits for the host or for its own
    last kernel, the others fill the device, and a slow one does not hold them up. Runs on the same data share it. On a
    CPU each run has a process; so many go at once as there are cores for the threads that each of them uses
    (`training.threads`).

    Args:
        runs: Made by `Run.create`.
        resume: Go on with those that have begun.
        show: Receives a run's path and its progress.

    Returns:
        What went wrong, by the path of the run: nothing, if all is well.
    """
    epochs = {run.path: int(run.checkpoint.name) if resume and run.checkpoint else 0 for run in runs}
    left = [run for run in runs if run.epochs is None or epochs[run.path] < run.epochs]
    together = [run for run in left if on_gpu(run.settings.training.device)]
    failures = _side_by_side(together, resume, show) if together else {}
    return failures | _in_processes([run for run in left if run not in together], resume, show)


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
    waiting = list(runs)
    going: dict[Connection, tuple[Run, BaseProcess]] = {}
    # A fresh process for each: forking one that has used threads may hang.
    context = multiprocessing.get_context("spawn")
    available = cores()
    try:
        while waiting or going:
            busy = sum(_threads(run) for run, _ in going.values())
            while waiting and (not going or busy + _threads(waiting[0]) <= available):
                run = waiting.pop(0)
                busy += _threads(run)
                ours, theirs = context.Pipe(duplex=False)
                begun = context.Process(target=_alone, args=(run.path, resume, theirs, trusted(run.settings)))
                let_go(run.path)  # the process that trains it holds it
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
                    if process.exitcode and run.path not in failures:
                        failures[run.path] = f"{run.path}: its process ended with exit code {process.exitcode}"
                    del going[connection]
                    continue
                if isinstance(message, str):
                    failures[run.path] = message
                else:
                    show(run.path, message)
    finally:
        for _, process in going.values():
            process.terminate()
        for _, process in going.values():
            process.join()
    return failures


def _threads(run: Run) -> int:
    return run.settings.training.threads or torch.get_num_threads()


def _alone(path: Path, resume: bool, pipe: Connection, modules: Sequence[str]) -> None:
    """One run in a process of its own; what it tells goes through the pipe."""
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
        with locked(path, inside=True):
            Trainer(Run.open(path), tell).fit(resume=resume)
    except (NotFinite, BadInput) as error:
        tell(str(error))


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
