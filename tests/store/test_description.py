"""The JSON files of a store, edited by hand: taken or refused in one sentence, whatever stands in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archives import heart, made, refused
from inbounds.batches.samples import load, truth_of
from inbounds.errors import BadInput
from inbounds.sources.source import Loaded, Source
from inbounds.store.annotate import simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare, read_plan
from inbounds.store.store import Store
from inbounds.store.verify import summary, verify
from mutations import survives


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = made(tmp_path / "store", {"a": heart(), "b": heart((2, 40, 36))}, validation=["b"])
    simulate(store, "seeds", "disc", [1, 2, 3])
    return store


def use(path: Path) -> None:
    """What commands do with a store."""
    verify(path)
    store = Store(path)
    summary(store)
    read_plan(store.preparation, "store", "make it anew")
    load(store, "seeds", device="cpu", split=None)
    if store.has_truth:
        truth_of(store, split=None)
    store.empty_facts()


@pytest.mark.parametrize(("name", "count"), [("dataset.json", 250), ("annotations/seeds/annotation.json", 80)])
def test_edits_are_taken_or_refused(store: Store, name: str, count: int) -> None:
    taken, no = survives(store.path / name, lambda: use(store.path), count)
    assert taken > 10
    assert no > count / 2


def change(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def act(content: dict[str, Any]) -> None:
        *before, last = keys
        for key in before:
            content = content[key]
        content[last] = to

    return act


@pytest.mark.parametrize(
    ("act", "saying"),
    [
        (change("scans", 0, "slices", to=10**12), ["scans[0].slices is 1000000000000", "prepare the store again"]),
        (change("scans", 1, "slices", to=900_000), ["images.npy: uint8 of (6, 1, 40, 36)", "(900004, 1, 40, 36)"]),
        (change("shape", to=[8000, 8000]), ["images.npy: uint8 of (6, 1, 40, 36)"]),
        (change("scans", 1, "first", to=0), ["the scans' slices do not follow each other: b begins at 0"]),
        (change("scans", 1, "name", to="a"), ["two scans have the same name"]),
        (change("scans", 1, "name", to="../b"), ["scans[1].name is '../b'", "a name is without /"]),
        (change("scans", 1, "name", to="b\x1b[2J"), ["scans[1].name is 'b\\x1b[2J'"]),
        (change("scans", 1, "truth", to="yes"), ["scans[1].truth is 'yes': it should be a valid boolean"]),
        (change("scans", 1, "spacing", to=[1, 0, 1]), ["scans[1].spacing[1] is 0"]),
        (change("scans", 1, "spcaing", to=1), ["there is nothing called scans[1].spcaing"]),
        (change("scans", 1, "fit", "shape", to="40x36"), ["scans[1].fit.shape is '40x36'"]),
        (change("classes", 1, to="a/b"), ["classes[1] is 'a/b'"]),
        (change("classes", to="background"), ["classes is 'background'"]),
        (change("channels", to=True), ["channels is True"]),
        (change("name", to="x" * 100_000), ["name is 'xxx", "10000"]),
        (change("checksums", to={}), ["checksums has none of images.npy"]),
        (change("checksums", "truth.npy", to="0"), ["checksums.truth.npy is '0'"]),
        (change("blocks", "truth.npy", to=[]), ["blocks has 0 checksums of truth.npy, and there are 2 scans"]),
        (change("blocks", to={"images.npy": []}), ["blocks has 0 checksums of images.npy"]),
        (change("source", "patient", to=["("]), ["source.patient is ['(']"]),
    ],
)
def test_what_is_wrong_is_named(store: Store, act: Callable[[dict[str, Any]], None], saying: list[str]) -> None:
    file = store.path / "dataset.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    act(content)
    file.write_text(json.dumps(content))
    said = refused("info", store.path, saying=[store.path, *saying])
    assert len(said) < 600


def test_what_a_later_version_adds_is_left_alone(store: Store) -> None:
    for name in ("dataset.json", "annotations/seeds/annotation.json"):
        file = store.path / name
        file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "later": [1]}))
    use(store.path)
    assert Store(store.path).about("seeds")["later"] == [1]


@pytest.mark.parametrize(("classes", "name"), [(("background", "a/b"), "s"), (("background", "LV"), "../s")])
def test_names_that_cannot_be_files_are_refused_before_a_scan_is_read(
    tmp_path: Path, classes: tuple[str, ...], name: str
) -> None:
    def never() -> Loaded:
        raise AssertionError

    with pytest.raises(BadInput, match=r"a name is without .*rename it"):
        prepare([Source(name, "p", never)], tmp_path / "store", Plan("x", classes, (8, 8), GridWindow.pad, "pad"))
    assert list(tmp_path.iterdir()) == []


def test_a_writer_keeps_to_what_its_reader_takes(tmp_path: Path) -> None:
    loaded = Loaded(np.arange(64).reshape(1, 1, 8, 8), (10.0, 0.0, 2.0), None)
    source = Source("a", "a", lambda: loaded)
    with pytest.raises(BadInput, match=r"cannot be written \(scans\[0\].spacing\[1\] is 0"):
        prepare([source], tmp_path / "store", Plan("x", ("background", "LV"), (8, 8), GridWindow.pad, "pad"))
    assert list(tmp_path.iterdir()) == []
