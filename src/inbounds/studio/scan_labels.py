"""The labels of all scans: made from what people did, brought up to date with each action, and summed up."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from inbounds.studio.database import Action, Database
from inbounds.studio.labels import NOTHING, UNLABELLED, Labels, unpack
from inbounds.studio.raster import outside, stroke
from inbounds.studio.shelf import Entry, Shelf

KINDS = ("stroke", "box", "voxels")
"""The actions that label voxels."""
REMEMBERED = 6
"""So many scans' labels are kept in memory; those of the others are made from what people did when they are needed."""


class ScanLabels:
    """The labels of the scans of a project."""

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self.database, self.shelf = database, shelf
        self._kept: OrderedDict[int, Labels] = OrderedDict()
        self.summaries: dict[int, Mapping[str, Any]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take everything from the disk."""
        self._kept.clear()
        rows = self.database.rows("SELECT id, summary FROM scans WHERE summary IS NOT NULL")
        self.summaries = {number: json.loads(text) for number, text in rows}

    def of(self, number: int) -> Labels:
        """The labels of a scan."""
        with self.database.lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
            entry, shape = self.shelf.usable(number)
            made = Labels(shape)
            for action in self.database.live(KINDS, number):
                apply(made, action, entry)
            self._kept[number] = made
            while len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
            return made

    def summary(self, number: int) -> Mapping[str, Any]:
        """How many voxels of which classes are labelled in a scan, and where."""
        return self.summaries.get(number, NOTHING)

    def add(self, entry: Entry, action: Action) -> None:
        """Bring the labels of a scan up to date with an action that was just written down."""
        if entry.id in self._kept:
            apply(self._kept[entry.id], action, entry)
        self._note(entry.id, self.of(entry.id))

    def turn(self, number: int, actions: Sequence[Action], kind: str) -> None:
        """Take back or do again what labelled a scan: the last actions at once, others by going through all of them."""
        labels = self._kept.get(number)
        for action in actions if kind == "redo" else reversed(actions):
            if labels is None:
                break
            if kind == "undo":
                labels = labels if labels.take_back(action.id) else None
            elif labels.last < action.id:
                apply(labels, action, self.shelf.entry(number))
            else:
                labels = None
        if labels is None:
            self._kept.pop(number, None)
        self._note(number, self.of(number))

    def _note(self, number: int, labels: Labels) -> None:
        summary = labels.summary()
        self.database.run("UPDATE scans SET summary = ? WHERE id = ?", json.dumps(summary), number)
        self.summaries[number] = summary


def apply(labels: Labels, action: Action, entry: Entry) -> None:
    """Do to the labels of a scan what somebody did."""
    content = action.content
    assert entry.shape is not None
    if action.kind == "stroke":
        where = stroke(content["points"], content["plane"], content["radius"], entry.shape, entry.spacing)
        labels.put(where, UNLABELLED if content["class"] is None else content["class"], action.id)
    elif action.kind == "box":
        where, _, _ = outside(content["corners"], content["plane"], entry.shape)
        labels.fill(where, 0, action.id)
    elif action.voxels is not None:
        labels.put(*unpack(action.voxels), action.id)
