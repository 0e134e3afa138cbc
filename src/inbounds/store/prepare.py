"""From scans to a store: scale brightness by volume, fit slices to the grid, write once; or add to what is there."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.described import check_names, shortened, written
from inbounds.errors import BadInput, some
from inbounds.memory import amount, require_disk
from inbounds.progress import Track
from inbounds.reading import regular
from inbounds.scans.format import Spacing, by
from inbounds.sources.source import GIVEN, Loaded, Source
from inbounds.store.blocks import checksum, digest
from inbounds.store.brightness import Window, black_and_white, on_grid
from inbounds.store.depth import AXES, turned_extent, turned_scan
from inbounds.store.depth import count as count_slices
from inbounds.store.description import IMAGES, SCHEMA, TRUTH, About, Description
from inbounds.store.grid import MOST_SIDE, GridWindow, Shape, nearest
from inbounds.store.needs import check_memory, preparing, stored
from inbounds.store.record import Record
from inbounds.store.rle import array_file, labels_file, open_array
from inbounds.store.split import both_sides
from inbounds.store.store import FULL, Store, label_sums
from inbounds.store.survey import LOST, UNLIKE, reach
from inbounds.writing import aside, write_json

Append = Callable[[np.ndarray], None]
Fit = Callable[[Shape, Shape], GridWindow]

FITS: dict[str, Fit] = {
    "pad": GridWindow.pad,
    "resize": GridWindow.resize,
    "zoom": GridWindow.zoom,
    "axial": GridWindow.axial,
    "none": GridWindow.pad,
}
"""What `Plan.fitting` stands for, so that a new scan can be fitted as those of a store were."""
NAMED = 50
"""So many scans without a mask are named one by one."""


@dataclass(frozen=True)
class Plan:
    """How a data set is prepared.

    Attributes:
        name: Of the data set.
        classes: Class names, background first.
        shape: Rows and columns of the store's grid.
        fit: From the rows and columns of a slice to its place on the grid.
        fitting: What that is called, for the record.
        dtype: `uint8` or `float16`.
        origin: Where the data came from, in words for the record.
        pixel: What a pixel of the grid measures in mm; if not given, `fit` decides.
        window: The brightness that is black and that which is white; if not given, each scan's own.
        spacing: What voxels measure in mm between slices, rows and columns, whatever the files say.
        reading: How labels and patients were recognised, for scans that are added later.
        dimensions: Whether slices are learnt by themselves, or scans as volumes.
        slice_spacing: How far apart slices of the store are, in mm; as in the files, if not given.
        axis: The files' axis along which they are sliced, counted from 1.
    """

    name: str
    classes: tuple[str, ...]
    shape: Shape
    fit: Fit
    fitting: str
    dtype: Literal["uint8", "float16"] = "uint8"
    origin: str = ""
    pixel: float | None = None
    window: Window | None = None
    spacing: Spacing | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    dimensions: Literal[2, 3] = 2
    slice_spacing: float | None = None
    axis: int = AXES[-1]

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise BadInput(f"a file has the axes 1, 2 and 3, and is sliced along one of them, not {self.axis} (--axis)")
        if self.slice_spacing is not None and not 0 < self.slice_spacing < math.inf:
            raise BadInput(f"slices {self.slice_spacing:g} mm apart cannot be; give a number above 0 (--slice-spacing)")
        if min(self.shape) < 1:
            raise BadInput(f"a grid of {by(self.shape)} pixels holds no slice; give sides of 16 or more (--side)")
        if self.pixel is not None and not 0 < self.pixel < math.inf:
            raise BadInput(f"a pixel of {self.pixel:g} mm cannot be; give a number above 0, such as 1.25 (--pixel)")

    @property
    def source(self) -> dict[str, Any]:
        """What a store says of it."""
        given = {"pixel": self.pixel, "window": self.window, "spacing": self.spacing, **self.reading}
        given |= {"slice_spacing": self.slice_spacing, "axis": None if self.axis == AXES[-1] else self.axis}
        return {"from": self.origin, "fit": self.fitting} | {name: v for name, v in given.items() if v is not None}


def read_plan(about: Mapping[str, Any], where: str, remedy: str) -> Plan:
    """How new scans are prepared as those of a run or a store were, by what it says of them."""
    try:
        shape, (pixel, window, spacing) = about["shape"], map(about.get, ("pixel", "window", "spacing"))
        low, high = map(float, window or (0, 1))
        between, row, column = map(float, spacing or (1, 1, 1))
        apart, axis = about.get("slice_spacing"), about.get("axis", AXES[-1])
        plan = Plan(
            "",
            (),
            (int(shape[0]), int(shape[1])),
            FITS[about["fit"]],
            about["fit"],
            about["dtype"],
            pixel=None if pixel is None else float(pixel),
            window=(low, high) if window else None,
            spacing=(between, row, column) if spacing else None,
            slice_spacing=None if apart is None else float(apart),
            axis=axis if isinstance(axis, int) and axis in AXES else 0,
        )
        lengths = (high - low, 1 if plan.pixel is None else plan.pixel, between, row, column, plan.slice_spacing or 1)
        sound = all(0 < length < math.inf for length in lengths) and all(0 < side <= MOST_SIDE for side in plan.shape)
        if not sound or not 1e-4 < lengths[1] < 1e4 or plan.dtype not in ("uint8", "float16"):
            raise ValueError
    except (KeyError, TypeError, IndexError, ValueError, OverflowError, BadInput):
        raise BadInput(
            f"{where}: its preparation is {shortened(about)}, and a new scan can be prepared as {', '.join(FITS)} "
            f"only; {remedy}"
        ) from None
    return plan


@dataclass(frozen=True)
class Report:
    """What was prepared, and what is worth knowing about it."""

    store: Store
    notes: tuple[str, ...]
    lost: int


def placed(name: str, original: Shape, spacing: Spacing, plan: Plan) -> GridWindow:
    """How a slice lies on the grid: with pixels of so many mm, or by a rule that knows rows and columns alone.

    Raises:
        BadInput: It is lost on the grid: all of it in one pixel, or one of its own larger than all of the grid.
    """
    if plan.pixel is None:
        return plan.fit(original, plan.shape)
    sizes = spacing[1:]
    covered = [side * plan.pixel / size for side, size in zip(plan.shape, sizes, strict=True)]
    small = any(side * size < plan.pixel for side, size in zip(original, sizes, strict=True))
    if small or min(covered) < 1:
        raise BadInput(
            f"{name}: its pixels measure {sizes[0]:g} x {sizes[1]:g} mm, so that a grid of {by(plan.shape)} pixels of "
            f"{plan.pixel:g} mm would cover {covered[0]:,.6g} x {covered[1]:,.6g} of them, "
            f"{amount(4 * covered[0] * covered[1])} of memory, and a slice has {by(original)}; are they in metres? "
            "`prepare folder --spacing Z,Y,X` says what they are, --pixel what the grid's are"
        )
    return GridWindow.metric(original, plan.shape, sizes, plan.pixel)


@dataclass(frozen=True)
class Fitted:
    """One scan as a store will have it, behind nothing else.

    Attributes:
        record: What the store says of it.
        channels: How many it has.
        image: Some slices after the other.
        truth: Its full masks, unlabelled where there are none.
        weak: Its labels in an annotation.
        notes: Sentences for the report.
        cut: Whether a region may be lost beyond the grid.
    """

    record: Record
    channels: int
    image: Iterable[np.ndarray]
    truth: Callable[[], np.ndarray]
    weak: Callable[[str], np.ndarray]
    notes: tuple[str, ...]
    cut: bool


def fitted(source: Source, plan: Plan) -> Fitted:
    """Read a scan, and fit it to the grid."""
    loaded = source.load()
    if plan.spacing:
        loaded = replace(loaded, spacing=plan.spacing)
    loaded = turned_scan(loaded, plan.axis)
    channels, original, rows, columns = loaded.image.shape
    fit = placed(source.name, (rows, columns), loaded.spacing, plan)
    slices = count_slices(original, loaded.spacing[0], plan.slice_spacing)
    if plan.window and channels > 1:
        raise BadInput(f"{source.name}: {channels} channels, and a window goes with one: leave it out")
    ends = black_and_white(loaded.image, plan.window)
    return Fitted(
        _record(source, loaded, fit, ends[0], slices),
        channels,
        on_grid(loaded.image, fit, plan.dtype, ends, slices),
        lambda: _label(fit, loaded.truth, slices, outside=0),
        lambda name: _label(fit, loaded.weak.get(name), slices, outside=UNLABELLED),
        loaded.notes,
        loaded.truth is None and fit.crops and not fit.covers(reach(loaded.image)),
    )


def check_sources(sources: Sequence[Source], path: Path, plan: Plan, onto: Store | None = None) -> None:
    """Refuse, by names and headers, what no store could hold."""
    if not sources:
        raise BadInput("no scans were found; check the folder")
    check_names(plan.classes, "the class")
    check_names((source.name for source in sources), "the scan")
    if twice := [name for name, count in Counter(source.name for source in sources).items() if count > 1]:
        raise BadInput(f"two scans are called {twice[0]!r}; names must differ: is a patient there twice?")
    _check_room(sources, path, plan, onto)


def prepare(
    sources: Sequence[Source],
    path: Path,
    plan: Plan,
    track: Track[Source] = iter,
    *,
    onto: Store | None = None,
    fit: Callable[[Source, Plan], Fitted] = fitted,
) -> Report:
    """Write a store. Scans are read one at a time: more of them take more time, not more memory.

    Args:
        sources: The scans.
        path: Where the store goes.
        plan: How they are prepared.
        track: Wraps the scans, for a progress bar.
        onto: The store that is there, if the scans are added to it: its annotations label nothing of them.
        fit: Reads a scan, unless others have done so.

    Raises:
        BadInput: Naming the file and the remedy; nothing is left behind, and a store that was there is as it was.
    """
    check_sources(sources, path, plan, onto)
    records: list[Record] = list(onto.records) if onto else []
    there = {record.name for record in records}
    channels = onto.channels if onto else 0
    notes: list[str] = []
    cut: list[str] = []
    with aside(path, replace=onto is not None) as folder:
        given = [name for name in onto.annotations if name != FULL] if onto else []
        weak = sorted({*given, *(name for source in sources for name in source.weak)})
        if again := [source.name for source in sources if source.name in there]:
            raise BadInput(f"{path}: it has {some(again)} already; names must differ: leave out or rename what is new")
        if onto:
            onto.check_same()
            onto.check_unused()
            ignored = shutil.ignore_patterns("images.npy", "truth.npy", "labels.npy", ".*")
            shutil.copytree(path, folder, ignore=ignored, copy_function=_copy, dirs_exist_ok=True)
        with ExitStack() as open_files:

            def labels(name: str) -> Append:
                return open_files.enter_context(labels_file(folder / name))

            def images() -> Append:
                file = array_file(folder / "images.npy", np.dtype(plan.dtype), (channels, *plan.shape))
                return open_files.enter_context(file)

            known = any(source.truth for source in sources) or bool(onto and onto.has_truth)
            append_truth = labels("truth.npy") if known else None
            append_weak = {name: labels(f"annotations/{name}/labels.npy") for name in weak}
            append_image: Append | None = None
            if onto:
                append_image = images()
                _carry_over(onto, append_image, append_weak | ({FULL: append_truth} if append_truth else {}))
            for source in track(sources):
                scan = fit(source, plan)
                if append_image is None:
                    channels = scan.channels
                    append_image = images()
                if scan.channels != channels:
                    raise BadInput(f"{source.name}: {scan.channels} channels, but the scans before it have {channels}")
                for piece in scan.image:
                    append_image(piece)
                if append_truth:
                    append_truth(scan.truth())
                for name, append in append_weak.items():
                    append(scan.weak(name))
                notes += [f"{source.name}: {note}" for note in scan.notes]
                cut += [source.name] * scan.cut
                records.append(replace(scan.record, first=records[-1].range.stop if records else 0))
        for name in weak:
            file = folder / "annotations" / name / "labels.npy"
            about: dict[str, Any] = {"strategy": "given", "classes": list(plan.classes), "simulated": False}
            about = (onto.about(name) if onto and name in given else about) | label_sums(file, plan.shape, records)
            write_json(file.with_name("annotation.json"), written(about, About, f"annotation {name!r}", "change it"))
        content = {
            "schema": SCHEMA,
            "name": plan.name,
            "classes": list(plan.classes),
            "channels": channels,
            "shape": list(plan.shape),
            "dtype": plan.dtype,
            "dimensions": plan.dimensions,
            "source": onto.source if onto else plan.source,
            **_sums(folder, plan.shape, records),
            "scans": [asdict(record) for record in records],
        }
        written(content, Description, str(path), "change it, or leave the scan out")
        write_json(folder / "dataset.json", content)
    masked = {source.name for source in sources if source.truth or GIVEN in source.weak}
    bare = [source.name for source in sources if source.name not in masked]
    expected = masked or (onto and (onto.has_truth or GIVEN in onto.annotations))
    doubts = _doubts(records, plan, cut) + _copies(records, content["blocks"][IMAGES])
    if bare and expected:
        doubts.append(f"{_count(bare, NAMED)} no mask, where others have one")
    return Report(Store(path), (*doubts, *notes), sum(record.lost for record in records))


def _check_room(sources: Sequence[Source], path: Path, plan: Plan, onto: Store | None) -> None:
    """Refuse, by the scans' headers, what memory or disk have no room for."""
    needed = stored(onto.slices, onto.channels, onto.shape, plan.dtype) if onto else 0
    for source in sources:
        if (extent := source.extent) is not None:
            extent = turned_extent(replace(extent, spacing=plan.spacing or extent.spacing), plan.axis)
            fit = placed(source.name, extent.shape[1:], extent.spacing, plan)
            slices = count_slices(extent.shape[0], extent.spacing[0], plan.slice_spacing)
            check_memory(preparing(extent, fit, source.truth + len(source.weak), slices), source.name, extent, fit)
            needed += stored(slices, extent.channels, plan.shape, plan.dtype)
    require_disk(needed, path, f"a store of {len(sources)} scans on a grid of {by(plan.shape)}")


def _sums(folder: Path, shape: Shape, records: Sequence[Record]) -> dict[str, Any]:
    """What `dataset.json` says of the arrays: the checksum of each file, and of each scan's part."""
    images, truth = open_array(folder / IMAGES), folder / TRUTH
    blocks = {IMAGES: [digest(images[record.span]) for record in records]}
    sums: dict[str, Any] = {"checksums": {IMAGES: checksum(folder / IMAGES)}, "blocks": blocks}
    known = label_sums(truth, shape, records) if truth.is_file() else {}
    return {what: sums[what] | known.get(what, {}) for what in sums}


def _copy(source: str, target: str) -> None:
    """Copy a file, and no device, which would have no end."""
    shutil.copy2(regular(Path(source)), target)


def _carry_over(store: Store, append_image: Append, append_labels: Mapping[str, Append]) -> None:
    """What is in a store, a scan at a time as it was written; unlabelled by annotations that it does not have."""
    labels = {name: store.label(name) for name in append_labels if name in store.annotations}
    for record in store.records:
        append_image(store.images[record.span])
        for name, append in append_labels.items():
            append(labels[name][record.span] if name in labels else _unlabelled(record.slices, store.shape))


def _doubts(records: Sequence[Record], plan: Plan, cut: Sequence[str]) -> list[str]:
    """What is probably wrong with a store."""
    doubts = _unlike(records) if plan.fitting == "pad" and plan.pixel is None else []
    lost = [record.name for record in records if record.spacing == LOST and plan.spacing is None]
    if lost:
        doubts.append(
            f"{_count(lost)} a spacing of exactly 1 mm, as if it was lost: sizes in mm and ml are then wrong; "
            "`prepare folder --spacing Z,Y,X` says what it is"
        )
    if cut:
        doubts.append(
            f"{_count(cut)} no full mask and more than the grid holds: a region may be lost there; a larger --side, or "
            "--pixel, covers all"
        )
    return doubts + both_sides(records)


def _copies(records: Sequence[Record], digests: Sequence[str]) -> list[str]:
    """What to say where the same image, under two names, is in several splits; nothing where there is none."""
    same: dict[str, list[Record]] = {}
    for record, one in zip(records, digests, strict=True):
        same.setdefault(one, []).append(record)
    copies = [
        " and ".join(f"{record.name} in {record.split}" for record in alike)
        for alike in same.values()
        if len({record.split for record in alike}) > 1
    ]
    if not copies:
        return []
    return [f"the same image is on both sides of the split ({'; '.join(copies[:NAMED])}): scores will be too good"]


def _count(names: Sequence[str], most: int = 3) -> str:
    return f"{len(names)} scan{'s' * (len(names) > 1)} ({some(names, most)}) ha{'ve' if len(names) > 1 else 's'}"


def _unlike(records: Sequence[Record]) -> list[str]:
    """What to say where some scans show organs larger than others, because they have more or smaller pixels."""
    sizes = {max(record.spacing[1:]): record.name for record in records}
    finest, coarsest = min(sizes), max(sizes)
    if coarsest > UNLIKE * finest:
        return [
            f"pixels measure {finest:g} ({sizes[finest]}) to {coarsest:g} mm ({sizes[coarsest]}); --pixel {coarsest:g} "
            "resamples all to the same"
        ]
    longer = {max(record.fit.original): record.name for record in records}
    least, most = min(longer), max(longer)
    if most <= UNLIKE * least:
        return []
    return [
        f"slices have {least} ({longer[least]}) to {most} ({longer[most]}) pixels along their longer side; if they "
        "show the same part of the body, --fit zoom makes regions alike in size"
    ]


def _record(
    source: Source,
    loaded: Loaded,
    fit: GridWindow,
    ends: tuple[float, float],
    slices: int,
) -> Record:
    original = loaded.image.shape[1]
    return Record(
        name=source.name,
        patient=source.patient,
        split=source.split or "train",
        first=0,
        slices=slices,
        fit=fit,
        spacing=loaded.spacing,
        intensity=ends,
        phase=source.phase,
        truth=source.truth,
        lost=0 if loaded.truth is None else fit.lost(loaded.truth),
        group=source.group,
        depth=None if slices == original else original,
    )


def _label(fit: GridWindow, label: np.ndarray | None, slices: int, outside: int) -> np.ndarray:
    if label is None:
        return _unlabelled(slices, fit.shape)
    return fit.label(label if len(label) == slices else label[nearest(slices, len(label))], outside)


def _unlabelled(slices: int, shape: Shape) -> np.ndarray:
    return np.full((slices, *shape), UNLABELLED, dtype=np.uint8)
