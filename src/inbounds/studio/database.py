"""What people did, in one SQLite file: a row for each action, none ever changed, and none lost once it is confirmed.

    actions     id, batch, who, at, scan, kind, content (JSON), voxels (packed), undone (by which action)
    scans       id, name, files, stamp (sizes and times), header (JSON), error, summary (JSON, of the labels)
    meta        name, value

An import is one batch of several rows; any other action is a batch of its own. Undoing and redoing are rows too, so
that the highest id says how far everything has come.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput

FIRM = ("undo", "redo", "rescan")
"""Kinds of rows that are not undone."""
_TABLES = """
CREATE TABLE actions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER NOT NULL, who TEXT NOT NULL, at TEXT NOT NULL, scan INTEGER,
    kind TEXT NOT NULL, content TEXT NOT NULL, voxels BLOB, undone INTEGER
);
CREATE INDEX of_scan ON actions (scan, id);
CREATE INDEX of_person ON actions (who, batch);
CREATE INDEX of_kind ON actions (kind, undone, scan);
CREATE INDEX of_undoing ON actions (undone);
CREATE INDEX of_batch ON actions (batch);
CREATE TABLE scans (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, files TEXT NOT NULL, stamp TEXT NOT NULL, header TEXT,
    error TEXT, summary TEXT
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def _first(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


SCHEMA = 1
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {0: _first}
"""How a file of schema `n` becomes one of `n + 1`; each runs in one transaction with the change of the number."""


class Full(BadInput):
    """The disk does not take what a person did."""


class Conflict(BadInput):
    """What is asked for does not go with how things stand."""


class Missing(BadInput):
    """There is no such thing."""


@dataclass(frozen=True)
class Action:
    """A row of the table: who did what."""

    id: int
    batch: int
    who: str
    scan: int | None
    kind: str
    content: Mapping[str, Any]
    voxels: bytes | None


class Database:
    """The file, opened by one program; its threads take turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        with self._telling():
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._migrate()

    def close(self) -> None:
        """Fold the write-ahead log into the file."""
        with self.lock:
            self._connection.close()

    def _migrate(self) -> None:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA:
            raise BadInput(
                f"{self.path}: made by a newer version of inbounds (schema {version}, this one knows {SCHEMA}); "
                "open it with that version, or install it"
            )
        for step in range(version, SCHEMA):
            with self.transaction():
                if step == 0 and self.rows("SELECT name FROM sqlite_master"):
                    raise BadInput(f"{self.path}: this is no studio project; choose another folder with --project")
                MIGRATIONS[step](self._connection)
                self._connection.execute(f"PRAGMA user_version={step + 1}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done within is kept, on the disk, or none of it."""
        with self.lock, self._telling():
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "full" in text or "disk I/O" in text or "readonly" in text:
                raise Full(
                    f"{self.path}: the disk does not take it ({text}), and nothing was changed; make room, then do it "
                    "again"
                ) from error
            if "not a database" in text or "malformed" in text:
                raise BadInput(f"{self.path}: damaged ({text}); bring back a copy of it") from error
            if "locked" in text:
                raise BadInput(f"{self.path}: another program has it open; close that one first") from error
            raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self.lock, self._telling():
            return self._connection.execute(query, values).fetchall()

    def run(self, statement: str, *values: Any) -> int:
        """Change something; a new row's id."""
        with self.lock, self._telling():
            return int(self._connection.execute(statement, values).lastrowid or 0)

    @property
    def sequence(self) -> int:
        """How many rows there ever were: it grows with everything that is done."""
        return int(self.rows("SELECT coalesce(max(id), 0) FROM actions")[0][0])

    def add(
        self,
        who: str,
        scan: int | None,
        kind: str,
        content: Mapping[str, Any],
        voxels: bytes | None = None,
        batch: int | None = None,
    ) -> int:
        """Write down an action; without a batch, it is the first of its own."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        columns = "(batch, who, at, scan, kind, content, voxels)"
        values = (batch or 0, who, now, scan, kind, text, voxels)
        added = self.run(f"INSERT INTO actions {columns} VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
        if batch is None:
            self.run("UPDATE actions SET batch = ? WHERE id = ?", added, added)
        return added

    def live(self, kinds: Sequence[str], scan: int | None = None) -> list[Action]:
        """The actions of some kinds that are not undone, in the order in which they were done."""
        marks = ", ".join("?" * len(kinds))
        where, values = f"kind IN ({marks}) AND undone IS NULL", list(kinds)
        if scan is not None:
            where, values = f"scan = ? AND {where}", [scan, *kinds]  # type: ignore[list-item]
        return self._actions(where, *values)

    def scans_with(self, kinds: Sequence[str]) -> list[int]:
        """The scans that actions of some kinds are about."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT DISTINCT scan FROM actions WHERE kind IN ({marks}) AND undone IS NULL AND scan IS NOT NULL"
        return sorted(int(number) for (number,) in self.rows(query, *kinds))

    def last_done(self, who: str) -> list[Action]:
        """A person's last batch that is not undone."""
        firm = ", ".join(f"'{kind}'" for kind in FIRM)
        mine = f"SELECT max(batch) FROM actions WHERE who = ? AND undone IS NULL AND kind NOT IN ({firm})"
        return self._actions(f"batch = ({mine})", who)

    def last_undone(self, who: str) -> list[Action]:
        """The batch that a person undid last, if nothing was done since."""
        firm = ", ".join(f"'{kind}'" for kind in FIRM)
        latest = self.rows(f"SELECT max(undone), max(id) FROM actions WHERE who = ? AND kind NOT IN ({firm})", who)
        undone, done = latest[0]
        if undone is None or undone < done:
            return []
        return self._actions("undone = ?", undone)

    def mark(self, batch: int, undone: int | None) -> None:
        """Mark a batch as undone by an action, or as done again."""
        self.run("UPDATE actions SET undone = ? WHERE batch = ?", undone, batch)

    def since(self, sequence: int) -> list[tuple[int, int | None, str, str]]:
        """Sequence, scan, kind and person of what came after."""
        found = self.rows("SELECT id, scan, kind, who FROM actions WHERE id > ? ORDER BY id", sequence)
        return [(int(number), scan, kind, who) for number, scan, kind, who in found]

    def _actions(self, where: str, *values: Any) -> list[Action]:
        columns = "id, batch, who, scan, kind, content, voxels"
        found = self.rows(f"SELECT {columns} FROM actions WHERE {where} ORDER BY id", *values)
        return [Action(a, b, who, scan, kind, json.loads(text), v) for a, b, who, scan, kind, text, v in found]
