"""What people did is never lost: killed servers, full disks, newer files."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.studio import database
from inbounds.studio.database import SCHEMA, Database, Full
from inbounds.studio.project import Project
from studios import CLASSES, scans

WRITER = """
import sys
from pathlib import Path
from inbounds.studio.actions import Stroke
from inbounds.studio.project import Project

project = Project(Path(sys.argv[1]), Path(sys.argv[2]))
number = next(n for n, entry in project.shelf.entries.items() if entry.name == "one")
for place in range(10_000):
    points = [(float(place % 6), float(r), float(place % 20)) for r in range(place % 24)] or [(0.0, 0.0, 0.0)]
    points = [(points[0][0], *point[1:]) for point in points]
    stroke = Stroke(who="Ana", scan=number, kind="stroke", klass=1 + place % 2, points=points, radius=2.0)
    added, _ = project.act(stroke)
    print(added, flush=True)
"""


def kill_amid_strokes(folder: Path, root: Path, after: float) -> list[int]:
    """Let another program draw, kill it at some moment, and give the numbers of what it confirmed."""
    command = [sys.executable, "-c", WRITER, str(folder), str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(after)
        writer.kill()
        confirmed = [first, *writer.stdout.read().splitlines(keepends=True)]
    return [int(line) for line in confirmed if line.endswith("\n")]


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_what_was_confirmed_is_there_whenever_the_server_is_killed(kills: int, tmp_path: Path) -> None:
    root, folder = scans(tmp_path / "scans", ("one",)), tmp_path / "project"
    Project(folder, root, CLASSES).close()
    confirmed: list[int] = []
    for turn in range(kills):
        confirmed += kill_amid_strokes(folder, root, 0.003 * turn)
        project = Project(folder, root)
        try:
            kept = {action.id: action for action in project.database.live(("stroke",))}
            assert set(confirmed) <= set(kept)
            assert len(kept) <= len(confirmed) + turn + 1  # at most one written but not yet confirmed, each time
            assert all(action.content["points"] and action.batch == action.id for action in kept.values())
            number = next(iter(project.shelf.entries))
            assert project.summary(number) == project.labels(number).summary()
        finally:
            project.close()
    assert len(confirmed) >= kills


def test_an_action_is_on_the_disk_before_it_is_confirmed(tmp_path: Path) -> None:
    made = Database(tmp_path / "project.sqlite")
    assert made.rows("PRAGMA journal_mode") == [("wal",)]
    assert made.rows("PRAGMA synchronous") == [(2,)]
    with made.transaction():
        made.add("Ana", None, "class", {})
    other = sqlite3.connect(tmp_path / "project.sqlite")
    assert other.execute("SELECT count(*) FROM actions").fetchone() == (1,)
    other.close()
    made.close()


def test_what_fails_halfway_leaves_nothing(tmp_path: Path) -> None:
    made = Database(tmp_path / "project.sqlite")
    with pytest.raises(RuntimeError), made.transaction():  # noqa: PT012
        made.add("Ana", None, "class", {})
        raise RuntimeError
    assert made.sequence == 0
    made.close()


def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path) -> None:
    made = Database(tmp_path / "project.sqlite")
    pages = made.rows("PRAGMA page_count")[0][0]
    made.rows(f"PRAGMA max_page_count={pages + 2}")

    def draw() -> None:
        for _ in range(100):
            with made.transaction():
                made.add("Ana", None, "stroke", {"points": [[0, 0, 0]] * 200})

    with pytest.raises(Full, match="make room"):
        draw()
    done = made.sequence
    made.rows("PRAGMA max_page_count=1000000")
    with made.transaction():
        assert made.add("Ana", None, "stroke", {}) == done + 1
    made.close()


def test_a_newer_project_is_refused(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    Project(tmp_path / "project", root, CLASSES).close()
    other = sqlite3.connect(tmp_path / "project" / "project.sqlite")
    other.execute(f"PRAGMA user_version={SCHEMA + 1}")
    other.commit()
    other.close()
    with pytest.raises(BadInput, match=f"newer version of inbounds .schema {SCHEMA + 1}, this one knows {SCHEMA}"):
        Project(tmp_path / "project", root)


def test_an_older_project_is_brought_up_step_by_step_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "project.sqlite"
    made = Database(file)
    with made.transaction():
        made.add("Ana", None, "class", {"value": 0})
    made.close()

    def more(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE actions ADD COLUMN mood TEXT DEFAULT 'good'")

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE meta")
        raise RuntimeError

    monkeypatch.setattr(database, "SCHEMA", SCHEMA + 2)
    monkeypatch.setattr(database, "MIGRATIONS", {**database.MIGRATIONS, SCHEMA: more, SCHEMA + 1: fails})
    with pytest.raises(RuntimeError):
        Database(file)
    plain = sqlite3.connect(file)
    assert plain.execute("PRAGMA user_version").fetchone() == (SCHEMA + 1,)  # the first step was whole
    assert plain.execute("SELECT mood FROM actions").fetchall() == [("good",)]
    assert plain.execute("SELECT count(*) FROM meta").fetchone() == (0,)
    plain.close()
    monkeypatch.setattr(database, "SCHEMA", SCHEMA + 1)
    made = Database(file)
    assert made.sequence == 1
    made.close()


def test_foreign_and_damaged_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"this is no database" * 100)
    with pytest.raises(BadInput, match="damaged"):
        Database(tmp_path / "noise")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE something (x)")
    other.commit()
    other.close()
    with pytest.raises(BadInput, match="no studio project"):
        Database(tmp_path / "other")


def test_threads_take_turns(tmp_path: Path) -> None:
    made = Database(tmp_path / "project.sqlite")

    def draw(who: str) -> None:
        for number in range(20):
            with made.transaction():
                made.add(who, number, "stroke", {"n": number})

    threads = [threading.Thread(target=draw, args=(who,)) for who in ("Ana", "Ben", "Cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.sequence == 60
    assert {action.content["n"] for action in made.live(("stroke",)) if action.who == "Ben"} == set(range(20))
    assert json.loads(made.rows("SELECT content FROM actions WHERE id = 1")[0][0]) == {"n": 0}
    made.close()
