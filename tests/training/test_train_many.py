"""Several runs at once: each is as if it were alone, and one that fails ends alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from archives import done, refused
from inbounds.locks import locked
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.loop import Progress, Trainer
from inbounds.training.train_many import train_many
from training_runs import SMALL, kept, start

ONE = "training.threads=1"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


FAR = "constraints.far={statistic='mean_intensity',bounds={kind='fixed',lower=1e30}}"
"""A violation whose square no number holds."""


def words(store: Store, root: Path, *changes: str, seeds: str = "0") -> list[str]:
    told = ["train", "tags,full", "--seeds", seeds, "--store", str(store.path), "--annotation", "disc"]
    told += ["--classes", "LV", "--run", str(root)]
    return told + [word for change in [*SMALL, ONE, *changes] for word in ("--set", change)]


def test_each_run_is_as_if_alone_and_a_failing_one_ends_alone(tmp_path: Path, store: Store) -> None:
    good = [start(tmp_path / name, store, name, ONE, "training.epochs=2") for name in ("tags", "full")]
    bad = start(tmp_path / "bad", store, "tags", ONE, "training.epochs=9", FAR)
    shown: dict[Path, list[Progress]] = {}
    failures = train_many([bad, *good], show=lambda path, told: shown.setdefault(path, []).append(told))
    assert set(failures) == {bad.path}
    assert "the loss was not finite in epoch" in failures[bad.path]
    for run in good:
        alone = start(tmp_path / f"alone-{run.path.name}", store, run.settings.recipe, ONE, "training.epochs=2")
        before = torch.get_num_threads()
        Trainer(alone).fit()
        torch.set_num_threads(before)
        assert kept(run) == kept(alone)
        assert shown[run.path][-1].epoch == 2


@pytest.mark.slow
def test_killed_and_resumed_a_fleet_ends_the_same(tmp_path: Path, store: Store) -> None:
    root, whole = tmp_path / "fleet", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-m", "inbounds", *words(store, root, "training.epochs=12", seeds="0,1")],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(600):
        if len(list(root.glob("*/*/checkpoints/0*"))) >= 2:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done(*words(store, root, "training.epochs=12", seeds="0,1"), "--resume")
    done(*words(store, whole, "training.epochs=12", seeds="0,1"))
    names = [f"{recipe}/seed-{seed}" for recipe in ("tags", "full") for seed in (0, 1)]
    for name in names:
        assert kept(Run.open(root / name)) == kept(Run.open(whole / name)), name
    assert kept(Run.open(whole / names[0])) != kept(Run.open(whole / names[1]))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_the_parent_goes_its_processes_end_soon_and_quietly(
    tmp_path: Path, store: Store, number: signal.Signals
) -> None:
    root = tmp_path / "fleet"
    with (tmp_path / "told").open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "inbounds", *words(store, root, "training.epochs=500", seeds="0,1")],
            stderr=told,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )
    for _ in range(600):
        if len(list(root.glob("*/*/checkpoints/0*"))) >= 2:
            break
        time.sleep(0.1)
    refused(*words(store, root, "training.epochs=500", seeds="0,1"), "--resume", saying=["in use by process"])
    process.send_signal(number)
    process.wait()
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is still there")
    assert "Traceback" not in (tmp_path / "told").read_text(encoding="utf-8")
    for run in root.glob("*/*"):
        with locked(run, inside=True):
            pass


def test_a_finished_fleet_is_left_alone_on_resume_and_refused_otherwise(tmp_path: Path, store: Store) -> None:
    assert "inbounds report" in done(*words(store, tmp_path / "fleet", "training.epochs=1")).out
    before = {run: kept(Run.open(run.parent)) for run in (tmp_path / "fleet").glob("*/*/run.json")}
    assert len(before) == 2
    done(*words(store, tmp_path / "fleet", "training.epochs=1"), "--resume")
    assert {run: kept(Run.open(run.parent)) for run in before} == before
    other = [*words(store, tmp_path / "fleet", "training.epochs=1"), "--resume", "--classes", "RV"]
    refused(*other, saying=["begun with other classes", "the same command"])
    refused(*words(store, tmp_path / "fleet", "training.epochs=1"), saying=["already exists", "--resume"])
    refused(*words(store, tmp_path / "other"), "--seeds", "0,x", saying=["--seeds 0,x", "0,1,2"], folder=tmp_path)


def test_checkpoints_without_the_optimiser_can_go_on(tmp_path: Path, store: Store) -> None:
    heavy, light = (
        start(tmp_path / saved, store, "tags", f"training.save_optimizer={saved}", "training.epochs=2")
        for saved in ("true", "false")
    )
    for run in (heavy, light):
        stopped = Trainer(run)
        going = stopped.steps()
        while run.checkpoint is None:
            next(going)
        going.close()
    first = [run.checkpoint for run in (heavy, light)]
    assert first[0] is not None
    assert first[1] is not None
    assert any(name.endswith("exp_avg") for name in load_file(first[0] / "optimiser.safetensors"))
    assert all(name.startswith("generator") for name in load_file(first[1] / "optimiser.safetensors"))
    Trainer(light).fit(resume=True)
    assert light.checkpoint is not None
    assert light.checkpoint.name == "0002"
