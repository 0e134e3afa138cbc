"""Experiments on a few generated hearts, through the same code that runs the paper's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

import archives
from inbounds.jobs import training
from inbounds.runs.run import Run
from inbounds.store.store import Store
from making import make_store, source, train_here, truth_like
from reproduction import reproduce as module

SMALL = [
    "network.name=monai:UNet",
    "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}",
    "training.batch=16",
    "training.device=cpu",
    "training.epochs=1",
]
command, done, refused = (
    partial(by, program="reproduction.__main__") for by in (archives.command, archives.done, archives.refused)
)
SET = [word for change in SMALL for word in ("--set", change)]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of their own would take seconds each to start."""
    monkeypatch.setattr(training, "train_many", train_here)


@pytest.fixture
def store(hearts: Store, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hearts.path, tmp_path / "hearts"))


def words(store: Path, out: Path, *more: object, name: str = "left-ventricle") -> list[object]:
    return [name, "--store", store, "--out", out, *SET, *more]


def test_rows_seeds_resume_and_rebuild(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = done(*words(store, out, "--rows", "full,common", "--seeds", "0,1"))
    assert "annotation 'erosion' added (erosion, LV)" in told.out
    assert sorted(str(p.parent.relative_to(out / "runs")) for p in out.glob("runs/*/*/run.json")) == [
        *("common/seed-0", "common/seed-1", "full/seed-0", "full/seed-1")
    ]
    text = (out / "results" / "table.md").read_text(encoding="utf-8")
    assert "| every pixel | cross-entropy | 0.887 | 0." in text
    assert "Common bounds fitted on phantom001: size from " in text
    assert "`individual`" in text.partition("Not run: ")[2]
    assert "| individual bounds | direct penalty |" not in text
    kept = json.loads((out / "results" / "common" / "seed-1.json").read_text(encoding="utf-8"))
    assert (kept["row"], kept["seed"], kept["preset"], kept["changes"]) == ("common", 1, "paper", SMALL)
    assert kept["data"]["checksums"] == Store(store).checksums
    assert {"commit", "hardware", "seconds", "settings", "versions"} <= set(kept)
    assert str(tmp_path) not in json.dumps(kept)
    assert (out / "cases.png").stat().st_size
    assert not list((out / "results").rglob("cases*"))

    before = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/*/checkpoints/*")}
    refused(*words(store, out, "--rows", "full"), saying=["seed-0: already exists", "--resume"], folder=tmp_path)
    refused(
        *words(store, out, "--rows", "full", "--resume", "--set", "training.epochs=2"),
        saying=[out, "it holds left-ventricle paper", "choose another folder"],
        folder=tmp_path,
    )
    done(*words(store, out, "--rows", "full,individual", "--resume"))
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert "| individual bounds | direct penalty | 0.871 | 0." in (out / "results" / "table.md").read_text(
        encoding="utf-8"
    )
    shutil.rmtree(out / "runs")
    text = (out / "results" / "table.md").read_text(encoding="utf-8")
    (out / "results" / "table.md").unlink()
    done("left-ventricle", "--out", out)
    assert (out / "results" / "table.md").read_text(encoding="utf-8") == text


def test_stopped_in_the_middle_it_goes_on(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, whole = tmp_path / "out", training.train_many

    def stopped(runs: Sequence[Run], **settings) -> dict[Path, str]:
        whole(runs[:1], **settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train_many", stopped)
    ended = command(*words(store, out, "--rows", "partial,volume"))
    assert ended.code == 130
    assert "--resume" in ended.err
    done("left-ventricle", "--out", out)
    assert "`volume`, `full`.\n" in (out / "results/table.md").read_text(encoding="utf-8")
    monkeypatch.setattr(training, "train_many", whole)
    done(*words(store, out, "--rows", "partial,volume", "--resume"))
    assert "| volume bounds | direct penalty | 0.858 | 0." in (out / "results/table.md").read_text(encoding="utf-8")


def test_what_some_measured_is_kept_before_the_next_begin(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, results = training.train_many, tmp_path / "out" / "results"

    def second_stopped(runs: Sequence[Run], **settings) -> dict[Path, str]:
        if (results / "tags" / "seed-0.json").is_file():
            raise KeyboardInterrupt
        return whole(runs, **settings)

    monkeypatch.setattr(training, "AT_ONCE", 2)
    monkeypatch.setattr(training, "train_many", second_stopped)
    assert command(*words(store, tmp_path / "out", "--rows", "tags,full", "--seeds", "0,1")).code == 130
    assert [file.parent.name for file in results.glob("*/seed-0.json")] == ["tags"]


def test_what_fails_is_told_and_the_others_are_kept(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = training.train_many

    def failing(runs: Sequence[Run], **settings) -> dict[Path, str]:
        return whole(runs[:1], **settings) | {runs[1].path: "not finite"}

    monkeypatch.setattr(training, "train_many", failing)
    ended = command(*words(store, tmp_path / "out", "--rows", "tags,full"))
    assert ended.code == 1
    assert "full/seed-0: not finite" in ended.err
    assert (tmp_path / "out" / "results" / "tags" / "seed-0.json").is_file()


def test_hybrid_takes_other_labels_into_account(store: Path, tmp_path: Path) -> None:
    """A store whose `erosion` is of another kind gets the paper's under another name."""
    archives.done("annotate", store, "--name", "erosion", "--strategy", "erosion")
    told = done(*words(store, tmp_path / "out", "--rows", "hybrid_5,full_5", name="hybrid"))
    assert "annotation 'erosion-paper' added" in told.out
    run = Run.open(tmp_path / "out" / "runs" / "hybrid_5" / "seed-0")
    assert (run.annotation, run.settings.hybrid.full_scans) == ("erosion-paper", 5)
    assert (tmp_path / "out" / "results" / "levels.svg").is_file()


@pytest.mark.parametrize("name", ["spine", "bounds"])
def test_spine_and_bounds(tmp_path: Path, name: str) -> None:
    scans = [
        source(f"Img_{n}", (truth_like(n) > 0).astype("uint8"), split="train" if n < 3 else "validation")
        for n in range(4)
    ]
    shape = (256, 256) if name == "bounds" else (32, 32)  # which bounds in pixels demand
    store = make_store(tmp_path / "spine", scans, shape=shape, classes=("background", "vertebra"))
    rows = {"spine": "partial_foreground,individual_upper,full", "bounds": "80_1100,0_5000"}[name]
    done(*words(store.path, tmp_path / "out", "--rows", rows, name=name))
    text = (tmp_path / "out" / "results" / "table.md").read_text(encoding="utf-8")
    listed = text.partition("Not run: ")[2]
    assert listed.count("`") / 2 == len(module.experiment(name).rows) - len(rows.split(","))
    if name == "spine":
        assert Run.open(tmp_path / "out/runs/partial_foreground/seed-0").annotation == "foreground"
        assert Run.open(tmp_path / "out/runs/individual_upper/seed-0").annotation == "disc"


def test_mistakes_are_told_before_anything_is_written(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for more, saying in (
        (["--rows", "fulll"], ["no row 'fulll'", "did you mean 'full'"]),
        (["--seeds", "a"], ["--seeds a", "such as 0,1,2"]),
        (["--rows", "full", "--preset", "papers"], ["no preset 'papers'", "did you mean 'paper'"]),
        (["--rows", "full", "--set", "training.epoch=1"], ["unknown setting 'training.epoch'", "training.epochs"]),
    ):
        refused(*words(store, out, *more), saying=saying, folder=tmp_path)
    refused(*words(store, out, name="spines"), saying=["no experiment 'spines'", "'spine'"], folder=tmp_path)
    refused(*words(store, out, name="spine"), saying=["no class 'vertebra'"], folder=tmp_path)
    refused("spine", "--out", out, saying=[out, "neither a run nor a result", "--store"], folder=tmp_path)
    refused("timing", "--out", out, saying=["no benchmark", "python -m benchmarks"], folder=tmp_path)


def test_what_people_know_trained_as_planned(store: Path, tmp_path: Path) -> None:
    """Three classes: the last epoch, the mean and each class, no paper beside it, and what was planned is kept."""
    out, heart = tmp_path / "out", ["training.epochs=1", "training.slices=8", "network.name=unet"]
    heart += ["network.settings={width=2,levels=2}", "training.device=cpu", "training.precision='32'"]
    rows = "discs_third_sizes,full"
    words = ["heart", "--store", store, "--out", out, "--preset", "default", "--rows", rows]
    words += [part for change in heart for part in ("--set", change)]
    told = done(*words)
    assert "annotation 'discs-third' added (centroid, RV, MYO, LV)" in told.out
    assert "facts 'sizes20-third' added (sizes, off by up to 20%)" in told.out
    run = Run.open(out / "runs" / "discs_third_sizes" / "seed-0")
    assert (run.annotation, run.facts, run.classes) == ("discs-third", "sizes20-third", ("RV", "MYO", "LV"))
    kept = json.loads((out / "results" / "discs_third_sizes" / "seed-0.json").read_text(encoding="utf-8"))
    assert kept["plan"]["words"][-1].startswith("epochs: ")
    assert kept["seconds"] > 0
    assert kept["plan"]["settings"]["training"]["lr"] == 2e-3
    text = (out / "results" / "table.md").read_text(encoding="utf-8")
    assert "| labels | known beside them | last epoch, per volume | RV | MYO | LV | runs |" in text
    assert "`scribbles`" in text.partition("Not run: ")[2]
    assert "settings that the preset has no longer" not in text
    assert not list((out / "results").glob("levels-*"))  # rows that are the same at every level compare nothing
    before = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/*/checkpoints/*")}
    done(*words, "--resume")
    assert {p: p.stat().st_mtime_ns for p in before} == before
    refused(*words[:-4], "--rows", "scribbles", "--resume", saying=["it holds heart default"], folder=tmp_path)
    words[4] = tmp_path / "other"
    refused(*words, "--rows", "scribbles", saying=["no annotation 'scribble'"], folder=tmp_path)
