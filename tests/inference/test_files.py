"""Scan files in, mask files out: every format overlaid on its scan, the table, and what goes wrong among many."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from PIL import Image

from archives import command, done, full_disk, nifti, noise, refused, snapshot
from inbounds.errors import BadInput
from inbounds.inference import Predictor, predict_files
from inbounds.inference.files import find, mask_path
from inbounds.networks.build import networks
from inbounds.runs.run import Run
from inbounds.scans.scan import header, read_labels
from inbounds.sources.folder import recognise
from predicting import NAME, by_brightness, made_run, scan_of, scene
from processes import another

WANTED = scene()
SCAN = scan_of(WANTED)


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(networks, NAME, by_brightness)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made_run(tmp_path / "run").path


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "predictions.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def itk(path: Path, array: np.ndarray = SCAN, angle: float = 0.4) -> Path:
    image = sitk.GetImageFromArray(array)
    image.SetSpacing((0.5, 0.75, 3.0))
    image.SetOrigin((-31.5, 12.25, 7.0))
    sine, cosine = math.sin(angle), math.cos(angle)
    image.SetDirection((cosine, -sine, 0, 0, 0, 1, -sine, -cosine, 0))
    sitk.WriteImage(image, str(path))
    return path


def series(folder: Path, array: np.ndarray = SCAN) -> Path:
    """DICOM slices 3 mm apart whose names do not sort by position."""
    folder.mkdir()
    for index, plane in enumerate(array):
        image = sitk.GetImageFromArray(plane)
        image.SetSpacing((0.5, 0.75))
        for tag, value in {
            "0008|0060": "MR",
            "0008|0018": f"1.2.3.{index}",
            "0020|000d": "1.2",
            "0020|000e": "1.2.3",
            "0020|0013": str(index),
            "0020|0032": f"5\\{-7 + 3 * index}\\11",
            "0020|0037": "1\\0\\0\\0\\0\\-1",
        }.items():
            image.SetMetaData(tag, value)
        writer = sitk.ImageFileWriter()
        writer.SetImageIO("GDCMImageIO")
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(folder / "written"))
        writer.Execute(image)
        (folder / "written").rename(folder / f"slice{9 - index}.dcm")
    return folder


def pictures(folder: Path, array: np.ndarray = SCAN) -> Path:
    folder.mkdir(parents=True)
    for index, plane in enumerate(array):
        Image.fromarray(plane.astype(np.uint16)).save(folder / f"s{index + 8}.png")  # s8, s9, s10, s11
    return folder


TURN = np.array([[0.8, -0.6, 0], [0.48, 0.64, -0.6], [0.36, 0.48, 0.8]])
AFFINES = {
    "flipped": np.diag([-1.5, 1.5, -10, 1]),
    "permuted": np.array([[0, 0, 10, 3], [1.5, 0, 0, -20], [0, 2, 0, 5], [0, 0, 0, 1.0]]),
    "oblique": np.block([[TURN @ np.diag([1.5, 2, 10]), np.array([[-30], [12], [7]])], [np.zeros(3), 1]]),
    "left-handed": np.block([[TURN @ np.diag([1.5, -2, 10]), np.array([[-30], [12], [7]])], [np.zeros(3), 1]]),
}


class TestOverlay:
    @pytest.mark.parametrize("suffix", [".nii.gz", ".nii"])
    @pytest.mark.parametrize("affine", AFFINES.values(), ids=AFFINES)
    def test_nifti(self, tmp_path: Path, run: Path, affine: np.ndarray, suffix: str) -> None:
        scan = nib.load(nifti(tmp_path / f"a{suffix}", SCAN, affine))
        done("predict", run, tmp_path / f"a{suffix}", "--out", tmp_path / "out")
        mask = nib.load(tmp_path / "out" / f"a{suffix}")
        assert mask.shape == scan.shape
        np.testing.assert_array_equal(mask.affine, scan.affine)
        assert mask.get_data_dtype() == np.uint8
        np.testing.assert_array_equal(np.asarray(mask.dataobj), WANTED.T)
        for value, brightness in enumerate((100, 685, 1000)):
            assert (np.asarray(scan.dataobj)[np.asarray(mask.dataobj) == value] == brightness).all()

    @pytest.mark.parametrize("suffix", [".mhd", ".mha", ".nrrd", ".nhdr"])
    def test_metaimage_and_nrrd(self, tmp_path: Path, run: Path, suffix: str) -> None:
        scan = sitk.ReadImage(str(itk(tmp_path / f"a{suffix}")))
        done("predict", run, tmp_path / f"a{suffix}", "--out", tmp_path / "out")
        mask = sitk.ReadImage(str(tmp_path / "out" / f"a{suffix}"))
        for name in ("GetSize", "GetSpacing", "GetOrigin", "GetDirection"):
            assert getattr(mask, name)() == pytest.approx(getattr(scan, name)())
        np.testing.assert_array_equal(sitk.GetArrayFromImage(mask), WANTED)

    @pytest.mark.parametrize("given", ["", "slice7.dcm"], ids=["folder", "one of its files"])
    def test_dicom(self, tmp_path: Path, run: Path, given: str) -> None:
        scan = header(series(tmp_path / "dicom"))
        done("predict", run, tmp_path / "dicom" / given, "--out", tmp_path / "out")
        (file,) = (tmp_path / "out").glob("*.nii.gz")
        assert file.name == ("slice7.nii.gz" if given else "dicom.nii.gz")
        mask = header(file)
        np.testing.assert_allclose(mask.geometry.affine, scan.geometry.affine, atol=1e-5)
        np.testing.assert_array_equal(read_labels(file).array, WANTED)
        assert rows(tmp_path / "out")[1]["volume_ml"] == str(10 * 0.5 * 0.75 * 3 / 1000)

    def test_a_folder_of_pictures(self, tmp_path: Path, run: Path) -> None:
        pictures(tmp_path / "data" / "slices")
        told = done("predict", run, tmp_path / "data", "--out", tmp_path / "out").err
        mask = tmp_path / "out" / "slices"
        assert sorted(file.name for file in mask.iterdir()) == ["s10.png", "s11.png", "s8.png", "s9.png"]
        np.testing.assert_array_equal(np.asarray(Image.open(mask / "s9.png")), WANTED[1])
        assert "Note: slices: " in told
        assert "pictures do not say how large a pixel is" in rows(tmp_path / "out")[0]["note"]

    def test_pictures_are_scans_as_in_prepare(self, tmp_path: Path, run: Path) -> None:
        pictures(tmp_path / "data", np.stack([SCAN[1], SCAN[1][::-1]]))
        told = done("predict", run, tmp_path / "data", "--out", tmp_path / "out").err
        assert "data: each of its pictures is a scan; to segment them as the slices of one, give the folder" in told
        for name, wanted in (("s8", WANTED[1]), ("s9", WANTED[1][::-1])):
            np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out" / f"{name}.png")), wanted)
        assert list(find([tmp_path / "data"], 1)) == list(recognise(tmp_path / "data").images) == ["s8", "s9"]

    def test_single_pictures(self, tmp_path: Path, run: Path) -> None:
        Image.fromarray(SCAN[1].astype(np.uint16)).save(tmp_path / "one.png")
        pages = [Image.fromarray(plane.astype(np.uint16)) for plane in SCAN]
        pages[0].save(tmp_path / "many.TIF", save_all=True, append_images=pages[1:])
        done("predict", run, tmp_path / "one.png", tmp_path / "many.TIF", "--out", tmp_path / "out")
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out" / "one.png")), WANTED[1])
        np.testing.assert_array_equal(read_labels(tmp_path / "out" / "many.tif").array, WANTED)


class TestCommand:
    def test_end_to_end(self, tmp_path: Path) -> None:
        """Two scans, one of them larger than the grid; by hand: voxels of 1.5 x 1.5 x 10 mm are 0.0225 ml."""
        run = made_run(tmp_path / "run").path
        data, out = tmp_path / "data", tmp_path / "out" / "masks"
        nifti(data / "small.nii.gz", SCAN)
        wide = np.zeros((3, 20, 52), np.uint8)
        wide[1, 5:9, 10:14] = 2
        nifti(data / "wide.nii", scan_of(wide))
        outcome = done("predict", run, data, "--out", out, "--probabilities", "--model", "last", "--device", "cpu")
        assert "2 of 2 masks written; 1 is LV, 2 is RV" in outcome.out
        assert "predicting: 2 of 2" in outcome.err
        assert "Note: wide: RV reaches the border" in outcome.err
        names = ["predictions.csv", "predictions.json", "small.nii.gz", "small_probabilities.npz"]
        assert sorted(file.name for file in out.iterdir()) == [*names, "wide.nii", "wide_probabilities.npz"]
        fourth, first, second, third = rows(out)  # the most doubtful first
        table = "case,class,doubt,volume_ml,size_px,centroid_slice,centroid_row,centroid_col"
        assert ",".join(first) == f"{table},range,edge,pieces,mirrored,runs,note"
        # The gray box has 2 x 6 x 8 voxels, of which 10 in its first slice are white.
        calm = ["", "0.0", "0.0", "0.0", ""]  # a run that noted no volumes, alone
        assert [*second.values()] == ["small", "RV", "0.0", "0.225", "10", "1.0", "5.5", "10.0", *calm, ""]
        assert [first[name] for name in ("case", "class", "volume_ml", "size_px")] == ["small", "LV", "1.935", "86"]
        centre = [np.argwhere(WANTED == 1).mean(axis=0)[axis] for axis in range(3)]
        assert [float(first[f"centroid_{axis}"]) for axis in ("slice", "row", "col")] == pytest.approx(centre, abs=1e-4)
        missing = "LV was not found; of 20 x 52 pixels the run looks at 20 x 32 in the middle only"
        assert [*third.values()] == ["wide", "LV", "0.0", "0.0", "0", "", "", "", *calm, missing]
        assert "a part may be missing" in fourth["note"]
        assert (fourth["doubt"], fourth["edge"]) == ("1.0", "1.0")  # in the only slice that it has
        assert "Look at these first: wide (RV, doubt 1.00: it touches the edge" in outcome.out
        about = json.loads((out / "predictions.json").read_text(encoding="utf-8"))
        assert about["classes"] == {"0": "background", "1": "LV", "2": "RV"}
        assert (about["model"], about["runs"]) == ("last", [str(run)])
        with np.load(out / "small_probabilities.npz") as kept:
            assert kept["probabilities"].dtype == np.float16
            np.testing.assert_array_equal(kept["probabilities"].argmax(axis=0), WANTED)
            assert kept["classes"].tolist() == ["background", "LV", "RV"]
            np.testing.assert_array_equal(kept["affine"], np.diag([1.5, 1.5, 10, 1]))
            np.testing.assert_array_equal(kept["spacing"], [10, 1.5, 1.5])

    def test_a_broken_scan_does_not_stop_the_others(self, tmp_path: Path, run: Path) -> None:
        for name in "abcd":
            nifti(tmp_path / "data" / f"{name}.nii.gz", SCAN)
        whole = (tmp_path / "data" / "b.nii.gz").read_bytes()
        (tmp_path / "data" / "b.nii.gz").write_bytes(whole[: len(whole) // 2])
        nifti(tmp_path / "data" / "c.nii.gz", np.full_like(SCAN, 7))
        outcome = command("predict", run, tmp_path / "data", "--out", tmp_path / "out")
        assert outcome.code == 1
        assert "2 of 4 masks written" in outcome.out
        failed = [line for line in outcome.err.splitlines() if line.startswith("Failed: ")]
        assert f"Failed: b: {tmp_path / 'data' / 'b.nii.gz'}: the data are cut short" in failed[0]
        assert "every voxel is 7" in failed[1]
        assert len(failed) == 2
        assert sorted(file.name for file in (tmp_path / "out").glob("*.nii.gz")) == ["a.nii.gz", "d.nii.gz"]
        assert [row["case"] for row in rows(tmp_path / "out")] == ["a", "a", "d", "d"]

    def test_many_notes_are_left_to_the_table(self, tmp_path: Path, run: Path) -> None:
        for number in range(12):
            pictures(tmp_path / "data" / f"p{number}")
        told = done("predict", run, tmp_path / "data", "--out", tmp_path / "out").err
        assert told.count("Note: p") == 10
        assert "Note: and 2 more; predictions.csv has them all" in told
        assert all(row["note"] for row in rows(tmp_path / "out"))

    def test_what_is_found_in_few_scans_is_said(self, tmp_path: Path, run: Path) -> None:
        """Only the first scan has anything gray, then the first two of four: half is enough."""
        for name in "abcd":
            nifti(tmp_path / "data" / f"{name}.nii.gz", SCAN if name == "a" else scan_of(WANTED // 2))
        told = done("predict", run, tmp_path / "data", "--out", tmp_path / "out").err
        assert [line for line in told.splitlines() if "Warning" in line] == ["Warning: LV was found in 1 of 4 scans"]
        nifti(tmp_path / "data" / "b.nii.gz", SCAN)
        assert "Warning" not in done("predict", run, tmp_path / "data", "--out", tmp_path / "half").err

    def test_the_worst_come_first(self, tmp_path: Path, run: Path) -> None:
        """By hand: 4 of 90 gray voxels in a piece of their own; a volume of 0.225 ml where 0.45 to 9 were seen."""
        split = WANTED.copy()
        split[3, 16, 20:24] = 1
        Run.open(run).note_volumes({"RV": (0.45, 9.0)})
        for name, mask in {"a": WANTED, "b": split, "c": WANTED}.items():
            nifti(tmp_path / "data" / f"{name}.nii.gz", scan_of(mask))
        outcome = done("predict", run, tmp_path / "data", "--out", tmp_path / "out")
        table = rows(tmp_path / "out")
        order = [("a", "RV"), ("b", "RV"), ("c", "RV"), ("b", "LV"), ("a", "LV"), ("c", "LV")]
        assert [(row["case"], row["class"]) for row in table] == order
        assert [row["doubt"] for row in table] == ["0.5", "0.5", "0.5", "0.0444", "0.0", "0.0"]
        assert [table[0]["range"], table[3]["range"], table[3]["pieces"]] == ["0.5", "", "0.0444"]
        reason = "(RV, doubt 0.50: its volume lies outside those of the training scans)"
        assert f"Look at these first: a {reason}; b {reason}; c {reason}" in outcome.out
        done("predict", run, tmp_path / "data", "--out", tmp_path / "fast", "--no-doubt")
        plain = rows(tmp_path / "fast")
        assert [row["case"] for row in plain] == [*"aabbcc"]
        assert {row["doubt"] + row["pieces"] for row in plain} == {""}

    def test_two_channels(self, tmp_path: Path) -> None:
        run = made_run(tmp_path / "run", channels=2, sees=1).path
        for seed, name in enumerate(("p_1", "p_2")):
            nifti(tmp_path / "data" / f"{name}_0000.nii.gz", noise(SCAN.shape, seed))
            nifti(tmp_path / "data" / f"{name}_0001.nii.gz", SCAN)
        done("predict", run, tmp_path / "data", "--out", tmp_path / "out")
        np.testing.assert_array_equal(read_labels(tmp_path / "out" / "p_2.nii.gz").array, WANTED)
        assert [row["case"] for row in rows(tmp_path / "out")] == ["p_1", "p_1", "p_2", "p_2"]
        files = sorted((tmp_path / "data").iterdir())[:2]
        done("predict", run, *files, "--out", tmp_path / "again")
        assert (tmp_path / "again" / "p_1.nii.gz").is_file()
        refused("predict", run, files[0], "--out", tmp_path / "x", saying=["p_1 has 1 channels", "trained on 2"])
        refused("predict", run, files[1], "--out", tmp_path / "x", saying=["no channel 0000"])
        odd = nifti(tmp_path / "odd.nii.gz", SCAN)
        refused("predict", run, odd, *files, "--out", tmp_path / "x", saying=[odd, "call the files of a scan"])


class TestRefusals:
    def test_before_anything_is_written(self, tmp_path: Path, run: Path) -> None:
        scan, other = (nifti(tmp_path / name / "a.nii.gz", SCAN) for name in ("one", "two"))
        out = tmp_path / "out"

        def no(*words: object, saying: list[object], out: Path = out) -> None:
            refused("predict", *words, "--out", out, saying=saying, folder=tmp_path)

        no(run, scan, other, saying=[other, scan, "same name", "rename one"])
        no(run, scan, scan.parent, saying=["same name"])
        no(run, tmp_path / "none.nii.gz", saying=["none.nii.gz: there is no such file"])
        no(run, run / "run.json", saying=["not a scan by its name"])
        no(run, run, saying=[run, "no scans directly in this folder"])
        no(run, scan, "--model", "worst", saying=["no model 'worst'"])
        no(scan.parent, scan, saying=["not a run"])
        no(run, scan, out=scan.parent, saying=["replace the scan itself"])
        no(run, scan, out=run / "run.json", saying=["this is a file"])
        slices = pictures(tmp_path / "data" / "slices")
        no(run, slices.parent, out=slices, saying=["itself a scan"])
        slices = series(tmp_path / "dicom")
        nifti(slices / "whole.nii.gz", SCAN)
        no(run, slices, saying=["slices as well as whole scans such as whole.nii.gz"])
        no(run, scan, "--device", "warp", saying=["the device 'warp'"])

    def test_results_are_replaced_only_if_told(self, tmp_path: Path, run: Path) -> None:
        scan, slices, out = nifti(tmp_path / "a.nii.gz", SCAN), tmp_path / "data", tmp_path / "out"
        pictures(slices / "slices")
        done("predict", run, scan, slices, "--out", out)
        before = snapshot(out)
        refused("predict", run, scan, "--out", out, saying=["a.nii.gz: already exists", "--overwrite"], folder=out)
        fresh = nifti(tmp_path / "b.nii.gz", SCAN)
        refused("predict", run, fresh, "--out", out, saying=["predictions.csv: already exists"], folder=out)
        (out / "slices" / "s8.png").write_bytes(b"old")
        done("predict", run, scan, slices, "--out", out, "--overwrite")
        assert snapshot(out) == before
        scan.write_bytes(b"broken")
        (out / "slices" / "notes.txt").write_text("mine")
        refused("predict", run, slices, "--out", out, "--overwrite", saying=["more than a mask"], folder=out)
        (out / "slices" / "notes.txt").unlink()
        outcome = command("predict", run, scan, slices, "--out", out, "--overwrite")
        assert outcome.code == 1
        assert "(a mask of an earlier prediction is still there)" in outcome.err
        assert {row["case"] for row in rows(out)} == {"slices"}

    def test_one_prediction_at_a_time(self, tmp_path: Path, run: Path) -> None:
        scan, out = nifti(tmp_path / "a.nii.gz", SCAN), tmp_path / "out"
        with another(out, "inside") as first:
            refused("predict", run, scan, "--out", out, saying=["out: in use by process", first.pid], folder=out)
        done("predict", run, scan, "--out", out)

    def test_what_a_killed_prediction_left_goes(self, tmp_path: Path, run: Path) -> None:
        """Also where the next one is refused, and nothing that others have on their way."""
        scan, out = nifti(tmp_path / "a.nii.gz", SCAN), tmp_path / "out"
        done("predict", run, scan, "--out", out)
        other = out / ".b.nii.gz.node-1-0123abcd.partial"
        for left in (out / ".a.nii.gz.node-1-0123abcd.partial", other):
            left.mkdir()
            (left / "a.nii.gz").write_bytes(b"half")
        refused("predict", run, scan, "--out", out, saying=["a.nii.gz: already exists"])
        assert [file.name for file in out.glob(".*")] == [other.name]

    def test_a_full_disk_stops(self, tmp_path: Path, run: Path) -> None:
        big = nifti(tmp_path / "a.nii", scan_of(scene((4, 60, 60), (1, 25, 25))))
        with full_disk(5000):
            outcome = command("predict", run, big, "--out", tmp_path / "out")
        assert outcome.code == 2
        assert "a.nii: the mask could not be written" in outcome.err
        assert not (tmp_path / "out" / "a.nii").exists()

    def test_stopped_halfway_the_table_lists_what_is_there(self, tmp_path: Path, run: Path) -> None:
        files = [nifti(tmp_path / f"{name}.nii.gz", SCAN) for name in "ab"]

        def track(names):
            yield names[0]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            predict_files(Predictor(run), files, tmp_path / "out", track=track)
        there = sorted(file.name[0] for file in (tmp_path / "out").glob("*.nii.gz"))
        assert there[0] == "a"
        assert [row["case"] for row in rows(tmp_path / "out")] == [name for name in there for _ in range(2)]


class TestFind:
    def test_folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = tmp_path / "data"
        nifti(data / "x_0001.nii.gz", SCAN)
        itk(data / "y.mha")
        series(data / "dicom")
        pictures(data / "slices")
        (data / "notes.txt").write_text("no scan")
        found = find([data], 1)
        assert {name: files[0].name for name, files in found.items()} == {
            "dicom": "dicom",
            "slices": "slices",
            "x_0001": "x_0001.nii.gz",
            "y": "y.mha",
        }
        assert {mask_path(name, files[0], tmp_path).name for name, files in found.items()} == {
            "dicom.nii.gz",
            "slices",
            "x_0001.nii.gz",
            "y.mha",
        }
        monkeypatch.chdir(data / "slices")
        assert list(find([Path()], 1)) == ["s10", "s11", "s8", "s9"]
        monkeypatch.chdir(data / "dicom")
        assert list(find([Path("../slices/..")], 1)) == list(found)

    def test_data_sets_as_for_training(self, tmp_path: Path) -> None:
        for channel in range(2):
            nifti(tmp_path / "imagesTr" / f"p_{channel:04d}.nii.gz", SCAN)
        nifti(tmp_path / "labelsTr" / "p.nii.gz", WANTED)
        assert {name: len(files) for name, files in find([tmp_path], 2).items()} == {"p": 2}
        with pytest.raises(BadInput, match="p has 2 channels, and the run was trained on 1"):
            find([tmp_path], 1)
        with pytest.raises(BadInput, match="the scan 'p' is there twice"):
            find([tmp_path, *sorted((tmp_path / "imagesTr").iterdir())], 2)
