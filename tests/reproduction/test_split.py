"""The same data split otherwise."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import archives
from inbounds.errors import BadInput
from inbounds.jobs import training
from inbounds.runs.run import Run
from inbounds.store.store import Store
from making import make_store, source, train_here, truth_like
from reproduction.split import by_group, every_fifth, group_of, held_out, of_group

SET = ["network.name=monai:UNet", "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}", "training.epochs=1"]


def hearts(path: Path, first: int = 0) -> Store:
    """Of ACDC's groups two have two patients that train and one that validates."""
    sides = {"001": "train", "002": "train", "016": "validation", "021": "train", "022": "train", "036": "validation"}
    scans = [
        source(f"patient{number}_frame01", truth_like(seed), split=side, patient=f"patient{number}")
        for seed, (number, side) in enumerate(sides.items(), start=first)
    ]
    return make_store(path, scans)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return hearts(tmp_path / "hearts")


def splits(store: Store) -> list[str]:
    return [record.split for record in store.records]


def test_every_fifth_training_patient_validates_and_the_others_are_out_of_sight(tmp_path: Path) -> None:
    assert every_fifth(["e", "a", "b", "d", "c", "b", "f"]) == {"e"}
    scans = [source(name, truth_like(0), split="validation" if name == "f" else "train") for name in "abcdef"]
    store = make_store(tmp_path / "six", scans)
    split = held_out(store, tmp_path / "split")
    assert splits(split) == [*["train"] * 4, "validation", "test"]
    assert (split.checksums, split.annotations) == (store.checksums, store.annotations)
    np.testing.assert_array_equal(split.images, store.images)
    (split.path / "images.npy").unlink()  # as where links did not travel
    np.testing.assert_array_equal(held_out(store, tmp_path / "split").truth[3], store.truth[3])
    assert {record.split for record in Store(store.path).records} == {"train", "validation"}


def test_too_few_patients_and_other_data_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="fewer than five patients train"):
        held_out(store, tmp_path / "split")
    of_group(store, tmp_path / "split", "DCM", trained=True)
    with pytest.raises(BadInput, match=r"it is of other data than .*; choose another folder"):
        of_group(hearts(tmp_path / "other", first=9), tmp_path / "split", "DCM", trained=True)
    with pytest.raises(BadInput, match="NOR held out leaves nobody in 'validation'; prepare all patients of ACDC"):
        by_group(store, "NOR", trained=True)


def test_a_group_validates_alone_and_training_may_lack_it(store: Store, tmp_path: Path) -> None:
    assert [group_of(record) for record in store.records] == ["DCM"] * 3 + ["HCM"] * 3
    new = of_group(store, tmp_path / "new", "DCM", trained=False)
    assert splits(new) == ["test", "test", "validation", "train", "train", "test"]
    assert new.name.endswith(", DCM alone validates, and does not train")
    seen = of_group(store, tmp_path / "seen", "DCM", trained=True)
    assert splits(seen) == ["train", "train", "validation", "train", "train", "test"]


def test_rows_of_a_group_are_trained_on_their_split_with_bounds_of_another_group(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "train_many", train_here)
    words = [word for change in (*SET, "training.device=cpu") for word in ("--set", change)]
    out, rows = tmp_path / "out", ("new_common", "new_wide", "seen_common")
    done = partial(archives.done, program="reproduction.__main__")
    done("discussion", "--store", store.path, "--out", out, "--rows", ",".join(rows), *words)
    runs = {row: Run.open(out / "runs" / row / "seed-0") for row in rows}
    sides = {row: splits(run.opened_store()) for row, run in runs.items()}
    assert sides["new_common"] == sides["new_wide"] == splits(Store(out / "stores" / "DCM"))
    assert sides["seen_common"][:3] == ["train", "train", "validation"]
    bounds = {row: run.settings.constraints["size"].bounds for row, run in runs.items()}
    assert bounds["new_common"] == bounds["seen_common"] == {"kind": "common", "patient": "patient021"}
    record = next(record for record in store.records if record.patient == "patient021")
    sizes = [int((mask == 2).sum()) for mask in store.truth[record.span] if (mask == 2).any()]
    assert bounds["new_wide"]["lower"] == pytest.approx([0.9 * min(sizes)])
    assert bounds["new_wide"]["upper"] == pytest.approx([2 * 1.1 * max(sizes)])
    text = (out / "results" / "table.md").read_text(encoding="utf-8")
    assert "| dilated hearts, none in training | seeds | the same, upper bound doubled | 0." in text
    assert "Run with settings" not in text
    done("discussion", "--store", store.path, "--out", out, "--rows", ",".join(rows), *words, "--resume")
