"""The JSON files of a run, edited by hand: taken or refused in one sentence, whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate
from inbounds.inference.predictor import Predictor
from inbounds.reports.provenance import provenance_of
from inbounds.runs.begin import Wanted, begin
from inbounds.runs.checkpoint import kept_epochs
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from mutations import survives
from training_runs import SMALL, start


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, hearts: Store) -> Run:
    """A finished epoch of two."""
    run = start(tmp_path_factory.mktemp("edited") / "run", hearts, "tags", "training.epochs=1")
    Trainer(run).fit()
    return Run.open(run.path)


def use(run: Run) -> None:
    """What commands do with a run before the network's first step."""
    again = Run.open(run.path)
    kept_epochs(again.checkpoint)
    list(provenance_of(again))
    again.opened_store()
    assert again.supervision
    assert (again.epochs or 1) > 0
    assert again.volumes is not None
    Predictor(again, doubt=False)
    for _ in begin(
        run.path, Store(run.store), Wanted(["tags"], classes=["LV"], changes=[*SMALL, "training.epochs=1"]), resume=True
    ):
        pass


@pytest.mark.parametrize("name", ["run.json", "checkpoints/0001/state.json"])
def test_edits_are_taken_or_refused(run: Run, name: str) -> None:
    taken, no = survives(run.path / name, lambda: use(run) if name == "run.json" else kept_epochs(run.checkpoint), 80)
    assert taken > 3
    assert no > 40


@pytest.mark.parametrize(
    ("name", "content", "saying"),
    [
        ("run.json", {"seed": -1}, r"run.json: damaged \(seed is -1: it should be .*\); start the run again"),
        ("run.json", {"classes": []}, "classes is"),
        ("run.json", {"classes": ["LV", "LV"]}, "two classes have the same name"),
        ("run.json", {"classes": ["../LV"]}, r"classes\[0\] is '../LV'"),
        ("run.json", {"channels": 10**12}, "channels is 1000000000000"),
        ("run.json", {"channels": 3}, "images of 3 channels"),
        ("run.json", {"fold": [3, 2]}, "fold 3 of 2"),
        ("run.json", {"store": "a\0b"}, "store is"),
        ("run.json", {"settings": {"recipe": "tags", "training": {"lr": "x"}}}, "settings.training.lr is 'x'"),
        ("run.json", {"epochs": 0}, "epochs is 0"),
        ("run.json", {"volumes": {"LV": [1]}}, r"volumes.LV\[1\]"),
        ("run.json", {"known": 3}, "known is 3"),
        ("run.json", {"annotation": ["disc"]}, "annotation is"),
        ("run.json", {"identity": {}}, "there is no identity.files"),
        ("checkpoints/0001/state.json", {"epoch": 40}, "state.json: damaged .*epoch is 40, and the folder is of 1"),
        ("checkpoints/0001/state.json", {"best": [0.5]}, r"state.json: damaged \(there is no best\[1\]"),
        ("checkpoints/0001/state.json", {"lr": -1}, "lr is -1"),
        ("checkpoints/0001/state.json", {"later": 1}, "there is nothing called later"),
    ],
)
def test_what_is_wrong_is_named(run: Run, name: str, content: dict[str, Any], saying: str) -> None:
    file = run.path / name
    before = file.read_text(encoding="utf-8")
    file.write_text(json.dumps(json.loads(before) | content))
    try:
        with pytest.raises(BadInput, match=saying):
            use(run)
    finally:
        file.write_text(before)


def test_what_a_later_version_adds_is_kept(run: Run) -> None:
    file = run.path / "run.json"
    content = json.loads(file.read_text(encoding="utf-8")) | {"later": {"a": [1]}}
    file.write_text(json.dumps(content))
    Run.open(run.path).note_volumes({"LV": (1.0, 2.0)})
    assert json.loads(file.read_text(encoding="utf-8")) == content | {"volumes": {"LV": [1.0, 2.0]}}
    evaluate(Run.open(run.path), surfaces=False)
