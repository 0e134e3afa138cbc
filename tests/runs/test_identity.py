"""A run goes on with its own data, labels and facts, or not at all; what differs is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate
from inbounds.runs.run import Run
from inbounds.store.annotate import simulate
from inbounds.store.measure import Noise
from inbounds.store.store import Store
from training_runs import hearts_store, start


@pytest.fixture
def store(tmp_path: Path, hearts: Store) -> Store:
    shutil.copytree(hearts.path, tmp_path / "store")
    return Store(tmp_path / "store")


def simulated(store: Store, *, seed: int = 0, noise: float = 0.0) -> None:
    shutil.rmtree(store.path / "annotations" / "disc")
    simulate(store, "disc", "disc", [1, 2, 3], seed=seed, noise=Noise(noise))


def described(*keys: str, to: object) -> Callable[[Store], None]:
    def act(store: Store) -> None:
        file = store.path / "dataset.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        inner = content["scans"][2]
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to
        file.write_text(json.dumps(content))

    return act


def facts_changed(store: Store) -> None:
    file = store.path / "annotations" / "disc" / "facts.csv"
    head, _, *rest = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([head, *rest]) + "\n")


def other_data(store: Store) -> None:
    shutil.rmtree(store.path)
    hearts_store(store.path)
    file = store.path / "dataset.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["checksums"]["images.npy"] = content["blocks"]["images.npy"][0] = "0" * 64
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (lambda store: simulated(store, seed=1), r"annotations/disc/labels.npy \(\w+, \w+, \w+ and \d+ more\)"),
        (lambda store: simulated(store, noise=0.3), r"annotations/disc/facts.csv \(\w+, \w+, \w+ and \d+ more\)"),
        (facts_changed, r"annotations/disc/facts.csv \(\w+\)"),
        (lambda store: (store.path / "annotations/disc/facts.csv").unlink(), "annotations/disc/facts.csv, missing now"),
        (described("split", to="test"), r"dataset.json \(\w+\)"),
        (described("spacing", to=[9.0, 9.0, 9.0]), r"dataset.json \(\w+\)"),
        (described("fit", "top", to=3), r"dataset.json \(\w+\)"),
        (other_data, r"images.npy \(\w+\)"),
    ],
)
def test_what_differs_is_named(tmp_path: Path, store: Store, change: Callable[[Store], None], saying: str) -> None:
    run = start(tmp_path / "run", store, "individual")
    Run.open(run.path).opened_store()
    change(store)
    sentence = rf"store: not the data that .*run was trained on: checksums differ of {saying}.*; bring .* back"
    with pytest.raises(BadInput, match=sentence):
        Run.open(run.path).moved(Store(store.path))
    with pytest.raises(BadInput, match=sentence):
        evaluate(Run.open(run.path))


def test_facts_that_come_later_are_not_the_runs(tmp_path: Path, store: Store) -> None:
    facts = store.path / "annotations" / "disc" / "facts.csv"
    facts.rename(tmp_path / "facts.csv")
    run = start(tmp_path / "run", store, "partial")
    Run.open(run.path).opened_store()
    (tmp_path / "facts.csv").rename(facts)
    with pytest.raises(BadInput, match=r"checksums differ of annotations/disc/facts.csv, not there then"):
        Run.open(run.path).opened_store()


def test_what_nobody_trained_on_may_change(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "full")
    simulated(store, seed=1)
    file = store.path / "dataset.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"name": "another name"}))
    Run.open(run.path).opened_store()


def test_what_was_remade_the_same_is_the_same(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "individual", fold=(1, 3))
    shutil.rmtree(store.path)
    hearts_store(store.path)
    assert Run.open(run.path).opened_store().records != Store(store.path).records  # split by folds
