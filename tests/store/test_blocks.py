"""Changed data never train unnoticed: every scan is compared with its checksum before its first slice is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from archives import heart, made
from inbounds.batches.samples import load, truth_of
from inbounds.errors import BadInput
from inbounds.store.annotate import simulate
from inbounds.store.blocks import Images, digest
from inbounds.store.store import Store


@pytest.fixture(params=["blocks", "files"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """Two scans to train on and one to validate on; also as 0.1 made them, with checksums of whole files alone."""
    store = made(tmp_path / "store", {"a": heart(), "b": heart(), "c": heart()}, validation=["c"])
    simulate(store, "seeds", "disc", [1, 2, 3])
    if request.param == "files":
        for name in ("dataset.json", "annotations/seeds/annotation.json"):
            content = json.loads((store.path / name).read_text(encoding="utf-8"))
            del content["blocks"]
            (store.path / name).write_text(json.dumps(content))
    return Store(store.path)


def flip(file: Path, at: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(at, 2 if at < 0 else 0)
        byte = stream.read(1)[0]
        stream.seek(at, 2 if at < 0 else 0)
        stream.write(bytes([byte ^ 1]))


def saying(store: Store, file: str, scan: str) -> str:
    what = f"the part of {scan} was changed" if store.blocks else "it was changed"
    return rf"{file}: its checksum differs from \w+.json: {what}; "


@pytest.mark.parametrize("resident", [True, False])
def test_a_flipped_bit_of_an_image_is_not_trained_on(store: Store, resident: bool) -> None:
    flip(store.path / "images.npy", -1)  # of c

    def use(split: str) -> None:
        samples = load(store, "seeds", split=split, data_on_device=resident)
        samples.batch(torch.arange(len(samples)))

    if store.blocks:
        use("train")  # c is not looked at
    with pytest.raises(BadInput, match=saying(store, "images.npy", "c")):
        use("validation")
    with pytest.raises(BadInput, match=saying(store, "images.npy", "c")):
        np.asarray(store.images)


def test_streamed_slices_are_checked_as_they_come(store: Store) -> None:
    samples = load(store, "seeds", data_on_device=False)
    flip(store.path / "images.npy", -5 * 40 * 36)  # of b, as it is mapped already
    if store.blocks:
        samples.batch(torch.tensor([0, 3]))
    with pytest.raises(BadInput, match=saying(store, "images.npy", "b")):
        samples.batch(torch.tensor([7, 0]))


def test_a_scan_is_hashed_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    block = Images.block

    def counted(self: Images, record: object) -> str:
        hashed.append(record.name)  # type: ignore[attr-defined]
        return block(self, record)  # type: ignore[arg-type]

    monkeypatch.setattr(Images, "block", counted)
    samples = load(store, "seeds", data_on_device=False)
    for index in ([0], [1, 5], [0, 7], [3, 2]):
        samples.batch(torch.tensor(index))
    assert hashed == (["a", "b"] if store.blocks else [])
    assert store.folded(0, 3).images is store.images


@pytest.mark.parametrize("name", ["truth", "labels"])
def test_a_flipped_bit_of_a_label_is_not_used(store: Store, name: str) -> None:
    file = store.path / {"truth": "truth.npy", "labels": "annotations/seeds/labels.npy"}[name]
    flip(file, -1)  # the value of the last run
    with pytest.raises(BadInput, match=saying(store, file.name, "c")):
        truth_of(store, split=None) if name == "truth" else load(store, "seeds")


def test_a_file_of_another_length_is_refused(store: Store) -> None:
    for file in (store.path / "images.npy", store.path / "truth.npy", store.path / "annotations/seeds/labels.npy"):
        whole = file.read_bytes()
        for content in (whole + b"\0", whole[:-1], whole[:100], whole[:3]):
            file.write_bytes(content)
            with pytest.raises(BadInput, match=rf"{file.name}: (cannot be read|\d+ bytes long)"):
                load(Store(store.path), "full" if file.name == "truth.npy" else "seeds")
        file.write_bytes(whole)
    load(Store(store.path), "seeds")


def test_pickles_are_never_read(store: Store) -> None:
    np.save(store.path / "images.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match=r"images.npy: cannot be read"):
        Store(store.path)


def test_every_scan_has_its_checksum(tmp_path: Path) -> None:
    store = made(tmp_path / "store", {"a": heart(), "b": heart((2, 40, 36))}, unknown=["b"])
    assert store.blocks["images.npy"] == tuple(digest(store.images[r.first : r.range.stop]) for r in store.records)
    again = made(tmp_path / "again", {"b": heart((2, 40, 36)), "a": heart()}, unknown=["b"])
    assert again.blocks["truth.npy"] == store.blocks["truth.npy"][::-1]
