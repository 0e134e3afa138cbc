"""Training on a few generated hearts: what a run keeps, and that nothing can take it away."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from archives import full_disk, refused
from inbounds.config import read_settings
from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate, predict_slices
from inbounds.reports.progress_table import Screen
from inbounds.runs.begin import Wanted, begin
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows
from inbounds.store.annotate import import_points
from inbounds.store.store import Store
from inbounds.supervision import recipes
from inbounds.training.loop import NotFinite, Progress, Trainer
from processes import another
from training_runs import SMALL, blind, kept, start

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

BORDER = "term={name='border', reach=1}, weight=1.0"


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


@pytest.mark.parametrize("recipe", recipes)
def test_every_recipe_trains(tmp_path: Path, store: Store, recipe: str) -> None:
    shown: list[Progress] = []
    run = start(tmp_path / "run", store, recipe, "training.epochs=2")
    before = Trainer(run).network.state_dict()
    Trainer(run, shown.append).fit()
    assert run.checkpoint is not None
    assert run.checkpoint.name == "0002"
    weights = load_file(run.weights("last"))
    moved = [not torch.equal(tensor, before[name]) for name, tensor in weights.items() if "weight" in name]
    assert any(moved)
    assert shown[-1].epoch == shown[-1].epochs == 2
    assert shown[-1].step == shown[-1].steps
    rows = read_rows(run.path / "metrics.csv")
    constrained = bool(recipes[recipe]().constraints)
    metrics = {(row.split, row.metric) for row in rows}
    assert {("train", "loss_labels"), ("validation", "dsc_slice"), ("validation", "dsc_volume")} <= metrics
    assert (("validation", "satisfied_hard") in metrics) == constrained
    assert sorted(file.stem for file in run.checkpoint.glob("*.safetensors")) == ["best", "last", "optimiser"]


def test_several_classes_and_a_written_constraint(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        'weight = 0.02\n[constraints.bright]\nstatistic = "mean_intensity"\nbounds = {kind = "fixed", lower = 0.2}\n'
        'classes = ["RV"]\npenalty = "hinge"\n'
    )
    settings = read_settings("tags", file, [*SMALL, "training.epochs=1"])
    run = Run.create(tmp_path / "run", settings, store, annotation="disc", classes=["LV", "RV"])
    trainer = Trainer(run)
    assert [constraint.name for constraint in trainer.supervision.constraints] == ["size", "bright"]
    assert trainer.supervision.constraints[1].classes == (2,)
    trainer.fit()
    classes = {row.klass for row in read_rows(run.path / "metrics.csv") if row.metric == "dsc_slice"}
    assert classes == {"LV", "RV", ""}


def test_each_of_several_classes_has_its_share_of_satisfied_bounds(tmp_path: Path, store: Store) -> None:
    """By hand, from masks and truth: tags hold where a class is predicted and there, or neither."""
    extra = "constraints.LV={statistic='size', bounds={kind='fixed', upper=463}, classes=['RV']}"
    run = start(tmp_path / "run", store, "tags", "training.epochs=2", extra, classes=["LV", "RV"])
    Trainer(run).fit()
    rows = [row for row in read_rows(run.path / "metrics.csv") if row.epoch == 2 and row.split == "validation"]
    kinds = ["satisfied_class_soft", "satisfied_class_hard"]
    assert [(row.metric, row.klass) for row in rows[-4:]] == [(kind, name) for name in ("LV", "RV") for kind in kinds]
    places = [n for record in store.records if record.split == "validation" for n in record.range]
    masks = predict_slices(run, places, model="last")
    holds = {
        name: [(masks[n] == k).any() == (store.truth[n] == store.class_index(name)).any() for n in places]
        for k, name in enumerate(("LV", "RV"), start=1)
    }
    small = [bool((masks[n] == 2).sum() <= 463) for n in places]
    shares = {row.klass: row.value for row in rows if row.metric == kinds[1]}
    assert shares == pytest.approx({"LV": np.mean(holds["LV"]), "RV": np.mean(holds["RV"] + small)})
    named = {row.klass: row.value for row in rows if row.metric == "satisfied_hard"}
    assert named == pytest.approx({"size": np.mean(np.logical_and(*holds.values())), "LV": np.mean(small)})

    summary = evaluate(run, model="last", surfaces=False).summary["metrics"]
    assert {klass: entry["mean"] for klass, entry in summary["satisfied_hard_size"].items()} == pytest.approx(
        {"": named["size"], "LV": np.mean(holds["LV"]), "RV": np.mean(holds["RV"])}
    )
    assert {klass: entry["mean"] for klass, entry in summary["satisfied_hard_LV"].items()} == pytest.approx(
        {"": np.mean(small), "RV": np.mean(small)}
    )


def test_common_bounds_are_fitted_on_a_patient(tmp_path: Path, store: Store) -> None:
    patient = store.records[0].patient
    run = start(tmp_path / "run", store, "common", f"constraints.size.bounds.patient={patient}")
    (bounds,) = (c.bounds for c in Trainer(run).supervision.constraints)
    sizes = [int((store.truth[n] == 3).sum()) for r in store.records if r.patient == patient for n in r.range]
    seen = [size for size in sizes if size]
    assert bounds.lower == [[pytest.approx(0.9 * min(seen), rel=1e-5)]]
    assert bounds.upper == [[pytest.approx(1.1 * max(seen), rel=1e-5)]]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path: Path, store: Store) -> None:
    seeds = {"a": 1, "b": 1, "c": 2}
    runs = [start(tmp_path / name, store, "tags", "training.epochs=2", seed=seed) for name, seed in seeds.items()]
    for run in runs:
        Trainer(run).fit()
    first, again, other = (kept(run) for run in runs)
    assert first == again
    assert first["metrics.csv"] != other["metrics.csv"]


@pytest.mark.parametrize(
    "more",
    [
        ["training.patience=1"],
        ["training.schedule=cosine", "training.ema=0.9"],
        ["training.data_on_device=false"],
        ["training.schedule=cosine", f"regularisers.border={{{BORDER}, schedule='lr'}}"],
        ["training.ema=0.9", "network={name='unet', settings={width=4}}"],
        ["constraints.size.penalty={name='multipliers', step_size=0.5}", "training.batch=2"],
    ],
    ids=["plateau", "averaged", "streamed", "fading", "unet", "multipliers"],
)
def test_augmentation_and_resume_meet_bit_for_bit(tmp_path: Path, store: Store, more: list[str]) -> None:
    """Stopped after each epoch, in a new trainer each time, as a run that was never stopped."""
    wild = ["augment.flip=true", "augment.rotate=20", "augment.contrast=1.2", *more]
    whole = start(tmp_path / "whole", store, "individual", "training.epochs=3", *wild)
    Trainer(whole).fit()
    pieces = start(tmp_path / "pieces", store, "individual", "training.epochs=3", *wild)
    for _ in range(3):
        trainer = Trainer(pieces)
        original = trainer._epoch

        def once(begun: float, before: int, original=original, trainer=trainer):
            if trainer.state.epoch > before:
                raise KeyboardInterrupt
            return original(begun, before)

        trainer._epoch = once  # type: ignore[method-assign]
        try:
            trainer.fit(resume=True)
        except KeyboardInterrupt:
            continue
    assert kept(whole) == kept(pieces)


def test_bounds_that_cannot_hold_together_are_told_before_the_first_step(tmp_path: Path, store: Store) -> None:
    def notes(name: str, *changes: str, classes: tuple[str, ...] = ("LV", "RV")) -> tuple[str, ...]:
        exact = "proposals.project=exact"
        run = start(tmp_path / name, store, "proposals_common", exact, *changes, classes=list(classes))
        return Trainer(run).notes

    assert notes("well") == ()
    (told,) = notes("wrong", "constraints.size.bounds.lower=2000", "constraints.size.bounds.upper=2300")
    assert re.match(r"Warning: bounds cannot hold together on phantom\d+_E[DS] slice \d+, ", told)
    assert told.endswith("; the nearest that can are kept to")


def test_streamed_data_train_as_resident_ones(tmp_path: Path, store: Store) -> None:
    """With the same random numbers: the seed is the run's own."""
    told = ["training.epochs=2", "augment.rotate=20"]
    runs = [
        start(tmp_path / on, store, "tags", f"training.data_on_device={on}", *told, seed=7) for on in ("true", "false")
    ]
    for run in runs:
        Trainer(run).fit()
    assert kept(runs[0]) == kept(runs[1])


def test_data_stay_on_the_disk_where_they_do_not_fit(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the memory is the limit, unless the settings say otherwise."""
    needed = store.images.nbytes + 2 * store.images[:, 0].nbytes
    found = {}
    for name, memory, *more in (
        ("fits", 2 * needed),
        ("does not", 2 * needed - 1),
        ("asked for", 0, "training.data_on_device=true"),
    ):
        monkeypatch.setattr("inbounds.training.data._memory", lambda _, memory=memory: memory)
        found[name] = Trainer(start(tmp_path / name, store, "tags", *more)).samples.rows is None
    assert found == {"fits": True, "does not": False, "asked for": True}


def test_a_running_mean_of_the_weights_is_judged_and_kept(tmp_path: Path, store: Store) -> None:
    """It starts with the weights after the first epoch; `last` is the mean, and the weights themselves are kept too."""
    stays = 0.9
    run = start(tmp_path / "run", store, "tags", "training.epochs=2", f"training.ema={stays}")
    trainer = Trainer(run)
    made = trainer.step._step
    steps: list[dict[str, torch.Tensor]] = []

    def noted(length: int) -> None:
        made(length)
        steps.append({name: tensor.clone() for name, tensor in trainer.network.state_dict().items()})

    trainer.step.replayed.function = noted
    trainer.fit()
    half = len(steps) // 2
    weights = load_file(run.weights("last"))
    assert run.checkpoint is not None
    raw = load_file(run.checkpoint / "optimiser.safetensors")
    for name, tensor in steps[-1].items():
        assert torch.equal(raw[f"raw.{name}"], tensor)
        mean = steps[half - 1][name]
        for step in steps[half:]:
            mean = stays * mean + (1 - stays) * step[name]
        torch.testing.assert_close(weights[name], mean)
    assert any(not torch.equal(tensor, raw[f"raw.{name}"]) for name, tensor in weights.items())


@pytest.mark.parametrize("harm", ["noise", "gone"])
def test_random_numbers_of_a_checkpoint_that_are_none(tmp_path: Path, store: Store, harm: str) -> None:
    run = start(tmp_path / "run", store, "tags", "training.epochs=1")
    Trainer(run).fit()
    assert run.checkpoint is not None
    file = run.checkpoint / "optimiser.safetensors"
    tensors = load_file(file)
    state = tensors.pop("generator.order")
    save_file(tensors if harm == "gone" else {**tensors, "generator.order": torch.full_like(state, 255)}, file)
    with pytest.raises(BadInput, match="0001: a damaged checkpoint"):
        Trainer(run).fit(resume=True)


def test_a_device_that_is_not_there_is_told_in_one_line(tmp_path: Path, store: Store) -> None:
    with pytest.raises(BadInput, match=r"training\.device=banana.*is 'banana'"):
        start(tmp_path / "run", store, "tags", "training.device=banana")
    with pytest.raises(BadInput, match=r"training\.device=cuda:31"):
        Trainer(start(tmp_path / "run", store, "tags", "training.device=cuda:31"))


def test_a_regulariser_is_in_the_loss_and_not_among_the_bounds(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "tags", f"regularisers.border={{{BORDER}}}", "training.epochs=1")
    Trainer(run).fit()
    numbers = {(row.split, row.metric, row.klass): row.value for row in read_rows(run.path / "metrics.csv")}
    assert numbers["train", "loss_border", ""] > 0
    assert not [key for key in numbers if key[1].startswith("satisfied") and key[2] == "border"]
    assert numbers["validation", "satisfied", ""] == numbers["validation", "satisfied_hard", "size"]


def test_a_weight_that_follows_the_learning_rate_falls_from_epoch_to_epoch(tmp_path: Path, store: Store) -> None:
    """A rate that is too low to learn from: what is left is the weight."""
    slow = ["training.schedule=cosine", "training.epochs=2", "training.lr=1e-12", "training.batch=500"]
    losses = {}
    for schedule in ("lr", "constant"):
        border = f"regularisers.border={{{BORDER}, schedule='{schedule}'}}"
        run = start(tmp_path / schedule, store, "tags", border, *slow)
        Trainer(run).fit()
        losses[schedule] = [row.value for row in read_rows(run.path / "metrics.csv") if row.metric == "loss_border"]
    first = losses["constant"][0]
    assert losses["constant"][1] == pytest.approx(first, rel=1e-4)
    assert losses["lr"] == pytest.approx([first, 0.5 * first], rel=1e-4)


def test_without_a_compiler_nothing_is_compiled(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbounds.training.loop.shutil.which", lambda _: None)
    long = start(tmp_path / "long", store, "tags", "training.epochs=100000")
    assert Trainer(long).step.compiled is None
    with pytest.raises(BadInput, match=r"training\.compile=network: there is no compiler here"):
        Trainer(start(tmp_path / "run", store, "tags", "training.compile=network"))


KILLED = """
import os, signal, sys
from inbounds.cli import run
count, at = 0, int(sys.argv[1])
def hook(event, arguments):
    global count
    if event in ("os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir") and "run" in str(arguments[0]):
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
sys.argv = ["inbounds", *sys.argv[2:]]
run()
"""


@pytest.mark.parametrize("at", [2, 8, 16, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 5, 11, 14, 19))])
def test_killed_anywhere_and_resumed_it_ends_the_same(tmp_path: Path, store: Store, at: int) -> None:
    changes = [word for change in [*SMALL, "training.epochs=2"] for word in ("--set", change)]
    words = ["train", "tags", "--store", str(store.path), "--annotation", "disc", "--classes", "LV", *changes]
    wanted = Wanted(["tags"], annotation="disc", classes=["LV"], changes=[*SMALL, "training.epochs=2"])
    (whole,) = begin(tmp_path / "whole", store, wanted)
    Trainer(whole).fit()
    path = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(at), *words, "--run", str(path)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    ended = subprocess.run(
        [sys.executable, "-m", "inbounds", *words, "--run", str(path), "--resume"], capture_output=True
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert kept(Run.open(path)) == kept(whole)


def test_what_a_killed_process_left_beside_the_last_checkpoint_goes(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "tags", "training.epochs=1")
    Trainer(run).fit()
    whole = kept(run)
    (run.path / "checkpoints" / "0000").mkdir()
    (run.path / "checkpoints" / "0000" / "last.safetensors").write_text("half removed")
    Trainer(run).fit(resume=True)
    assert kept(run) == whole
    assert [folder.name for folder in (run.path / "checkpoints").iterdir()] == ["0001"]


def test_a_run_that_is_trained_can_be_read_but_not_trained(tmp_path: Path, store: Store) -> None:
    words = ["train", "tags", "--store", store.path, "--annotation", "disc", "--classes", "LV"]
    words += [word for change in [*SMALL, "training.epochs=2"] for word in ("--set", change)]
    run = start(tmp_path / "run", store, "tags", "training.epochs=2")
    going = Trainer(run).steps()
    while run.checkpoint is None:
        next(going)
    going.close()
    before = kept(run)
    with another(run.path, "inside") as process:
        for more in ([], ["--resume"]):
            said = refused(*words, *more, "--run", run.path, saying=["run: in use by process", process.pid])
            assert "remove" not in said
        with pytest.raises(BadInput, match="in use by process"):
            Trainer(run).fit(resume=True)
        assert kept(run).keys() - before.keys() == {".lock"}
        assert evaluate(run, surfaces=False).summary["epoch"] == 1
    Trainer(run).fit(resume=True)
    assert run.checkpoint.name == "0002"


def test_full_supervision_refuses_weak_labels(tmp_path: Path, store: Store) -> None:
    with pytest.raises(BadInput, match="needs complete labels, and 'disc' leaves pixels unlabelled"):
        start(tmp_path / "run", store, "full", annotation="disc")
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "tags", "training.epochs=1")
    Trainer(run).fit()
    with pytest.raises(BadInput, match="already exists; add --resume"):
        start(tmp_path / "run", store, "tags")
    with pytest.raises(BadInput, match="begun already; add --resume"):
        Trainer(run).fit()


def test_a_loss_that_is_not_finite_freezes_the_network_and_stops(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "tags", "training.epochs=1")
    Trainer(run).fit()
    good = kept(run)
    settings = read_settings("tags", None, [*SMALL, "training.epochs=2"])
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    (run.path / "run.json").write_text(json.dumps({**about, "settings": settings.model_dump()}))
    trainer = Trainer(Run.open(run.path))
    clean = trainer.samples.images
    trainer.samples.images = clean.float()
    trainer.samples.images[len(clean) // 2] = torch.nan
    with pytest.raises(
        NotFinite, match=r"not finite in epoch 2, step \d+, on .*phantom.*slice \d.*terms: labels nan, size nan"
    ) as stopped:
        trainer.fit(resume=True)
    assert "checkpoint after epoch 1 is kept" in str(stopped.value)
    for name, tensor in trainer.network.named_parameters():
        assert tensor.isfinite().all(), name
    after = kept(Run.open(run.path))
    assert {name: after[name] for name in good} == good


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "tags", "training.epochs=3")
    trainer = Trainer(run)
    saved = trainer._judge

    def fill(rows):
        if trainer.state.epoch == 2:
            disk.enter_context(full_disk(8000))
        return saved(rows)

    trainer._judge = fill  # type: ignore[method-assign]
    with ExitStack() as disk, pytest.raises(BadInput, match="could not be written"):
        trainer.fit()
    assert [folder.name for folder in (run.path / "checkpoints").iterdir()] == ["0001"]
    Trainer(run).fit(resume=True)
    whole = start(tmp_path / "whole", store, "tags", "training.epochs=3")
    Trainer(whole).fit()
    assert kept(run) == kept(whole)


def test_without_truth_the_last_network_is_used(tmp_path: Path, store: Store) -> None:
    """Nobody drew a mask: the fewest violated bounds chose networks that were empty."""
    run = start(tmp_path / "run", blind(store, tmp_path / "blind"), "tags", "training.epochs=2", "training.patience=1")
    Trainer(run).fit()
    assert run.default_model == "last"
    assert not (run.checkpoint / "best.safetensors").exists()
    with pytest.raises(BadInput, match="keeps no model 'best'"):
        run.weights("best")
    assert "dsc_volume" not in evaluate(run).summary["metrics"]


def test_evaluate_measures_what_the_run_measured(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "full", "training.epochs=4", "training.lr=0.01")
    Trainer(run).fit()
    for model in ("last", "best"):
        found = evaluate(run, model=model, surfaces=False)
        epoch = found.summary["epoch"]
        rows = read_rows(run.path / "metrics.csv")
        for metric in ("dsc_slice", "dsc_volume"):
            (wanted,) = (r.value for r in rows if (r.epoch, r.metric, r.klass) == (epoch, metric, "LV"))
            assert found.summary["metrics"][metric]["LV"]["mean"] == pytest.approx(wanted, abs=1e-5)
    assert found.summary["metrics"]["volume_ml"]["LV"]["n"] == 2
    pieces = evaluate(run, model="best", surfaces=False, largest=True)
    assert (pieces.folder.name, pieces.summary["largest"]) == ("validation-best-largest", True)
    assert found.folder != pieces.folder
    volumes = [made.summary["metrics"]["volume_ml"]["LV"]["mean"] for made in (found, pieces)]
    assert volumes[0] >= volumes[1] > 0


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from inbounds.cli import run
run()
"""


@pytest.mark.parametrize("fabric", ["lightning", "lightning_fabric"])
def test_trains_where_readers_and_monai_are_absent(tmp_path: Path, store: Store, fabric: str) -> None:
    """From a store, with either package of Lightning Fabric."""
    blocked = {"monai", "nibabel", "SimpleITK", "tensorboard", fabric}
    words = ["train", "tags", "--store", str(store.path), "--annotation", "disc", "--run", str(tmp_path / "run")]
    words += ["--set", "training.epochs=1", "--set", "training.batch=32", "--set", "training.device=cpu"]
    code = BLOCKED.replace("{blocked}", repr(blocked))
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()
    assert (tmp_path / "run" / "checkpoints" / "0001" / "last.safetensors").exists()


def test_interrupted_it_says_how_to_go_on(tmp_path: Path, store: Store) -> None:
    words = ["train", "tags", "--store", str(store.path), "--annotation", "disc", "--run", str(tmp_path / "run")]
    words += [word for change in [*SMALL, "training.epochs=500"] for word in ("--set", change)]
    process = subprocess.Popen(
        [sys.executable, "-m", "inbounds", *words],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    for _ in range(600):
        if list((tmp_path / "run").glob("checkpoints/0*")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in told
    assert "Traceback" not in told


def test_epochs_that_fit_the_time_are_chosen_once_and_change_nothing_else(tmp_path: Path, store: Store) -> None:
    """The steps that were timed leave no trace: the run is the one that has so many epochs by its settings."""
    method = [
        "training.ema=0.9",
        "training.schedule=cosine",
        "augment.rotate=10",
        "regularisers.pairwise.term=pairwise",
    ]
    timed = start(tmp_path / "timed", store, "volume", *method, "training.minutes=0.03")
    heard: list[Progress] = []
    Trainer(timed, heard.append).fit()
    assert timed.epochs is not None
    assert Run.open(timed.path).epochs == timed.epochs
    assert any(f"{timed.epochs} epochs of" in note for progress in heard for note in progress.notes)
    counted = start(tmp_path / "counted", store, "volume", *method, f"training.epochs={timed.epochs}")
    Trainer(counted).fit()
    assert kept(timed) == kept(counted)


def test_an_epoch_without_any_label_is_said(tmp_path: Path, store: Store) -> None:
    empty = tmp_path / "store"
    shutil.copytree(store.path, empty)
    record = store.records[-1]
    shown = [
        fact.slice for fact in store.facts("disc") if (fact.case, fact.klass, fact.present) == (record.name, 3, True)
    ]
    (empty / "points.csv").write_text(f"case,slice,row,column,class\n{record.name},{shown[0]},3,3,LV\n")
    import_points(Store(empty), empty / "points.csv", "one")
    assert record.split == "validation"
    heard: list[Progress] = []
    run = start(tmp_path / "run", Store(empty), "tags", "training.epochs=1", annotation="one", facts="disc")
    Trainer(run, heard.append).fit()
    assert any("saw no labelled pixel" in note for progress in heard for note in progress.notes)


def test_a_class_that_stays_empty_is_said_once_and_again_at_the_end(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network begins with little foreground, and only background is labelled: nothing teaches it any."""
    bare = tmp_path / "store"
    shutil.copytree(store.path, bare)
    lines = [f"{record.name},0,{n},{n},0" for record in store.records for n in range(0, 40, 4)]
    (bare / "points.csv").write_text("\n".join(["case,slice,row,column,class", *lines]) + "\n")
    import_points(Store(bare), bare / "points.csv", "dark")
    run = start(
        tmp_path / "run",
        Store(bare),
        "partial",
        "training.epochs=7",
        "network.initial_share=0.001",
        annotation="dark",
        classes=["RV", "LV"],
    )
    with Screen(Console(stderr=True, width=200)) as screen:
        Trainer(run, partial(screen.show, run.path)).fit()
    told = [line for line in capsys.readouterr().err.splitlines() if "Warning: " in line]
    assert len(told) == 4
    for klass in ("RV", "LV"):
        (first,) = [
            line for line in told if line.endswith(f"{klass} is empty on all held-out scans after epoch 3 of 7")
        ]
        (last,) = [line for line in told if f"{klass} is empty on all held-out scans, also after the last of 7" in line]
        assert told.index(first) < told.index(last)


def test_a_class_that_the_held_out_truth_has_not_may_be_empty(tmp_path: Path, store: Store) -> None:
    trainer = Trainer(start(tmp_path / "run", store, "tags", "training.epochs=2"))
    trainer.state.epoch = 1
    sizes = Row(epoch=1, split="validation", klass="LV", metric="hard_size", value=0.0)
    recall = replace(sizes, metric="recall", value=math.nan)
    trainer._warn_of_empty([sizes, recall])
    trainer._warn_of_empty([replace(sizes, value=0.1)])
    assert trainer.notes == ()
    trainer._warn_of_empty([sizes, replace(recall, value=0.0)])
    assert trainer.notes == ("Warning: the mask of LV is empty on all held-out scans after epoch 1 of 2",)
