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
from studios import CLASSES, act, click, ids, labels, opened, row, scans, volume, write_scan


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


def test_a_scan_that_is_asked_for_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PATIENCE", 0)
    monkeypatch.setattr(room.Shelf, "_read_all", lambda *_: None)  # which has not come so far
    root = scans(tmp_path / "scans")
    (root / "broken.nii.gz").write_bytes(b"no scan")
    database = Database(tmp_path / "project.sqlite")
    shelf = Shelf(database, root)
    numbers = {entry.name: number for number, entry in shelf.entries.items()}
    assert shelf.entries[numbers["two"]].shape is None
    assert shelf.entry(numbers["two"]).shape == volume().shape
    assert "broken" in (shelf.entry(numbers["broken"]).error or "")
    kept = database.rows("SELECT name, header IS NULL, error IS NULL FROM scans ORDER BY name")
    assert kept == [("broken", 1, 0), ("one", 1, 1), ("three", 1, 1), ("two", 0, 1)]
    database.close()


def test_a_thousand_scans_open_within_two_seconds(tmp_path: Path) -> None:
    """Of this thread's own time: how busy the machine is says nothing of it."""
    root = scans(tmp_path / "scans", ("one",))
    for number in range(1000):
        shutil.copyfile(root / "one.nii.gz", root / f"scan{number:04d}.nii.gz")
    for _ in range(2):
        begun = time.thread_time()
        project = Project(tmp_path / "project", root, CLASSES)
        took = time.thread_time() - begun
        project.close()
        assert len(project.shelf.entries) == 1001
        assert took < 2


def test_a_broken_scan_does_not_stop_the_others(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    (root / "empty.nii.gz").write_bytes(b"")
    whole = (root / "one.nii.gz").read_bytes()
    (root / "cut.nii.gz").write_bytes(whole[: len(whole) // 2])
    with opened(root) as client:
        assert "0 bytes" in row(client, "empty")["error"]
        answer = client.get(f"/api/scans/{ids(client)['cut']}")
        assert answer.status_code == 409
        assert "cut short or damaged" in answer.json()["error"]
        assert "cut short or damaged" in row(client, "cut")["error"]
        assert client.get(f"/api/scans/{ids(client)['two']}").status_code == 200
        act(client, "stroke", scan=ids(client)["empty"], points=[[0, 0, 0]], status=409, **{"class": 1})
    (root / "cut.nii.gz").write_bytes(whole)
    with opened(root) as client:
        assert row(client, "cut")["error"] is None


def test_a_scan_that_became_another_is_not_mixed_with_its_labels(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        click(client, ids(client)["one"], (5, 3, 3))
        kept = (root / "one.nii.gz").read_bytes()
    write_scan(root / "one.nii.gz", volume(0, (3, 24, 20)))
    with opened(root) as client:
        assert "6 x 24 x 20 voxels when it was labelled, now 3 x 24 x 20" in row(client, "one")["error"]
        assert client.get(f"/api/scans/{ids(client)['one']}").status_code == 409
        assert client.get(f"/api/scans/{ids(client)['two']}").status_code in (200, 202)
        (root / "one.nii.gz").write_bytes(kept)
        act(client, "rescan")
        assert labels(client, ids(client)["one"], 5)[3, 3] == 1


def test_new_scans_are_found_when_asked_for(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    with opened(root) as client:
        first = ids(client)["one"]
        click(client, first, (0, 0, 0))
        write_scan(root / "a_new.nii.gz", volume(9))
        act(client, "rescan")
        assert set(ids(client)) == {"a_new", "one"}
        assert ids(client)["one"] == first
        (root / "one.nii.gz").unlink()
        act(client, "rescan")
        assert "no longer there" in row(client, "one")["error"]
        assert row(client, "one")["labelled"] == 1


def test_a_project_of_a_thousand_scans_is_listed_at_once(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    for number in range(1000):
        (root / f"scan{number:04d}.nii.gz").hardlink_to(root / "one.nii.gz")
    with opened(root) as client:
        while any(one["shape"] is None for one in client.get("/api/project").json()["scans"]):
            time.sleep(0.2)
        begun = time.process_time()
        assert len(client.get("/api/project").json()["scans"]) == 1001
        assert time.process_time() - begun < 1
