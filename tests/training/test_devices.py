"""A run on two devices is the run on one: weights, metrics, what is remembered, and how it goes on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from inbounds.config.settings import Training
from inbounds.errors import BadInput
from inbounds.runs.machine import devices
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.store.store import Store
from inbounds.supervision import recipes
from inbounds.training.loop import Trainer
from together import begin, ended
from training_runs import DEEP, hearts_store, start

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

WILD = [
    *("augment.flip=true", "augment.rotate=20", "augment.zoom=1.2", "augment.translate=0.1", "augment.contrast=1.2"),
    *("training.schedule=cosine", "training.ema=0.9", "training.repeats=1"),
]
PLAIN = "network.settings={spatial_dims=2,channels=[4,8],strides=[2],bias=false}"  # with instance normalisation
UNET = "network={name='unet',settings={width=4,levels=2}}"  # with batch normalisation
VARIANTS: dict[str, tuple[str, list[str]]] = {
    **{name: (name, [PLAIN, "training.epochs=4"]) for name in recipes},
    "batch normalisation": ("known", [UNET]),
    "uneven": ("volume", [PLAIN, "training.batch=5"]),
    "fewer images than processes": ("individual", [PLAIN, "training.batch=1", "training.slices=20"]),
    "streamed": ("tags", [PLAIN, "training.data_on_device=false"]),
    "whole scans": (
        "volume",
        [
            *(PLAIN, "training.whole_scans=true", "training.epochs=4"),
            "constraints.bright={statistic='variance_intensity',bounds={kind='fixed',upper=0.01},scope='volume'}",
            "constraints.wide={statistic='spread',bounds={kind='fixed',upper=9.0},scope='volume'}",
            "regularisers.border={term={name='border', reach=1}, weight=1.0}",
        ],
    ),
    **{
        f"multipliers, {recipe}": (
            recipe,
            [PLAIN, "training.batch=3", "constraints.size.penalty={name='multipliers',step_size=0.5}"],
        )
        for recipe in ("individual", "volume")
    },
    "hybrid": ("individual", [PLAIN, "hybrid.full_scans=1", "hybrid.weak_label_weight=0.5"]),
}

DOUBLE = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import torch
from inbounds.batches import samples
from inbounds.runs.run import Run
from inbounds.training import estimate, loop
from inbounds.training.group import joined, part_ways
from together import threads_of_gloo
torch.set_num_threads(1)
if sys.argv[1] == "double":
    torch.set_default_dtype(torch.float64)
    build, plain = loop.build_network, samples.as_float
    loop.build_network = lambda run: build(run).double()
    samples.as_float = estimate.as_float = lambda stored: plain(stored).double()
for path in sys.argv[2:]:
    loop.Trainer(Run.open(Path(path))).fit(resume=True)
part_ways()
assert not threads_of_gloo(), threads_of_gloo()
"""


def state_of(run: Run) -> dict[str, torch.Tensor]:
    """All tensors that a run keeps, but for those that tell of chance."""
    assert run.checkpoint is not None
    files = [load_file(run.checkpoint / f"{name}.safetensors") for name in ("last", "optimiser")]
    return {**files[0], **{f"optimiser {name}": tensor for name, tensor in files[1].items()}}


def assert_same(one: Run, other: Run, tolerance: float) -> None:
    """Weights and metrics; in double precision the optimiser's moments too, of which single rounds some by 1.2e-5."""
    here, there = state_of(one), state_of(other)
    assert here.keys() == there.keys()
    if tolerance > 1e-8:
        here = {name: tensor for name, tensor in here.items() if "exp_avg" not in name}
    for name, tensor in here.items():
        if "generator" in name:
            assert torch.equal(tensor, there[name]), f"{one.path}: {name}"
        else:
            torch.testing.assert_close(there[name], tensor, rtol=tolerance, atol=tolerance, equal_nan=True, msg=name)
    pairs = zip(read_rows(one.path / "metrics.csv"), read_rows(other.path / "metrics.csv"), strict=True)
    for row, twin in pairs:
        assert (row.epoch, row.split, row.klass, row.metric) == (twin.epoch, twin.split, twin.klass, twin.metric)
        same = math.isnan(row.value) and math.isnan(twin.value)
        assert same or row.value == pytest.approx(twin.value, rel=tolerance, abs=tolerance), row


def both(tmp_path: Path, made: dict[str, Run], how: str, ranks: int = 2) -> dict[str, tuple[Run, Run]]:
    """The runs trained by one process, and by several."""
    alone = {name: run.path for name, run in made.items()}
    shared = {name: tmp_path / "shared" / path.name for name, path in alone.items()}
    for name, path in alone.items():
        shared[name].mkdir(parents=True)
        (shared[name] / "run.json").write_bytes((path / "run.json").read_bytes())
    one = begin(1, ["-c", DOUBLE, how, *alone.values()])
    several = begin(ranks, ["-c", DOUBLE, how, *shared.values()])
    ended(one)
    ended(several)
    return {name: (Run.open(alone[name]), Run.open(shared[name])) for name in made}


@pytest.mark.parametrize("how", ["double", pytest.param("single", marks=pytest.mark.slow)])
def test_two_processes_train_as_one(tmp_path: Path, hearts: Store, how: str) -> None:
    """Every recipe, with augmentation, sampler and the stored sizes of slices, for 20 steps or more.

    Batch normalisation in double precision alone: in single, rounding grows to 6e-5 of a weight in these steps.
    """
    made = {}
    for number, (name, (recipe, changes)) in enumerate(VARIANTS.items()):
        if how == "single" and name == "batch normalisation":
            continue
        made[name] = start(tmp_path / f"run{number}", hearts, recipe, "training.epochs=3", *WILD, *changes)
    for name, (one, other) in both(tmp_path, made, how).items():
        assert Trainer(one)._steps() * one.epochs >= 20, name
        assert_same(one, other, 1e-10 if how == "double" else 1e-5)


def test_two_processes_train_on_volumes_as_one(tmp_path: Path) -> None:
    """Patches, and what an averaged network finds in the rest of their scans, which each looks at in turn."""
    store = hearts_store(tmp_path / "hearts", 3)
    changes = [*DEEP, "training.epochs=2", "training.ema=0.9", "augment.rotate=20", "augment.zoom=1.2"]
    made = {recipe: start(tmp_path / recipe, store, recipe, *changes) for recipe in ("volume", "known")}
    for one, other in both(tmp_path, made, "double").values():
        assert_same(one, other, 1e-10)


def test_devices_that_cannot_be_had_are_refused(tmp_path: Path, hearts: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"training\.devices"):
        start(tmp_path / "run", hearts, "tags", "training.devices=0")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for device, number, found in (
        ("cuda", "auto", 3),
        ("cpu", "auto", 1),
        ("cuda", 3, 3),
        ("cpu", 8, 8),
        ("auto", "auto", 3),
    ):
        assert devices(Training(device=device, devices=number)) == found
    for device, number, sentence in (("cuda:1", 2, "name it without a number"), ("cuda", 4, "there are 3 GPUs here")):
        with pytest.raises(BadInput, match=sentence):
            devices(Training(device=device, devices=number))
