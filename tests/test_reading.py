"""Pipes, sockets and devices in the place of files: refused at once by every command that opens one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from archives import refused
from hostile import dead_socket, device, pipe, within
from inbounds.errors import BadInput
from inbounds.reading import open_file, read_written, regular
from inbounds.scans.scan import SUFFIXES, header
from inbounds.store.store import Store

PLACES: dict[str, Callable[[Path], list[object]]] = {
    "scan": lambda d: ["prepare", "folder", pipe(d / "in" / "a.nii.gz").parent, d / "new"],
    "folder of scans": lambda d: ["prepare", "folder", pipe(d / "a"), d / "new"],
    "scan among DICOM": lambda d: ["prepare", "folder", pipe(d / "in" / "a.dcm").parent, d / "new"],
    "classes": lambda d: ["prepare", "folder", pipe(d / "in" / "dataset.json").parent, d / "new"],
    "archive": lambda d: ["prepare", "acdc", pipe(d / "a.zip"), d / "new"],
    "archive in a folder": lambda d: ["prepare", "acdc", pipe(d / "in" / "a.zip").parent, d / "new"],
    "store": lambda d: ["info", pipe(d / "a")],
    "dataset.json": lambda d: ["info", pipe(d / "store" / "dataset.json").parent],
    "images of a store": lambda d: ["preview", pipe(d / "store" / "images.npy").parent, "--out", d / "a.png"],
    "labels of a store": lambda d: [
        "preview", pipe(d / "store" / "annotations" / "disc" / "labels.npy").parents[2], "--out", d / "a.png"
    ],
    "annotation.json": lambda d: [
        "preview", pipe(d / "store" / "annotations" / "disc" / "annotation.json").parents[2], "--out", d / "a.png"
    ],
    "clicks": lambda d: ["annotate", d / "store", "--points", pipe(d / "a.csv"), "--name", "clicks"],
    "sizes": lambda d: ["facts", d / "store", "--import", pipe(d / "a.csv"), "--name", "sizes"],
    "split": lambda d: ["prepare", "add", d / "in", d / "store", "--split", pipe(d / "a.csv")],
    "settings": lambda d: ["train", "tags", "--store", d / "store", "--config", pipe(d / "a.toml"), "--run", d / "run"],
    "run": lambda d: ["evaluate", pipe(d / "run")],
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_is_refused_and_not_waited_for(hearts: Store, tmp_path: Path, place: str) -> None:
    shutil.copytree(hearts.path, tmp_path / "store")
    (tmp_path / "in").mkdir()
    words = PLACES[place](tmp_path)
    with within(15):
        refused(*words, saying=[";"])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_whatever_its_suffix(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with within(15):
        with pytest.raises(BadInput, match=rf"a\{suffix}: this is a named pipe, not a file; give the file itself"):
            header(pipe(tmp_path / f"a{suffix}"))
        with pytest.raises(BadInput, match=rf"b\{suffix}: this is a socket"):
            header(dead_socket(tmp_path / f"b{suffix}", monkeypatch))
        with pytest.raises(BadInput, match=rf"c\{suffix}: this is a device"):
            header(device(tmp_path / f"c{suffix}"))


def test_files_folders_and_nothing_are_left_to_who_opens_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert read_written(tmp_path / "a.txt", 100, "save it") == "one\r\ntwo"
    with open_file(tmp_path / "a.txt") as file:
        assert file.read(3) == b"\xef\xbb\xbf"
    assert regular(tmp_path / "none") == tmp_path / "none"
    for path, kind in ((tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(kind):
            open_file(path)
