"""A studio project: scans, and what people did to them. All that is shown follows from actions that are not undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.scans.format import Shape
from inbounds.studio.actions import Accept, Box, DeleteClass, Rescan, SetClass, SetFact, Stroke
from inbounds.studio.classes import KINDS as CLASSES
from inbounds.studio.classes import Classes, check_name, check_unused, check_value, classes_of, first_classes
from inbounds.studio.database import Action, Conflict, Database
from inbounds.studio.facts import Fact, checked, facts_of
from inbounds.studio.labels import Labels
from inbounds.studio.raster import outside
from inbounds.studio.scan_labels import KINDS as LABELLING
from inbounds.studio.scan_labels import ScanLabels
from inbounds.studio.shelf import Entry, Shelf
from inbounds.writing import writing

ABOUT_FACTS = ("fact", "box", "facts")


class Project:
    """A project, opened by one server."""

    def __init__(self, folder: Path, root: Path, classes: Sequence[str] = ()) -> None:
        self.folder, self.root = folder.resolve(), root.resolve()
        with ExitStack() as ending:
            with writing(folder):
                ending.enter_context(locked(self.folder, inside=True))
            self.database = Database(self.folder / "project.sqlite")
            ending.callback(self.database.close)
            self.shelf = Shelf(self.database, self.root)
            ending.callback(self.shelf.close)
            self._begin(classes)
            self._scan_labels = ScanLabels(self.database, self.shelf)
            self._facts: dict[int, dict[tuple[int | None, int], Fact]] = {}
            self._settle()
            self._ending = ending.pop_all()

    def close(self) -> None:
        """Let another server open it."""
        self._ending.close()

    @property
    def classes(self) -> Classes:
        """Names and colours by value, the background first."""
        return self._classes

    @property
    def sequence(self) -> int:
        """How much was done; it grows with every action."""
        return self._sequence

    def entry(self, number: int) -> Entry:
        """A scan of the project."""
        return self.shelf.entry(number)

    def usable(self, number: int) -> tuple[Entry, Shape]:
        """A scan that can be shown."""
        return self.shelf.usable(number)

    def labels(self, number: int) -> Labels:
        """The labels of a scan."""
        return self._scan_labels.of(number)

    def facts(self, number: int) -> dict[tuple[int | None, int], Fact]:
        """What is known of a scan, by slice and class."""
        with self.database.lock:
            if number not in self._facts:
                self._facts[number] = facts_of(self.database.live(ABOUT_FACTS, number))
            return self._facts[number]

    def summary(self, number: int) -> Mapping[str, Any]:
        """How many voxels of which classes are labelled in a scan, and where."""
        return self._scan_labels.summary(number)

    def summaries(self) -> Mapping[int, Mapping[str, Any]]:
        """Those of all scans that have labels."""
        return self._scan_labels.summaries

    def with_facts(self) -> list[int]:
        """The scans of which anything is known as a whole or of a slice."""
        return self.database.scans_with(ABOUT_FACTS)

    def accepted(self, number: int) -> int | None:
        """The training whose mask of a scan was accepted last, if that was not taken back."""
        return self._accepted.get(number)

    def act(self, action: Any, training: int = 0) -> tuple[int, str | None]:
        """Do something; its number once it is on the disk, and a warning where it looks odd."""
        found = self.shelf.look(again=True) if isinstance(action, Rescan) else 0
        with self._whole():
            match action:
                case Stroke() | Box():
                    added, warning = self._label(action), None
                case SetFact():
                    added, warning = self._set_fact(action)
                case Accept():
                    entry, _ = self.usable(action.scan)
                    if not training:
                        raise Conflict(f"{entry.name}: there is no mask of it yet; train first")
                    added = self.database.add(
                        action.who, entry.id, "accept", {**action.content(), "training": training}
                    )
                    warning = None
                case SetClass() | DeleteClass():
                    if isinstance(action, SetClass):
                        check_name(self._classes, action)
                    else:
                        check_unused(self._classes, action, self._used())
                    added, warning = self.database.add(action.who, None, action.kind, action.content()), None
                case Rescan():
                    added, warning = self.database.add(action.who, None, "rescan", {"new": found}), None
                case _:
                    raise TypeError(action)
            return added, warning

    def import_batch(self, who: str, kind: str, each: Iterable[tuple[int, Mapping[str, Any], bytes | None]]) -> int:
        """Many rows as one action: scan, content and packed voxels of each."""
        with self._whole():
            batch = None
            for number, content, voxels in each:
                entry, _ = self.usable(number)
                added = self.database.add(who, number, kind, content, voxels, batch)
                batch = batch or added
                if voxels is not None:
                    self._scan_labels.add(entry, Action(added, batch, who, number, kind, content, voxels))
                self._facts.pop(number, None)
            if batch is None:
                raise BadInput("there is nothing in it that could be imported")
            return batch

    def undo(self, who: str) -> tuple[int, int | None, str]:
        """Take back a person's last action; the sequence then, the scan, and what it was."""
        return self._turn(who, "undo")

    def redo(self, who: str) -> tuple[int, int | None, str]:
        """Do again what a person took back last."""
        return self._turn(who, "redo")

    def _turn(self, who: str, kind: str) -> tuple[int, int | None, str]:
        with self._whole():
            batch = self.database.last_done(who) if kind == "undo" else self.database.last_undone(who)
            if not batch:
                raise Conflict(f"there is nothing of yours to {kind}")
            first = batch[0]
            added = self.database.add(who, first.scan, kind, {"batch": first.batch})
            self.database.mark(first.batch, added if kind == "undo" else None)
            for number in {action.scan for action in batch if action.scan is not None}:
                self._facts.pop(number, None)
                if labelling := [action for action in batch if action.scan == number and action.kind in LABELLING]:
                    self._scan_labels.turn(number, labelling, kind)
            self._classes = self._read_classes()
            used = self._used()
            if gone := sorted(used - self._classes.keys()):
                raise Conflict(
                    f"class {gone[0]} has labels or facts, so that this cannot be {kind}ne; remove them first"
                )
            return added, first.scan, first.kind

    def _label(self, action: Stroke | Box) -> int:
        entry, shape = self.usable(action.scan)
        check_value(self._classes, 0 if action.klass is None else action.klass)
        content = action.content()
        if isinstance(action, Box):
            _, inside, number = outside(action.corners, action.plane, shape)
            content |= {"inside": inside, "slice": number}
        added = self.database.add(action.who, entry.id, action.kind, content)
        self._scan_labels.add(entry, Action(added, added, action.who, entry.id, action.kind, content, None))
        self._facts.pop(entry.id, None)
        return added

    def _set_fact(self, action: SetFact) -> tuple[int, str | None]:
        entry, shape = self.usable(action.scan)
        check_value(self._classes, action.klass)
        name = self._classes[action.klass][0]
        warning = checked(action, name, entry, shape, self.labels(entry.id))
        added = self.database.add(action.who, entry.id, "fact", action.content())
        self._facts.pop(entry.id, None)
        return added, warning

    def _used(self) -> set[int]:
        """The classes that anything is known of."""
        labelled = {int(value) for summary in self._scan_labels.summaries.values() for value in summary["classes"]}
        return labelled | {klass for number in self.with_facts() for _, klass in self.facts(number)}

    def _begin(self, classes: Sequence[str]) -> None:
        """The first classes are what was asked for; later ones must agree with them."""
        with self.database.transaction():
            for made in first_classes(self.folder, self._read_classes(), classes):
                self.database.add("inbounds", None, "class", made.content())

    def _read_classes(self) -> Classes:
        return classes_of(self.database.live(CLASSES))

    def _refresh(self) -> None:
        """Take everything from the disk."""
        self._facts.clear()
        self._scan_labels.refresh()
        self._settle()

    def _settle(self) -> None:
        self._classes = self._read_classes()
        self._accepted = {
            action.scan: action.content["training"] if action.content["accepted"] else None
            for action in self.database.live(("accept",))
        }
        self._sequence = self.database.sequence

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """One transaction; where it fails, what is in memory is made anew from what is on the disk."""
        with self.database.lock:
            try:
                with self.database.transaction():
                    yield
            except BaseException:
                self._refresh()
                raise
            self._settle()
