"""The store on disk: read as it was written, refused when damaged, with the nearest name when one is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from archives import done, heart, made, refused
from inbounds.errors import BadInput
from inbounds.store.store import Store, checksum, valid_name


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "store", {"a": heart(), "b": heart((2, 40, 36))}, validation=["b"])


def test_reads_as_written(store: Store) -> None:
    again = Store(str(store.path))
    assert again.records == store.records
    assert [(r.first, r.slices, r.split) for r in again.records] == [(0, 4, "train"), (4, 2, "validation")]
    assert again.images.shape == (6, 1, 40, 36)
    np.testing.assert_array_equal(again.truth[:4], heart())
    np.testing.assert_array_equal(again.truth[-1], heart((2, 40, 36))[1])
    assert again.checksums == {name: checksum(store.path / name) for name in ("images.npy", "truth.npy")}
    assert again.annotations == ["full"]
    np.testing.assert_array_equal(again.label("full")[:], again.truth[:])


def test_the_description_is_for_people(store: Store) -> None:
    text = (store.path / "dataset.json").read_text(encoding="utf-8")
    assert text.count("\n") > 50
    assert json.loads(text)["scans"][1]["spacing"] == [10.0, 1.5, 2.0]
    assert str(store.path) not in text


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (lambda path: path.unlink(), ["not a store", "inbounds prepare"]),
        (lambda path: path.write_text("{"), ["dataset.json: damaged", "prepare the store again"]),
        (lambda path: path.write_text("[1]"), ["dataset.json: damaged"]),
        (lambda path: path.write_bytes(b"\xff\xff"), ["dataset.json: damaged"]),
        (lambda path: path.write_text('{"schema": 99}'), ["schema 99", "this version reads 1"]),
        (lambda path: path.write_text('{"schema": 1}'), ["dataset.json: damaged", "name"]),
        (
            lambda path: path.write_text(path.read_text(encoding="utf-8").replace("uint8", "uint77")),
            ["dataset.json: damaged"],
        ),
        (
            lambda path: path.write_text(path.read_text(encoding="utf-8").replace("uint8", "float16")),
            ["images.npy", "float16", "again"],
        ),
        (lambda path: path.with_name("images.npy").write_bytes(b"x"), ["images.npy: cannot be read", "again"]),
        (lambda path: path.with_name("images.npy").unlink(), ["images.npy: cannot be read", "again"]),
        (lambda path: path.with_name("truth.npy").write_bytes(b""), ["truth.npy: cannot be read", "again"]),
        (lambda path: np.save(path.with_name("truth.npy"), heart()), ["truth.npy: not a file of label runs", "again"]),
    ],
)
def test_damage(store: Store, change: object, saying: list[str]) -> None:
    change(store.path / "dataset.json")  # type: ignore[operator]
    words = ("annotate", store.path, "--name", "x", "--strategy", "erosion")
    refused(*words, saying=[store.path, *saying])
    assert not list(store.path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("words", "saying"),
    [
        (
            ("annotate", "--name", "x", "--strategy", "disc", "--classes", "MYOC"),
            ["no class 'MYOC'", "did you mean 'MYO'?"],
        ),
        (
            ("annotate", "--name", "x", "--strategy", "disc", "--classes", "liver"),
            ["there are: background, RV, MYO, LV"],
        ),
        (("annotate", "--name", "x", "--strategy", "disc", "--classes", "background"), ["--background"]),
        (("annotate", "--name", "x"), ["either --strategy or --points"]),
        (("annotate", "--name", "x", "--strategy", "disc", "--points", "p.csv"), ["either --strategy or --points"]),
        (
            ("annotate", "--name", "x", "--strategy", "erosion", "--radius", "3"),
            ["--radius goes with", "disc, centroid"],
        ),
        (("annotate", "--name", "x", "--points", "none.csv"), ["none.csv", "cannot be read"]),
        (("annotate", "--name", "../x", "--strategy", "disc"), ["'../x'", "use letters"]),
        (("annotate", "--name", "full", "--strategy", "disc"), ["'full'", "truth itself"]),
        (("annotate", "--name", "x" * 300, "--strategy", "disc"), ["File name too long"]),
        (("annotate", "--name", "seeds", "--strategy", "disc"), ["'seeds' already", "choose another name"]),
        (("preview", "--out", "x.png", "--annotations", "sedes"), ["no annotation 'sedes'", "did you mean 'seeds'?"]),
        (("facts", "--name", "seed", "--export", "x.csv"), ["no facts 'seed'", "did you mean 'seeds'?"]),
        (("facts", "--name", "q", "--export", "x.csv"), ["no facts 'q'", "there are: seeds"]),
        (("facts", "--name", "q"), ["one of --import, --reports, --export and --template"]),
        (("facts", "--name", "seeds", "--import", "x.csv"), ["'seeds' already"]),
        (("facts", "--name", "q", "--import", "none.csv"), ["none.csv: cannot be read", "check the name"]),
    ],
)
def test_wrong_names(
    store: Store, words: tuple[str, ...], saying: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("annotate", store.path, "--name", "seeds", "--strategy", "erosion")
    refused(words[0], store.path, *words[1:], saying=saying, folder=tmp_path)


def test_annotations_that_lost_their_description(store: Store) -> None:
    done("annotate", store.path, "--name", "seeds", "--strategy", "erosion")
    for content in ("", "[]", "{}", '{"classes": 3, "checksums": {}}'):
        (store.path / "annotations" / "seeds" / "annotation.json").write_text(content)
        refused("info", store.path, saying=["annotation.json: damaged", "annotate again"])


def test_valid_names() -> None:
    assert valid_name("Réader-2_b.v1") == "Réader-2_b.v1"
    for name in ("", ".x", "a/b", "a b", "..", "full", "a\\b"):
        with pytest.raises(BadInput, match="cannot name an annotation"):
            valid_name(name)


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    words = ("--patients", 2, "--side", 48)
    refused("prepare", "phantom", tmp_path / "file", *words, saying=["already exists"], folder=tmp_path)
    refused("prepare", "phantom", tmp_path / "file" / "x", *words, saying=["Not a directory"], folder=tmp_path)
    refused("prepare", "phantom", ".", *words, saying=["choose another name"], folder=tmp_path)
