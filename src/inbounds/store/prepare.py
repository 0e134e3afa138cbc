"""From scans to a store: split by patient, normalise by volume, fit each slice to the grid, write once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Shaped

from inbounds.annotations.annotation import UNLABELLED
from inbounds.errors import BadInput
from inbounds.sources.source import Loaded, Source
from inbounds.store.grid import GridWindow, Shape
from inbounds.store.record import Record
from inbounds.store.rle import array_file, labels_file
from inbounds.store.store import SCHEMA, Store, checksum
from inbounds.writing import aside, write_json

UNLIKE = 1.5
"""Scans whose pixels, or the longer sides of whose slices, differ by more than this factor are pointed out."""

Append = Callable[[np.ndarray], None]
Fit = Callable[[Shape, Shape], GridWindow]
Track = Callable[[Sequence[Source]], Iterable[Source]]

FITS: dict[str, Fit] = {
    "pad": GridWindow.pad,
    "resize": GridWindow.resize,
    "zoom": GridWindow.zoom,
    "axial": GridWindow.axial,
    "none": GridWindow.pad,
}
"""What `Plan.fitting` stands for, so that a new scan can be fitted as those of a store were."""


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
    """

    name: str
    classes: tuple[str, ...]
    shape: Shape
    fit: Fit
    fitting: str
    dtype: Literal["uint8", "float16"] = "uint8"
    origin: str = ""
    pixel: float | None = None


@dataclass(frozen=True)
class Report:
    """What was prepared, and what is worth knowing about it."""

    store: Store
    notes: tuple[str, ...]
    lost: int


def placed(
    original: Shape, shape: Shape, spacing: tuple[float, float, float], fit: Fit, pixel: float | None
) -> GridWindow:
    """How a slice lies on the grid: with pixels of so many mm, or by a rule that knows rows and columns alone."""
    return fit(original, shape) if pixel is None else GridWindow.metric(original, shape, spacing[1:], pixel)


def split_by_patient(sources: Sequence[Source], *, validation: float, test: float = 0.0, seed: int = 0) -> list[Source]:
    """Give every source a split, drawing patients by a seed. Sources that have one keep it.

    Args:
        sources: The scans.
        validation: The share of patients to validate on.
        test: The share to set aside for the last evaluation.
        seed: Of the draw.
    """
    patients = sorted({source.patient for source in sources if not source.split})
    order = np.random.default_rng(seed).permutation(len(patients))
    # Whoever asks for a share of several patients gets at least one.
    least = 1 if len(patients) > 1 else 0
    counts = [max(least, round(share * len(patients))) if share else 0 for share in (validation, test)]
    if sum(counts) >= len(patients) and patients:
        raise BadInput(
            f"{len(patients)} patients cannot be split into {counts[0]} and {counts[1]} with any left to train on"
        )
    names = ["validation"] * counts[0] + ["test"] * counts[1]
    names += ["train"] * (len(patients) - len(names))
    drawn = {patients[patient]: name for patient, name in zip(order, names, strict=True)}
    return [source if source.split else replace(source, split=drawn[source.patient]) for source in sources]


def hold_out(sources: Sequence[Source], test: float, seed: int = 0) -> list[Source]:
    """Set a share of all patients aside for the last test, drawn from those that would train."""
    patients = sorted({source.patient for source in sources})
    training = sorted({source.patient for source in sources if source.split == "train"})
    count = round(test * len(patients))
    if count >= len(training) > 0:
        raise BadInput(f"{count} patients to test on leave none of {len(training)} to train on")
    chosen = set(np.random.default_rng(seed).permutation(training)[:count].tolist())
    return [replace(source, split="test") if source.patient in chosen else source for source in sources]


def normalise(
    image: Shaped[np.ndarray, "channels slices rows columns"],
) -> tuple[Float[np.ndarray, "channels slices rows columns"], tuple[float, float]]:
    """Brightness to 0..1 over the volume: the 0.1 % darkest voxels are black, the 0.1 % brightest white.

    Returns the image and the original values of black and white (of the first channel).
    """
    ends = []
    scaled = np.empty(image.shape, dtype=np.float32)
    for channel, measured in enumerate(image):
        voxels = measured.astype(np.float64)  # in float32, a small range far from zero would be lost
        low, high = np.percentile(voxels, (0.1, 99.9))
        if high <= low:
            low, high = float(voxels.min()), float(voxels.max())
        ends.append((float(low), float(high)))
        scaled[channel] = np.clip((voxels - low) / (high - low), 0, 1)
    return scaled, ends[0]


def on_grid(
    image: Shaped[np.ndarray, "channels slices rows columns"], fit: GridWindow, dtype: str
) -> tuple[Shaped[np.ndarray, "slices channels H W"], tuple[float, float]]:
    """A scan as a store keeps it: normalised over the volume, fitted to the grid, as 8-bit (0..255) or float16 (0..1).

    Returns the slices and the original values of black and white (of the first channel).
    """
    scaled, ends = normalise(image)
    fitted = np.stack([fit.image(channel) for channel in scaled], axis=1)
    stored = np.rint(fitted * 255).clip(0, 255) if dtype == "uint8" else fitted
    return stored.astype(dtype), ends


def prepare(sources: Sequence[Source], path: Path, plan: Plan, track: Track = iter) -> Report:
    """Write a store. Scans are read one at a time: more of them take more time, not more memory.

    Raises:
        BadInput: Naming the file and the remedy; nothing is left behind.
    """
    if not sources:
        raise BadInput("no scans were found; check the folder")
    if twice := [name for name, count in Counter(source.name for source in sources).items() if count > 1]:
        raise BadInput(f"two scans are called {twice[0]!r}; names must differ: is a patient there twice?")
    channels = 0
    notes: list[str] = []
    records: list[Record] = []
    weak = sorted({name for source in sources for name in source.weak})
    with aside(path) as folder:
        with ExitStack() as open_files:

            def labels(name: str) -> Append:
                return open_files.enter_context(labels_file(folder / name))

            append_truth = labels("truth.npy") if any(source.truth for source in sources) else None
            append_weak = {name: labels(f"annotations/{name}/labels.npy") for name in weak}
            append_image: Append | None = None
            for source in track(sources):
                loaded = source.load()
                slices, rows, columns = loaded.image.shape[1:]
                fit = placed((rows, columns), plan.shape, loaded.spacing, plan.fit, plan.pixel)
                if append_image is None:
                    channels = len(loaded.image)
                    images = array_file(folder / "images.npy", np.dtype(plan.dtype), (channels, *plan.shape))
                    append_image = open_files.enter_context(images)
                if len(loaded.image) != channels:
                    raise BadInput(
                        f"{source.name}: {len(loaded.image)} channels, but the scans before it have {channels}"
                    )
                image, ends = on_grid(loaded.image, fit, plan.dtype)
                append_image(image)
                if append_truth:
                    append_truth(_label(fit, loaded.truth, slices, outside=0))
                for name, append in append_weak.items():
                    append(_label(fit, loaded.weak.get(name), slices, outside=UNLABELLED))
                notes += [f"{source.name}: {note}" for note in loaded.notes]
                records.append(_record(source, loaded, records, fit, ends))
        for name in weak:
            file = folder / "annotations" / name / "labels.npy"
            about: dict[str, Any] = {"strategy": "given", "classes": list(plan.classes), "simulated": False}
            write_json(file.with_name("annotation.json"), {**about, "checksums": {"labels.npy": checksum(file)}})
        content = {
            "schema": SCHEMA,
            "name": plan.name,
            "classes": list(plan.classes),
            "channels": channels,
            "shape": list(plan.shape),
            "dtype": plan.dtype,
            "source": {"from": plan.origin, "fit": plan.fitting} | ({"pixel": plan.pixel} if plan.pixel else {}),
            "checksums": {file.name: checksum(file) for file in sorted(folder.glob("*.npy"))},
            "scans": [asdict(record) for record in records],
        }
        write_json(folder / "dataset.json", content)
    notes[:0] = _unlike(records) if plan.fitting == "pad" and plan.pixel is None else []
    return Report(Store(path), tuple(notes), sum(record.lost for record in records))


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
    source: Source, loaded: Loaded, before: Sequence[Record], fit: GridWindow, ends: tuple[float, float]
) -> Record:
    return Record(
        name=source.name,
        patient=source.patient,
        split=source.split or "train",
        first=before[-1].range.stop if before else 0,
        slices=loaded.image.shape[1],
        fit=fit,
        spacing=loaded.spacing,
        intensity=ends,
        phase=source.phase,
        truth=source.truth,
        lost=0 if loaded.truth is None else fit.lost(loaded.truth),
        group=source.group,
    )


def _label(fit: GridWindow, label: np.ndarray | None, slices: int, outside: int) -> np.ndarray:
    if label is None:
        return np.full((slices, *fit.shape), UNLABELLED, dtype=np.uint8)
    return fit.label(label, outside)
