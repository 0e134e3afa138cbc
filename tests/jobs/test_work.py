"""What a process does with lines: real runs of an epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.jobs import work as module
from inbounds.jobs.attempts import entries, file_of, note
from inbounds.jobs.status import standings, write_results
from inbounds.jobs.work import ATTEMPTS, work
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.store.store import Store
from processes import another
from sweeps import begun, plan
from training_runs import kept

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
FAR = "constraints.far = { statistic = 'mean_intensity', bounds = { kind = 'fixed', lower = 1e30 } }"
"""A violation whose square no number holds."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT", 0.0)


def states(folder: Path) -> list[str]:
    return [one.state for one in standings(folder)]


def test_a_line_is_done_once(tmp_path: Path, hearts: Store) -> None:
    folder = begun(tmp_path / "sweep", plan(tmp_path / "plan.toml", hearts))
    assert states(folder) == ["waiting"]
    assert work(folder, [0])
    (one,) = standings(folder)
    assert (one.state, one.epoch, one.epochs, one.attempts, one.why) == ("done", 1, 1, 1, "")
    run = Run.open(folder / one.place)
    before = kept(run)
    assert work(folder, [0])
    assert kept(run) == before
    assert [entry.how for entry in entries(folder, 0)] == ["", "done"]
    rows = read_rows(write_results(folder))
    assert {row.run for row in rows} == {"tags/seed-0"}
    assert {"dsc_volume", "loss_labels"} <= {row.metric for row in rows}


def test_what_others_do_is_left_to_them(tmp_path: Path, hearts: Store) -> None:
    folder = begun(tmp_path / "sweep", plan(tmp_path / "plan.toml", hearts))
    note(folder, 0, "began")
    place = folder / standings(folder)[0].place
    for held, how in ((file_of(folder, 0), ()), (place, ("inside",))):
        with another(held, *how) as process:
            assert work(folder, [0])
            (one,) = standings(folder)
            assert one.state == "running"
            assert f"process {process.pid} on " in one.where
    assert states(folder) == ["died"]
    assert "killed, out of memory, or its machine was lost" in standings(folder)[0].why
    assert not (place / "run.json").exists()


def test_what_fails_says_why_and_stays_so_until_a_person_asks(tmp_path: Path, hearts: Store) -> None:
    more = f"[[rows]]\nname = 'bad'\nsettings = {{ {FAR} }}\n[[rows]]\nname = 'gone'\nstart = 'nowhere'"
    folder = begun(tmp_path / "sweep", plan(tmp_path / "plan.toml", hearts, more=more))
    assert not work(folder, [0])
    assert not work(folder, [1])
    bad, gone = standings(folder)
    assert (bad.state, gone.state) == ("failed", "failed")
    assert "the loss was not finite in epoch 1" in bad.why
    assert "not a run" in gone.why
    assert not work(folder, [1])
    assert standings(folder)[1].attempts == 1
    note(folder, 1, "asked")
    assert states(folder) == ["failed", "waiting"]
    assert not work(folder, [1])
    assert standings(folder)[1].attempts == 2


def test_attempts_that_bring_a_line_nowhere_are_enough(tmp_path: Path, hearts: Store) -> None:
    folder = begun(tmp_path / "sweep", plan(tmp_path / "plan.toml", hearts))
    for _ in range(ATTEMPTS):
        note(folder, 0, "began")
    assert not work(folder, [0])
    assert standings(folder)[0].why.startswith(f"{ATTEMPTS} attempts ended at epoch 0, where they began")


def test_other_data_than_were_planned_on_are_refused(tmp_path: Path, hearts: Store) -> None:
    file = plan(tmp_path / "plan.toml", hearts)
    folder = begun(tmp_path / "sweep", file)
    manifest = folder / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace(hearts.checksums["images.npy"], "0" * 64))
    assert not work(folder, [0])
    assert "not the data that" in standings(folder)[0].why
