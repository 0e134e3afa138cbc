"""Scans prepared by several processes: what one alone gives, byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from archives import acdc, done, flat_folder, nifti, noise, refused, snapshot
from inbounds.jobs.chunks import folder_of

CLASSES = ("--classes", "background,RV,MYO,LV", "--side", "48")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_folder_and_what_is_added_to_it(tmp_path: Path) -> None:
    """Some scans lack masks, which is told as by one process; paths are relative."""
    flat_folder(Path("scans"), "abcd")
    Path("scans/labels/b.nii.gz").unlink()
    flat_folder(Path("more"), "xyz")
    told = []
    for name, by in (("alone", []), ("many", ["--on", "local", "--chunk", "3"])):
        first = done("prepare", "folder", "scans", name, *CLASSES, *by, "--json")
        told.append(
            [first.out.replace(name, ""), done("prepare", "add", "more", name, *by, "--json").out.replace(name, "")]
        )
    assert told[0] == told[1]
    assert "1 scan (b) has no mask" in told[0][0]
    assert snapshot(Path("alone")) == snapshot(Path("many"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["alone", "many", "more", "scans"]


def test_weak_labels_of_an_archive() -> None:
    acdc(Path("acdc"), (1, 16))
    done("prepare", "acdc", "acdc", "one", "--side", "32")
    done("prepare", "acdc", "acdc", "many", "--side", "32", "--on", "local", "--chunk", "2")
    assert snapshot(Path("one")) == snapshot(Path("many"))


def test_a_scan_that_cannot_be_read_is_told_and_once_it_can_be_the_rest_is_not_done_again() -> None:
    flat_folder(Path("scans"), "abc")
    bad = Path("scans/images/c.nii.gz")
    good = bad.read_bytes()
    nifti(bad, noise((4, 40, 36)).astype("float32") * float("nan"))
    words = ["prepare", "folder", "scans", "store", *CLASSES, "--on", "local", "--chunk", "2"]
    refused(*words, saying=[bad, "1 of 2 tasks are not done"])
    assert not Path("store").exists()
    bad.write_bytes(good)
    done(*words)
    done("prepare", "folder", "scans", "one", *CLASSES)
    assert snapshot(Path("one")) == snapshot(Path("store"))
    assert not folder_of(Path("store")).exists()
    refused(*words, saying=["store: already exists"])


def test_what_could_be_no_store_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    flat_folder(Path("scans"), "ab")
    Path("cluster.toml").write_text("[slurm]\npacks = 2\n")
    words = ["prepare", "folder", "scans", "store", *CLASSES, "--on", "local"]
    refused(*words, "--cluster", "cluster.toml", saying=["did you mean 'slurm.pack'"], folder=tmp_path)
    Path("store").mkdir()
    Path("store/mine").touch()
    refused(*words, saying=["store: already exists"], folder=tmp_path)
