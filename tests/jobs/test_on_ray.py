"""A real Ray cluster of two nodes on this machine, one of which is killed in mid-sweep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archives import refused
from inbounds.jobs.attempts import entries
from inbounds.store.store import Store
from sweeps import alone, done_once, ended, epochs, plan, same, sweeping, until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
QUIET = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture
def ray_cluster() -> Iterator[Any]:
    """A head that does nothing, and two nodes of two cores."""
    pytest.importorskip("ray", reason="Ray is not installed: make cluster")
    before = dict(os.environ)
    os.environ |= QUIET
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=2, **small)
        yield cluster
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


def node_at_work(cluster: Any) -> Any:
    """A node on which lines are done."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if b"inbounds.jobs" in (entry / "cmdline").read_bytes():
                told = dict(
                    pair.split(b"=", 1) for pair in (entry / "environ").read_bytes().split(b"\0") if b"=" in pair
                )
                for node in cluster.worker_nodes:
                    if node.all_processes["raylet"][0].process.pid == int(told.get(b"RAY_RAYLET_PID", 0)):
                        return node
    raise AssertionError("no node is at work")


def test_a_node_killed_in_mid_sweep_all_runs_end_the_same(ray_cluster: Any, tmp_path: Path, hearts: Store) -> None:
    more = f'[ray]\naddress = "{ray_cluster.address}"\n'
    file, out = plan(tmp_path / "plan.toml", hearts, epochs=15, seeds=[0, 1], more=more), tmp_path / "sweep"
    going = sweeping(file, out, "--on", "ray")
    until(lambda: epochs(out, 0) and epochs(out, 1), going)
    ray_cluster.remove_node(node_at_work(ray_cluster), allow_graceful=False)
    assert "2 of 2 done" in ended(going, 240)
    begun = [sum(entry.what == "began" for entry in entries(out, number)) for number in (0, 1)]
    assert max(begun) >= 2, begun
    assert all(done_once(out, number) for number in (0, 1))
    same(out, alone(tmp_path / "alone", file))


def test_no_cluster_and_no_way_not_to_wait(tmp_path: Path, hearts: Store) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: make cluster")
    file = plan(tmp_path / "plan.toml", hearts)
    words = ["sweep", file, "--out", tmp_path / "out", "--on", "ray"]
    refused(*words, "--no-wait", saying=["--no-wait", "leave it out"])
