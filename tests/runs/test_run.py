"""A run as a folder: what it writes down, and what it refuses to read."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.runs.run import MODELS, Run
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from processes import another
from training_runs import start


def test_what_decides_a_run_is_read_back(tmp_path: Path, hearts: Store) -> None:
    run = start(tmp_path / "run", hearts, "tags", "training.epochs=3", seed=4)
    assert Run.open(run.path) == run
    assert (run.settings.recipe, run.settings.training.epochs, run.seed, run.classes) == ("tags", 3, 4, ("LV",))
    assert run.about["known"] == ["disc labels", "whether the region is there"]
    assert run.default_model == "last"
    with pytest.raises(BadInput, match="no epoch is finished yet"):
        run.weights("last")
    with pytest.raises(BadInput, match=f"no model 'constraints'; there are: {', '.join(MODELS)}"):
        run.weights("constraints")


def test_data_and_supervision_are_made_once_and_the_data_checked(tmp_path: Path, hearts: Store) -> None:
    run = start(tmp_path / "run", hearts, "tags")
    assert run.opened_store() is run.opened_store()
    assert run.supervision is run.supervision
    assert [one.name for one in run.supervision.constraints] == ["size"]
    assert Run.open(run.path) == run  # whatever was opened
    other = replace(run, about={**run.about, "data": {**run.about["data"], "checksums": {}}})
    for _ in range(2):
        with pytest.raises(BadInput, match=r"not the data that .* was trained on"):
            other.opened_store()


def test_a_run_of_another_version_is_refused_in_one_sentence(tmp_path: Path, hearts: Store) -> None:
    run = start(tmp_path / "run", hearts, "tags")
    file = run.path / "run.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    training = {key: value for key, value in about["settings"]["training"].items() if key != "lr"}
    first = about | {"settings": {**about["settings"], "training": {**training, "rate": 1e-3}}}  # as 0.1 called it
    del first["schema"]
    network = {**about["settings"]["network"], "edge_filter": 0.0}  # which is gone
    second = about | {"schema": 2, "settings": {**about["settings"], "network": network}}
    for other in (first, second):
        file.write_text(json.dumps(other))
        with pytest.raises(BadInput, match=r"run.json: made by another version of inbounds.*train it again"):
            Run.open(run.path)
    file.write_text("[]")
    with pytest.raises(BadInput, match=r"run.json: damaged"):
        Run.open(run.path)


def test_a_start_that_came_to_nothing_is_replaced(tmp_path: Path, hearts: Store) -> None:
    """Whatever it left: a run without a finished epoch, and names on the way to a first one."""
    first = start(tmp_path / "run", hearts, "tags", "training.epochs=1")
    going = Trainer(first).steps()
    next(going)
    going.close()
    (first.path / "metrics.csv").write_text("cut off")
    (first.path / "checkpoints" / ".0001.node-1-0123abcd.partial").mkdir(parents=True)
    (first.path / ".run.json.node-1-0123abcd.partial").write_text("{")
    second = start(tmp_path / "run", hearts, "full", "training.epochs=1")
    assert Run.open(second.path).settings.recipe == "full"
    assert [file.name for file in second.path.iterdir()] == ["run.json"]


def test_what_is_no_such_start_is_kept(tmp_path: Path, hearts: Store) -> None:
    """A finished epoch, files of somebody else, and a run that another process is at."""
    run = start(tmp_path / "run", hearts, "tags", "training.epochs=1")
    with another(run.path, "inside"), pytest.raises(BadInput, match=r"run: in use by process \d+ on .* since"):
        start(tmp_path / "run", hearts, "tags")
    for name, content in (("run/checkpoints/0001/state.json", "{}"), ("mine/run.json", "{}"), ("notes/start.txt", "1")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        with pytest.raises(BadInput, match="already exists; add --resume to go on with it, or choose another name"):
            start(tmp_path / name.partition("/")[0], hearts, "tags")
        assert file.read_text(encoding="utf-8") == content


def test_a_run_killed_before_it_had_its_weights_begins_anew(tmp_path: Path, hearts: Store) -> None:
    first = start(tmp_path / "first", hearts, "tags", "training.epochs=1")
    Trainer(first).fit()
    run = start(tmp_path / "run", hearts, "tags", "training.epochs=1", start=first)
    assert run.start is not None
    run.start.unlink()
    assert not run.whole
    with pytest.raises(BadInput, match=r"start\.safetensors: missing, as the run was killed when it was made"):
        Trainer(run)
    assert start(tmp_path / "run", hearts, "tags", "training.epochs=1", start=first).whole


def test_checkpoints_are_in_the_order_of_their_epochs(tmp_path: Path, hearts: Store) -> None:
    run = start(tmp_path / "run", hearts, "tags")
    for name in ("9999", "10000", "note"):
        (run.path / "checkpoints" / name).mkdir(parents=True)
    assert run.checkpoint is not None
    assert run.checkpoint.name == "10000"


def test_a_run_needs_a_name_that_is_text(tmp_path: Path, hearts: Store) -> None:
    """Not after its first epoch, when its network cannot be written there."""
    with pytest.raises(BadInput, match=r"run.udcff': a name that is not text in UTF-8; choose another for the run"):
        start(tmp_path / os.fsdecode(b"run\xff"), hearts, "tags")
    assert not list(tmp_path.iterdir())
    moved = tmp_path / os.fsdecode(b"store\xff")
    try:
        shutil.copytree(hearts.path, moved)
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(BadInput, match=r"store.udcff': a name that is not text in UTF-8"):
        start(tmp_path / "run", Store(moved), "tags")
    assert not (tmp_path / "run").exists()
