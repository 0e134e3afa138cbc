"""A grid that covers what is there, with pixels that mean the same in every scan; a window where brightness is CT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archives import done, nifti, noise
from inbounds.store.prepare import FITS, Plan, placed
from inbounds.store.store import Store
from inbounds.store.survey import BODY, Seen, choose_grid, choose_window, hounsfield, look, reach
from making import source

MM = (8.0, 1.5, 1.5)


def seen(
    shape: tuple[int, int], spacing: tuple[float, float, float] | None = None, middle: tuple[int, int] | None = None
) -> Seen:
    return Seen(shape, middle or shape, spacing, None)


class TestGrid:
    def test_the_median_pixel_and_the_sides_that_cover_all(self) -> None:
        """Rows 150, 150 and 200 pixels of 1, 1.5 and 2 mm are 150, 225 and 400 mm: up to 267 of 1.5 mm, over 256."""
        few = [seen((150, 100), (8, 1, 1)), seen((150, 100), MM)]
        grid = choose_grid([*few, seen((150, 90), (8, 2, 2))])
        assert grid[:3] == ((208, 128), "pad", 1.5)  # 300 x 180 mm: 200 x 120
        assert grid.why == "grid: 208x128 pixels of 1.5 mm, the median of the files, cover every scan"
        grid = choose_grid([*few, seen((200, 90), (8, 2, 2))])
        assert grid[:3] == ((256, 128), "pad", 1.5625)  # 400 mm in 256; 180 mm are 115.2
        assert "of 1.56 mm cover every scan; of 1.5 mm, the median, more than 256 would be needed" in grid.why

    def test_the_same_pixels_everywhere_are_not_resampled(self) -> None:
        step = float(np.float32(1.40625))
        assert choose_grid([seen((208, 256), (8, step, step))])[:3] == ((208, 256), "pad", 1.4062)

    def test_unknown_pixels_stay_if_the_scans_are_alike(self) -> None:
        assert choose_grid([seen((100, 90)), seen((80, 150))])[:3] == ((112, 160), "pad", None)

    @pytest.mark.parametrize("sizes", [[(154, 224), (512, 428)], [(512, 512), (512, 448)]], ids=["unlike", "large"])
    def test_unknown_pixels_are_zoomed_otherwise(self, sizes: list[tuple[int, int]]) -> None:
        grid = choose_grid([seen(size) for size in sizes])
        assert grid[:3] == ((256, 256), "zoom", None)
        assert "zoomed to 256 along its longer side" in grid.why

    def test_borders_that_are_empty_in_every_scan_are_left_out(self) -> None:
        grid = choose_grid([seen((128, 128), MM, (96, 40)), seen((128, 128), MM, (64, 100))])
        assert grid.shape == (96, 112)
        assert grid.why.endswith("; borders that are empty in every scan are left out")
        assert choose_grid([seen((128, 128), MM, (120, 128))]).why.endswith("cover every scan")

    @pytest.mark.parametrize("sides", [(31, 40), (40, 31), (33, 33)])
    @pytest.mark.parametrize("at", [(0, 0), (30, 12), (12, 30), (15, 15)])
    def test_the_window_holds_all_that_is_not_empty(self, sides: tuple[int, int], at: tuple[int, int]) -> None:
        """Whatever a scan's own pixels measure."""
        image = np.zeros((1, 2, *sides), np.int16)
        image[0, 1, at[0] : at[0] + 1, at[1] : at[1] + 1] = 7
        for steps in ((1.5, 1.5), (0.7, 1.1), (2.9, 0.4)):
            scan = look(source("a", None, image=image, spacing=(5, *steps)))
            shape, fitting, pixel, _ = choose_grid([scan, seen((20, 20), MM)])
            plan = Plan("x", ("background", "x"), shape, FITS[fitting], fitting, pixel=pixel)
            window = placed("a", sides, (5, *steps), plan)
            assert window.covers(scan.middle)

    def test_a_scan_that_is_full_reaches_its_border(self) -> None:
        assert reach(noise((1, 2, 21, 30))) == (21, 30)


def body(seed: int = 0, shape: tuple[int, int, int] = (2, 60, 60)) -> np.ndarray:
    """Air around water, and 5 % bone."""
    rng = np.random.default_rng(seed)
    image = np.full(shape, -1000)
    image[:, 10:50, 10:50] = rng.integers(-100, 101, (shape[0], 40, 40))
    image[:, 10:12, 10:50] = 1000
    return image


class TestWindow:
    @pytest.mark.parametrize("dtype", [np.int16, np.float32])
    def test_ct_is_known_by_air_around_a_body(self, dtype: type) -> None:
        counts = hounsfield(body()[None].astype(dtype))
        assert counts is not None
        assert counts.sum() == 2 * 40 * 40
        assert counts[1000 - BODY] == 2 * 2 * 40

    @pytest.mark.parametrize(
        "image",
        [
            noise((1, 2, 30, 30)),
            body()[None] + 1024,
            body()[None] + 0.5,
            np.repeat(body()[None], 2, axis=0),
            np.where(body() < -300, -3000, body())[None],
            np.full((1, 2, 8, 8), -1000),
        ],
        ids=["MR", "not in Hounsfield units", "fractions", "two channels", "no air", "no body"],
    )
    def test_what_is_no_ct(self, image: np.ndarray) -> None:
        assert hounsfield(image) is None

    def test_all_but_the_extremes_of_all_bodies(self) -> None:
        counts = np.zeros((2, 3372), np.int64)
        counts[0, -100 - BODY], counts[0, 43 - BODY] = 1, 98
        counts[1, 43 - BODY], counts[1, 999 - BODY] = 97, 4
        scans = [Seen((9, 9), (9, 9), None, row) for row in counts]
        assert choose_window(scans) == (40, 1000)  # the 1st percentile of 200 voxels is the second darkest
        assert choose_window([*scans, seen((9, 9))]) is None

    def test_prepare_finds_it_on_the_training_side_and_says_so(self, tmp_path: Path) -> None:
        for number in range(4):
            nifti(tmp_path / "data" / f"{number}.nii.gz", body(number).astype(np.int16))
        lines = ["case,split", "0,train", "1,train", "2,validation", "3,test"]
        (tmp_path / "split.csv").write_text("\n".join(lines))
        nifti(tmp_path / "data" / "3.nii.gz", (body() + 300 * (body() > -300)).astype(np.int16))
        words = ("prepare", "folder", tmp_path / "data", tmp_path / "store", "--split", tmp_path / "split.csv")
        assert "window: -100 to 1010, as this is CT" in done(*words).err
        store = Store(tmp_path / "store")
        assert store.source["window"] == [-100, 1010]
        assert [record.split for record in store.records] == ["train", "train", "validation", "test"]
        assert {record.intensity for record in store.records} == {(-100, 1010)}
        record = store.records[3]  # brighter by 300 of 1110, where a window of its own would hide it
        inner, outer = record.fit._overlap()
        wanted = np.rint((np.clip(body() + 300 * (body() > -300), -100, 1010) + 100) / 1110 * 255)
        np.testing.assert_array_equal(
            store.images[record.first :, 0, outer[0], outer[1]], wanted[:, inner[0], inner[1]]
        )
        done(*words[:3], tmp_path / "other", "--window", "-160,240", "--side", 64)
        assert Store(tmp_path / "other").source["window"] == [-160, 240]
