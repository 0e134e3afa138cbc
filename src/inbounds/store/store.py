"""The prepared data set: a folder that people can read and programs can memory-map.

    dataset.json            classes, scans, split, geometry, checksums of files and of each scan's part in them
    images.npy              (slices, channels, H, W), 8-bit or float16
    truth.npy               masks (slices, H, W) as runs of equal values, 255 where the truth is unknown
    annotations/NAME/       labels.npy likewise, 255 where unlabelled; annotation.json: how it was made;
                            facts.csv: what is known of each slice and scan, for any spreadsheet
    facts/NAME.csv          facts that people brought

Everything is written under a temporary name and renamed when complete: a half-made store never exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.described import read_json, written
from inbounds.errors import BadInput, nearest
from inbounds.locks import InUse, check_free, locked
from inbounds.store.blocks import Images, Sums, checksum
from inbounds.store.description import AGAIN, IMAGES, LABELS, TRUTH, About, Description, check_blocks
from inbounds.store.facts import Fact, Facts
from inbounds.store.record import Record
from inbounds.store.rle import Labels, labels_file, open_array
from inbounds.store.table_reader import class_value
from inbounds.writing import aside, mend, write_json

SIDES = ("train", "validation")
PREPARED = ("fit", "pixel", "window", "spacing", "slice_spacing", "axis")
"""What a store says of how its scans were prepared, beside the grid."""
ANEW = "annotate again under another name"
FULL = "full"
"""The annotation that every store with a truth has: the label is the whole mask."""


class Store:
    """A prepared data set, opened for reading.

    Example:
        store = Store("hearts")
        store.classes          # ('background', 'RV', 'MYO', 'LV')
        store.images.shape     # (1902, 1, 256, 256), memory-mapped
        store.annotations      # ['erosion', 'full']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        mend(self.path)
        for left in self.path.glob("annotations/.*.before"):  # an annotation that was being replaced
            name = left.name.removeprefix(".").removesuffix(".before")
            if not left.with_name(name).exists():
                with suppress(InUse), locked(self.path / name):
                    mend(left.with_name(name))
        described = self.path / "dataset.json"
        if not described.is_file():
            raise BadInput(
                f"{self.path}: this is not a store (no dataset.json in it); make one with `inbounds prepare`"
            )
        content = read_json(described, Description, AGAIN)
        self.name, self.classes, self.channels = content.name, content.classes, content.channels
        self.shape, self.dtype, self.dimensions = content.shape, np.dtype(content.dtype), content.dimensions
        self.source: dict[str, Any] = content.source.model_dump(exclude_unset=True)
        self.records, self.checksums, self.blocks = content.scans, content.checksums, content.blocks
        self.images = self._images()

    def folded(self, fold: int, folds: int) -> Store:
        """The same data, split otherwise: the patients, but for those to test on, in parts, of which one validates."""
        patients = sorted({record.patient for record in self.records if record.split != "test"})
        if not 2 <= folds <= len(patients):
            raise BadInput(f"{self.path}: {folds} folds of {len(patients)} patients; choose from 2 to {len(patients)}")
        order = np.random.default_rng(0).permutation(len(patients))
        part = {patients[patient]: number % folds for number, patient in enumerate(order)}
        made = copy(self)
        made.records = tuple(
            record if record.split == "test" else replace(record, split=SIDES[part[record.patient] == fold])
            for record in self.records
        )
        made.__dict__.pop("cases", None)
        return made

    @property
    def preparation(self) -> dict[str, Any]:
        """How a new scan is prepared as these were."""
        how = {name: value for name, value in self.source.items() if name in PREPARED}
        return {"shape": list(self.shape), "dtype": self.dtype.name, "fit": None} | how

    @property
    def slices(self) -> int:
        """How many slices there are in all."""
        return sum(record.slices for record in self.records)

    def _images(self) -> Images:
        """The slices `(N, channels, H, W)`, as stored; their header is looked at before anything is believed."""
        file, shape = self.path / IMAGES, (self.slices, self.channels, *self.shape)
        array = open_array(file)
        if array.shape != shape or array.dtype != self.dtype:
            raise BadInput(
                f"{file}: {array.dtype} of {array.shape}, but dataset.json says {self.dtype} of {shape}; {AGAIN}"
            )
        return Images(file, array, self._sums(IMAGES))

    def _sums(self, name: str) -> Sums:
        blocks = self.blocks.get(name, ())
        return Sums(self.path / "dataset.json", self.checksums[name], blocks, self.records, AGAIN)

    @property
    def has_truth(self) -> bool:
        """Whether the truth of any scan is known."""
        return any(record.truth for record in self.records)

    @cached_property
    def truth(self) -> Labels:
        """The full masks `(N, H, W)`; 255 where the truth is unknown. For evaluation, never for a loss."""
        if not self.has_truth:
            raise BadInput(f"{self.path}: this store has no truth; it can train from weak labels, but not evaluate")
        return Labels(self.path / TRUTH, (self.slices, *self.shape), self._sums(TRUTH))

    @property
    def annotations(self) -> list[str]:
        """The names of its annotations."""
        made = [entry.parent.name for entry in self.path.glob("annotations/[!.]*/annotation.json")]
        return sorted([*made, *([FULL] if self.has_truth else [])])

    @property
    def fact_names(self) -> list[str]:
        """The names of its facts files."""
        return sorted(self._fact_files())

    @property
    def facts_brought(self) -> list[str]:
        """Those of them that people brought as tables."""
        return sorted(file.stem for file in self.path.glob("facts/[!.]*.csv"))

    def label(self, name: str) -> Labels:
        """The label maps `(N, H, W)` of an annotation; `full` is the truth itself."""
        if name == FULL and self.has_truth:
            return self.truth
        about, folder = self._about(name), self.path / "annotations" / name
        blocks = about.blocks.get(LABELS, ())
        sums = Sums(folder / "annotation.json", about.checksums[LABELS], blocks, self.records, ANEW)
        return Labels(folder / LABELS, (self.slices, *self.shape), sums)

    def about(self, name: str) -> dict[str, Any]:
        """How an annotation was made, and its checksums."""
        if name == FULL and self.has_truth:
            return {"strategy": "full", "classes": list(self.classes[1:]), "simulated": False}
        return self._about(name).model_dump(mode="json", exclude_unset=True)

    def _about(self, name: str) -> About:
        if name not in self.annotations:
            raise BadInput(f"{self.path}: no annotation {name!r}; {nearest(name, self.annotations)}")
        file = self.path / "annotations" / name / "annotation.json"
        about = read_json(file, About, ANEW)
        try:
            check_blocks(about.blocks, LABELS, len(self.records))
        except ValueError as error:
            raise BadInput(f"{file}: damaged ({error}); {ANEW}") from None
        return about

    def facts(self, name: str) -> Facts:
        """The facts of a name, looked at row by row; `clicks+sizes` are those of both."""
        files = self._fact_files()
        for part in name.split("+"):
            if part not in files:
                raise BadInput(f"{self.path}: no facts {part!r}; {nearest(part, self.fact_names)}")
        first, *others = [Facts.read(files[part], self.classes, self.cases) for part in name.split("+")]
        for other in others:
            first = first.merged(other, f"{self.path}, facts {name}")
        return first

    def facts_beside(self, annotation: str, facts: str | None) -> str | None:
        """The name of all that goes with an annotation: the facts that are named, and its own.

        Where facts are named, those that a simulation wrote beside its labels do not count: who clicks a region says
        that it is there, and a simulation says everything.
        """
        if annotation not in self.fact_names:
            return facts
        if facts is None:
            return annotation
        own = annotation in facts.split("+") or self.about(annotation).get("simulated", False)
        return facts if own else f"{annotation}+{facts}"

    def fact_tables(self, annotation: str, facts: str | None) -> list[Path]:
        """The files that are read for an annotation: the facts that are named, else its own, if it has any."""
        files = self._fact_files()
        names = facts.split("+") if facts else [annotation]
        return [files[name] for name in names if name in files]

    def _fact_files(self) -> dict[str, Path]:
        made = {file.parent.name: file for file in self.path.glob("annotations/[!.]*/facts.csv")}
        return made | {file.stem: file for file in self.path.glob("facts/[!.]*.csv")}

    @cached_property
    def cases(self) -> dict[str, Record]:
        """What facts may speak of: scans by name."""
        return {record.name: record for record in self.records}

    def check_new(self, name: str, replaced: Collection[str] = ()) -> None:
        """Refuse what cannot name an annotation, or facts, that are not there yet, but for those to be replaced."""
        valid_name(name)
        if name in self.fact_names and name not in replaced:
            other = "what has it is of another kind" if replaced else "--overwrite replaces them"
            raise BadInput(
                f"{self.path}: there are facts called {name!r} already; choose another name, or remove them ({other})"
            )

    def import_facts(self, file: Path, name: str, *, overwrite: bool = False) -> Facts:
        """Bring in a table that people made, after looking at every cell; in the place of another, if told."""
        return self.add_facts(name, lambda: self.read_facts(file), overwrite=overwrite)

    def read_facts(self, file: Path) -> Facts:
        """A table that people made, once every cell was looked at."""
        facts = Facts.read(file, self.classes, self.cases)
        if all(fact.present is None and not fact.known for fact in (*facts.rows, *facts.relations)):
            raise BadInput(f"{file}: no cell says anything; fill in what is known, and leave the others empty")
        return facts

    def add_facts(self, name: str, read: Callable[[], Facts], *, overwrite: bool = False) -> Facts:
        """Keep facts, asked for once their name is known to be free, or that of facts to be replaced."""
        with self.adding(name, self.facts_brought if overwrite else ()):
            facts = read()
            facts.write(self.path / "facts" / f"{name}.csv")
        return facts

    @contextmanager
    def adding(self, name: str, replaced: Collection[str] = ()) -> Iterator[None]:
        """Hold the name of an annotation, or of facts: nobody else takes it, or replaces the store.

        It is new, or one of those that may be replaced.
        """
        with locked(self.path / valid_name(name)):
            check_free(self.path)
            self.check_same()
            self.check_new(name, replaced)
            yield

    def check_same(self) -> None:
        """Refuse a store that was replaced since it was opened."""
        if Store(self.path).checksums != self.checksums:
            raise BadInput(f"{self.path}: it was replaced already since this command began; run it again")

    def check_unused(self) -> None:
        """Refuse a store, which is locked, as long as other processes add annotations or facts to it."""
        for file in self.path.glob(".*.lock"):
            check_free(file.with_name(file.name.removeprefix(".").removesuffix(".lock")))

    def empty_facts(self) -> Facts:
        """A table of every scan, slice and class with nothing filled in: a form for people."""
        rows = [
            Fact(record.name, number, klass)
            for record in self.records
            for number in (*range(record.original_slices), None)
            for klass in range(1, len(self.classes))
        ]
        return Facts(tuple(rows), self.classes)

    def chosen(self, names: Sequence[str] = ()) -> list[int]:
        """The values of the classes to learn, in the order of their names; all of them if none are named."""
        values = [self.class_index(name) for name in names] or list(range(1, len(self.classes)))
        if 0 in values or len(set(values)) != len(values):
            raise BadInput(
                f"{self.path}: classes must differ and cannot be the background: {', '.join(names)}; `annotate` labels "
                "some of it with --background"
            )
        return values

    def class_index(self, name: str) -> int:
        """The value of a class in the arrays, by its name or number."""
        return class_value(name, self.classes, str(self.path))


def valid_name(name: str) -> str:
    """A name that can be a folder's on every system."""
    if not name or not all(c.isalnum() or c in "-_." for c in name) or name.startswith(".") or name == FULL:
        reason = "it is the name of the truth itself" if name == FULL else "use letters, digits, '-', '_' and '.'"
        raise BadInput(f"{name!r} cannot name an annotation: {reason}")
    return name


def write_annotation(
    store: Store,
    name: str,
    about: Mapping[str, Any],
    pieces: Iterable[np.ndarray],
    facts: Callable[[], Facts],
    *,
    overwrite: bool = False,
) -> None:
    """Add an annotation to a store: label maps, how they were made, and the facts, asked for after the labels.

    Another of its name is replaced only if that is asked for, and once the new one is complete.
    """
    place = store.path / "annotations" / name
    replaced = store.annotations if overwrite else ()
    with store.adding(name, replaced), aside(place, replace=overwrite, alone=True) as folder:
        with labels_file(folder / "labels.npy") as append:
            for piece in pieces:
                append(piece)
        content = {**about, **label_sums(folder / LABELS, store.shape, store.records)}
        write_json(folder / "annotation.json", written(content, About, f"annotation {name!r}", "change it"))
        facts().write(folder / "facts.csv")


def label_sums(file: Path, shape: tuple[int, int], records: Sequence[Record]) -> dict[str, Any]:
    """What `annotation.json` says of its labels: their checksum, and that of each scan's part."""
    labels = Labels(file, (records[-1].range.stop, *shape))
    return {"checksums": {file.name: checksum(file)}, "blocks": {file.name: [labels.block(r) for r in records]}}
