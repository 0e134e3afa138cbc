"""Runs on volumes: from patches to checkpoints, killed and resumed, evaluated and used; and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from archives import command, done, nifti, noise, refused
from inbounds import memory
from inbounds.config import read_settings
from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate, predict_slices
from inbounds.inference.export import export_onnx
from inbounds.inference.predictor import Predictor
from inbounds.runs.begin import Wanted, begin
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.scans.scan import header, read_labels
from inbounds.sources import phantom
from inbounds.sources.example import write_example
from inbounds.sources.source import Extent, Source
from inbounds.store.grid import GridWindow
from inbounds.store.needs import predicting
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from inbounds.training.volumes import steps_of
from making import CLASSES, source, truth_like
from predicting import keep
from training_runs import DEEP, hearts_store, kept

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return hearts_store(tmp_path_factory.mktemp("deep") / "hearts", 3)


def start(path: Path, store: Store, recipe: str = "volume", *changes: str, **told: object) -> Run:
    settings = read_settings(recipe, None, [*DEEP, *changes])
    told = {"annotation": None if recipe == "full" else "disc", "classes": ["LV", "RV"], **told}
    return Run.create(path, settings, store, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", ["partial", "tags", "individual", "volume", "known", "full", "centroid"])
def test_recipes_train(tmp_path: Path, store: Store, recipe: str) -> None:
    strong = ["augment.rotate=20", "augment.zoom=1.2", "augment.flip=true", "augment.contrast=1.2"]
    run = start(tmp_path / "run", store, recipe, "training.epochs=2", "training.ema=0.9", *strong)
    trainer = Trainer(run)
    trainer.fit()
    assert trainer.volumes is not None
    assert trainer.volumes.patches.of_slices == (recipe in ("tags", "individual", "known", "centroid"))
    rows = read_rows(run.path / "metrics.csv")
    assert {("train", "loss_labels"), ("validation", "dsc_slice"), ("validation", "dsc_volume")} <= {
        (row.split, row.metric) for row in rows
    }
    assert all(math.isfinite(row.value) for row in rows if row.metric.startswith("loss"))
    weights = load_file(run.weights("last"))
    assert any(tensor.ndim == 5 for tensor in weights.values())


def test_bounds_wait_for_the_estimate_and_then_have_both_sides(tmp_path: Path, store: Store) -> None:
    trainer = Trainer(start(tmp_path / "run", store, "volume", "training.epochs=2"))
    patches, estimate = trainer.volumes.patches, trainer.volumes.estimate
    assert not estimate.complete
    (bound,) = trainer.supervision.constraints

    def interval() -> torch.Tensor:
        batch = patches.batch(patches.draw(4, torch.Generator().manual_seed(0)))
        probs = torch.full((len(batch.image), 3, 32, 40), 1 / 3)
        return bound.interval(probs, None, batch.annotation).lower

    assert (interval() == -torch.inf).all()
    estimate.refresh(10**9)
    assert estimate.complete
    assert (interval() > -torch.inf).all()


def test_without_an_estimate_lower_sides_stay_open(tmp_path: Path, store: Store) -> None:
    trainer = Trainer(start(tmp_path / "run", store, "volume", "training.epochs=1", "training.estimate=false"))
    assert trainer.volumes.estimate is None
    assert "upper sides alone" in trainer.notes[0]
    trainer.fit()


@pytest.mark.parametrize("recipe", ["known", "volume"])
def test_resumed_it_ends_the_same(tmp_path: Path, store: Store, recipe: str) -> None:
    more = ["training.epochs=3", "training.ema=0.9", "augment.rotate=20", "augment.zoom=1.2"]
    whole, halved = (start(tmp_path / name, store, recipe, *more) for name in ("whole", "halved"))
    Trainer(whole).fit()
    going = Trainer(halved).steps()
    while halved.checkpoint is None:
        next(going)
    going.close()
    Trainer(halved).fit(resume=True)
    one, other = kept(whole), kept(halved)
    assert one.keys() == other.keys()
    assert all(one[name] == other[name] for name in one)
    assert any("estimate" in name for name in load_file(whole.checkpoint / "optimiser.safetensors"))


def test_it_is_evaluated_and_predicts_as_it_was_judged(tmp_path: Path, store: Store) -> None:
    run = start(tmp_path / "run", store, "full", "training.epochs=3", "training.lr=0.01")
    Trainer(run).fit()
    found = evaluate(run, model="last", surfaces=False)
    predictor = Predictor(run, "last", "cpu")
    held_out = [record for record in store.records if record.split == "validation"]
    positions = [held_out[0].first, held_out[-1].range.stop - 1]
    slices = predict_slices(run, positions, model="last")
    remap = [store.class_index(name) for name in run.classes]
    for record in held_out:
        prediction = predictor.predict_stored(store, record)
        truth = store.truth[record.first : record.range.stop]
        for k, name in enumerate(run.classes, start=1):
            real, mask = truth == remap[k - 1], prediction.mask == k
            dsc = 2 * np.sum(real & mask) / max(1, real.sum() + mask.sum())
            (row,) = [r for r in found.rows if (r.case, r.klass, r.metric) == (record.name, name, "dsc_volume")]
            assert row.value == pytest.approx(dsc, abs=1e-6)
        assert not math.isnan(prediction.regions[0].doubt.mirrored)
        for position in set(positions) & set(record.range):
            np.testing.assert_array_equal(slices[position], prediction.mask[position - record.first])
    with pytest.raises(BadInput, match="its network sees volumes"):
        export_onnx(run, tmp_path / "network.onnx")


def test_a_deep_scan_is_predicted_in_the_memory_of_a_shallow_one(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slab by slab; what does not fit even so is refused with the file and the number."""
    run = start(tmp_path / "run", store, "full")
    keep(run, build_network(run))
    predictor = Predictor(run, device="cpu")
    whole = predictor.predict(nifti(tmp_path / "deep.nii.gz", noise((120, 48, 48)), np.diag([2.7, 2.7, 9.2, 1])))
    assert whole.mask.shape == (120, 48, 48)
    windows = predictor._windows(120, 1, GridWindow.pad((48, 48), (48, 48)))
    assert windows == 3 * 4 * 4 * 48 * 48 * (1 + 5 * 3) == predictor._windows(4, 1, GridWindow.pad((48, 48), (48, 48)))
    (network,) = predictor.networks
    assert windows < network.bytes_of((120, 1, 48, 48)) / 9
    monkeypatch.setattr(memory, "SMALL", 0)
    head = header(tmp_path / "deep.nii.gz")
    extent = Extent(head.shape, head.spacing, 1, head.size)
    needed = windows + predicting(extent, GridWindow.pad((48, 48), (48, 48)), "uint8", 0)
    for place in ("inbounds.memory.available", "inbounds.networks.volumetric.available"):
        monkeypatch.setattr(place, lambda: needed)
    np.testing.assert_array_equal(predictor.predict(tmp_path / "deep.nii.gz").mask, whole.mask)
    monkeypatch.setattr("inbounds.memory.available", lambda: needed - 1)
    with pytest.raises(BadInput, match=r"deep\.nii\.gz: a scan of 120 slices of 48 x 48 pixels.* needs .* MiB of memo"):
        predictor.predict(tmp_path / "deep.nii.gz")


def test_the_plan_of_volumes(tmp_path: Path, store: Store) -> None:
    wanted = Wanted(["known"], annotation="disc", classes=["LV"], changes=["training.epochs=1", "training.device=cpu"])
    (run,) = begin(tmp_path / "run", store, wanted)
    settings = run.settings
    assert (settings.network.dimensions, settings.network.name) == (3, "unet")
    assert settings.training.patch[1:] == (48, 48)
    assert settings.training.slices is None
    words = "\n".join(run.about["plan"]["words"])
    assert "network: a 3-D U-Net of width 16" in words
    assert "50% of them around labels and 50% anywhere" in words
    flat = replace(wanted, changes=[*wanted.changes, "network.dimensions=2"])
    (slices,) = begin(tmp_path / "flat", store, flat)
    assert (slices.settings.network.dimensions, slices.settings.training.patch) == (2, None)


def test_an_epoch_has_as_many_voxels_as_the_scans() -> None:
    training = read_settings("tags", None, DEEP).training
    assert steps_of(training, 10 * 48 * 48, 48 * 48) == math.ceil(10 * 48 * 48 / (2 * 4 * 32 * 40))
    assert steps_of(training.model_copy(update={"slices": 5}), 10 * 48 * 48, 48 * 48) == 2
    assert steps_of(training, 10, 10) == 1


@pytest.mark.parametrize(
    ("changes", "saying"),
    [
        (["training.patch=[4,64,40]"], r"training\.patch=\[4, 64, 40\]: larger than the slices of .*48 x 48"),
        (["training.patch=[4,0,40]"], "greater than or equal to 1"),
        (["training.whole_scans=true"], "made for batches of slices"),
        (["training.data_on_device=false"], "patches are gathered on the device"),
        (["network.name=enet", "network.settings={}"], "enet sees slices"),
        (
            ["network.name=monai:UNet", "network.settings={channels=[4,8],strides=[2],spatial_dims=2}"],
            "cannot take volu",
        ),
        (
            ["constraints.b={statistic='mean_intensity',bounds={kind='fixed',lower=0.1}}"],
            "does not add up over patches",
        ),
        (["constraints.b={statistic='compactness',bounds={kind='fixed',upper=90}}"], "does not add up over patches"),
    ],
)
def test_what_volumes_cannot_do_is_refused(tmp_path: Path, store: Store, changes: list[str], saying: str) -> None:
    with pytest.raises(BadInput, match=saying):
        start(tmp_path / "run", store, "volume", *changes)
    assert not (tmp_path / "run").exists()


def test_proposals_are_of_slices(tmp_path: Path, store: Store) -> None:
    with pytest.raises(
        BadInput, match=r"proposals: made for batches of slices; leave it out, or set network\.dimensions=2"
    ):
        start(tmp_path / "run", store, "proposals_volume")


def test_a_store_of_slices_is_refused_by_the_command(tmp_path: Path, hearts: Store) -> None:
    words = [
        "train",
        "tags",
        "--store",
        hearts.path,
        "--annotation",
        "disc",
        "--classes",
        "LV",
        "--run",
        tmp_path / "run",
    ]
    words += [word for change in DEEP for word in ("--set", change)]
    refused(*words, saying=["prepared for slices", "--dimensions 3"])
    assert not (tmp_path / "run").exists()


def scans(depths: tuple[int, ...], spacing: tuple[float, float, float] = (8.0, 1.25, 1.5)) -> list[Source]:
    return [
        source(f"s{n}", truth_like(n, max(depth, 2))[:depth], spacing=spacing, split="train" if n < 2 else "validation")
        for n, depth in enumerate(depths)
    ]


@pytest.mark.parametrize("depths", [(1, 1, 1), (2, 9, 1), (3, 4, 5)])
def test_volumes_of_one_slice_and_patches_deeper_than_scans(tmp_path: Path, depths: tuple[int, ...]) -> None:
    plan = Plan("tiny", CLASSES, (32, 32), GridWindow.pad, "pad", dimensions=3)
    made = prepare(scans(depths), tmp_path / "store", plan).store
    more = ["training.patch=[8,32,32]", "training.epochs=2"]
    settings = read_settings("full", None, [*DEEP, *more])
    run = Run.create(tmp_path / "run", settings, made)
    Trainer(run).fit()
    predictor = Predictor(run, device="cpu")
    for depth in (1, 3):
        image = np.random.default_rng(0).normal(size=(depth, 30, 26))
        assert predictor.predict_array(image).mask.shape == (depth, 30, 26)


def test_from_files_of_other_spacing_and_turned_in_space_and_back(tmp_path: Path) -> None:
    """Anisotropic and oblique scans, at different distances: masks lie exactly over them."""
    import nibabel

    rng = np.random.default_rng(0)
    turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    for number, (depth, apart) in enumerate([(6, 4.0), (12, 2.0), (8, 3.0), (5, 5.0)]):
        truth = truth_like(number, depth, (32, 28))
        image = (truth * 300.0 + rng.normal(0, 20, truth.shape)).astype(np.float32)
        affine = np.eye(4)
        affine[:3, :3] = turn @ np.diag([1.5, 1.25, apart])
        affine[:3, 3] = [number, -20, 7]
        for name, array in (("images", image), ("labels", truth)):
            (tmp_path / "data" / name).mkdir(parents=True, exist_ok=True)
            nibabel.Nifti1Image(array.T, affine).to_filename(tmp_path / "data" / name / f"s{number}.nii.gz")
    said = command(
        "prepare", "folder", tmp_path / "data", tmp_path / "store", "--classes", "background,RV,LV", "--dimensions", 3
    )
    assert "slices: 3.5 mm apart, the median of 2 to 5; --slice-spacing sets another" in said.err
    store = Store(tmp_path / "store")
    assert [record.slices for record in store.records] == [7, 7, 7, 7]
    changes = [*DEEP, "training.patch=[4,32,32]", "training.epochs=20", "training.lr=0.01"]
    settings = read_settings("full", None, changes)
    run = Run.create(tmp_path / "run", settings, store)
    Trainer(run).fit()
    for file in sorted((tmp_path / "data" / "images").iterdir()):
        prediction = Predictor(run, device="cpu").predict(file)
        prediction.write(tmp_path / file.name)
        mask, scan = nibabel.load(tmp_path / file.name), nibabel.load(file)
        assert mask.shape == scan.shape
        np.testing.assert_allclose(mask.affine, scan.affine)
        truth = np.asarray(nibabel.load(tmp_path / "data" / "labels" / file.name).dataobj)
        both = np.asarray(mask.dataobj) > 0, truth > 0
        assert 2 * (both[0] & both[1]).sum() / (both[0].sum() + both[1].sum()) > 0.6


@pytest.mark.slow
def test_clicks_and_volumes_in_ml_to_sound_masks(tmp_path: Path) -> None:
    """Nobody draws a contour: five clicks on every third slice, and the volume of each class within a tenth."""
    folder, classes = tmp_path / "folder", phantom.CLASSES
    sources = phantom.sources(40, side=64)
    write_example(sources, classes, folder)
    lines = ["case,class,volume_ml"]
    for number, one in enumerate(sources):
        loaded, rng = one.load(), np.random.default_rng(number)
        volumes = [(loaded.truth == k).sum() * math.prod(loaded.spacing) / 1000 for k in range(1, 4)]
        rows = zip(classes[1:], volumes, strict=True)
        lines += [f"{one.name},{k},{ml * rng.uniform(0.9, 1.1):.3f}" for k, ml in rows if one.split == "train"]
    (tmp_path / "volumes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    store, run, masks = tmp_path / "store", tmp_path / "run", tmp_path / "masks"
    done("prepare", "folder", folder / "scans", store, "--classes", ",".join(classes), "--dimensions", 3)
    done("annotate", store, "--points", folder / "clicks.csv", "--name", "clicks")
    done("facts", store, "--import", tmp_path / "volumes.csv", "--name", "volumes")
    told = "--store", store, "--annotation", "clicks", "--facts", "volumes", "--run", run
    sets = [word for change in ("epochs=48", "device=cpu", "threads=2") for word in ("--set", f"training.{change}")]
    done("train", *told, *sets)
    assert not Store(store).has_truth
    done("predict", run, folder / "new", "--out", masks)
    scores = []
    for file in sorted((folder / "truth").iterdir()):
        found, real = (read_labels(place / file.name).array for place in (masks, folder / "truth"))
        pairs = [(found == k, real == k) for k in range(1, len(classes))]
        scores.append([2 * (one & other).sum() / max(1, one.sum() + other.sum()) for one, other in pairs])
    assert len(scores) == 20
    assert np.mean(scores) >= 0.75
