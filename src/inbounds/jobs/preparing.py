"""Lines that prepare: each some scans, which become a small store; the small ones are put together in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.described import Described, read_json
from inbounds.errors import BadInput
from inbounds.jobs import chunks
from inbounds.jobs.chunks import Hands
from inbounds.jobs.manifest import Line, checked
from inbounds.jobs.status import Standing
from inbounds.locks import locked
from inbounds.scans.data_file import FOLLOW
from inbounds.sources.source import Files, Source, from_files
from inbounds.store.prepare import FITS, Fitted, Plan, Report, check_sources, fitted, prepare
from inbounds.store.store import Store
from inbounds.writing import remove, write_json

progress = chunks.progress


class Scan(Described):
    """A source that lies in files, as text."""

    name: str
    patient: str
    split: str
    phase: str
    group: str
    images: list[str]
    labels: str | None
    weak: dict[str, tuple[str, int]]
    values: list[tuple[int, int]]
    stamp: str

    @classmethod
    def of(cls, source: Source) -> Scan:
        """What another process needs to make the same source."""
        files = source.load
        if not isinstance(files, Files):
            raise BadInput(f"{source.name}: it does not lie in files, and is prepared here alone: leave --on out")
        label = [] if files.labels is None else [files.labels]
        return cls(
            name=source.name,
            patient=source.patient,
            split=source.split,
            phase=source.phase,
            group=source.group,
            images=[*map(str, files.images)],
            labels=None if files.labels is None else str(files.labels),
            weak={name: (str(file), empty) for name, (file, empty) in files.weak.items()},
            values=[*files.values.items()],
            stamp=chunks.stamp([*files.images, *label, *(file for file, _ in files.weak.values())]),
        )

    @property
    def source(self) -> Source:
        """The same source."""
        return from_files(
            tuple(map(Path, self.images)),
            None if self.labels is None else Path(self.labels),
            name=self.name,
            patient=self.patient,
            classes=0,
            values=dict(self.values),
            weak={name: (Path(file), empty) for name, (file, empty) in self.weak.items()},
            split=self.split,
            phase=self.phase,
            group=self.group,
        )


class Planned(Described):
    """All of `Plan`, but for what its fitting stands for."""

    name: str
    classes: list[str]
    shape: tuple[int, int]
    fitting: str
    dtype: Literal["uint8", "float16"]
    origin: str
    pixel: float | None
    window: tuple[float, float] | None
    spacing: tuple[float, float, float] | None
    reading: dict[str, Any]
    dimensions: Literal[2, 3]
    slice_spacing: float | None
    axis: int

    @property
    def plan(self) -> Plan:
        """The same plan."""
        return Plan(**{**vars(self), "classes": tuple(self.classes)}, fit=FITS[self.fitting])


class Chunk(Described):
    """What a line says: how, which scans, and whether headers may name data files elsewhere."""

    plan: Planned
    scans: list[Scan]
    follow: bool


class Part(Described):
    """What a small store does not say: each scan's notes, and which are cut by the grid."""

    notes: dict[str, list[str]]
    cut: list[str]


def work(folder: Path, lines: Mapping[int, Line], failed: Callable[[int, str], None]) -> None:
    """Make small stores of the scans of some lines."""
    for number, line in lines.items():
        chunk = checked(line, Chunk, folder)
        FOLLOW.set(chunk.follow)
        notes: dict[str, list[str]] = {}
        cut: list[str] = []

        def listen(source: Source, plan: Plan, notes: dict[str, list[str]] = notes, cut: list[str] = cut) -> Fitted:
            scan = fitted(source, plan)
            notes[source.name] = [*scan.notes]
            cut += [source.name] * scan.cut
            return scan

        try:
            store = (folder / line.place).with_suffix("")
            remove(store)
            prepare([scan.source for scan in chunk.scans], store, chunk.plan.plan, fit=listen)
        except BadInput as error:
            failed(number, str(error))
            continue
        write_json(folder / line.place, {"notes": notes, "cut": cut})


def prepare_on(
    hands: Hands,
    sources: Sequence[Source],
    path: Path,
    plan: Plan,
    *,
    onto: Store | None = None,
    heard: Callable[[list[Standing]], object] = lambda _: None,
) -> Report:
    """As `prepare`, where others read the scans; begun again, it goes on with what is not done."""
    with locked(path):
        check_sources(sources, path, plan, onto)
        if onto is None and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(f"{path}: already exists; remove it or choose another name")
        planned = Planned(**{key: value for key, value in vars(plan).items() if key != "fit"} | _lists(plan))
        scans = [Scan.of(source) for source in sources]
        pieces = [scans[first : first + hands.chunk] for first in range(0, len(scans), hands.chunk)]
        about = [Chunk(plan=planned, scans=some, follow=FOLLOW.get()).model_dump() for some in pieces]
        done = chunks.do(path, chunks.planned("prepare", about), hands, heard)
        stores: dict[str, _Small] = {}
        for some, file in zip(pieces, done, strict=True):
            small = _Small(file)
            stores |= {scan.name: small for scan in some}
        report = prepare(sources, path, plan, onto=onto, fit=lambda source, _: stores[source.name].scan(source.name))
        remove(chunks.folder_of(path))
    return report


def _lists(plan: Plan) -> dict[str, Any]:
    return {"classes": [*plan.classes], "reading": dict(plan.reading)}


class _Small:
    """The store of a chunk, with what its line told beside it."""

    def __init__(self, file: Path) -> None:
        self.told = read_json(file, Part, "remove it, and prepare again")
        self.file = file.with_suffix("")
        self.store: Store | None = None

    def scan(self, name: str) -> Fitted:
        """A scan of it, as `fitted` gives it."""
        store = self.store = self.store or Store(self.file)
        record = store.cases[name]

        def labels(annotation: str) -> np.ndarray:
            if annotation in store.annotations:
                found: np.ndarray = store.label(annotation)[record.span]
                return found
            return np.full((record.slices, *store.shape), UNLABELLED, dtype=np.uint8)

        return Fitted(
            replace(record, first=0),
            store.channels,
            [store.images[record.span]],
            lambda: labels("full"),
            labels,
            tuple(self.told.notes[name]),
            name in self.told.cut,
        )
