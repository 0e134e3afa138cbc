"""What `verify` notices, and the numbers that `info` tells, on stores small enough to count by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from archives import command, done, heart, made
from inbounds.store.rle import labels_file
from inbounds.store.store import Store, checksum
from inbounds.store.verify import labelled, summary, verify
from inbounds.writing import write_json


def square(area: int) -> np.ndarray:
    """Two slices of 10 x 10: the first shows so many pixels of class 1, the second none."""
    mask = np.zeros((2, 10, 10), np.uint8)
    mask[0].flat[:area] = 1
    return mask


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(
        tmp_path / "store",
        {"a": square(4), "b": square(8), "c": square(12), "d": square(50)},
        classes=("background", "LV"),
        unknown=["d"],
        validation=["c"],
    )


def relabel(store: Store, name: str, label: np.ndarray) -> None:
    """New labels with a checksum that agrees, and as in a store of 0.1 none of scans."""
    folder = store.path / "annotations" / name
    with labels_file(folder / "labels.npy") as append:
        append(label)
    about = json.loads((folder / "annotation.json").read_text(encoding="utf-8"))
    sums = {"checksums": {"labels.npy": checksum(folder / "labels.npy")}, "blocks": {}}
    write_json(folder / "annotation.json", about | sums)


class TestSummary:
    def test_counts(self, store: Store) -> None:
        done("annotate", store.path, "--name", "seeds", "--strategy", "centroid", "--radius", 0)
        content = json.loads(done("info", store.path, "--json").out)
        assert content == json.loads(json.dumps(summary(store)))
        assert (content["patients"], content["scans"], content["slices"]) == (4, 4, 8)
        assert (content["shape"], content["channels"], content["dtype"]) == ([10, 10], 1, "uint8")
        assert content["scans_with_truth"] == 3
        assert content["split"] == {
            "train": {"patients": 3, "scans": 3, "slices": 6},
            "validation": {"patients": 1, "scans": 1, "slices": 2},
        }
        assert content["spacing_mm"] == {"smallest": [10.0, 1.5, 2.0], "largest": [10.0, 1.5, 2.0]}
        sizes = content["sizes"]["LV"]
        assert (sizes["slices"], sizes["smallest"], sizes["median"], sizes["largest"]) == (3, 4, 8, 12)
        assert sizes["p5"] == pytest.approx(4.4)
        assert content["annotations"]["full"]["labelled_share"] == pytest.approx(6 / 8)
        assert content["annotations"]["full"]["labelled_share_by_class"]["LV"] == pytest.approx(24 / 800)
        assert content["annotations"]["seeds"]["labelled_share"] == pytest.approx(3 / 800)
        assert content["facts"] == ["seeds"]

    def test_for_people(self, store: Store) -> None:
        out = done("info", store.path).out
        for words in ("4 of 4 patients, 3 with truth", "8 of 10x10, 1 channel(s), uint8", "10 x 1.5 x 2", "LV", "full"):
            assert words in out

    def test_without_truth(self, tmp_path: Path) -> None:
        bare = made(tmp_path / "bare", {"a": square(4)}, classes=("background", "LV"), unknown=["a"])
        content = summary(bare)
        assert (content["sizes"], content["annotations"], content["scans_with_truth"]) == ({}, {}, 0)
        assert done("info", bare.path).out
        assert verify(bare.path).problems == ()


def change(name: str, content: bytes | None = None) -> Callable[[Store], object]:
    def act(store: Store) -> None:
        file = store.path / name
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data if content is None else content)

    return act


def told(before: str, after: str) -> Callable[[Store], object]:
    def act(store: Store) -> None:
        file = store.path / "dataset.json"
        assert before in file.read_text(encoding="utf-8")
        file.write_text(file.read_text(encoding="utf-8").replace(before, after, 1))

    return act


def summed(what: str, sums: object) -> Callable[[Store], object]:
    def act(store: Store) -> None:
        file = store.path / "dataset.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        content[what] = sums(content[what]) if callable(sums) else sums
        file.write_text(json.dumps(content))

    return act


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (summed("checksums", {}), "dataset.json: damaged (checksums has none of images.npy)"),
        (summed("checksums", lambda sums: {"images.npy": sums["images.npy"]}), "checksums has none of truth.npy"),
        (summed("blocks", lambda sums: sums | {"truth.npy": sums["truth.npy"][1:]}), "blocks has 3 checksums of truth"),
        (
            summed("blocks", lambda sums: sums | {"images.npy": [*sums["images.npy"][:3], "0" * 64]}),
            "images.npy: its checksum differs from dataset.json: the part of d was changed",
        ),
        (change("images.npy"), "images.npy: its checksum differs"),
        (change("truth.npy"), "truth.npy: its checksum differs"),
        (change("truth.npy", b""), "truth.npy: cannot be read"),
        (lambda store: (store.path / "images.npy").unlink(), "images.npy: missing; prepare the store again"),
        (change("annotations/seeds/labels.npy"), "labels.npy: its checksum differs"),
        (lambda store: (store.path / "annotations/seeds/labels.npy").unlink(), "labels.npy: missing; annotate again"),
        (change("annotations/seeds/annotation.json", b"[]"), "annotation.json: damaged"),
        (change("annotations/seeds/facts.csv", b"case,class\nz,LV\n"), "facts.csv, line 2: no case 'z'"),
        (told('"split": "train"', '"split": "holdout"'), "a split is none of train, validation, test"),
        (told('"patient": "a"', '"patient": "c"'), "a is in another split than its patient's other scans"),
        (told('"first": 2', '"first": 3'), "slices do not follow each other"),
        (lambda store: relabel(store, "seeds", np.zeros((8, 10, 10), np.uint8)), "24 seeds lie outside the truth"),
        (lambda store: relabel(store, "seeds", np.full((8, 10, 10), 7, np.uint8)), "a holds 7, which is no class"),
        (lambda store: relabel(store, "seeds", np.zeros((7, 10, 10), np.uint8)), "runs do not add up"),
    ],
)
def test_what_is_wrong_is_found(store: Store, harm: Callable[[Store], object], problem: str) -> None:
    done("annotate", store.path, "--name", "seeds", "--strategy", "erosion")
    assert verify(store.path).problems == ()
    assert done("verify", store.path).err.count("wrong") == 0
    harm(store)
    assert any(problem in found for found in verify(store.path).problems)
    outcome = command("verify", store.path)
    assert outcome.code == 1
    assert problem in outcome.err


def test_people_may_disagree_with_the_truth_and_are_counted(tmp_path: Path) -> None:
    truth = heart()
    drawn = np.where(truth == 3, 3, 255).astype(np.uint8)
    drawn[0, :3, :5] = 1  # background in the truth
    store = made(tmp_path / "store", {"a": truth, "b": truth}, weak={"a": drawn, "b": np.full_like(truth, 255)})
    verdict = verify(store.path)
    assert verdict.problems == ()
    assert verdict.disagreements == {"scribble": 15}
    assert "annotation scribble: 15 labelled pixels differ from the truth" in done("verify", store.path).out
    assert labelled(store, "scribble") == {
        "RV": pytest.approx(15 / drawn.size / 2),
        "LV": pytest.approx((truth == 3).sum() / drawn.size / 2),
    }


def test_boxes_never_lie_and_are_counted_all_the_same(store: Store) -> None:
    done("annotate", store.path, "--name", "boxes", "--strategy", "box")
    assert verify(store.path).disagreements == {"boxes": 0}
