"""The scans of a project: which there are, and what their headers say, kept in its database until a file changes."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.display import Plane, planes_of
from inbounds.scans.format import Scan, Shape, by
from inbounds.scans.scan import header
from inbounds.sources.folder import recognise
from inbounds.studio.database import Conflict, Database, Missing

PATIENCE = 0.15
"""Seconds for which opening a project waits for the headers of new scans; the others are read meanwhile."""
PIECE = 0.05
"""Seconds of headers that are written down at once; after a pause twice as long, in which requests have their turn."""


@dataclass(frozen=True)
class Entry:
    """A scan of the project.

    Attributes:
        id: Its number, which it keeps.
        name: Its case in all tables.
        files: One for each channel; the first is shown.
        shape: Slices, rows and columns, once its header is read.
        spacing: In mm.
        planes: How it is shown.
        error: Why it cannot be used.
        gone: Whether it is no longer in the folder.
    """

    id: int
    name: str
    files: tuple[Path, ...]
    shape: Shape | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    planes: tuple[Plane, Plane, Plane] | None = None
    error: str | None = None
    gone: bool = False


Read = tuple[str, Entry, str | None]
"""A stamp, and the scan with its header as it is kept."""


class Shelf:
    """All scans by number."""

    def __init__(self, database: Database, root: Path) -> None:
        self.database, self.root = database, root
        self.entries: dict[int, Entry] = {}
        self._stamps: dict[int, str] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self.look()

    def look(self, *, again: bool = False) -> int:
        """Take in the scans that are there now; how many of them are new.

        With `again`, those that could not be used are tried once more.
        """
        layout = recognise(self.root)
        if not layout.images:
            raise BadInput(f"{self.root}: no scans found; give the folder that holds them")
        for name in layout.images:
            if not name.isprintable():
                raise BadInput(f"{self.root}: a scan is called {name!r}, which tables cannot hold; rename it")
        if again:
            self.database.run("UPDATE scans SET error = NULL WHERE error IS NOT NULL")
        found = {name: (files, _stamp(files)) for name, files in layout.images.items()}
        kept = {row[1]: row for row in self.database.rows("SELECT id, name, files, stamp, header, error FROM scans")}
        new = [name for name in sorted(found) if name not in kept]
        with self.database.transaction():
            for name in new:
                files, stamp = found[name]
                number = self.database.run(
                    "INSERT INTO scans (name, files, stamp) VALUES (?, ?, ?)", name, _listed(files), stamp
                )
                kept[name] = (number, name, _listed(files), stamp, None, None)
            for name, (number, _, listed, stamp, _, _) in list(kept.items()):
                if name in found and (listed, stamp) != (_listed(found[name][0]), found[name][1]):
                    files, stamp = found[name]
                    self.database.run(
                        "UPDATE scans SET files = ?, stamp = ?, header = NULL, error = NULL WHERE id = ?",
                        _listed(files),
                        stamp,
                        number,
                    )
                    kept[name] = (number, name, _listed(files), stamp, None, None)
        unread = []
        for number, name, listed, stamp, head, error in kept.values():
            entry = Entry(number, name, tuple(Path(file) for file in json.loads(listed)))
            if name not in found:
                sentence = f"{entry.files[0]}: no longer there; put it back, or leave it"
                entry = replace(_with_header(entry, head), error=sentence, gone=True)
            elif error is not None:
                entry = replace(_with_header(entry, head), error=error)
            elif head is not None:
                entry = _with_header(entry, head)
            else:
                unread.append(number)
            self.entries[number], self._stamps[number] = entry, stamp
        if unread:
            self._thread = threading.Thread(target=self._read_all, args=(unread,), daemon=True)
            self._thread.start()
            self._thread.join(PATIENCE)
        return len(new)

    def entry(self, number: int) -> Entry:
        """A scan with its header, or with what is wrong with it."""
        if number not in self.entries:
            raise Missing(f"there is no scan {number}; look for new ones, or reload the page")
        if not ((entry := self.entries[number]).shape or entry.error):
            self._keep([self._read(entry)])
        return self.entries[number]

    def usable(self, number: int) -> tuple[Entry, Shape]:
        """A scan that can be shown, and its shape."""
        entry = self.entry(number)
        if entry.error is not None or entry.shape is None:
            raise Conflict(entry.error or f"{entry.name}: its header is not read yet; try again")
        return entry, entry.shape

    def stamp(self, number: int) -> str:
        """Changes when the files of a scan do."""
        return self._stamps[number]

    def spoilt(self, number: int, sentence: str) -> None:
        """A scan turned out to be unreadable."""
        self.entries[number] = replace(self.entries[number], error=sentence)
        self.database.run("UPDATE scans SET error = ? WHERE id = ?", sentence, number)

    def learn(self, left_out: Mapping[str, tuple[str, str]]) -> None:
        """Take over why scans could not be prepared, unless their files are others by now."""
        for number, entry in self.entries.items():
            stamp, sentence = left_out.get(entry.name, ("", ""))
            if entry.error is None and stamp == self._stamps[number]:
                self.spoilt(number, sentence)

    def close(self) -> None:
        """Stop reading headers."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _read_all(self, numbers: list[int]) -> None:
        waiting = deque(numbers)
        while waiting and not self._closed.is_set():
            read, until = [], time.monotonic() + PIECE
            while waiting and time.monotonic() < until:
                entry = self.entries[waiting.popleft()]
                if not (entry.shape or entry.error):
                    read.append(self._read(entry))
            self._keep(read)
            self._closed.wait(2 * PIECE if waiting else 0)

    def _read(self, entry: Entry) -> Read:
        """A scan with its header, or with what is wrong with it, after the stamp of its files."""
        stamp = self._stamps[entry.id]
        try:
            head = json.dumps(_header(header(entry.files[0])))
        except (BadInput, OSError) as error:
            return stamp, replace(entry, error=str(error)), None
        return stamp, _with_header(entry, head), head

    def _keep(self, read: Sequence[Read]) -> None:
        """Write down what was read of files that are still the same."""
        with self.database.transaction():
            for entry, head in [(entry, head) for stamp, entry, head in read if stamp == self._stamps[entry.id]]:
                self.entries[entry.id] = entry = self._as_labelled(entry)
                self.database.run("UPDATE scans SET header = ?, error = ? WHERE id = ?", head, entry.error, entry.id)

    def _as_labelled(self, entry: Entry) -> Entry:
        """A scan must have the voxels that it had when it was labelled."""
        ((text,),) = self.database.rows("SELECT summary FROM scans WHERE id = ?", entry.id)
        if entry.shape is None or text is None or (before := tuple(json.loads(text)["shape"])) == entry.shape:
            return entry
        sentence = f"{entry.files[0]}: {by(before)} voxels when it was labelled, now {by(entry.shape)}"
        return replace(entry, error=f"{sentence}; put the earlier file back, or give this one another name")


def _header(scan: Scan) -> dict[str, Any]:
    affine = scan.geometry.affine
    return {
        "shape": list(scan.shape),
        "spacing": list(scan.spacing),
        "affine": None if affine is None else affine.tolist(),
    }


def _with_header(entry: Entry, head: str | None) -> Entry:
    if head is None:
        return entry
    content = json.loads(head)
    slices, rows, columns = content["shape"]
    between, row, column = content["spacing"]
    affine = None if content["affine"] is None else np.array(content["affine"], dtype=np.float64)
    shape, spacing = (slices, rows, columns), (between, row, column)
    return replace(entry, shape=shape, spacing=spacing, planes=planes_of(shape, spacing, affine))


def _listed(files: tuple[Path, ...]) -> str:
    return json.dumps([str(file) for file in files])


def _stamp(files: tuple[Path, ...]) -> str:
    """Sizes and times of the files, and of the names in a folder of slices."""
    told = []
    for file in files:
        try:
            about = file.stat()
            told.append(f"{about.st_size}:{about.st_mtime_ns}")
        except OSError:
            told.append("?")
    return ",".join(told)
