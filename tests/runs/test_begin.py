"""From what a person asks for to runs."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from archives import done, nifti, noise
from inbounds.errors import BadInput
from inbounds.inference.doubt import PARTS
from inbounds.runs.begin import Wanted, begin
from inbounds.runs.run import Run
from inbounds.store.annotate import simulate
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from making import train_here
from training_runs import SMALL, hearts_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return hearts_store(tmp_path_factory.mktemp("hearts") / "store")


def test_the_only_labels_need_no_name(tmp_path: Path, store: Store) -> None:
    (run,) = begin(tmp_path / "run", store, Wanted(["tags"]))
    assert run.annotation == "disc"
    assert run.about["plan"]["words"]


def test_of_several_labels_one_is_named(tmp_path: Path) -> None:
    made = hearts_store(tmp_path / "store")
    simulate(made, "other", "disc", [1])
    with pytest.raises(BadInput, match="name the labels with --annotation; there are: disc, other"):
        list(begin(tmp_path / "run", made, Wanted(["tags"])))
    assert not (tmp_path / "run").exists()


def test_what_a_person_sets_stands_above_the_plan(tmp_path: Path, store: Store) -> None:
    (run,) = begin(tmp_path / "run", store, Wanted(["tags"], changes=["training.batch=3", "network.settings.width=4"]))
    assert run.settings.training.batch == 3
    assert run.settings.network.name == "unet"
    assert run.settings.network.settings == {"width": 4}
    assert run.settings.training.ema == 0.99


def test_folds_validate_on_different_patients(tmp_path: Path, store: Store) -> None:
    runs = list(begin(tmp_path / "runs", store, Wanted(["tags"], folds=3, changes=SMALL)))
    assert [run.path.name for run in runs] == ["fold-0", "fold-1", "fold-2"]
    held = [{r.patient for r in run.opened_store().records if r.split == "validation"} for run in runs]
    assert set.union(*held) == {record.patient for record in store.records}
    assert sum(map(len, held)) == len(set.union(*held))
    with pytest.raises(BadInput, match="9 folds of 4 patients; choose from 2 to 4"):
        list(begin(tmp_path / "more", store, Wanted(["tags"], folds=9)))


def test_folds_become_one_predictor(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbounds.training.train_many.train_many", train_here)
    changes = [part for change in [*SMALL, "training.epochs=1"] for part in ("--set", change)]
    out = done(
        "train", "tags", "--store", store.path, "--classes", "LV", "--run", tmp_path / "runs", "--folds", 2, *changes
    ).out
    assert f"inbounds predict {tmp_path / 'runs'} SCANS --out masks" in out
    scan, masks = nifti(tmp_path / "new.nii.gz", noise((2, 48, 48))), tmp_path / "masks"
    assert "of 2 runs are averaged" in done("predict", tmp_path / "runs", scan, "--out", masks).err
    about = json.loads((masks / "predictions.json").read_text(encoding="utf-8"))
    assert about["runs"] == [str(tmp_path / "runs" / f"fold-{fold}") for fold in range(2)]
    (row,) = csv.DictReader((masks / "predictions.csv").read_text(encoding="utf-8").splitlines())
    assert all(0 <= float(row[part] or "nan") <= 1 for part in PARTS)


def test_a_run_may_begin_with_the_weights_of_another(tmp_path: Path, store: Store) -> None:
    few = [*SMALL, "training.epochs=1"]
    (first,) = begin(tmp_path / "first", store, Wanted(["tags"], changes=few))
    Trainer(first).fit()
    (second,) = begin(tmp_path / "second", store, Wanted(["tags"], changes=few, start=first.path))
    begun = Trainer(second).network.state_dict()
    for name, weight in load_file(first.weights(first.default_model)).items():
        assert torch.equal(begun[name], weight)
    wider = Wanted(
        ["tags"], changes=[*few, "network.settings={spatial_dims=2,channels=[5,8],strides=[2]}"], start=first.path
    )
    with pytest.raises(BadInput, match="does not fit the network"):
        list(begin(tmp_path / "third", store, wider))
    assert not (tmp_path / "third").exists()


def test_a_run_goes_on_with_its_own_plan(tmp_path: Path, store: Store) -> None:
    wanted = Wanted(["tags"], changes=["training.epochs=1"])
    (run,) = begin(tmp_path / "run", store, wanted)
    (again,) = begin(tmp_path / "run", store, wanted, resume=True)
    assert again.settings == run.settings
    with pytest.raises(BadInput, match="begun with other settings"):
        list(begin(tmp_path / "run", store, Wanted(["tags"], changes=["training.epochs=2"]), resume=True))
    assert Run.open(tmp_path / "run").about == run.about


def test_a_run_that_was_handed_over_imports_nothing(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what a new run takes from it nor going on with it: only a person names code."""
    monkeypatch.setattr("inbounds.config.build._trusted", set())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "handed_over.py").write_text("raise SystemExit('imported')")
    few = [*SMALL, "training.epochs=1"]
    wanted = Wanted(["tags"], changes=few)
    (run,) = begin(tmp_path / "run", store, wanted)
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    about["settings"]["network"] |= {"name": "handed_over:Net", "settings": {}}
    about["plan"]["settings"]["regularisers"] = {"pairwise": {"term": {"name": "handed_over:term"}}}
    (run.path / "run.json").write_text(json.dumps(about))
    plain = [change for change in few if not change.startswith("network")]
    with pytest.raises(BadInput, match="no settings load code by themselves; name it with --import handed_over"):
        list(begin(tmp_path / "second", store, replace(wanted, changes=plain, start=run.path)))
    with pytest.raises(BadInput, match="no settings load code by themselves; name it with --import handed_over"):
        list(begin(run.path, store, wanted, resume=True))
    assert "handed_over" not in sys.modules
