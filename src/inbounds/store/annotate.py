"""Weak labels for a store: simulated from its truth, or clicked by people."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.errors import BadInput, some
from inbounds.progress import Track
from inbounds.store.facts import Fact, Facts
from inbounds.store.measure import Noise, measure
from inbounds.store.record import Record
from inbounds.store.seeds import around, bounding_box, strategies
from inbounds.store.seeds import background as background_seeds
from inbounds.store.store import Store, write_annotation
from inbounds.store.table_reader import read_table

Click = tuple[str, int, float, float, int]
"""Scan, slice, row, column and class."""
NAMED = 10
"""So many pixels that are clicked twice are named one by one."""
ENOUGH = 20
"""So many clicks tell whether rows and columns are exchanged; ten raised false alarms on real scans in one of ten."""


def simulate(
    store: Store,
    name: str,
    strategy: str,
    classes: Sequence[int],
    *,
    seed: int = 0,
    background: bool = False,
    noise: Noise | None = None,
    box_share: tuple[float, float] = (0.5, 0.9),
    settings: dict[str, Any] | None = None,
    every: int = 1,
    overwrite: bool = False,
    track: Track[Record] = iter,
) -> None:
    """Draw weak labels inside the truth of each slice, and write down the facts that go with them.

    Every slice has its own random numbers, drawn from the seed, the scan's name and its place there, so that what one
    slice gets does not depend on what else is in the store. Scans without truth get no labels and no facts.

    Args:
        store: Where the scans are and the annotation goes.
        name: Of the annotation and its facts.
        strategy: One of `erosion`, `disc`, `centroid`, `scribble`, `box`.
        classes: The classes to label, wherever they are present.
        seed: Of all random numbers.
        background: Label some background as well.
        noise: How far off the facts are.
        box_share: For boxes, the size of a region as a share of its box; the middle becomes its size in the facts.
        settings: Of the strategy, such as a radius.
        every: Of every third slice of a scan only, if 3, beginning with its second; nothing is said of the others.
        overwrite: Take the place of an annotation of this name.
        track: Wraps the scans, for a progress bar.
    """
    if strategy not in strategies:
        raise BadInput(f"no strategy {strategy!r}; there are: {', '.join(strategies)}")
    if not 0 < box_share[0] <= box_share[1] <= 1:
        raise BadInput(f"a region fills between 0 and 1 of its box, not {box_share[0]:g} to {box_share[1]:g}")
    if strategy == "box" and noise is not None and noise != Noise():
        raise BadInput("boxes tell a range of sizes, which noise does not go with: leave out --noise and --jitter")
    if not store.has_truth:
        raise BadInput(
            f"{store.path}: weak labels are simulated from the truth, and this store has none; import --points"
        )
    draw = partial(strategies[strategy], **(settings or {}))
    facts: list[Fact] = []  # grow while the label maps are made

    def pieces() -> Iterator[np.ndarray]:
        for record in track(store.records):
            key = zlib.crc32(record.name.encode())  # the same everywhere
            truth = store.truth[record.span]
            if not record.truth:
                yield np.full_like(truth, UNLABELLED)
                continue
            label = np.empty_like(truth)
            left_out = np.arange(len(truth)) % every != every // 2
            for number, mask in enumerate(truth):
                rng = np.random.default_rng([seed, key, number])
                label[number] = draw(mask, [0, *classes] if background and strategy == "scribble" else classes, rng)
                if background and strategy not in ("box", "scribble"):
                    blank = label[number] == UNLABELLED
                    label[number][blank] = background_seeds(mask, classes, rng)[blank]
            left_out_there = left_out[record.nearest()]
            rng = np.random.default_rng([seed, key])
            rows: Iterable[Fact] = measure(store, record, truth, classes, rng, noise or Noise())
            if strategy == "box":
                rows = _boxed(rows, truth, record, box_share, draw.keywords.get("margin", 0))
            facts.extend(row for row in rows if row.slice is None or not left_out_there[row.slice])
            label[left_out] = UNLABELLED
            yield label

    about: dict[str, Any] = {
        "strategy": strategy,
        "classes": [store.classes[k] for k in classes],
        "seed": seed,
        "background": background,
        "settings": settings or {},
        "simulated": True,
        **({"every": every} if every > 1 else {}),
    }
    if strategy == "box":
        low, high = box_share
        about |= {"box_share": list(box_share), "size_relative": (high - low) / (high + low)}
    write_annotation(store, name, about, pieces(), lambda: Facts(tuple(facts), store.classes), overwrite=overwrite)


def _boxed(
    facts: Iterable[Fact], truth: np.ndarray, record: Record, share: tuple[float, float], margin: int
) -> Iterator[Fact]:
    """What a box tells: presence, the middle of the likely sizes, and the centre of the box; nothing of whole scans."""
    middle = sum(share) / 2
    for fact in facts:
        if fact.slice is None:
            continue
        if not fact.present:
            yield fact
            continue
        shown = truth[record.nearest()[fact.slice]]
        mask = shown == fact.klass
        size = middle * mask[bounding_box(mask, margin)].size / record.fit.area
        row, column = record.fit.point_back(*((side.start + side.stop - 1) / 2 for side in bounding_box(mask)))
        known = {"size_px": size, "size_mm2": size * record.spacing[1] * record.spacing[2]}
        yield replace(fact, known=known | {"centroid_row": row, "centroid_col": column})


def import_points(
    store: Store,
    file: Path,
    name: str,
    *,
    radius: float = 0.0,
    absent_elsewhere: bool = False,
    overwrite: bool = False,
) -> tuple[int, tuple[str, ...]]:
    """Labels from clicks: a table with the columns case, slice, row, column, class, in original pixels.

    A click labels its pixel, or a disc that reaches `radius` grid pixels beyond it; where discs of two classes overlap,
    the nearer click counts, and neither if both are as near. Whole numbers are the middles of pixels. A class clicked
    in a slice is present there; with `absent_elsewhere`, a clicked class is absent from every slice of that scan where
    it was not clicked. `notes` in `annotation.json` say if rows and columns seem exchanged, or clicks of two classes
    share a pixel of the grid.

    Returns:
        How many clicks there were, and the names of the table's other columns, which were ignored.
    """
    clicks, ignored = _clicks(store, file)
    clicked = {(case, klass) for case, _, _, _, klass in clicks}
    of_case: dict[str, list[Click]] = {}
    for click in clicks:
        of_case.setdefault(click[0], []).append(click)
    facts: list[Fact] = []  # grow while the label maps are made

    def pieces() -> Iterator[np.ndarray]:
        for record in store.records:
            label = np.full((record.slices, *store.shape), UNLABELLED, dtype=np.uint8)
            there, nearest = set(), np.full(label.shape, np.inf)
            places = record.nearest()
            for _, number, row, column, klass in of_case.get(record.name, ()):
                _mark(
                    label[places[number]],
                    nearest[places[number]],
                    np.rint(record.fit.point(row, column)),
                    radius,
                    klass,
                )
                there.add((number, klass))
            for number, klass in product(range(record.original_slices), range(1, len(store.classes))):
                present = (number, klass) in there
                if present or (absent_elsewhere and (record.name, klass) in clicked):
                    facts.append(Fact(record.name, number, klass, present))
            yield label

    about: dict[str, Any] = {
        "strategy": "points",
        "classes": list(store.classes),
        "simulated": False,
        "settings": {"radius": radius},
    }
    notes = []
    if shared := _shared(store, clicks):
        notes.append(
            f"clicks of two classes lie on one pixel of the grid, which is left unlabelled: {some(shared, NAMED)}; a "
            "store with a larger --side, or a smaller --pixel, keeps them apart"
        )
    if _exchanged(store, clicks):
        notes.append(
            f"rows and columns of the clicks in {file.name} seem to be exchanged: the other way round, brightness "
            "varies at most half as much within a class. If so, exchange the headings and annotate under another name"
        )
    about |= {"notes": notes} if notes else {}
    write_annotation(store, name, about, pieces(), lambda: Facts(tuple(facts), store.classes), overwrite=overwrite)
    return len(clicks), ignored


def _mark(label: np.ndarray, nearest: np.ndarray, at: np.ndarray, radius: float, klass: int) -> None:
    """Label a disc where no other click is nearer; where one of another class is as near, nobody knows."""
    reach = math.ceil(radius) + 1
    window = tuple(slice(max(0, int(place) - reach), int(place) + reach + 1) for place in at)
    label, nearest, at = label[window], nearest[window], at - [side.start for side in window]
    rows, columns = np.nonzero(around(label.shape, at, radius))
    here = (rows, columns)
    away = (rows - at[0]) ** 2 + (columns - at[1]) ** 2
    either = (away == nearest[here]) & (label[here] != klass)
    label[here] = np.where(either, UNLABELLED, np.where(away < nearest[here], klass, label[here]))
    nearest[here] = np.minimum(away, nearest[here])


def _shared(store: Store, clicks: Sequence[Click]) -> list[str]:
    """Where clicks of two classes lie on one pixel of the grid, and which."""
    there: dict[tuple[str, int, float, float], dict[int, tuple[float, float]]] = {}
    for case, number, row, column, klass in clicks:
        at = np.rint(store.cases[case].fit.point(row, column)).tolist()
        there.setdefault((case, number, *at), {}).setdefault(klass, (row, column))
    return [
        f"{case}, slice {number}, "
        + " and ".join(f"{store.classes[k]} in row {row:g}, column {column:g}" for k, (row, column) in found.items())
        for (case, number, *_), found in there.items()
        if len(found) > 1
    ]


def _clicks(store: Store, file: Path) -> tuple[list[Click], tuple[str, ...]]:
    columns = ("case", "slice", "row", "column", "class")
    lines, ignored = read_table(file, columns, columns)
    if not lines:
        raise BadInput(f"{file}: there is no click; write a line for each below {','.join(columns)}")
    clicks = []
    seen: dict[tuple[str, int, int, int], tuple[int, str]] = {}
    for line in lines:
        case, index, klass = line.place(store.cases, store.classes)
        row, column = line.number("row"), line.number("column")
        if index is None or row is None or column is None:
            raise BadInput(f"{line.where}: a click needs a slice, a row and a column; fill them in")
        if not _inside((row, column), case.fit.original):
            sides = "{} rows and {} columns".format(*case.fit.original)
            raise BadInput(
                f"{line.where}: row {row:g}, column {column:g} lies outside {case.name}, whose slices have {sides}"
            )
        if not _inside(case.fit.point(row, column), store.shape):
            raise BadInput(
                f"{line.where}: row {row:g}, column {column:g} lies in the part of {case.name} that the store has cut "
                "off; prepare it with a larger --side, or with --fit resize"
            )
        before, where = seen.setdefault((case.name, index, round(row), round(column)), (klass, line.where))
        if before != klass:
            raise BadInput(
                f"{line.where}: {case.name}, slice {index}, row {row:g}, column {column:g} is {store.classes[klass]} "
                f"here and {store.classes[before]} in {where.rpartition(', ')[2]}; keep one of them"
            )
        clicks.append((case.name, index, row, column, klass))
    return clicks, ignored


def _inside(place: tuple[float, float], sides: tuple[int, int]) -> bool:
    """Whether a place lies in a pixel of an image."""
    return all(-0.5 <= at < side - 0.5 for at, side in zip(place, sides, strict=True))


def _exchanged(store: Store, clicks: Sequence[Click]) -> bool:
    """Whether clicks fit the images far better with rows and columns exchanged.

    They do if that halves the variance of brightness within the classes. Background is left out, as it is of any
    brightness, and so are clicks that exchanged would lie outside.
    """
    seen = []
    for case, number, row, column, klass in clicks:
        record = store.cases[case]
        here, there = record.fit.point(row, column), record.fit.point(column, row)
        if klass and _inside((column, row), record.fit.original) and _inside(there, store.shape):
            pixels = [
                (record.first + record.nearest()[number], 0, *np.rint(place).astype(int)) for place in (here, there)
            ]
            seen.append([klass, *(float(store.images[pixel]) for pixel in pixels)])
    if len(seen) < ENOUGH:
        return False
    values = np.array(seen)
    classes = [values[values[:, 0] == klass, 1:] for klass in np.unique(values[:, 0])]
    clicked, exchanged = sum(len(each) * each.var(axis=0) for each in classes)
    return bool(exchanged <= clicked / 2 and clicked > 0)
