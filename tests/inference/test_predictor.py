"""A network kept in memory: the run's preparation done and undone, sizes and places in the scan's own voxels."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archives import nifti, noise
from inbounds.batches.samples import as_float
from inbounds.config import read_settings
from inbounds.errors import BadInput
from inbounds.inference import Predictor
from inbounds.inference.forward import probabilities
from inbounds.networks.build import networks
from inbounds.runs.model import build_network, load_network
from inbounds.runs.run import Run
from inbounds.scans.scan import _READERS
from inbounds.sources.source import from_files
from inbounds.store.prepare import FITS, Plan, prepare
from making import SPACING, image_of, truth_like
from predicting import NAME, by_brightness, keep, made_run, scan_of, scene

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(networks, NAME, by_brightness)


class TestPreparation:
    @pytest.mark.parametrize("dtype", ["uint8", "float16"])
    @pytest.mark.parametrize(
        ("fit", "shape"),
        [
            ("pad", (3, 20, 27)),
            ("pad", (35, 41, 30)),
            ("resize", (3, 50, 23)),
            ("axial", (2, 200, 21)),
            ("zoom", (2, 500, 420)),
            (0.4, (2, 41, 70)),
            ("window", (2, 40, 30)),
            ("spacing", (2, 41, 70)),
        ],
        ids=[
            "smaller",
            "larger, in two chunks",
            "resized",
            "axial",
            "zoomed",
            "in mm",
            "in a window",
            "spacing as said",
        ],
    )
    def test_the_mask_of_a_stored_scan_is_that_of_its_stored_slices(
        self, tmp_path: Path, fit: str | float, shape: tuple[int, int, int], dtype: str
    ) -> None:
        window = (100.0, 700.0) if fit == "window" else None
        spacing = (4.0, 0.8, 1.3) if fit == "spacing" else None
        pixel = fit if isinstance(fit, float) else 1.1 if spacing else None
        fit = fit if fit in FITS else "pad"
        rng = np.random.default_rng(1)
        mask = (noise(shape) > 2000).astype(np.uint8)
        files = [nifti(tmp_path / f"{n}.nii.gz", rng.gamma(2, 300, shape).astype(np.int16)) for n in "ab"]
        labels = nifti(tmp_path / "labels.nii.gz", mask)
        sources = [from_files((file,), labels, name=file.name, patient=file.name, classes=2) for file in files]
        plan = Plan("tiny", ("background", "x"), (32, 32), FITS[fit], fit, dtype, "", pixel, window, spacing)
        store = prepare(sources, tmp_path / "store", plan).store
        unet = ["network.name=monai:UNet", "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}"]
        run = Run.create(tmp_path / "run", read_settings("full", None, unet), store)
        keep(run, build_network(run))
        predictor = Predictor(run, device="cpu")
        for file, record in zip(files, store.records, strict=True):
            stored = torch.from_numpy(store.images[record.first : record.range.stop].copy())
            probs = probabilities(load_network(run), as_float(stored))
            found = predictor.predict(file, probabilities=True)
            wanted = record.fit.back(probs.argmax(dim=1).to(torch.uint8).numpy())
            np.testing.assert_array_equal(found.mask, wanted)
            assert 0 < found.mask.mean() < 1
            assert found.spacing == (spacing or (10, 1.5, 1.5))
            said = "its spacing is taken as that of the training scans, (4.0, 0.8, 1.3) mm"
            assert any(said in note for note in found.notes) == bool(spacing)
            assert found.probabilities is not None
            np.testing.assert_array_equal(found.probabilities[1], record.fit.back(probs[:, 1].half().numpy()))

    @pytest.mark.parametrize("shape", [(4, 20, 24), (4, 20, 60), (3, 45, 47), (1, 33, 31)])
    def test_padded_and_cropped_slices_come_back_in_place(self, tmp_path: Path, shape: tuple[int, int, int]) -> None:
        wanted = scene(shape, (0, shape[1] // 2 - 3, shape[2] // 2 - 4))
        found = Predictor(made_run(tmp_path / "run")).predict_array(scan_of(wanted))
        np.testing.assert_array_equal(found.mask, wanted)
        assert found.warnings == ()

    @pytest.mark.parametrize("shape", [(3, 16, 64), (3, 64, 16), (3, 32, 32)])
    def test_resized_slices_come_back_in_place(self, tmp_path: Path, shape: tuple[int, int, int]) -> None:
        wanted = np.zeros(shape, np.uint8)
        wanted[1, 4:12, 2:14] = 1
        found = Predictor(made_run(tmp_path / "run", "resize", classes=("LV",))).predict_array(scan_of(wanted))
        np.testing.assert_array_equal(found.mask, wanted)

    def test_each_channel_has_its_place(self, tmp_path: Path) -> None:
        wanted = scene()
        predictor = Predictor(made_run(tmp_path / "run", channels=2, sees=1))
        both = np.stack([noise(wanted.shape), scan_of(wanted)])
        np.testing.assert_array_equal(predictor.predict_array(both).mask, wanted)
        files = [nifti(tmp_path / f"{n}.nii.gz", channel) for n, channel in enumerate(both)]
        np.testing.assert_array_equal(predictor.predict(files).mask, wanted)
        with pytest.raises(BadInput, match=r"0.nii.gz: 1 channels given, and .*run was trained on 2; give one file"):
            predictor.predict(files[0])
        affine = np.diag([1.5, 1.5, 10, 1])
        affine[0, 3] = 70
        nifti(files[0], both[0], affine)
        assert "corners lie up to 70 mm away" in predictor.predict(files).warnings[0]
        nifti(files[0], both[0, :, 1:])
        with pytest.raises(BadInput, match="its shape"):
            predictor.predict(files)

    def test_a_header_is_read_once_for_each_channel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        files = [nifti(tmp_path / f"{n}.nii.gz", noise((2, 20, 24), n)) for n in range(2)]
        predictor, seen = Predictor(made_run(tmp_path / "run", channels=2)), []
        read = _READERS[".nii.gz"]
        monkeypatch.setitem(_READERS, ".nii.gz", lambda path: seen.append(path) or read(path))
        prediction = predictor.predict(files)
        assert seen == files
        assert prediction.header is not None
        assert (prediction.header.path, prediction.header.voxels) == (files[0], None)


class TestNumbers:
    def test_volume_and_centroid_by_hand(self, tmp_path: Path) -> None:
        """A gray box of 2 x 2 x 4 voxels and a white one of 1 x 3 x 2, voxels of 8 x 1.25 x 0.5 = 5 cubic mm."""
        wanted = np.zeros((5, 40, 24), np.uint8)
        wanted[1:3, 10:12, 4:8] = 1
        wanted[4, 20:23, 9:11] = 2
        found = Predictor(made_run(tmp_path / "run")).predict_array(scan_of(wanted), (8.0, 1.25, 0.5))
        np.testing.assert_array_equal(found.mask, wanted)
        first, second = found.regions
        assert (first.name, first.value, first.voxels) == ("LV", 1, 16)
        assert first.volume_ml == pytest.approx(0.08)
        assert first.centroid == pytest.approx((1.5, 10.5, 5.5))
        assert (second.name, second.value, second.voxels) == ("RV", 2, 6)
        assert second.volume_ml == pytest.approx(0.03)
        assert second.centroid == pytest.approx((4, 21, 9.5))
        assert found.classes == ("background", "LV", "RV")

    def test_a_class_that_is_absent_has_no_centre(self, tmp_path: Path) -> None:
        wanted = scene() // 2
        found = Predictor(made_run(tmp_path / "run")).predict_array(np.where(wanted, 1000, 100))
        assert [region.voxels for region in found.regions] == [0, 10]
        assert found.regions[0].volume_ml == 0
        assert all(map(math.isnan, found.regions[0].centroid))

    def test_the_spacing_is_the_file_s(self, tmp_path: Path) -> None:
        file = nifti(tmp_path / "a.nii.gz", scan_of(scene()))  # 10 x 1.5 x 1.5 mm
        found = Predictor(made_run(tmp_path / "run")).predict(str(file))
        assert found.spacing == (10, 1.5, 1.5)
        assert found.regions[1].volume_ml == pytest.approx(10 * 22.5 / 1000)

    def test_probabilities_agree_with_the_mask(self, tmp_path: Path) -> None:
        wanted = scene((4, 50, 24), (1, 20, 8))
        predictor = Predictor(made_run(tmp_path / "run"))
        assert predictor.predict_array(scan_of(wanted)).probabilities is None
        found = predictor.predict_array(scan_of(wanted), probabilities=True)
        probs = found.probabilities
        assert probs is not None
        assert probs.dtype == np.float16
        np.testing.assert_array_equal(probs.argmax(axis=0), found.mask)
        np.testing.assert_allclose(probs.astype(np.float32).sum(axis=0), 1, atol=2e-3)
        assert (probs[0, :, :9] == 1).all()  # 9 rows above the window
        assert (probs[1:, :, :9] == 0).all()
        scores = torch.tensor([0, 40, 100]) * 0.65 + torch.tensor([0, -20, -68])
        assert probs[1, 1, 20, 8] == pytest.approx(scores.softmax(0)[1].item(), abs=0.01)
        with pytest.raises(ValueError, match="no file whose geometry"):
            found.write(tmp_path / "mask.nii.gz")


class TestSeveralRuns:
    def brighter(self, path: Path, by: float) -> Run:
        """A run that calls gray what is less bright by so much."""
        run = made_run(path)
        network = load_network(run)
        (conv,) = (module for module in network.modules() if isinstance(module, torch.nn.Conv2d))
        with torch.no_grad():
            conv.bias[1:] += torch.tensor([by, by])
        shutil.rmtree(run.path / "checkpoints")
        return keep(run, network)

    def test_probabilities_are_averaged(self, tmp_path: Path) -> None:
        runs = [self.brighter(tmp_path / f"{n}", by) for n, by in enumerate((0.0, 5.0, -3.0))]
        image = noise((3, 20, 24)).astype(np.float32)
        single = [Predictor(run, device="cpu").predict_array(image, probabilities=True) for run in runs]
        found = Predictor(runs, device="cpu").predict_array(image, probabilities=True)
        assert found.probabilities is not None
        mean = np.mean([one.probabilities for one in single], axis=0, dtype=np.float32)
        np.testing.assert_allclose(found.probabilities, mean, atol=1e-3)
        assert found.regions[0].doubt is not None
        assert 0 < found.regions[0].doubt.runs < 1
        for k, region in enumerate(found.regions, start=1):
            masks = [one.mask == k for one in single]
            mine = found.mask == k
            dsc = [2 * (mine & other).sum() / (mine.sum() + other.sum()) for other in masks]
            assert region.doubt is not None
            assert region.doubt.runs == pytest.approx(1 - np.mean(dsc))
            assert region.doubt.mirrored == 0  # each pixel by itself

    def test_a_folder_of_folds_and_paths_with_commas(self, tmp_path: Path) -> None:
        for number in range(2):
            self.brighter(tmp_path / "folds" / f"fold-{number}", number)
        alone = made_run(tmp_path / "alone").path
        assert [run.path.name for run in Predictor(tmp_path / "folds").runs] == ["fold-0", "fold-1"]
        both = Predictor(f"{alone}, {tmp_path / 'folds'}")
        assert [run.path.name for run in both.runs] == ["alone", "fold-0", "fold-1"]
        assert both.model == "best"
        Run.open(alone).weights("best").unlink()
        assert Predictor([alone, tmp_path / "folds"]).model == "last, best"
        assert len(Predictor(tmp_path / "folds" / "fold-1").runs) == 1
        with pytest.raises(BadInput, match="nowhere: this is not a run"):
            Predictor(f"{alone},{tmp_path / 'nowhere'}")
        with pytest.raises(BadInput, match="name at least one"):
            Predictor([])

    @pytest.mark.parametrize(
        ("how", "what"),
        [({"classes": ("LV",)}, "classes"), ({"channels": 2}, "channels"), ({"shape": (16, 32)}, "preparation")],
    )
    def test_runs_that_do_not_fit_together(self, tmp_path: Path, how: dict[str, Any], what: str) -> None:
        one, other = made_run(tmp_path / "one"), made_run(tmp_path / "other", **how)
        with pytest.raises(BadInput, match=rf"other: its {what} are .* those of .*one are .*; predict with"):
            Predictor([one, other])

    def test_the_widest_range_counts(self, tmp_path: Path) -> None:
        one, other = made_run(tmp_path / "one"), made_run(tmp_path / "other")
        one.note_volumes({"LV": (3, 5), "RV": (1, 2)})
        other.note_volumes({"LV": (2, 4)})
        assert Predictor([one, other]).seen == {"LV": (2, 5)}


class TestDoubt:
    def test_mirrored_images_by_hand(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A network that takes the left half of whatever is gray: turned left to right it takes the other half."""

        class Left(torch.nn.Module):
            def forward(self, image: torch.Tensor) -> torch.Tensor:
                gray = ((image > 0.5) & (torch.arange(image.shape[-1]) < image.shape[-1] // 2)).float()
                return torch.cat([1 - gray, gray], dim=1)

        predictor = Predictor(made_run(tmp_path / "run", classes=("LV",)), device="cpu")
        predictor.networks = [Left()]
        wanted = np.zeros((2, 32, 32), np.uint8)
        wanted[0, 10:14, 8:24] = 1  # as many columns on either side
        found = predictor.predict_array(scan_of(wanted))
        assert found.regions[0].voxels == 4 * 8
        assert found.regions[0].doubt is not None
        assert found.regions[0].doubt.mirrored == 0.5  # 1 left to right, 0 upside down
        predictor.doubt = False
        assert predictor.predict_array(scan_of(wanted)).regions[0].doubt is None

    def test_the_edge_counts_by_slices_of_the_region(self, tmp_path: Path) -> None:
        wanted = np.zeros((4, 52, 32), np.uint8)
        wanted[1:4, 20:25, 10:20] = 1
        wanted[2, 10:25, 10:20] = 1  # the first row that is looked at
        wanted[0, 25:30, 5:25] = 2
        found = Predictor(made_run(tmp_path / "run")).predict_array(scan_of(wanted))
        assert [region.doubt and region.doubt.edge for region in found.regions] == [pytest.approx(1 / 3), 0]

    def test_pieces_are_those_before_the_largest_is_kept(self, tmp_path: Path) -> None:
        wanted = scene()
        wanted[3, 17:19, 1:3] = 1  # 4 besides 86
        found = Predictor(made_run(tmp_path / "run"), largest=True).predict_array(scan_of(wanted))
        assert found.regions[0].doubt is not None
        assert (found.regions[0].voxels, found.regions[0].doubt.pieces) == (86, pytest.approx(4 / 90))

    def test_a_stored_scan_is_as_its_file(self, tmp_path: Path) -> None:
        run = made_run(tmp_path / "run")
        store = run.opened_store()
        (record,) = store.records
        found = Predictor(run, device="cpu").predict_stored(store, record)
        from_file = Predictor(run, device="cpu").predict_array(image_of(truth_like(0)), SPACING)
        np.testing.assert_array_equal(found.mask, from_file.mask)
        assert found.regions == from_file.regions
        assert found.mask.any()


class TestCrop:
    """The grid is 32 x 32; a slice of 52 x 32 loses 10 rows at either end."""

    @pytest.mark.parametrize(
        ("first", "last", "warned"), [(10, 20, True), (11, 20, False), (30, 42, True), (30, 41, False)]
    )
    def test_rows(self, tmp_path: Path, first: int, last: int, warned: bool) -> None:
        wanted = np.zeros((3, 52, 32), np.uint8)
        wanted[1, first:last, 10:20] = 1
        wanted[2, 20:25, 0:32] = 2  # touches the border of the slice, not one that was cut
        found = Predictor(made_run(tmp_path / "run")).predict_array(scan_of(wanted))
        np.testing.assert_array_equal(found.mask, wanted)
        assert bool(found.warnings) == warned
        assert found.regions[1].note == ""
        if warned:
            (warning,) = found.warnings
            assert warning.startswith("LV reaches the border of the 32 x 32 pixels that the run looks at, in 1 of 3")
            assert "52 x 32: a part may be missing" in warning

    @pytest.mark.parametrize(("first", "warned"), [(5, True), (6, False), (27, True), (26, False)])
    def test_columns_and_what_lies_outside(self, tmp_path: Path, first: int, warned: bool) -> None:
        wanted = np.zeros((2, 20, 42), np.uint8)
        wanted[1, 5:9, first : first + 10] = 1
        seen = wanted.copy()
        wanted[0, 5:9, :3] = 1  # nobody looks there
        found = Predictor(made_run(tmp_path / "run", classes=("LV",))).predict_array(scan_of(wanted))
        np.testing.assert_array_equal(found.mask, seen)
        assert bool(found.regions[0].note) == warned


class TestRefusals:
    def test_what_is_no_run_or_keeps_no_such_network(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="not a run"):
            Predictor(tmp_path)
        run = made_run(tmp_path / "run")
        assert Predictor(run).model == "best"
        assert Predictor(str(run.path), "last").model == "last"
        with pytest.raises(BadInput, match="no model 'worst'"):
            Predictor(run, "worst")
        (run.weights("best")).unlink()
        assert Predictor(run).model == "last"
        with pytest.raises(BadInput, match="keeps no model 'best'"):
            Predictor(run, "best")
        with pytest.raises(BadInput, match="device 'warp' cannot be used"):
            Predictor(run, device="warp")

    @pytest.mark.parametrize(
        "preparation",
        [
            {"fit": "as told"},
            {"fit": None},
            {"shape": 3},
            {"shape": []},
            {"pixel": "fine"},
            {"pixel": 0},
            {"dtype": "int7"},
            {"window": [5, 5]},
            {"spacing": [1, 1]},
            {"shape": [10**9, 10**9]},
            {"pixel": 1e9},
        ],
    )
    def test_a_preparation_that_nobody_can_repeat(self, tmp_path: Path, preparation: dict[str, object]) -> None:
        run = made_run(tmp_path / "run")
        about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
        about["preparation"] |= preparation
        (run.path / "run.json").write_text(json.dumps(about))
        with pytest.raises(BadInput, match=r"run.json: its preparation is .*pad, resize, zoom, axial, none only"):
            Predictor(run.path)

    def test_a_network_that_is_not_finite(self, tmp_path: Path) -> None:
        run = made_run(tmp_path / "run")
        predictor = Predictor(run)
        for parameter in predictor.networks[0].parameters():
            torch.nn.init.constant_(parameter, torch.nan)
        with pytest.raises(BadInput, match=r"the array: the network 'best' of .*not finite"):
            predictor.predict_array(scan_of(scene()))

    def test_arrays_that_are_no_scans(self, tmp_path: Path) -> None:
        predictor = Predictor(made_run(tmp_path / "run"))
        good = scan_of(scene()).astype(np.float32)
        broken = good.copy()
        broken[0, 0, 0] = np.nan
        for array in (np.zeros_like(good), broken, good[:0]):
            with pytest.raises(BadInput, match="constant, empty or not finite"):
                predictor.predict_array(array)
        with pytest.raises(BadInput, match="trained on 1"):
            predictor.predict_array(np.stack([good, good]))
        with pytest.raises(BadInput, match=r"give \(slices, rows, columns\)"):
            predictor.predict_array(good[None, None])
        with pytest.raises(BadInput, match="no scan: 0 channels"):
            predictor.predict([])


def test_the_largest_piece_alone(tmp_path: Path) -> None:
    wanted = scene()
    more = wanted.copy()
    more[3, 17:19, 1:3] = 1
    image = scan_of(more)
    run = made_run(tmp_path / "run")
    np.testing.assert_array_equal(Predictor(run, device="cpu").predict_array(image).mask, more)
    found = Predictor(run, device="cpu", largest=True).predict_array(image)
    np.testing.assert_array_equal(found.mask, wanted)
    assert found.regions[0].voxels == int((wanted == 1).sum())
