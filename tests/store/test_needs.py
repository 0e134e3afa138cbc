"""What preparing and predicting take, and what is refused by its header alone, before anything is read or written."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from archives import refused
from inbounds import memory
from inbounds.batches.samples import load
from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate
from inbounds.inference import Predictor
from inbounds.inference.forward import chunk
from inbounds.networks import networks
from inbounds.scans.scan import header
from inbounds.sources.source import Extent, Source, from_files
from inbounds.store.grid import GridWindow
from inbounds.store.needs import predicting, preparing
from inbounds.store.prepare import FITS, Plan, prepare
from predicting import NAME, by_brightness, made_run, scan_of, scene

SPACING = (2.0, 0.75, 0.75)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(networks, NAME, by_brightness)


def unread() -> Any:
    raise AssertionError("the voxels were read")


def described(path: Path, shape: tuple[int, int, int], spacing: tuple[float, float, float], size: int = 0) -> Path:
    """A NIfTI file that says so, and has no voxels; as if packed, if it has a size."""
    made = nib.Nifti1Header()
    made.set_data_dtype(np.float64)
    made.set_data_shape(shape[::-1])
    made.set_zooms(spacing[::-1])
    made["magic"], made["vox_offset"] = b"n+1", 352
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(made.binaryblock + bytes(4 + 64)) + bytes(size))
    return path


def folder(path: Path, spacing: tuple[float, float, float]) -> Path:
    affine = np.diag([*spacing[::-1], 1.0])
    for name in "ab":
        (path / "images").mkdir(parents=True, exist_ok=True)
        nib.Nifti1Image(scan_of(scene()).T, affine).to_filename(path / "images" / f"{name}.nii.gz")
    return path


class TestGrid:
    @pytest.mark.parametrize("pixel", [float("inf"), float("nan"), 0.0, -1.0])
    def test_a_pixel_that_cannot_be(self, pixel: float) -> None:
        with pytest.raises(BadInput, match=r"a pixel of .* mm cannot be; give a number above 0"):
            Plan("x", ("background", "x"), (32, 32), GridWindow.pad, "pad", pixel=pixel)

    def test_a_pixel_that_the_command_line_lets_through(self, tmp_path: Path) -> None:
        words = "prepare", "folder", folder(tmp_path / "in", SPACING), tmp_path / "store", "--pixel", "inf"
        refused(*words, saying=["a pixel of inf mm cannot be"], folder=tmp_path)

    @pytest.mark.parametrize("shape", [(0, 32), (-3, 32)])
    def test_a_grid_that_holds_nothing(self, shape: Any) -> None:
        with pytest.raises(BadInput, match="holds no slice"):
            Plan("x", ("background", "x"), shape, GridWindow.pad, "pad")

    @pytest.mark.parametrize(
        ("spacing", "pixel", "said"),
        [
            ((0.008, 0.0005, 0.0005), 1.0, ["0.0005 x 0.0005 mm", "512,000 x 512,000", "977 GiB", "in metres"]),
            (SPACING, 1e-9, ["1e-09 mm", "--pixel"]),
            (SPACING, 1e9, ["1e+09 mm", "--pixel"]),
            ((1.0, 1e-300, 1e-300), 1.0, ["1e-300", "in metres"]),
        ],
    )
    def test_a_scan_that_is_lost_on_it(
        self, tmp_path: Path, spacing: tuple[float, float, float], pixel: float, said: list[str]
    ) -> None:
        plan = Plan("x", ("background", "x"), (256, 256), GridWindow.pad, "pad", pixel=pixel)
        extent = Extent((40, 512, 512), spacing, 1, 1)
        with pytest.raises(BadInput) as error:
            prepare([Source("a", "a", unread, extent=extent)], tmp_path / "store", plan)
        assert all(word in str(error.value) for word in ["a: its pixels measure", *said]), error.value
        assert list(tmp_path.iterdir()) == []

    def test_a_scan_in_metres(self, tmp_path: Path) -> None:
        given = folder(tmp_path / "in", (0.008, 0.0005, 0.0005))
        words = "prepare", "folder", given, tmp_path / "store", "--pixel", "1"
        refused(*words, saying=["0.0005 x 0.0005 mm", "are they in metres", "--spacing Z,Y,X"], folder=tmp_path)

    def test_a_side_that_nothing_has_room_for(self, tmp_path: Path) -> None:
        given = folder(tmp_path / "in", SPACING)
        words = "prepare", "folder", given, tmp_path / "store", "--side", 10_000_000
        refused(*words, saying=["10000000 x 10000000", "PiB of memory", "--side"], folder=tmp_path)
        words = "prepare", "phantom", tmp_path / "store", "--side", 10_000_000
        refused(*words, saying=["10000000 x 10000000", "PiB of memory"], folder=tmp_path)


class TestHeaders:
    def test_a_scan_that_memory_has_no_room_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "available", lambda: 8 << 30)
        file = described(tmp_path / "in" / "a.nii.gz", (90, 4096, 4096), SPACING, size=1 << 24)
        with pytest.raises(BadInput, match=r"a scan of 90 x 4096 x 4096 voxels .* needs 11.2 GiB of memory, and 8 GiB"):
            header(file)
        words = "prepare", "folder", file.parent, tmp_path / "store"
        refused(*words, saying=["a.nii.gz", "11.2 GiB"], folder=tmp_path)
        with pytest.raises(BadInput, match=r"a.nii.gz: .* needs 11.2 GiB"):
            Predictor(made_run(tmp_path / "run")).predict(file)

    def test_more_than_its_voxels_is_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = described(tmp_path / "a.nii.gz", (90, 1024, 1024), SPACING, size=1 << 20)
        extent = from_files((file,), file, name="a", patient="a", classes=2).extent
        assert extent is not None
        assert (extent.shape, extent.spacing, extent.channels) == ((90, 1024, 1024), SPACING, 1)
        assert extent.size == 90 * 1024 * 1024 * (8 + 1 + 8)
        predictor = Predictor(made_run(tmp_path / "run"))
        monkeypatch.setattr(memory, "available", lambda: 90 * 1024 * 1024 * 8)
        plan = Plan("x", ("background", "x"), (32, 32), GridWindow.pad, "pad")
        with pytest.raises(BadInput, match=r"a: a scan of 90 slices of 1024 x 1024 pixels, on a grid of 32 x 32,"):
            prepare([Source("a", "a", unread, extent=extent)], tmp_path / "store", plan)
        with pytest.raises(BadInput, match=r"a.nii.gz: a scan of 90 slices .* needs .* of memory"):
            predictor.predict(file)

    def test_a_store_that_memory_has_no_room_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = made_run(tmp_path / "run")
        store = run.opened_store()
        monkeypatch.setattr(memory, "SMALL", 0)
        monkeypatch.setattr(memory, "available", lambda: 100)
        with pytest.raises(BadInput, match=r"run-store: evaluating a scan of 3 slices on a grid of 32 x 32"):
            evaluate(run, split="train")
        with pytest.raises(BadInput, match=r"run-store: holding 3 slices of 32 x 32 pixels needs 9 KiB of memory"):
            load(store, "full")
        with pytest.raises(BadInput, match=r"truth.npy: reading 3 label maps needs 3 KiB of memory"):
            store.truth[:]

    def test_a_disk_that_has_no_room(self, tmp_path: Path) -> None:
        plan = Plan("x", ("background", "x"), (256, 256), GridWindow.pad, "pad")
        extent = Extent((1 << 50, 1, 1), SPACING, 1, 1)
        many = [Source(name, name, unread, truth=False, extent=extent) for name in "abc"]
        assert preparing(extent, GridWindow.pad((1, 1), (256, 256)), 0) < 1 << 30  # slices never lie there all at once
        with pytest.raises(BadInput, match=r"a store of 3 scans on a grid of 256 x 256 needs .* EiB on the disk"):
            prepare(many, tmp_path / "store", plan)
        assert not (tmp_path / "store").exists()


class TestFormulas:
    """What is said to be needed is, and not much more than what is taken."""

    SHAPE = (96, 160, 160)

    def scans(self, place: Path, dtype: str) -> Source:
        rng = np.random.default_rng(0)
        image = rng.integers(-500, 500, self.SHAPE).astype(dtype)
        mask = np.zeros(self.SHAPE, np.uint8)
        mask[20:60, 40:100, 40:100] = 1
        for name, array in (("image", image), ("mask", mask)):
            nib.Nifti1Image(array.T, np.diag([*SPACING[::-1], 1.0])).to_filename(place / f"{name}.nii")
        return from_files((place / "image.nii",), place / "mask.nii", name="a", patient="a", classes=2)

    @pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
    def test_preparing(self, tmp_path: Path, dtype: str) -> None:
        scan = self.scans(tmp_path, dtype)
        plan = Plan("x", ("background", "x"), (96, 96), FITS["pad"], "pad", pixel=1.25)
        taken = peak(lambda path: prepare([scan], path, plan), tmp_path)
        assert scan.extent is not None
        needed = preparing(scan.extent, GridWindow.metric((160, 160), (96, 96), (0.75, 0.75), 1.25), 1)
        slack = 64 * 2**20  # of a few slices at a time, however many there are
        assert taken < needed < taken + slack
        voxels = np.prod(self.SHAPE)
        assert taken < voxels * (np.dtype(dtype).itemsize + 2) + slack

    def test_predicting(self, tmp_path: Path) -> None:
        self.scans(tmp_path, "i2")
        predictor = Predictor(made_run(tmp_path / "run"), device="cpu")
        assert chunk((32, 32)) == 32
        taken = peak(lambda _: predictor.predict(tmp_path / "image.nii"), tmp_path)
        head = header(tmp_path / "image.nii")
        extent = Extent(head.shape, head.spacing, 1, head.size)
        needed = predicting(extent, GridWindow.pad((160, 160), (32, 32)), "uint8", 0)
        assert taken < needed < taken + 64 * 2**20
        assert predicting(extent, GridWindow.pad((160, 160), (32, 32)), "uint8", 40) > 80 * np.prod(self.SHAPE)


def peak(make: Callable[[Path], object], place: Path) -> int:
    """The most memory that Python and NumPy take meanwhile; what is imported on the way does not count."""
    make(place / "before")
    tracemalloc.start()
    try:
        make(place / "now")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
