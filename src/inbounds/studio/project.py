"""A studio project: scans, and what people did to them. All that is shown follows from actions that are not undone."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.scans.format import Shape
from inbounds.studio.actions import Accept, Box, DeleteClass, Rescan, SetClass, SetFact, Stroke
from inbounds.studio.database import Action, Conflict, Database
from inbounds.studio.facts import Fact, checked, facts_of
from inbounds.studio.labels import NOTHING, UNLABELLED, Labels, unpack
from inbounds.studio.raster import outside, stroke
from inbounds.studio.shelf import Entry, Shelf
from inbounds.writing import writing

COLOURS = ("#ffb000", "#5db4e8", "#dc267f", "#3fd0a8", "#f0e442", "#fe6100", "#e8e8e8", "#8dd35f")
BACKGROUND = "#a58bff"
LABELLING = ("stroke", "box", "voxels")
ABOUT_FACTS = ("fact", "box", "facts")
REMEMBERED = 6
"""So many scans' labels are kept in memory; those of the others are made from what people did when they are needed."""

Classes = dict[int, tuple[str, str]]


class Missing(BadInput):
    """There is no such thing."""


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
            self._ending = ending.pop_all()
        self._labels: OrderedDict[int, Labels] = OrderedDict()
        self._facts: dict[int, dict[tuple[int | None, int], Fact]] = {}
        self._refresh()

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
        if number not in self.shelf.entries:
            raise Missing(f"there is no scan {number}; look for new ones, or reload the page")
        return self.shelf.get(number)

    def usable(self, number: int) -> tuple[Entry, Shape]:
        """A scan that can be shown."""
        entry = self.entry(number)
        if entry.error is not None or entry.shape is None:
            raise Conflict(entry.error or f"{entry.name}: its header is not read yet; try again")
        return entry, entry.shape

    def labels(self, number: int) -> Labels:
        """The labels of a scan."""
        with self.database.lock:
            if number in self._labels:
                self._labels.move_to_end(number)
                return self._labels[number]
            entry, shape = self.usable(number)
            made = Labels(shape)
            for action in self.database.live(LABELLING, number):
                apply(made, action, entry)
            self._labels[number] = made
            while len(self._labels) > REMEMBERED:
                self._labels.popitem(last=False)
            return made

    def facts(self, number: int) -> dict[tuple[int | None, int], Fact]:
        """What is known of a scan, by slice and class."""
        with self.database.lock:
            if number not in self._facts:
                self._facts[number] = facts_of(self.database.live(ABOUT_FACTS, number))
            return self._facts[number]

    def summary(self, number: int) -> Mapping[str, Any]:
        """How many voxels of which classes are labelled in a scan, and where."""
        return self._summaries.get(number, NOTHING)

    def summaries(self) -> Mapping[int, Mapping[str, Any]]:
        """Those of all scans that have labels."""
        return self._summaries

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
                    self._check_class(action)
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
                    self._apply(entry, Action(added, batch, who, number, kind, content, voxels))
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
                    self._relabel(number, labelling, kind)
            self._classes = self._read_classes()
            used = self._used()
            if gone := sorted(used - self._classes.keys()):
                raise Conflict(
                    f"class {gone[0]} has labels or facts, so that this cannot be {kind}ne; remove them first"
                )
            return added, first.scan, first.kind

    def _relabel(self, number: int, actions: Sequence[Action], kind: str) -> None:
        """Take back or do again what labelled a scan: the last actions at once, others by going through all of them."""
        labels = self._labels.get(number)
        for action in actions if kind == "redo" else reversed(actions):
            if labels is None:
                break
            if kind == "undo":
                labels = labels if labels.take_back(action.id) else None
            elif labels.last < action.id:
                apply(labels, action, self.entry(number))
            else:
                labels = None
        if labels is None:
            self._labels.pop(number, None)
        self._note(number, self.labels(number))

    def _label(self, action: Stroke | Box) -> int:
        entry, shape = self.usable(action.scan)
        self._check_value(0 if action.klass is None else action.klass)
        content = action.content()
        if isinstance(action, Box):
            _, inside, number = outside(action.corners, action.plane, shape)
            content |= {"inside": inside, "slice": number}
        added = self.database.add(action.who, entry.id, action.kind, content)
        self._apply(entry, Action(added, added, action.who, entry.id, action.kind, content, None))
        self._facts.pop(entry.id, None)
        return added

    def _apply(self, entry: Entry, action: Action) -> None:
        """Bring the labels of a scan up to date with an action that was just written down."""
        if entry.id in self._labels:
            apply(self._labels[entry.id], action, entry)
        self._note(entry.id, self.labels(entry.id))

    def _note(self, number: int, labels: Labels) -> None:
        summary = labels.summary()
        self.database.run("UPDATE scans SET summary = ? WHERE id = ?", json.dumps(summary), number)
        self._summaries[number] = summary

    def _set_fact(self, action: SetFact) -> tuple[int, str | None]:
        entry, shape = self.usable(action.scan)
        self._check_value(action.klass)
        name = self._classes[action.klass][0]
        warning = checked(action, name, entry, shape, self.labels(entry.id))
        added = self.database.add(action.who, entry.id, "fact", action.content())
        self._facts.pop(entry.id, None)
        return added, warning

    def _check_value(self, value: int) -> None:
        if value not in self._classes:
            raise BadInput(f"there is no class {value}; reload the page")

    def _check_class(self, action: SetClass | DeleteClass) -> None:
        if isinstance(action, DeleteClass):
            self._check_value(action.value)
            if action.value in self._used():
                name = self._classes[action.value][0]
                raise Conflict(f"{name} has labels or facts; remove them before you delete the class")
            return
        others = {name.lower() for value, (name, _) in self._classes.items() if value != action.value}
        if action.name.lower() in others:
            raise Conflict(f"there is a class {action.name} already; choose another name")

    def _used(self) -> set[int]:
        """The classes that anything is known of."""
        labelled = {int(value) for summary in self._summaries.values() for value in summary["classes"]}
        return labelled | {klass for number in self.with_facts() for _, klass in self.facts(number)}

    def _begin(self, classes: Sequence[str]) -> None:
        """The first classes are what was asked for; later ones must agree with them."""
        self._classes = self._read_classes()
        asked = [name.strip() for name in classes]
        if self._classes and asked and asked != [name for name, _ in self._classes.values()]:
            have = ",".join(name for name, _ in self._classes.values())
            raise BadInput(f"{self.folder}: its classes are {have}; leave --classes out, and change them on the page")
        lower = [name.lower() for name in asked]
        if len(asked) == 1 or len(set(lower)) < len(lower) or not all(asked):
            raise BadInput(
                f"--classes {','.join(asked)}: name the background first, then at least one class, none of them twice"
            )
        if not self._classes:
            with self.database.transaction():
                for value, name in enumerate(asked or ["background", "region"]):
                    made = SetClass(who="inbounds", kind="class", value=value, name=name)
                    self.database.add("inbounds", None, "class", made.content())

    def _read_classes(self) -> Classes:
        found: Classes = {}
        for action in self.database.live(("class", "class_delete")):
            value = action.content["value"]
            if action.kind == "class_delete":
                found.pop(value, None)
                continue
            before = found.get(value, ("", BACKGROUND if value == 0 else COLOURS[(value - 1) % len(COLOURS)]))
            found[value] = action.content["name"], action.content["colour"] or before[1]
        return dict(sorted(found.items()))

    def _refresh(self) -> None:
        """Take everything from the disk."""
        self._labels.clear()
        self._facts.clear()
        self._classes = self._read_classes()
        rows = self.database.rows("SELECT id, summary FROM scans WHERE summary IS NOT NULL")
        self._summaries: dict[int, Mapping[str, Any]] = {number: json.loads(text) for number, text in rows}
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
