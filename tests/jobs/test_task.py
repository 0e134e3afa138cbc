"""The process that watches another: signals, deaths, and an end of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inbounds.jobs import task as module
from inbounds.jobs.task import Task

TOLD = """
import os, signal, sys, time
from pathlib import Path
log = Path(sys.argv[1])
with log.open("a") as stream:
    stream.write(f"{os.getpid()} {os.environ.get('OMP_NUM_THREADS', '')}\\n")
for _ in range(600):
    time.sleep(0.1)
    if (log.parent / "end").exists():
        sys.exit(0)
"""
"""Notes its own number, and waits: it ends as any program does, by a signal or when a file says so."""


@pytest.fixture
def watched(tmp_path: Path) -> Task:
    task = Task(tmp_path, [3, 4], threads=1)
    assert task.command[1:] == ["-m", "inbounds.jobs", str(tmp_path), "3,4"]
    task.command = [sys.executable, "-c", TOLD, str(tmp_path / "log")]
    return task


def wait(true: Callable[[], object]) -> None:
    for _ in range(300):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it takes too long")


def pids(folder: Path) -> list[int]:
    log = folder / "log"
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_process_that_dies_is_begun_again_and_hears_no_signals_of_schedulers(tmp_path: Path, watched: Task) -> None:
    runner = threading.Thread(target=watched.run)
    runner.start()
    wait(lambda: pids(tmp_path))
    for number in module.DEAF:
        os.kill(pids(tmp_path)[0], number)
    time.sleep(0.3)
    assert len(pids(tmp_path)) == 1
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    wait(lambda: len(pids(tmp_path)) == 2)
    (tmp_path / "end").touch()
    runner.join(30)
    assert not runner.is_alive()
    assert (tmp_path / "log").read_text().split()[1::2] == [os.environ.get("OMP_NUM_THREADS", "1")] * 2


def test_it_ends_for_good_when_it_is_stopped_or_dies_too_often(
    tmp_path: Path, watched: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = threading.Thread(target=watched.run)
    runner.start()
    wait(lambda: pids(tmp_path))
    watched.stop()
    runner.join(30)
    assert not runner.is_alive()
    assert len(pids(tmp_path)) == 1
    monkeypatch.setattr(module, "DEATHS", 2)
    dying = Task(tmp_path, [0])
    dying.command = [sys.executable, "-c", f"open({str(tmp_path / 'died')!r}, 'a').write('x'); import os; os.abort()"]
    dying.run()
    assert (tmp_path / "died").read_text() == "xx"


def test_a_signal_may_stop_it_amid_its_wait(tmp_path: Path) -> None:
    """As under Slurm: the handler stops the process for which the same thread is waiting."""
    code = f"""
import signal, sys
from pathlib import Path
from inbounds.jobs.task import Task
task = Task(Path({str(tmp_path)!r}), [0])
task.command = [sys.executable, "-c", {TOLD!r}, {str(tmp_path / "log")!r}]
signal.signal(signal.SIGUSR1, lambda *_: task.stop())
task.run()
print("ended")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        wait(lambda: pids(tmp_path))
        process.send_signal(signal.SIGUSR1)
        assert process.communicate(timeout=30)[0] == "ended\n"
