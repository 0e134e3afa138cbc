"""Is a store what it says it is, and what is in it?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.errors import BadInput
from inbounds.progress import Track
from inbounds.store.blocks import Images, checksum
from inbounds.store.description import AGAIN, IMAGES, LABELS
from inbounds.store.record import SPLITS
from inbounds.store.rle import Labels
from inbounds.store.store import ANEW, FULL, Store


@dataclass(frozen=True)
class Verdict:
    """What a verification says.

    Attributes:
        checks: What was looked at and is good, in words.
        problems: What is wrong, with the remedy. Empty for a good store.
        disagreements: For each annotation made by people or by boxes, how many labelled pixels differ from the truth.
    """

    checks: tuple[str, ...]
    problems: tuple[str, ...]
    disagreements: dict[str, int]


def verify(path: Path, track: Track[str] = iter) -> Verdict:
    """Look at every file of a store: checksums, shapes, values; and whether simulated seeds lie inside the truth."""
    try:
        store = Store(path)
    except BadInput as error:
        if not (path / "dataset.json").is_file():
            raise
        missing = not (path / IMAGES).is_file()
        return Verdict((), (f"{path / IMAGES}: missing; {AGAIN}" if missing else str(error),), {})
    checks: list[str] = []
    problems: list[str] = []
    disagreements: dict[str, int] = {}
    names = [name for name in store.annotations if name != FULL]
    for step in track(["arrays", *names]):
        try:
            if step == "arrays":
                _arrays(store, checks, problems)
            else:
                _annotation(store, step, checks, disagreements)
        except BadInput as error:
            problems.append(str(error))
    for name in store.fact_names:
        try:
            checks.append(f"facts {name}: {len(store.facts(name).rows)} rows")
        except BadInput as error:
            problems.append(str(error))
    return Verdict(tuple(checks), tuple(problems), disagreements)


def _arrays(store: Store, checks: list[str], problems: list[str]) -> None:
    for name in store.checksums:
        try:
            array = store.images if name == IMAGES else store.truth
            checks.append(_sums(array))
        except BadInput as error:
            problems.append(str(error))
    patients = {record.patient: record.split for record in store.records}
    if mixed := [record.name for record in store.records if patients[record.patient] != record.split]:
        problems.append(f"{store.path / 'dataset.json'}: {mixed[0]} is in another split than its patient's other scans")
    checks.append(f"images: {store.images.shape} {store.dtype}")
    if store.has_truth and not problems:
        for record in store.records:
            known = store.truth[record.span]
            wrong = (known >= len(store.classes)) & (known != UNLABELLED)
            if wrong.any():
                problems.append(f"{store.path / 'truth.npy'}: {record.name} holds {known[wrong][0]}, which is no class")
        checks.append(f"truth: {len(store.truth)} masks")


def _sums(array: Images | Labels) -> str:
    """That the checksums of a file and of each scan's part in it are right, in words."""
    sums = array.sums
    assert sums is not None  # which only what is being made has not yet
    scan = sums.differing(array.block)
    if scan or checksum(array.file) != sums.whole:
        raise sums.changed(array.file, scan)
    return f"{array.file.name}: checksum" + (f", and those of {len(sums.blocks)} scans" if sums.blocks else "")


def _annotation(store: Store, name: str, checks: list[str], disagreements: dict[str, int]) -> None:
    about, file = store.about(name), store.path / "annotations" / name / LABELS
    if not file.is_file():
        raise BadInput(f"{file}: missing; {ANEW}")
    label = store.label(name)
    _sums(label)
    # An annotation of some classes calls the others background.
    asked = [k for k, klass in enumerate(store.classes) if klass in about["classes"] and k]
    as_asked = np.arange(256, dtype=np.uint8)
    as_asked[[k for k in range(1, len(store.classes)) if k not in asked]] = 0
    differ = 0
    for record in store.records:
        truths = store.truth[record.span] if record.truth else repeat(None)
        for given, real in zip(label[record.span], truths, strict=False):
            wrong = (given >= len(store.classes)) & (given != UNLABELLED)
            if wrong.any():
                raise BadInput(f"{file}: {record.name} holds {given[wrong][0]}, which is no class; annotate again")
            if real is not None:
                truth = as_asked[real]
                differ += int(((given != UNLABELLED) & (truth != UNLABELLED) & (given != truth)).sum())
    seeds = about.get("simulated") and about.get("strategy") != "box"
    if seeds and differ:
        raise BadInput(f"{file}: {differ} seeds lie outside the truth; annotate again")
    if not store.has_truth:
        checks.append(f"annotation {name}: every label is a class")
    elif seeds:
        checks.append(f"annotation {name}: every seed lies inside the truth")
    else:
        disagreements[name] = differ
        checks.append(f"annotation {name}: {differ} labelled pixels differ from the truth")


def summary(store: Store) -> dict[str, Any]:
    """What is in a store: scans, split, spacing, sizes per class, and how much of it each annotation labels."""
    records = store.records
    spacing = np.array([record.spacing for record in records])
    content: dict[str, Any] = {
        "name": store.name,
        "path": str(store.path),
        "source": store.source,
        "classes": list(store.classes),
        "patients": len({record.patient for record in records}),
        "scans": len(records),
        "slices": store.slices,
        "shape": list(store.shape),
        "channels": store.channels,
        "dtype": store.dtype.name,
        "spacing_mm": {"smallest": spacing.min(axis=0).tolist(), "largest": spacing.max(axis=0).tolist()},
        "scans_with_truth": sum(record.truth for record in records),
        "truth_pixels_lost": sum(record.lost for record in records),
        "split": {
            split: {
                "patients": len({r.patient for r in records if r.split == split}),
                "scans": sum(r.split == split for r in records),
                "slices": sum(r.slices for r in records if r.split == split),
            }
            for split in SPLITS
            if any(r.split == split for r in records)
        },
        "sizes": _sizes(store) if store.has_truth else {},
        "annotations": {},
        "facts": store.fact_names,
    }
    for name in store.annotations:
        shares = labelled(store, name)
        content["annotations"][name] = {
            "strategy": store.about(name).get("strategy"),
            "labelled_share": sum(shares.values()),
            "labelled_share_by_class": shares,
        }
    return content


def labelled(store: Store, name: str) -> dict[str, float]:
    """The share of all pixels that an annotation labels, by class."""
    label = store.label(name)
    lengths = np.diff(label.ends, prepend=0)
    counts = np.bincount(label.values, weights=lengths, minlength=256)
    pixels = lengths.sum()
    return {klass: float(counts[k] / pixels) for k, klass in enumerate(store.classes) if counts[k]}


def _sizes(store: Store) -> dict[str, dict[str, float]]:
    """The sizes in pixels of each class over the slices that show it."""
    areas = np.array([np.bincount(store.truth[n].ravel(), minlength=256) for n in range(store.slices)])
    sizes = {}
    for klass, name in enumerate(store.classes[1:], start=1):
        shown = areas[areas[:, klass] > 0, klass]
        if len(shown):
            percentiles = np.percentile(shown, (5, 50, 95, 99)).tolist()
            sizes[name] = {
                "slices": len(shown),
                "smallest": int(shown.min()),
                **dict(zip(("p5", "median", "p95", "p99"), percentiles, strict=True)),
                "largest": int(shown.max()),
            }
    return sizes
