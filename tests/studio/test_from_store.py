"""A store in the place of scans: what is seen and clicked is where it lay in the files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from archives import done
from inbounds.errors import BadInput
from inbounds.scans.scan import header, read
from inbounds.sources.source import Source
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.studio.from_store import is_store, scans_of
from making import CLASSES, image_of, source, truth_like
from studios import act, click, ids, opened


def made(path: Path, channels: int = 1, dtype: str = "uint8") -> Store:
    truth = truth_like(0)
    image = np.concatenate([image_of(truth, seed) for seed in range(channels)])
    scans: list[Source] = [source(name, truth, image=image) for name in ("a", "b")]
    rows, columns = truth.shape[1:]
    return prepare(scans, path, Plan("tiny", CLASSES, (rows - 4, columns + 6), GridWindow.pad, "pad", dtype)).store


@pytest.mark.parametrize(("channels", "dtype"), [(1, "uint8"), (2, "float16")])
def test_scans_are_as_they_were_but_for_what_was_cut_off(channels: int, dtype: str, tmp_path: Path) -> None:
    store = made(tmp_path / "store", channels, dtype)
    assert is_store(store.path)
    root = scans_of(store.path, tmp_path / "project")
    for record in store.records:
        for channel in range(channels):
            name = f"imagesTr/{record.name}_{channel:04d}.nii" if channels > 1 else f"{record.name}.nii"
            scan = read(root / name)
            assert header(root / name).shape == (record.slices, *record.fit.original)
            assert header(root / name).spacing == pytest.approx(record.spacing)
            assert header(root / name).geometry.affine is None  # a store does not know how it lies
            stored = np.asarray(store.images[record.first : record.range.stop, channel])
            assert np.array_equal(scan.array, record.fit.back(stored).astype(scan.array.dtype))
    assert scans_of(store.path, tmp_path / "project") == root
    (store.path / "dataset.json").write_text((store.path / "dataset.json").read_text() + " ")
    with pytest.raises(BadInput, match="made anew since"):
        scans_of(store.path, tmp_path / "project")


def test_what_is_clicked_fits_the_store(tmp_path: Path) -> None:
    store = made(tmp_path / "store")
    root = scans_of(store.path, tmp_path / "project")
    with opened(root, tmp_path / "project", CLASSES) as client:
        record = store.records[0]
        row, column = record.fit.original[0] // 2, record.fit.original[1] // 2
        click(client, ids(client)[record.name], (1, row, column), 1)
        act(client, "rescan")
        told = client.post("/api/export", json={"who": "Ana"}).json()
    with (Path(told["folder"]) / "clicks.csv").open(encoding="utf-8") as file:
        assert [tuple(line.values()) for line in csv.DictReader(file)] == [
            (record.name, "1", str(row), str(column), CLASSES[1])
        ]
    done("annotate", store.path, "--points", Path(told["folder"]) / "clicks.csv", "--name", "clicks")
    label = Store(store.path).label("clicks")[record.first + 1]
    at = [round(place) for place in record.fit.point(row, column)]
    assert [place.tolist() for place in np.nonzero(label != 255)] == [[at[0]], [at[1]]]
