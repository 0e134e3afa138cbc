"""A real Slurm of two nodes: jobs that are told to stop, and a node that is lost, in mid-sweep."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from archives import flat_folder, refused, snapshot
from inbounds.jobs.attempts import entries
from inbounds.jobs.on_slurm import name_of, queued
from inbounds.jobs.status import standings
from inbounds.store.store import Store
from slurm_cluster import SlurmCluster, slurm_cluster, why_not
from sweeps import alone, done_once, ended, epochs, plan, same, sweeping, until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
ASKED = "[slurm]\nminutes = 20\n"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    if why := why_not():
        pytest.skip(why)
    pytest.importorskip("submitit", reason="submitit is not installed: make cluster")
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


def test_told_to_stop_and_a_node_lost_all_runs_end_the_same(slurm: SlurmCluster, tmp_path: Path, hearts: Store) -> None:
    file = plan(tmp_path / "plan.toml", hearts, epochs=15, seeds=[0, 1], more=ASKED)
    out = tmp_path / "sweep"
    going = sweeping(file, out, "--on", "slurm")
    until(lambda: epochs(out, 0) and epochs(out, 1), going)
    nodes = dict(reversed(job.split()) for job in slurm.jobs())
    stopped = next(job.split()[0] for job in slurm.jobs() if job.split()[0].endswith("_0"))
    slurm.told("scancel", "--signal=USR1", stopped)
    until(lambda: any(entry.how == "stopped" for entry in entries(out, 0)), going)
    slurm.lose_node(int(min(nodes)[1:]))
    said = ended(going, 240)
    assert "2 of 2 done" in said
    assert all(done_once(out, number) for number in (0, 1))
    assert all(one.attempts >= 2 for one in standings(out)), [entries(out, number) for number in (0, 1)]
    assert not queued(out)
    assert (out / "slurm").stat().st_mode & 0o077 == 0
    same(out, alone(tmp_path / "alone", file))


@pytest.mark.slow
def test_at_the_end_of_its_time_or_told_to_end_a_task_is_queued_again(
    slurm: SlurmCluster, tmp_path: Path, hearts: Store
) -> None:
    """A limit of two minutes, of which 50 seconds are notice; SIGTERM, as from a scheduler that needs the node."""
    if "n0" not in slurm.daemons:
        slurm.begin_node(0)
    more = "[slurm]\nminutes = 2\nnotice = 50\npack = 2\n"
    file = plan(tmp_path / "plan.toml", hearts, epochs=600, seeds=[0, 1], more=more)
    out = tmp_path / "sweep"
    going = sweeping(file, out, "--on", "slurm", "--no-wait")
    assert "waiting" in ended(going)
    assert queued(out)
    job = slurm.told("squeue", "--noheader", f"--name={name_of(out)}", "--format=%i").split()[0]
    again = sweeping(file, out, "--on", "slurm")  # which waits for what is queued
    until(lambda: epochs(out, 0) and epochs(out, 1), again, 400)
    slurm.told("scancel", "--signal=TERM", job)
    until(lambda: any(entry.how == "stopped" for entry in entries(out, 0)), again, 400)
    ended(again, 900)
    assert len([entry for entry in entries(out, 0) if entry.how == "stopped"]) >= 2
    assert all(done_once(out, number) for number in (0, 1))
    same(out, alone(tmp_path / "alone", file))


@pytest.mark.slow
def test_cancelled_jobs_stay_away_until_the_command_is_given_again(
    slurm: SlurmCluster, tmp_path: Path, hearts: Store
) -> None:
    file = plan(tmp_path / "plan.toml", hearts, epochs=400, more=ASKED)
    out = tmp_path / "sweep"
    ended(sweeping(file, out, "--on", "slurm", "--no-wait"))
    for _ in range(600):
        if epochs(out, 0):
            break
        time.sleep(0.1)
    assert 0 < epochs(out, 0) < 400
    slurm.told("scancel", f"--name={name_of(out)}")
    for _ in range(300):
        if not queued(out):
            break
        time.sleep(0.2)
    time.sleep(5)
    assert not queued(out)
    (one,) = standings(out)
    assert (one.state, one.attempts) == ("waiting", 1)
    assert 0 < one.epoch < 400
    assert "1 of 1 done" in ended(sweeping(file, out, "--on", "slurm"), 500)


def test_chunks_of_scans_give_what_one_process_gives(slurm: SlurmCluster, tmp_path: Path) -> None:
    scans = flat_folder(tmp_path / "scans", "abc")
    for store, more in (("one", []), ("many", ["--on", "slurm", "--chunk", "2"])):
        words = ["prepare", "folder", str(scans), str(tmp_path / store), "--classes", "background,RV,MYO,LV"]
        subprocess.run(
            [sys.executable, "-m", "inbounds", *words, "--side", "48", *more], check=True, capture_output=True
        )
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "many")
    assert {entry.name for entry in tmp_path.iterdir()} == {"scans", "one", "many"}


def test_what_slurm_does_not_accept_is_told(slurm: SlurmCluster, tmp_path: Path, hearts: Store) -> None:
    file = plan(tmp_path / "plan.toml", hearts, more=ASKED + "partition = 'nowhere'\n")
    refused(
        "sweep",
        file,
        "--out",
        tmp_path / "out",
        "--on",
        "slurm",
        saying=["not accepted", "nvalid partition", "[slurm]"],
    )


def test_without_slurm_it_says_so(tmp_path: Path, hearts: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: make cluster")
    monkeypatch.setenv("PATH", str(tmp_path))
    file = plan(tmp_path / "plan.toml", hearts, more=ASKED)
    refused("sweep", file, "--out", tmp_path / "out", "--on", "slurm", saying=["there is no `sbatch` here"])
