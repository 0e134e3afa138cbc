"""What training refuses, and that a refusal leaves nothing behind; what is not known is never taken for kept to."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from archives import command, done, refused
from inbounds.config import Hybrid
from inbounds.errors import BadInput
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.store.store import Store
from inbounds.training.loop import NotFinite, Progress, Trainer
from training_runs import SMALL, blind, kept, start

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
SET = [part for change in [*SMALL, "training.epochs=1"] for part in ("--set", change)]


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


def words(store: Store, run: Path, recipe: str = "tags") -> list:
    return ["train", recipe, "--store", store.path, "--annotation", "disc", "--classes", "LV", "--run", run, *SET]


@pytest.mark.parametrize(
    ("more", "saying"),
    [
        (["--set", "network.name=enett"], ["network.name=enett", "did you mean 'enet'"]),
        (["--set", "network.name=unet", "--set", "network.settings={widht=3}"], ["widht", "did you mean 'width'"]),
        (["--classes", "background"], ["background"]),
        (["--classes", "LV,LV"], ["classes must differ"]),
        (["--full-scans", "99"], ["99"]),
        (["--only-full"], ["full_scans is 0"]),
        (["--minutes", "0"], ["training.minutes is 0.0", "greater than 0"]),
        (["--set", "hybrid.repeat=2"], ["repeat is of fully labelled scans, and full_scans is 0"]),
        (
            ["--set", "hybrid.weak_label_weight=0.1"],
            ["{'weak_label_weight': 0.1}: weak_label_weight is of scans beside fully labelled ones, and full"],
        ),
        (
            ["--full-scans", "1", "--only-full", "--set", "hybrid.weak_label_weight=0.1"],
            ["weak_label_weight is of scans", "are left out"],
        ),
        (
            ["--full-scans", "1", "--set", "hybrid.weak_label_weight=0"],
            ["hybrid.weak_label_weight is 0", "greater than 0"],
        ),
        (["--set", "constraints.size.bounds.lower=60"], ["bounds.lower=60", "'tags' has tags bounds, without 'lower'"]),
        (["another"], ["'another' is not expected", "--set"]),
        (
            ["--set", "regularisers.r.term={name='border',edge=0}"],
            ["the loss cannot be computed", "edge must be above 0"],
        ),
        (["--set", "constraints.x={statistic='moment',bounds='fixed'}"], ["the loss cannot be computed", "order"]),
        (["--set", "regularisers.size.term=border"], ["two loss terms are called 'size'"]),
        (["--set", "training.device=cuda:31"], ["training.device=cuda:31"]),
    ],
)
def test_a_refused_run_leaves_no_folder(tmp_path: Path, store: Store, more: list[str], saying: list[str]) -> None:
    refused(*words(store, tmp_path / "run"), *more, saying=saying)
    assert not (tmp_path / "run").exists()
    refused(
        *words(store, tmp_path / "run", "common"),
        "--set",
        "constraints.size.bounds={lower=100,upper=50}",
        saying=["100"],
    )
    assert not (tmp_path / "run").exists()


def test_settings_may_follow_one_another(tmp_path: Path, store: Store) -> None:
    done(
        *words(store, tmp_path / "run", "common"),
        "constraints.size.bounds.lower=10",
        "constraints.size.bounds.upper=500",
    )
    assert Run.open(tmp_path / "run").settings.constraints["size"].bounds == {
        "kind": "common",
        "lower": 10,
        "upper": 500,
    }


def test_the_two_ways_to_ask_for_full_scans_meet(tmp_path: Path, store: Store) -> None:
    done(*words(store, tmp_path / "run"), "--set", "hybrid.full_scans=2", "--only-full")
    assert Run.open(tmp_path / "run").settings.hybrid == Hybrid(full_scans=2, only_full=True)
    done(
        *words(store, tmp_path / "other"),
        "--full-scans",
        "1",
        "--set",
        "hybrid.repeat=3",
        "hybrid.weak_label_weight=0.1",
    )
    assert Run.open(tmp_path / "other").settings.hybrid == Hybrid(full_scans=1, repeat=3, weak_label_weight=0.1)


def test_bounds_that_nobody_knows_are_not_held(tmp_path: Path, store: Store) -> None:
    """Nothing is known of the held-out scans: there is nothing to choose by, and the rate has no reason to fall."""
    run = start(
        tmp_path / "run",
        blind(store, tmp_path / "b", "validation"),
        "individual",
        "training.epochs=3",
        "training.patience=1",
    )
    Trainer(run).fit()
    rows = read_rows(run.path / "metrics.csv")
    assert not [row for row in rows if row.metric.startswith(("satisfied", "violations"))]
    assert {row.value for row in rows if row.metric == "lr"} == {5e-4}
    assert run.default_model == "last"


def test_a_recipe_without_its_facts_is_refused(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", blind(store, tmp_path / "b", "train", "validation"), "individual")
    with pytest.raises(BadInput, match=r"of no training image is the size known.*--facts \(there are: disc\)"):
        Trainer(run)
    Trainer(start(tmp_path / "other", Store(tmp_path / "b"), "partial"))


def test_weights_that_are_not_finite_are_not_kept(tmp_path: Path, store: Store) -> None:
    """An epoch of one step: no loss comes after the step that broke the weights."""
    run = start(tmp_path / "run", store, "tags", "training.batch=500", "training.epochs=2")
    training = run.settings.training.model_copy(update={"lr": 1e38})  # which no file may say
    run = replace(run, settings=run.settings.model_copy(update={"training": training}))
    with pytest.raises(NotFinite, match=r"not finite.*The checkpoint after epoch 0 is kept") as stopped:
        Trainer(run).fit()
    assert run.checkpoint is None
    assert len(str(stopped.value)) < 1000


def test_resumed_with_other_data_or_the_same_elsewhere(tmp_path: Path, store: Store) -> None:
    done(*words(store, tmp_path / "run"))
    moved = shutil.copytree(store.path, tmp_path / "moved")
    told = [*words(Store(moved), tmp_path / "run"), "--resume"]
    done(*told)
    assert Run.open(tmp_path / "run").store == moved
    about = json.loads((moved / "dataset.json").read_text(encoding="utf-8"))
    about["checksums"]["images.npy"] = "0" * 64
    (moved / "dataset.json").write_text(json.dumps(about))
    refused(*told, saying=["not the data that", "checksums"])


def test_what_is_shown_last_is_the_last_epoch(tmp_path: Path, store: Store) -> None:
    shown: list[Progress] = []
    run = start(tmp_path / "run", store, "tags", "training.epochs=2", "training.lr=0.01")
    Trainer(run, shown.append).fit()
    scores = [row.value for row in read_rows(run.path / "metrics.csv") if (row.metric, row.klass) == ("dsc_slice", "")]
    assert shown[-1].validation["dsc_slice"] == scores[-1]
    assert scores[0] != scores[1]


def test_a_damaged_state_is_told_in_one_line(tmp_path: Path, store: Store) -> None:
    done(*words(store, tmp_path / "run"))
    (tmp_path / "run" / "checkpoints" / "0001" / "state.json").write_text("{")
    refused("evaluate", tmp_path / "run", saying=["state.json: damaged"])
    refused("report", tmp_path / "run", "--out", tmp_path / "report", saying=["state.json: damaged"])


def test_what_is_refused_after_all_leaves_nothing_behind(tmp_path: Path, store: Store) -> None:
    """Of several recipes the later ones too; and a folder that was there keeps what is not the run's."""
    root = tmp_path / "runs"
    wrong = ["--set", "constraints.size.bounds={lower=5000,upper=10}"]
    several = [word if word != "tags" else "tags,common" for word in words(store, root)]
    refused(*several, *wrong, saying=["5000"])
    assert not list(root.rglob("run.json"))
    refused(*[word if word != "tags" else "tags,tags" for word in words(store, root)], saying=["named twice"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".note").write_text("mine")
    refused(*words(store, tmp_path / "mine"), "--set", "training.device=cuda:31", saying=["cuda:31"])
    assert [file.name for file in (tmp_path / "mine").iterdir()] == [".note"]


def test_after_a_start_that_failed_the_corrected_command_begins(tmp_path: Path, store: Store) -> None:
    """One whose loss was not finite in its first epoch; and with --resume it is the same command that goes on."""
    far = "constraints.far={statistic='mean_intensity',bounds={kind='fixed',lower=1e30}}"
    assert "the loss was not finite in epoch 1" in command(*words(store, tmp_path / "run"), "--set", far).err
    assert (tmp_path / "run" / "run.json").exists()
    refused(*words(store, tmp_path / "run"), "--resume", saying=["begun with other settings"])
    done(*words(store, tmp_path / "run"))
    alone = tmp_path / "alone"
    done(*words(store, alone))
    assert kept(Run.open(tmp_path / "run")) == kept(Run.open(alone))
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 1


def test_settings_that_no_recipe_knows_are_refused_together_too(tmp_path: Path, store: Store) -> None:
    several = [word if word != "tags" else "tags,common" for word in words(store, tmp_path / "runs")]
    refused(*several, "--set", "constraints.sise.weight=3", saying=["no recipe has bounds called 'sise'", "'size'"])
    refused(*several, "--set", "proposals.hardn=false", saying=["did you mean 'harden'"])


def test_without_truth_nobody_is_sent_to_compare_with_it(tmp_path: Path, store: Store) -> None:
    without, run = blind(store, tmp_path / "b"), tmp_path / "run"
    advice = done(*words(without, run)).out.partition("Look at it with: inbounds ")[2].split()
    assert advice == ["report", "--out", "report", str(run)]
    assert "inbounds evaluate" in done(*words(store, tmp_path / "other")).out
    assert "annotation disc: every label is a class" in done("verify", without.path).out


@pytest.mark.parametrize(
    "change",
    [
        "network.name=enett",
        "network.settings={widht=3}",
        "constraints.size.bounds={kind='common',lower=100,upper=50}",
        "training.class_weight=[1,2,3]",
    ],
)
def test_a_setting_that_fails_late_is_told_as_it_was_typed(tmp_path: Path, store: Store, change: str) -> None:
    line = refused(*words(store, tmp_path / "run"), "--set", "training.batch=2", "--set", change, saying=[])
    assert line.startswith(f"Error: --set {change}: ")
