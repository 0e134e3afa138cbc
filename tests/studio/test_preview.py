"""The newest masks while a network learns."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.studio.preview import FILE, SCANS, Newest, choose, opened, read_newest, write_newest
from studios import SHAPE, act, click, ids, row, scans
from studios import opened as served
from training_runs import start


def test_slices_with_labels_and_without_are_looked_at(tmp_path: Path) -> None:
    names = [f"scan{number:02d}" for number in range(20)]
    with served(scans(tmp_path / "scans", names)) as client:
        for number in range(9):
            for at in (1, 4, 5):
                click(client, ids(client)[names[number]], (at, 3, 3))
        chosen = choose(client.studio.project, names)
        assert chosen == {**dict.fromkeys(names[:6], 4), **dict.fromkeys(names[9:15], SHAPE[0] // 2)}
        assert len(choose(client.studio.project, names[:8])) == 8
        assert len(choose(client.studio.project, names[:14])) == SCANS


def test_masks_are_kept_and_what_is_damaged_is_nothing(tmp_path: Path) -> None:
    masks = {"a": np.eye(3, dtype=np.uint8), "b/c": np.zeros((2, 4), np.uint8)}
    write_newest(tmp_path, Newest(7, {"a": 1, "b/c": 2}, masks))
    found = read_newest(tmp_path)
    assert (found.epoch, found.slices) == (7, {"a": 1, "b/c": 2})
    assert all(np.array_equal(found.masks[name], mask) for name, mask in masks.items())
    whole = (tmp_path / FILE).read_bytes()
    for damaged in (b"", whole[:50], whole[: len(whole) // 2], b"no masks"):
        (tmp_path / FILE).write_bytes(damaged)
        assert read_newest(tmp_path) == Newest()
    np.savez(tmp_path / FILE, names=np.array(["a"]), slices=np.array([1]), epoch=np.array(1), mask0=np.ones((2, 2)))
    assert read_newest(tmp_path) == Newest()


@pytest.fixture
def work(tmp_path: Path, hearts: Store) -> Path:
    """The folder of a job whose run has two epochs."""
    from inbounds.training.loop import Trainer

    run = start(tmp_path / "run", hearts, "individual", "training.epochs=2", classes=["RV", "MYO", "LV"])
    Trainer(run).fit()
    shown = {hearts.records[0].name: 3, hearts.records[-1].name: 2, "left out": 1}
    (tmp_path / "job.json").write_text(json.dumps({"shown": shown, "values": [0, 5, 6, 9]}))
    return tmp_path


def test_masks_are_those_that_prediction_would_give(work: Path, hearts: Store) -> None:
    from inbounds.inference import Predictor

    newest = opened(work)()
    assert newest.epoch == 2
    predictor = Predictor(Run.open(work / "run"), "last", "cpu", doubt=False)
    for record in (hearts.records[0], hearts.records[-1]):
        whole = np.array([0, 5, 6, 9], np.uint8)[predictor.predict_stored(hearts, record).mask]
        assert np.array_equal(newest.masks[record.name], whole[newest.slices[record.name]])
    assert set(newest.masks) == {hearts.records[0].name, hearts.records[-1].name}


@pytest.mark.plain
def test_the_program_ends_when_nobody_waits_for_it(work: Path) -> None:
    line = [sys.executable, "-m", "inbounds.studio.preview", str(work)]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as program:
        until = time.monotonic() + 60
        while not (work / FILE).is_file():
            assert time.monotonic() < until
            time.sleep(0.1)
        assert program.poll() is None
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(20) == 0
    assert read_newest(work).epoch == 2


def test_the_page_gets_the_newest_masks_while_it_trains(tmp_path: Path) -> None:
    with served(scans(tmp_path / "scans")) as client:
        trainings = client.studio.trainings
        work = trainings.folder / "001"
        work.mkdir(parents=True)
        about = {
            "state": "done",
            "number": 1,
            "sentence": "",
            "commands": [],
            "words": [],
            "left_out": {},
            "minutes": 1,
        }
        mask = np.zeros(SHAPE[1:], np.uint8)
        mask[2, 3] = 2
        write_newest(work, Newest(4, {"one": 5}, {"one": mask}))
        (work / "job.json").write_text(json.dumps(about))
        assert client.get("/api/project").json()["training"]["newest"] is None  # its end has masks of all scans
        trainings._alive = lambda _: True  # type: ignore[method-assign]
        (work / "job.json").write_text(json.dumps(about | {"state": "training", "since": time.time()}))
        told = client.get("/api/project").json()["training"]
        assert told["newest"] == {"epoch": 4, "slices": {"one": 5}}
        shown = np.frombuffer(client.get(f"/api/train/mask/{ids(client)['one']}").content, np.uint8)
        plane = client.get(f"/api/scans/{ids(client)['one']}").json()["planes"][0]["flip"]
        steps = [-1 if plane[axis] else 1 for axis in ("down", "across")]
        assert np.array_equal(shown.reshape(SHAPE[1:]), mask[:: steps[0], :: steps[1]])
        assert client.get(f"/api/train/mask/{ids(client)['two']}").status_code == 404
        write_newest(work, Newest(5, {"one": 5}, {"one": mask[1:]}))
        assert client.get(f"/api/train/mask/{ids(client)['one']}").status_code == 409
        act(client, "accept", scan=ids(client)["one"], accepted=True, status=409)
        assert not row(client, "one")["predicted"]
