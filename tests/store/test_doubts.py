"""Facts and labels that cannot both be true are said, with the case, wherever they meet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archives import done
from inbounds.annotations import UNLABELLED
from inbounds.config import read_settings
from inbounds.config.plan import plan
from inbounds.store.annotate import simulate
from inbounds.store.doubts import doubts, of_all, other_unit
from inbounds.store.facts import Facts
from inbounds.store.grid import GridWindow
from inbounds.store.store import Store
from making import CLASSES, image_of, make_store, row, source, truth_like


def facts(*rows: object) -> Facts:
    return Facts(rows, CLASSES)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Of two scans without truth, of which 12 pixels of RV are drawn on slice 0 and 6 on slice 1 of the first."""
    weak = np.full((3, 30, 26), UNLABELLED, np.uint8)
    weak[0, 10:13, 10:14] = 1
    weak[1, 10:12, 10:13] = 1
    scans = [source(name, None, image=image_of(truth_like(1)), weak={"given": weak}) for name in "ab"]
    return make_store(tmp_path / "store", scans)


@pytest.mark.parametrize(
    ("fact", "saying"),
    [
        (row("a", 0, 1, size_px=5), "a, slice 0, RV has 5 px, and 12 are labelled"),
        (row("a", 0, 1, size_px=0), "a, slice 0, RV has 0 px, and 12 are labelled"),
        (row("a", 0, 1, False), "a, slice 0, RV has 0 px, and 12 are labelled"),
        (row("b", 1, 1, size_mm2=3.75), "b, slice 1, RV has 2 px, and 6 are labelled"),
        (row("a", 0, 1, size_px_max=4), "a, slice 0, RV has 4 px, and 12 are labelled"),
        (row("a", None, 1, size_px=10), "a, the whole scan, RV has 10 px, and 18 are labelled"),
        (row("a", 0, 1, size_px=10), ""),  # as far off as sizes are
        (row("a", 0, 1, size_px=500), ""),
        (row("a", 0, 1, size_px_min=4), ""),
        (row("a", 0, 2, size_px=0), ""),
        (row("a", 2, 1, size_px=0), ""),
        (row("a", 0, 1, True), ""),
        (row("a", 0, 1, centroid_row=3, centroid_col=3), ""),
    ],
)
def test_a_size_smaller_than_what_is_labelled(store: Store, fact: object, saying: str) -> None:
    found = doubts(store, "given", facts(fact))
    assert found == ([f"facts say less than 'given' labels: {saying}; correct one of them"] if saying else [])


def test_a_scan_smaller_than_its_slices(store: Store) -> None:
    parts = [row("b", number, 2, size_px=100.0) for number in range(3)]
    (doubt,) = doubts(store, "given", facts(*parts, row("b", None, 2, size_px=200.0)))
    assert doubt.startswith("facts say less of a scan than of its slices: b, the whole scan, LV has 200 px, and its sl")
    assert doubts(store, "given", facts(*parts, row("b", None, 2, size_px=270.0))) == []


def test_pixels_are_those_of_the_file(tmp_path: Path) -> None:
    """On a finer grid a pixel is several; on a coarser one a click need not fill its own."""
    for shape, said in (((60, 52), True), ((15, 13), False)):
        weak = np.full((1, 30, 26), UNLABELLED, np.uint8)
        weak[0, 10:14, 10:14] = 1
        scan = source("a", None, image=image_of(truth_like(1, slices=1)), weak={"given": weak})
        store = make_store(tmp_path / str(shape), [scan], shape=shape, fit=GridWindow.resize)
        found = doubts(store, "given", facts(row("a", 0, 1, size_px=10)))
        assert bool(found) == said
        assert not said or "has 10 px, and 16 are labelled" in found[0]


def test_many_are_counted(store: Store) -> None:
    rows = [row(case, number, 1, size_px=1) for case in "ab" for number in (0, 1)]
    assert doubts(store, "given", facts(*rows))[0].count("are labelled") == 4


@pytest.mark.parametrize(("factor", "said"), [(100, "1e+02"), (0.01, "0.01"), (1.5, "")])
def test_sizes_in_another_unit_than_masks(tmp_path: Path, factor: float, said: str) -> None:
    store = make_store(tmp_path / "store")
    rows = [
        row(record.name, number, klass, size_px=factor * max(1, int((mask == klass).sum())))
        for record in store.records
        for number, mask in enumerate(store.truth[record.first : record.range.stop])
        for klass in (1, 2)
    ]
    found = other_unit(store, facts(*rows))
    assert found == (
        [f"sizes are about {said} times those of the masks of the same scans: are they in another unit?"]
        if said
        else []
    )


def test_said_wherever_labels_and_facts_meet(tmp_path: Path, store: Store) -> None:
    """When facts come to labels, when clicks come to facts, and before training; simulated facts may be off."""
    doubt = "facts say less than 'given' labels: a, slice 0, RV has 5 px, and 12 are labelled; correct one of them"
    (tmp_path / "sizes.csv").write_text("case,slice,class,size_px\na,0,RV,5\nb,2,LV,0\n")
    said = done("facts", store.path, "--import", tmp_path / "sizes.csv", "--name", "sizes")
    assert f"Warning: {doubt}" in said.err
    (tmp_path / "clicks.csv").write_text("case,slice,row,column,class\nb,2,3,3,LV\n")
    said = done("annotate", store.path, "--points", tmp_path / "clicks.csv", "--name", "clicks")
    assert "Warning: facts say less than 'clicks' labels: b, slice 2, LV has 0 px, and 1 are labelled" in said.err
    opened = Store(store.path)
    words = plan(read_settings("known"), opened, "given", "sizes", ["RV"], gpu=False).words
    assert f"Warning: {doubt}" in words
    masks = make_store(tmp_path / "masks")
    simulate(masks, "erosion", "erosion", [1, 2], settings={"iterations": 0})
    small = facts(
        *(row(fact.case, fact.slice, fact.klass, size_px=1) for fact in masks.facts("erosion") if fact.present)
    )
    assert doubts(masks, "erosion", small)
    assert not [one for one in of_all(masks, small) if "labels" in one]
    assert not [
        one
        for one in plan(read_settings("known"), masks, "erosion", "erosion", ["RV"], gpu=False).words
        if "less" in one
    ]
