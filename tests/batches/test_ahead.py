"""Slices on the disk, read before they are asked for: the same as in memory, in order, and no more than asked."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from inbounds.batches.ahead import AHEAD
from inbounds.batches.samples import load, truth_maps, truth_of
from inbounds.errors import BadInput
from inbounds.store.store import Store


def test_what_is_read_ahead_is_what_is_in_memory(hearts: Store) -> None:
    """Some scans are fully labelled, so that label maps come from two files."""
    how = {"classes": ["LV"], "full_scans": 2, "repeat": 2}
    there, away = (load(hearts, "disc", data_on_device=on, **how) for on in (True, False))
    assert len(there) == len(away)
    assert torch.equal(there.known, away.known)
    order = list(torch.randperm(len(away), generator=torch.Generator().manual_seed(0)).split(7))
    away.ahead.begin(order)
    for index in order:
        expected, found = there.batch(index), away.batch(index, away.ahead.next())
        assert torch.equal(expected.image, found.image)
        assert torch.equal(expected.annotation.label, found.annotation.label)
    pairs = zip(there.wholes(there.groups(32)), away.wholes(away.groups(32)), strict=True)
    assert all(torch.equal(one.image, other.image) for one, other in pairs)
    masks = truth_of(hearts, classes=["LV"]), truth_maps(hearts, classes=["LV"])
    assert torch.equal(masks[0], masks[1][torch.arange(len(masks[1]))])
    assert torch.equal(masks[0][2:5], masks[1][2:5])


def test_a_new_order_takes_the_place_of_what_was_on_its_way(hearts: Store) -> None:
    samples = load(hearts, "disc", data_on_device=False)
    asked: list[int] = []

    def order(begin: int):
        for place in range(begin, begin + 20):
            asked.append(place)
            yield torch.tensor([place])

    samples.ahead.begin(order(0))
    assert asked == list(range(AHEAD))
    samples.ahead.begin(order(30))
    for place in range(30, 50):
        assert torch.equal(samples.ahead.next().images[0], torch.from_numpy(hearts.images[int(samples.rows[place])]))
    with pytest.raises(IndexError):
        samples.ahead.next()


def test_slices_that_were_changed_are_refused_when_they_are_due(tmp_path: Path, hearts: Store) -> None:
    shutil.copytree(hearts.path, tmp_path / "store")
    file = tmp_path / "store" / "images.npy"
    array = np.load(file, mmap_mode="r+")
    array[3, 0, 0, 0] ^= 1
    array.flush()
    samples = load(Store(tmp_path / "store"), "disc", data_on_device=False, split=None)
    samples.ahead.begin([torch.tensor([len(samples) - 1]), torch.tensor([4])])
    samples.ahead.next()
    with pytest.raises(BadInput, match=r"images\.npy: its checksum differs"):
        samples.ahead.next()


def test_a_store_larger_than_memory_can_be_read_batch_by_batch(hearts: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused where all of it should be held; neither images nor label maps are."""
    monkeypatch.setattr("inbounds.memory.available", lambda: 50_000)
    monkeypatch.setattr("inbounds.memory.SMALL", 0)
    with pytest.raises(BadInput, match="slices of 48 x 48 pixels needs"):
        load(hearts, "disc")
    samples = load(hearts, "disc", data_on_device=False)
    samples.ahead.begin([torch.arange(4)])
    batch = samples.batch(torch.arange(4), samples.ahead.next())
    assert batch.image.shape[0] == 4
    assert batch.annotation.label.shape == (4, 48, 48)
