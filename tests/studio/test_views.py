"""Voxels to look at: mapped or read once, and let go when room is needed."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from inbounds.errors import BadInput
from inbounds.scans.display import planes_of
from inbounds.scans.format import HEARD
from inbounds.scans.scan import header, read
from inbounds.studio import views
from inbounds.studio.views import Cache, need, open_mask, open_view
from studios import volume, write_scan


@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".mha", ".mhd", ".nrrd"])
def test_every_format_shows_the_same(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"scan{ending}"
    if ".nii" in ending:
        write_scan(file, volume())
    else:
        sitk.WriteImage(sitk.GetImageFromArray(volume()), str(file))
    view, scan = open_view(file), read(file)
    assert isinstance(view.voxels, np.memmap) == (ending != ".nii.gz")
    low, high = view.window
    for plane in planes_of(scan.shape, scan.spacing, scan.geometry.affine):
        wanted = np.clip((plane.picture(scan.array, 1).astype(float) - low) / (high - low) * 255, 0, 255)
        assert np.abs(view.picture(plane, 1) - wanted).max() <= 0.51
    assert need(file) == (4 * volume().size if ending == ".nii.gz" else 0)


def test_scaled_voxels_and_nan_are_shown(tmp_path: Path) -> None:
    import nibabel as nib

    image = nib.Nifti1Image(volume().T, np.eye(4))
    image.header.set_slope_inter(0.5, -100)
    image.to_filename(tmp_path / "scaled.nii")
    low, high = open_view(tmp_path / "scaled.nii").window
    scaled = read(tmp_path / "scaled.nii").array
    assert scaled.min() <= low < high <= scaled.max()
    voxels = volume().astype(np.float32)
    voxels[2, 3, 4] = np.nan
    write_scan(tmp_path / "nan.nii", voxels)
    view = open_view(tmp_path / "nan.nii")
    assert np.isfinite(view.window).all()
    scan = header(tmp_path / "nan.nii")
    plane = planes_of(scan.shape, scan.spacing, scan.geometry.affine)[0]
    assert view.picture(plane, 2).dtype == np.uint8


def test_what_was_looked_at_longest_ago_is_let_go() -> None:
    cache, loaded = Cache(budget=100), []

    def ask(name: str, size: int) -> str:
        return str(cache.ask(name, lambda: size, lambda: loaded.append(name) or name).result(5))

    for name in ("a", "b", "a", "c", "a", "b"):
        assert ask(name, 40) == name
    assert loaded == ["a", "b", "c", "b"]


def test_two_who_ask_at_once_read_once_and_failures_are_told_and_forgotten() -> None:
    cache, loaded, gate = Cache(), [], threading.Event()

    def slow() -> int:
        gate.wait(5)
        loaded.append(1)
        return 7

    both = [cache.ask("x", lambda: 1, slow) for _ in range(2)]
    gate.set()
    assert [one.result(5) for one in both] == [7, 7]
    assert loaded == [1]

    def bad() -> int:
        raise BadInput("no")

    for _ in range(2):
        with pytest.raises(BadInput):
            cache.ask("y", lambda: 1, bad).result(5)


def test_how_much_is_read_is_told(tmp_path: Path) -> None:
    cache, heard = Cache(), []
    file = write_scan(tmp_path / "scan.nii.gz", volume(0, (300, 200, 200)))  # 24 MB, in two pieces

    def slow() -> object:
        hear = HEARD.get()
        HEARD.set(lambda share: (hear(share), heard.append(cache.share("x"))))
        return open_view(file)

    cache.ask("x", lambda: 1, slow).result(60)
    assert heard == [round((1 << 24) / (2 * 300 * 200 * 200), 3), 1.0]
    assert cache.share("x") == 0.0


def test_what_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BUDGET", 1000)
    with pytest.raises(BadInput, match="save the scan without compression"):
        need(write_scan(tmp_path / "scan.nii.gz", volume()))


def test_masks_must_be_small_numbers(tmp_path: Path) -> None:
    assert open_mask(write_scan(tmp_path / "mask.nii", (volume() % 3).astype(np.uint8))).max() == 2
    with pytest.raises(BadInput, match="no mask"):
        open_mask(write_scan(tmp_path / "large.nii", volume()))


def test_slices_of_a_large_scan_come_within_50_ms(tmp_path: Path) -> None:
    """512 x 512 x 800: 400 MB, of which only what is looked at is read. Of this thread's own time."""
    shape = (800, 512, 512)
    write_scan(tmp_path / "small.nii", volume())
    head = (tmp_path / "small.nii").read_bytes()[:352]
    import nibabel as nib

    parsed = nib.Nifti1Header(head[:348])
    parsed.set_data_shape(shape[::-1])
    file = tmp_path / "large.nii"
    with file.open("wb") as stream:
        stream.write(parsed.binaryblock + bytes(4))
        slab = np.random.default_rng(0).integers(-1000, 1000, (8, 512, 512)).astype(np.int16).tobytes()
        for _ in range(100):
            stream.write(slab)
    begun = time.thread_time()
    view, scan = open_view(file), header(file)
    opening = time.thread_time() - begun
    assert opening < 1
    for plane in planes_of(scan.shape, scan.spacing, scan.geometry.affine):
        took = []
        for n in np.linspace(0, plane.count - 1, 21).astype(int).tolist():
            begun = time.thread_time()
            view.picture(plane, n)
            took.append(time.thread_time() - begun)
        print(plane.name, f"median {statistics.median(took) * 1000:.1f} ms, worst {max(took) * 1000:.1f} ms")
        assert statistics.median(took) < 0.05
