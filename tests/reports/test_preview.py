"""Pictures of a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from archives import done, heart, made, refused
from inbounds.reports.preview import PALETTE, preview
from inbounds.store.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = made(tmp_path_factory.mktemp("preview") / "store", {name: heart() for name in "abc"}, unknown=["b"])
    for strategy in ("erosion", "box"):
        done("annotate", store.path, "--name", strategy, "--strategy", strategy)
    return store


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def shown(path: Path, store: Store) -> set[str]:
    """The classes whose pure colour is in the picture, as in the patches of its legend."""
    rgb = {name: [int(PALETTE[k][i : i + 2], 16) for i in (1, 3, 5)] for k, name in enumerate(store.classes)}
    return {name for name, colour in rgb.items() if (pixels(path) == colour).all(axis=-1).any()}


def test_a_row_for_each_scan_and_a_column_for_each_annotation(store: Store, tmp_path: Path) -> None:
    done("preview", store.path, "--out", tmp_path / "pictures" / "all.png", "--scans", 2)
    done("preview", store.path, "--out", tmp_path / "one.PNG", "--scans", 3, "--annotations", "erosion")
    wide, tall = (pixels(tmp_path / name).shape[:2] for name in ("pictures/all.png", "one.PNG"))
    assert wide == pytest.approx((150 * (2.3 * 2 + 0.7), 150 * 2.3 * 4), abs=1)  # the scan, truth, box, erosion
    assert tall == pytest.approx((150 * (2.3 * 3 + 0.7), 150 * 2.3 * 2), abs=1)
    assert sorted(file.name for file in tmp_path.rglob("*.*")) == ["all.png", "one.PNG"]


def test_only_the_chosen_classes_are_shown(store: Store, tmp_path: Path) -> None:
    done("preview", store.path, "--out", tmp_path / "all.png", "--scans", 1)
    done("preview", store.path, "--out", tmp_path / "lv.png", "--scans", 1, "--classes", "LV")
    assert shown(tmp_path / "all.png", store) == {"background", "RV", "MYO", "LV"}
    assert shown(tmp_path / "lv.png", store) == {"background", "LV"}


def test_a_store_with_images_only(tmp_path: Path) -> None:
    bare = made(tmp_path / "bare", {"a": heart()}, unknown=["a"])
    preview(bare, tmp_path / "a.png")
    assert pixels(tmp_path / "a.png").shape[1] == pytest.approx(150 * 2.3, abs=1)


@pytest.mark.parametrize(
    ("name", "saying"),
    [
        ("a.docx", ["a.docx", "png", "choose one"]),
        ("picture", ["picture.png"]),
        ("file/a.png", ["file/a.png: could not be written", "choose another place"]),
    ],
)
def test_places_that_cannot_be(store: Store, tmp_path: Path, name: str, saying: list[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    refused("preview", store.path, "--out", tmp_path / name, saying=saying, folder=tmp_path)
