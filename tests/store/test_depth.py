"""Slices at another distance, and along another axis: there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inbounds.batches.fact_tensors import to_tensors
from inbounds.errors import BadInput
from inbounds.store.annotate import import_points, simulate
from inbounds.store.depth import between, turned, turned_back, turned_sides
from inbounds.store.facts import Facts
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare, read_plan
from inbounds.store.store import Store
from inbounds.store.survey import distance
from making import CLASSES, image_of, row, source, truth_like

SHAPE = (32, 32)


def volumes(path: Path, distance: float | None, axis: int = 3, slices: int = 6, **more: object) -> Store:
    plan = Plan("tiny", CLASSES, SHAPE, GridWindow.pad, "pad", dimensions=3, slice_spacing=distance, axis=axis)
    return prepare([source(name, truth_like(seed, slices), **more) for seed, name in enumerate("ab")], path, plan).store


@pytest.mark.parametrize(("have", "want"), [(6, 12), (12, 6), (7, 3), (5, 8), (1, 4), (6, 6)])
def test_a_straight_ramp_stays_one(have: int, want: int) -> None:
    ramp = np.broadcast_to((np.arange(have) + 0.5)[None, :, None, None] / have, (1, have, 2, 2))
    made = between(ramp, slice(0, want), want)
    assert made.shape == (1, want, 2, 2)
    inside = slice(1, -1) if want > 2 else slice(0, 0)  # at its ends there is nothing beyond to go on with
    expected = (np.arange(want) + 0.5) / want
    if have > 1:
        half = 0.5 / min(have, want)
        off = np.abs(made[0, inside, 0, 0] - expected[inside])
        assert (off[(expected[inside] > half) & (expected[inside] < 1 - half)] < 1e-6).all()
    np.testing.assert_array_equal(between(ramp, slice(1, 3), want), made[:, 1:3])


def test_twice_as_many_slices_lie_at_half_the_distance(tmp_path: Path) -> None:
    store = volumes(tmp_path / "store", 4.0)
    record = store.records[0]
    assert (store.dimensions, record.slices, record.original_slices, record.depth) == (3, 12, 6, 6)
    assert record.grid_spacing == (4.0, 1.25, 1.5)
    assert record.nearest() == [1, 3, 5, 7, 9, 11]
    assert record.showing(2) == [4, 5]
    np.testing.assert_array_equal(store.truth[0:12][::2], store.truth[0:12][1::2])
    plain = volumes(tmp_path / "plain", None)
    np.testing.assert_array_equal(store.truth[0:12][record.nearest()], plain.truth[0:6])
    assert plain.records[0].depth is None


def test_half_as_many_slices(tmp_path: Path) -> None:
    store = volumes(tmp_path / "store", 16.0)
    record = store.records[1]
    assert (record.slices, record.original_slices, record.first) == (3, 6, 3)
    assert record.nearest() == [0, 0, 1, 1, 2, 2]
    assert record.showing(0) == [0]
    assert record.showing(1) == [0]  # whose middle lies between both: the nearest


def test_facts_and_clicks_go_by_the_files_own_slices(tmp_path: Path) -> None:
    store = volumes(tmp_path / "store", 4.0)
    clicks = tmp_path / "clicks.csv"
    clicks.write_text("case,slice,row,column,class\na,3,15,12,RV\n", encoding="utf-8")
    import_points(store, clicks, "clicks")
    label = store.label("clicks")[0:12]
    assert [int(at) for at in np.argwhere(label == 1)[0]] == [7, 16, 15]
    (tmp_path / "late.csv").write_text("case,slice,row,column,class\na,6,15,12,RV\n", encoding="utf-8")
    with pytest.raises(BadInput, match="slice 6 of a, which has slices 0 to 5"):
        import_points(store, tmp_path / "late.csv", "late")
    rows = (row("a", 2, 1, size_px=40.0), row("a", None, 1, size_px=200.0), row("b", None, 2, volume_ml=0.3))
    slices, scans = to_tensors(store, Facts(rows, store.classes), [1, 2])
    assert slices["size"][:12, 1, 0].nan_to_num(-1).tolist() == [-1] * 4 + [40.0] * 2 + [-1] * 6
    assert scans["size"][0, 1, 0] == 400  # twice as many voxels
    assert scans["size"][1, 2, 0].item() == pytest.approx(2 * 300 / (8 * 1.25 * 1.5))


def test_what_a_simulation_writes_down_is_of_the_file(tmp_path: Path) -> None:
    deep, plain = volumes(tmp_path / "deep", 4.0), volumes(tmp_path / "plain", None)
    for store in (deep, plain):
        simulate(store, "disc", "disc", [1, 2])
    for one, other in zip(deep.facts("disc"), plain.facts("disc"), strict=True):
        assert (one.case, one.slice, one.klass, one.present) == (other.case, other.slice, other.klass, other.present)
        for column in one.known.keys() & {"size_px", "size_mm2", "volume_ml", "centroid_row"}:
            assert one.known[column] == pytest.approx(other.known[column])
    wanted, _ = to_tensors(deep, deep.facts("disc"), [1, 2])
    truth = deep.truth[0:24]
    np.testing.assert_allclose(wanted["size"][:, 1, 0], (truth == 1).sum(axis=(1, 2)))


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_another_axis_there_and_back(axis: int) -> None:
    array = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    there = turned(array, axis)
    assert there.shape[1:] == turned_sides((3, 4, 5), axis)
    np.testing.assert_array_equal(turned_back(there, axis), array)
    np.testing.assert_array_equal(turned(array, 3), array)


def test_a_store_sliced_along_another_axis(tmp_path: Path) -> None:
    truth = truth_like(0, slices=20)
    scan = source("a", truth, image=image_of(truth))
    plan = Plan("tiny", CLASSES, SHAPE, GridWindow.pad, "pad", axis=1)
    store = prepare([scan], tmp_path / "store", plan).store
    record = store.records[0]
    assert (record.slices, record.spacing, record.fit.original) == (26, (1.5, 8.0, 1.25), (20, 30))
    np.testing.assert_array_equal(store.truth[0:26][:, 6:26, 1:31], truth.transpose(2, 0, 1))
    again = read_plan(store.preparation, "here", "do something")
    assert (again.axis, again.slice_spacing) == (1, None)
    with pytest.raises(BadInput, match="--axis"):
        Plan("tiny", CLASSES, SHAPE, GridWindow.pad, "pad", axis=4)
    with pytest.raises(BadInput, match="do something"):
        read_plan({**store.preparation, "axis": 7}, "here", "do something")
    with pytest.raises(BadInput, match="do something"):
        read_plan({**store.preparation, "slice_spacing": -1}, "here", "do something")


def test_the_distance_is_chosen_from_the_files() -> None:
    alike = [source("a", None, image=np.zeros((1, 2, 3, 3)))]
    assert distance(alike)[0] is None  # nothing is known of a scan in memory before it is read
    assert distance(alike, (3.0, 1.0, 1.0)) == (None, "slices: 3 mm apart, as in all files")
