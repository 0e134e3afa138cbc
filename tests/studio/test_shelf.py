"""A thousand scans open quickly, and headers are read once."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from inbounds.studio import shelf as room
from inbounds.studio.database import Database
from inbounds.studio.project import Project
from inbounds.studio.shelf import Shelf
from studios import CLASSES, scans


def test_headers_are_read_once_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = scans(tmp_path / "scans")
    read: list[str] = []
    real = room.header
    monkeypatch.setattr(room, "header", lambda path: (read.append(path.name), real(path))[1])
    database = Database(tmp_path / "project.sqlite")
    Shelf(database, root).close()
    assert sorted(read) == ["one.nii.gz", "three.nii.gz", "two.nii.gz"]
    read.clear()
    again = Shelf(database, root)
    assert read == []
    assert all(entry.planes is not None for entry in again.entries.values())
    os.utime(root / "two.nii.gz", (1, 1))
    Shelf(database, root).close()
    assert read == ["two.nii.gz"]
    database.close()


def test_a_thousand_scans_open_within_two_seconds(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    for number in range(1000):
        shutil.copyfile(root / "one.nii.gz", root / f"scan{number:04d}.nii.gz")
    for _ in range(2):
        begun = time.perf_counter()
        project = Project(tmp_path / "project", root, CLASSES)
        took = time.perf_counter() - begun
        project.close()
        assert len(project.shelf.entries) == 1001
        assert took < 2
