"""A run as a folder: what it writes down, and what it refuses to read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.runs.run import MODELS, Run
from inbounds.store.store import Store
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
    del about["schema"]
    about["settings"]["training"]["rate"] = about["settings"]["training"].pop("lr")  # as 0.1 called it
    file.write_text(json.dumps(about))
    with pytest.raises(BadInput, match=r"run.json: made by another version of inbounds.*train it again"):
        Run.open(run.path)
    file.write_text("[]")
    with pytest.raises(BadInput, match=r"run.json: damaged"):
        Run.open(run.path)
