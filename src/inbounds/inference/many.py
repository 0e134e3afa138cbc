"""Scans segmented and written one after the other, so that reading, computing and writing go on at the same time.

While a network looks at some scans, threads read those that follow and write the masks of those before; small scans
that follow each other fill batches together. Which do is decided by their sizes alone, so that a command gives the same
masks however quick the disk is. A scan that needs much memory is read, segmented and written by itself.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import asdict, dataclass
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.inference.doubt import PARTS
from inbounds.inference.on_grid import SMALL, Due, OnGrid
from inbounds.inference.prediction import Region
from inbounds.inference.predictor import Predictor
from inbounds.scans.segmentation import coded, write_segmentation
from inbounds.sources.source import spoken

CENTRE = ("centroid_slice", "centroid_row", "centroid_col")
COLUMNS = ("case", "class", "doubt", "volume_ml", "size_px", *CENTRE, *PARTS, "note")
SEGMENTATION = ".dcm"
THREADS = 8
"""Of those that read and those that write, at most; half as many as there are cores."""

Cells = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Asked:
    """A scan to segment: its name and files, and where its mask and its probabilities go."""

    name: str
    files: Sequence[Path]
    target: Path
    extra: Path | None = None


@dataclass(frozen=True)
class FoundRegion:
    """What is told of one class in one scan.

    Attributes:
        name: The class.
        voxels: How many it has.
        doubt: How much speaks against it; 0 where nobody looked.
        reason: What speaks against it most.
        cells: Its line of the table.
    """

    name: str
    voxels: int
    doubt: float
    reason: str
    cells: Cells


@dataclass(frozen=True)
class Found:
    """What became of one scan.

    Attributes:
        name: The scan.
        regions: Each class in it; none if it failed.
        warnings: Sentences about it.
        failure: Why it has no mask.
        series: The DICOM series that it is.
    """

    name: str
    regions: tuple[FoundRegion, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str = ""
    series: str = ""


@contextmanager
def segmented(
    predictor: Predictor, asked: Sequence[Asked], codes: Sequence[str] | None, found: list[Found]
) -> Iterator[Iterator[Found]]:
    """Segment scans, and write their masks, in the place of earlier ones, and their probabilities.

    Args:
        predictor: The network, or networks.
        asked: The scans.
        codes: Of classes, where masks of DICOM become segmentation objects.
        found: What became of each scan is added here, in order; also of those that were finished when all was stopped.

    Yields:
        What became of each scan, as soon as it is known.

    Raises:
        OSError: The disk does not take a mask.
    """
    count = max(1, min(THREADS, (os.cpu_count() or 1) // 2))
    with ThreadPoolExecutor(count, "reading") as readers, ThreadPoolExecutor(count, "writing") as writers:
        line = _Line(predictor, asked, codes, readers, writers, 2 * count)
        try:
            yield line.results(found)
        finally:
            line.stop(found)


class _Line:
    """Scans on their way from files to masks."""

    def __init__(
        self,
        predictor: Predictor,
        asked: Sequence[Asked],
        codes: Sequence[str] | None,
        readers: ThreadPoolExecutor,
        writers: ThreadPoolExecutor,
        ahead: int,
    ) -> None:
        self.predictor, self.codes, self.readers, self.writers, self.ahead = predictor, codes, readers, writers, ahead
        self.due = deque(asked)
        self.reading: deque[tuple[Asked, Future[OnGrid | Due | Found]]] = deque()
        self.writing: deque[Future[Found]] = deque()

    def results(self, found: list[Found]) -> Iterator[Found]:
        """What became of each scan, in order."""
        for group in self._groups():
            if scans := [scan for _, scan in group if isinstance(scan, OnGrid)]:
                self.predictor.segment(scans)
            before = len(self.writing)
            for asked, scan in group:
                self.writing.append(self.writers.submit(copy_context().run, self._written, asked, scan))
            yield from self._told(before, found)
        yield from self._told(len(self.writing), found)

    def stop(self, found: list[Found]) -> None:
        """End what has not begun, and keep what was finished."""
        for _, coming in self.reading:
            coming.cancel()
        for going in self.writing:
            going.cancel()
        there = (one for one in self.writing if not one.cancelled() and one.exception() is None)
        found.extend(one.result() for one in there)

    def _told(self, count: int, found: list[Found]) -> Iterator[Found]:
        for _ in range(count):
            found.append(self.writing[0].result())
            self.writing.popleft()
            yield found[-1]

    def _groups(self) -> Iterator[list[tuple[Asked, OnGrid | Found]]]:
        """Scans whose slices fill batches together, with those between them that cannot be read."""
        group: list[tuple[Asked, OnGrid | Found]] = []
        slices = size = 0
        while self.due or self.reading:
            while self.due and len(self.reading) < self.ahead:
                asked = self.due.popleft()
                self.reading.append((asked, self.readers.submit(copy_context().run, self._read, asked)))
            asked, coming = self.reading.popleft()
            scan = coming.result()
            if isinstance(scan, Due):  # it is large: nothing else of ours takes memory meanwhile
                if group:
                    yield group
                group, slices, size = [], 0, 0
                for written in self.writing:
                    written.exception()
                yield [(asked, self._load(asked, scan))]
                continue
            more, takes = (len(scan.stored), scan.bytes) if isinstance(scan, OnGrid) else (1, 0)
            if group and (slices + more > self.predictor.together or size + takes > SMALL):
                yield group
                group, slices, size = [], 0, 0
            group.append((asked, scan))
            slices, size = slices + more, size + takes
        if group:
            yield group

    def _read(self, asked: Asked) -> OnGrid | Due | Found:
        """A scan, if it is small; else what its header says."""
        try:
            due = self.predictor.look(asked.files, probabilities=asked.extra is not None)
            return due.read() if due.small else due
        except (BadInput, MemoryError, RuntimeError) as error:
            return _failed(asked, error)

    def _load(self, asked: Asked, due: Due) -> OnGrid | Found:
        try:
            return due.read()
        except (BadInput, MemoryError, RuntimeError) as error:
            return _failed(asked, error)

    def _written(self, asked: Asked, scan: OnGrid | Found) -> Found:
        """Measure what was found in a scan, and write its mask and its probabilities."""
        if isinstance(scan, Found):
            return scan
        try:
            prediction = self.predictor.finish(scan)
            if self.codes is not None and prediction.header and asked.target.suffix == SEGMENTATION:
                classes = coded(self.codes, self.predictor.classes)
                write_segmentation(prediction.mask, prediction.header, classes, asked.target)
            else:
                prediction.write(asked.target, overwrite=True)
        except (BadInput, MemoryError, RuntimeError) as error:
            return _failed(asked, error)
        if asked.extra is not None:
            prediction.write_probabilities(asked.extra)
        name, files = asked.name, asked.files
        regions = tuple(
            FoundRegion(
                region.name,
                region.voxels,
                0.0 if region.doubt is None else region.doubt.total,
                "" if region.doubt is None else region.doubt.reason,
                _cells(name, region, [spoken(note, name, files) for note in prediction.notes]),
            )
            for region in prediction.regions
        )
        series = prediction.header.series if prediction.header else ""
        return Found(name, regions, tuple(spoken(each, name, files) for each in prediction.warnings), series=series)


def _failed(asked: Asked, error: Exception) -> Found:
    """A scan without a mask, and why."""
    where = "" if isinstance(error, BadInput) else f"{asked.files[0]}: "
    kept = " (a mask of an earlier prediction is still there)" if asked.target.exists() else ""
    said = where + (str(error) or type(error).__name__) + kept
    return Found(asked.name, failure=spoken(said, asked.name, asked.files))


def _cells(name: str, region: Region, notes: Sequence[str]) -> Cells:
    """A line of the table; a class that is absent has no centroid, and what is not known is empty."""
    parts = {} if region.doubt is None else {"doubt": region.doubt.total, **asdict(region.doubt)}
    doubt, *others = [_cell(parts.get(part, math.nan)) for part in ("doubt", *PARTS)]
    centre = [_cell(value) for value in region.centroid]
    note = "; ".join(filter(None, (region.note, *notes)))
    return (name, region.name, doubt, round(region.volume_ml, 6), region.voxels, *centre, *others, note)


def _cell(number: float) -> float | str:
    return "" if math.isnan(number) else round(number, 4)
