"""Sweeps on this machine: processes that are killed, stopped and begun twice, and what comes of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from archives import done, refused
from inbounds.store.store import Store
from sweeps import alone, done_once, ended, epochs, plan, same, sweeping, until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(one) for one in found.split()]


def test_killed_in_mid_sweep_all_runs_end_the_same_and_none_twice(tmp_path: Path, hearts: Store) -> None:
    file = plan(tmp_path / "plan.toml", hearts, epochs=12, seeds=[0, 1])
    out = tmp_path / "sweep"
    first = sweeping(file, out)
    until(lambda: epochs(out, 0) and epochs(out, 1), first)
    (worker,) = children(first.pid)
    os.kill(worker, signal.SIGKILL)  # which the command hears of
    until(lambda: len(list((out / "attempts").glob("*.jsonl"))) == 2 and children(first.pid) != [worker], first)
    second = sweeping(file, out)  # both at once
    ended(first)
    assert "2 of 2 done" in ended(second)
    assert all(done_once(out, number) for number in (0, 1))
    same(out, alone(tmp_path / "alone", file))
    told = json.loads(done("sweep", "--status", "--out", out, "--json").out)
    assert told["counts"] == {"done": 2, "running": 0, "waiting": 0, "died": 0, "failed": 0}
    assert [run["epochs"] for run in told["runs"]] == [12, 12]
    assert (
        Path(told["results"]).read_text().startswith("run,epoch,split,case,slice,class,metric,value\ntags/seed-0,12,")
    )


def test_stopped_or_killed_nothing_is_left_at_work(tmp_path: Path, hearts: Store) -> None:
    file, out = plan(tmp_path / "plan.toml", hearts, epochs=60), tmp_path / "sweep"
    first = sweeping(file, out)
    until(lambda: epochs(out, 0) >= 2, first)
    first.terminate()
    said, _ = first.communicate(timeout=60)
    assert first.returncode == 128 + signal.SIGTERM, said
    assert "go on with the same command" in said
    assert "1 waiting" in done("sweep", "--status", "--out", out).out
    other = plan(tmp_path / "other.toml", hearts, epochs=3)
    refused("sweep", other, "--out", out, saying=["begun otherwise", "choose another folder"])
    assert epochs(out, 0) < 60
    second = sweeping(file, out)
    until(lambda: children(second.pid), second)
    (worker,) = children(second.pid)
    second.kill()  # which can tell its worker nothing
    second.communicate(timeout=60)
    for _ in range(600):
        if not Path(f"/proc/{worker}/cmdline").exists() or not Path(f"/proc/{worker}/cmdline").read_bytes():
            break
        time.sleep(0.1)
    else:
        pytest.fail("its worker is still there")


def test_refusals_leave_nothing(tmp_path: Path, hearts: Store) -> None:
    bad = plan(tmp_path / "plans" / "bad.toml", hearts, more="[grid]\n'training.lr' = [-1]")
    refused("sweep", bad, "--out", tmp_path / "out", saying=[bad, "training.lr is -1"], folder=tmp_path)
    refused("sweep", "--out", tmp_path / "out", saying=["Give a plan"], folder=tmp_path)
    refused("sweep", "--status", "--out", tmp_path / "out", saying=["nothing was begun there"], folder=tmp_path)


def test_a_sweep_is_reported_on_as_its_runs(tmp_path: Path, hearts: Store) -> None:
    file = plan(tmp_path / "plan.toml", hearts, seeds=[0, 1])
    alone(tmp_path / "sweep", file)
    told = json.loads(done("report", tmp_path / "sweep", "--out", tmp_path / "page", "--json").out)
    assert told["evaluated"] >= 2
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "seed-0" in page
    assert "seed-1" in page
