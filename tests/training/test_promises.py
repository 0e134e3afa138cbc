"""What is promised of training beyond its results: rates, kept networks, curves, precision, labels and progress."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from archives import done
from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.samples import load, truth_of
from inbounds.evaluation.validate import Validation
from inbounds.runs.checkpoint import kept_epochs
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows
from inbounds.store.store import Store
from inbounds.training.loop import Progress, Trainer
from training_runs import SMALL, start

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RATE = 0.01
SHORT = [part for change in [*SMALL, "training.epochs=1"] for part in ("--set", change)]


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


def judged(trainer: Trainer, **found: list[float]) -> Iterator[tuple[dict[str, bool], float]]:
    """Epochs in which validation finds these numbers: the networks that are replaced, and the rate that follows."""
    for values in zip(*found.values(), strict=True):
        trainer.state.epoch += 1
        number = trainer.state.epoch
        pairs = zip(found, values, strict=True)
        better = trainer._judge(
            [Row(epoch=number, split="validation", metric=metric, value=value) for metric, value in pairs]
        )
        (group,) = trainer.optimiser.param_groups
        assert float(group["lr"]) == pytest.approx(trainer.state.lr)
        yield better, trainer.state.lr


def rates(trainer: Trainer, **found: list[float]) -> list[float]:
    return [rate / RATE for _, rate in judged(trainer, **found)]


def waiting(path: Path, store: Store, patience: int, factor: float = 0.5) -> Trainer:
    told = [f"training.lr={RATE}", f"training.patience={patience}", f"training.factor={factor}"]
    return Trainer(start(path, store, "tags", "training.schedule=plateau", *told))


def test_plateau_lowers_the_rate_after_so_many_epochs_without_progress(tmp_path: Path, store: Store) -> None:
    """The count starts again once the rate is lower."""
    found = rates(waiting(tmp_path / "run", store, 3, 0.25), dsc_slice=[0.5, 0.4, 0.3, 0.4, 0.4, 0.3, 0.4, 0.1])
    assert found == pytest.approx([1, 1, 1, 0.25, 0.25, 0.25, 0.0625, 0.0625])


def test_progress_on_a_plateau_starts_the_count_again(tmp_path: Path, store: Store) -> None:
    found = rates(waiting(tmp_path / "run", store, 3), dsc_slice=[0.5, 0.4, 0.4, 0.6, 0.5, 0.5, 0.7, 0.6, 0.6])
    assert found == pytest.approx([1] * 9)


def test_cosine_ends_at_nothing_whatever_validation_finds(tmp_path: Path, store: Store) -> None:
    told = ["training.schedule=cosine", "training.epochs=50", "training.patience=1", f"training.lr={RATE}"]
    trainer = Trainer(start(tmp_path / "run", store, "tags", *told))
    found = [1.0, *rates(trainer, dsc_slice=[0.5] + [0.4] * 49)]
    assert all(later < earlier for earlier, later in pairwise(found))
    assert found[25] == pytest.approx(0.5)
    assert 0 < found[49] < 0.002
    assert found[50] == pytest.approx(0, abs=1e-9)


FADING = "regularisers={one={term='border',weight=8.0,schedule='lr'},other={term='border',weight=8.0}}"


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", [(1 + math.cos(math.pi * epoch / 4)) / 2 for epoch in range(5)]),
        ("plateau", [1, 1, 1, 0.5, 0.5]),
    ],
)
def test_a_weight_that_follows_falls_with_the_learning_rate(
    tmp_path: Path, store: Store, schedule: str, expected: list[float]
) -> None:
    """The weights of others stay."""
    told = [f"training.schedule={schedule}", "training.epochs=4", "training.patience=2", f"training.lr={RATE}"]
    trainer = Trainer(start(tmp_path / "run", store, "tags", *told, FADING))
    fading, other = trainer.supervision.regularisers
    found = [float(fading.weight) / 8]
    for epoch, (_, rate) in enumerate(judged(trainer, dsc_slice=[0.1] * 4), start=1):
        trainer.schedule.begin(epoch, 4, 10)
        trainer.schedule.step()
        found.append(float(fading.weight) / 8)
        assert found[-1] == pytest.approx(rate / RATE, abs=1e-6)
    assert found == pytest.approx(expected, abs=1e-6)
    assert other.weight == 8


def test_the_rate_goes_by_slices_and_not_by_volumes_or_violations(tmp_path: Path, store: Store) -> None:
    rising, falling = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]
    found = {
        name: rates(waiting(tmp_path / name, store, 2), dsc_slice=by_slice, dsc_volume=by_volume, violations=broken)
        for name, by_slice, by_volume, broken in (
            ("worse", falling, rising, [9.0, 8.0, 7.0, 6.0]),
            ("better", rising, falling, [6.0, 7.0, 8.0, 9.0]),
        )
    }
    assert found == {"worse": pytest.approx([1, 1, 0.5, 0.5]), "better": pytest.approx([1] * 4)}


def test_without_truth_the_rate_goes_by_violations(tmp_path: Path, store: Store) -> None:
    """Without truth, validation measures no overlap; more violations lower the rate, fewer leave it."""
    trainer = waiting(tmp_path / "worse", store, 2)
    trainer.truth = None
    assert trainer.validated is not None
    metrics = {metric for metric, _ in trainer.validated().names}
    assert "violations" in metrics
    assert not {"dsc_slice", "dsc_volume"} & metrics
    assert rates(trainer, violations=[5.0, 6.0, 7.0, 8.0]) == pytest.approx([1, 1, 0.5, 0.5])
    assert trainer.state.best is None
    better = waiting(tmp_path / "better", store, 2)
    assert rates(better, violations=[8.0, 9.0, 7.0, 9.0, 6.0]) == pytest.approx([1] * 5)


def test_best_goes_by_slices(tmp_path: Path, store: Store) -> None:
    """Volumes, a single class and bounds each point to another epoch than the one to be kept."""
    numbers = {
        ("dsc_slice", ""): [0.2, 0.6, 0.4, 0.5],
        ("dsc_volume", ""): [0.9, 0.3, 0.5, 0.7],
        ("satisfied", ""): [0.1, 0.9, 0.2, 0.3],
        ("violations", ""): [5.0, 9.0, 3.0, 8.0],
        ("dsc_slice", "LV"): [0.1, 0.2, 0.3, 0.9],
    }
    run = start(tmp_path / "run", store, "tags", "training.epochs=4")
    trainer = Trainer(run)
    seen: list[dict[str, torch.Tensor]] = []

    def look() -> Validation:
        seen.append({name: tensor.clone() for name, tensor in trainer.network.state_dict().items()})
        return Validation(list(numbers), torch.tensor([values[len(seen) - 1] for values in numbers.values()]))

    trainer.validated = look
    trainer.fit()
    assert run.checkpoint is not None
    assert kept_epochs(run.checkpoint) == {"best": 2, "last": 4}
    for model, epoch in kept_epochs(run.checkpoint).items():
        weights = load_file(run.weights(model))
        same = [all(torch.equal(weights[name], tensor) for name, tensor in each.items()) for each in seen]
        assert same == [number == epoch for number in range(1, 5)], model


def test_tensorboard_holds_the_scalars_of_the_table(tmp_path: Path, store: Store) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = start(tmp_path / "run", store, "tags", "training.epochs=1", classes=["LV", "RV"])
    Trainer(run).fit()
    assert list((run.path / "tensorboard").glob("events.out.tfevents.*"))
    events = accumulator.EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    curves = {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    rows = read_rows(run.path / "metrics.csv")
    table = {"/".join(part for part in (row.split, row.metric, row.klass) if part): row for row in rows}
    assert len(table) == len(rows)
    assert {"train/loss_labels", "train/lr", "validation/dsc_slice", "validation/dsc_slice/RV"} <= set(table)
    assert set(curves) == set(table)
    for tag, row in table.items():
        ((step, value),) = curves[tag]
        assert step == row.epoch == 1
        np.testing.assert_allclose(value, row.value, rtol=1e-6, err_msg=tag)


def test_bfloat16_trains_on_a_cpu(tmp_path: Path, store: Store) -> None:
    """The network computes in bfloat16, its weights stay as they are, and the loss is nearly that of full precision."""
    losses, weights, computed = {}, {}, {}
    for precision in ("32", "bf16-mixed"):
        run = start(tmp_path / precision, store, "tags", "training.epochs=1", f'training.precision="{precision}"')
        trainer = Trainer(run)
        kinds = computed.setdefault(precision, set())
        convolution = next(part for part in trainer.network.modules() if isinstance(part, torch.nn.Conv2d))
        convolution.register_forward_hook(lambda _, given, made, kinds=kinds: kinds.add(made.dtype))
        trainer.fit()
        rows = read_rows(run.path / "metrics.csv")
        losses[precision] = {row.metric: row.value for row in rows if row.metric.startswith("loss_")}
        weights[precision] = load_file(run.weights("last"))
    assert computed == {"32": {torch.float32}, "bf16-mixed": {torch.bfloat16}}
    full, half = losses["32"], losses["bf16-mixed"]
    assert "loss_labels" in half
    assert all(math.isfinite(value) for value in half.values())
    assert half != full
    assert half["loss_labels"] == pytest.approx(full["loss_labels"], rel=0.1)
    for name, tensor in weights["bf16-mixed"].items():
        assert tensor.dtype == weights["32"][name].dtype
        assert tensor.isfinite().all()
    assert any(not torch.equal(tensor, weights["32"][name]) for name, tensor in weights["bf16-mixed"].items())


@pytest.mark.parametrize("only", [False, True], ids=["hybrid", "only"])
def test_so_many_scans_are_fully_labelled(tmp_path: Path, store: Store, only: bool) -> None:
    """The command trains on complete labels for two scans, and on weak ones for the rest or on nothing else."""
    path = tmp_path / "run"
    words = ["train", "tags", "--store", store.path, "--annotation", "disc", "--classes", "LV", "--run", path]
    done(*words, "--full-scans", 2, *(["--only-full"] if only else []), *SHORT)
    trainer = Trainer(Run.open(path))
    truth, weak = truth_of(store, classes=["LV"], split="train"), load(store, "disc", classes=["LV"])
    places = {record.name: list(weak.slices_of(scan)) for scan, record in enumerate(weak.records)}
    full = []
    for scan, record in enumerate(trainer.samples.records):
        label, place = trainer.samples.labels[list(trainer.samples.slices_of(scan))], places[record.name]
        if torch.equal(label, weak.labels[place]):
            continue
        assert torch.equal(label, truth[place])
        assert not (label == UNLABELLED).any()
        full.append(record.name)
    often = trainer.run.settings.hybrid.repeat  # in an epoch, as is planned
    assert only == (often == 1)
    assert len(set(full)) == 2
    assert sorted(full) == sorted([*set(full)] * often)
    assert len(trainer.samples.records) == 2 * often + (0 if only else len(weak.records) - 2)
    assert trainer.held_out is not None
    assert (trainer.held_out.labels == UNLABELLED).any()


@pytest.mark.parametrize(
    ("strategy", "options", "recipe", "marks"),
    [
        ("scribble", ["--background"], "partial", {0, 1, UNLABELLED}),
        ("box", [], "individual", {0, UNLABELLED}),
    ],
    ids=["scribbles", "boxes"],
)
def test_scribbles_and_boxes_train(
    tmp_path: Path, store: Store, strategy: str, options: list[str], recipe: str, marks: set[int]
) -> None:
    path, store = tmp_path / "run", Store(shutil.copytree(store.path, tmp_path / "store"))
    done("annotate", store.path, "--strategy", strategy, "--name", strategy, "--classes", "LV", *options)
    words = ["train", recipe, "--store", store.path, "--annotation", strategy, "--classes", "LV", "--run", path]
    assert "finished" in done(*words, *SHORT).out
    run = Run.open(path)
    assert run.checkpoint is not None
    assert run.checkpoint.name == "0001"
    assert set(Trainer(run).samples.labels.unique().tolist()) == marks
    losses = {row.metric: row.value for row in read_rows(path / "metrics.csv") if row.metric.startswith("loss_")}
    assert losses["loss_labels"] > 0
    assert all(math.isfinite(value) for value in losses.values())


@pytest.mark.parametrize("pace", [0.001, 0.13], ids=["quick", "slow"])
def test_progress_is_told_about_once_a_second(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, pace: float
) -> None:
    """Each step takes `pace` seconds by a clock that stands still otherwise."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("inbounds.training.loop.time", SimpleNamespace(monotonic=lambda: clock.now))
    shown: list[tuple[float, Progress]] = []
    run = start(tmp_path / "run", store, "tags", "training.epochs=1", "training.batch=1", "training.repeats=2")
    trainer = Trainer(run, lambda progress: shown.append((clock.now, progress)))
    made = trainer.step._step

    def timed(length: int) -> None:
        made(length)
        clock.now += pace

    trainer.step.replayed.function = timed
    trainer.fit()
    (moment, first), *during, (end, last) = shown
    assert (moment, first.step, first.steps) == (0.0, 0, last.steps)  # at once: the first step may take a minute
    assert last.step == last.steps > 50
    assert end == pytest.approx(pace * last.steps)
    if end < 1:
        assert not during
    moments = [0.0, *(moment for moment, _ in during)]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert all(1 <= gap <= 1 + 2 * pace for gap in gaps), gaps
    assert end - moments[-1] <= 1 + 2 * pace
    assert [progress.step for _, progress in during] == [round(moment / pace) for moment, _ in during]
