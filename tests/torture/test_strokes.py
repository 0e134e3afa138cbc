from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from inbounds.studio.actions import SetFact, Stroke
from inbounds.studio.project import Project
from studios import CLASSES, scans
from torture.strokes import lost

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaigns fork")


@pytest.fixture
def drawn(tmp_path: Path) -> tuple[Path, dict[int, dict[str, Any]], int]:
    """A project on which Ana drew twice, told something and took it back: where, what she did, and the undo."""
    root = scans(tmp_path / "hearts" / "scans", ("one",))
    project, done = Project(tmp_path / "project", root, CLASSES), {}
    scan = next(iter(project.shelf.entries))
    for at in (1.0, 2.0):
        points = [[at, 3.0, 4.5], [at, 9.0, 4.5]]
        what = {"who": "Ana", "kind": "stroke", "scan": scan, "class": 1, "plane": 0, "points": points, "radius": 2}
        done[project.act(Stroke.model_validate(what))[0]] = what
    size = {"low": 1, "high": 9, "unit": "px"}
    what = {"who": "Ana", "kind": "fact", "scan": scan, "class": 2, "slice": 1, "present": True, "size": size}
    done[project.act(SetFact.model_validate(what))[0]] = what
    undo, _, _ = project.undo("Ana")
    project.close()
    return tmp_path / "project", done, undo


def test_a_whole_project_has_lost_nothing(drawn: Any) -> None:
    project, done, undo = drawn
    assert lost(project, done, {undo}, 0) == []
    last = max(done)
    assert lost(project, {n: what for n, what in done.items() if n < last}, {undo}, 1) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("DELETE FROM actions WHERE id = {first}", "action {first} was confirmed, and is not there"),
        ("UPDATE actions SET who = 'Ben' WHERE id = {first}", "action {first} is there as another"),
        (
            "UPDATE actions SET content = replace(content, '9.0', '8.0') WHERE id = {first}",
            "{first} is there as another",
        ),
        ("DELETE FROM actions WHERE kind = 'undo'", "undo {undo} was confirmed, and is not there"),
        ("UPDATE scans SET summary = NULL", "the labels of scan 1 are others than what the list"),
        ("UPDATE actions SET undone = {undo} WHERE id = {first}", "the labels of scan 1 are others than what the list"),
    ],
)
def test_what_is_lost_or_there_in_half_is_told(drawn: Any, damage: str, sentence: str) -> None:
    project, done, undo = drawn
    words = {"first": min(done), "undo": undo}
    with sqlite3.connect(project / "project.sqlite") as connection:
        connection.execute(damage.format(**words))
    connection.close()
    found = lost(project, done, {undo}, 0)
    assert any(sentence.format(**words) in problem for problem in found), found


def test_more_than_was_on_its_way_is_told(drawn: Any) -> None:
    project, _, undo = drawn
    assert lost(project, {}, {undo}, 2) == ["3 actions are there that nobody was told of"]
