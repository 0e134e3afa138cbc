"""Scans with their truth and their weak labels side by side, as in the paper's figure of supervision levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.errors import BadInput
from inbounds.reports.pictures import window
from inbounds.store.record import Record
from inbounds.store.store import FULL, Store
from inbounds.writing import file_aside

PALETTE = ("#c0392b", "#2a9d8f", "#e9a23b", "#4f7cff", "#b565d9", "#7fb800", "#00a6d6", "#f26ca7")
"""Background first. Classes beyond the last share colours in turn."""

FORMATS = ("png", "pdf", "svg", "jpg")


def preview(
    store: Store, file: Path, *, annotations: Sequence[str] = (), scans: int = 4, classes: Sequence[int] = ()
) -> None:
    """Write a picture: one row per scan; the image, then each annotation over it, the truth first if there is one.

    Scans are taken at equal steps through the store, and of each the slice in which most pixels belong to a class (or
    the middle one); the view is cropped to the surroundings of what is labelled there.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    kind = file.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise BadInput(f"{file}: pictures end in {', '.join(FORMATS)}, such as {file.stem}.png; choose one of these")
    names = list(annotations) or sorted(store.annotations, key=lambda name: (name != FULL, name))
    chosen = [store.records[n] for n in np.unique(np.linspace(0, len(store.records) - 1, scans).round().astype(int))]
    size = (2.3 * (1 + len(names)), 2.3 * len(chosen) + 0.7)
    figure, axes = plt.subplots(len(chosen), 1 + len(names), figsize=size, squeeze=False, layout="constrained")
    for row, record in zip(axes, chosen, strict=True):
        number = _fullest(store, record, names)
        position = record.first + number
        image = store.images[position, 0].astype(np.float32)
        labels = {name: store.label(name)[position] for name in names}
        if classes:
            shown = [0, UNLABELLED, *classes]
            labels = {name: np.where(np.isin(label, shown), label, 0) for name, label in labels.items()}
        marked = [(label != 0) & (label != UNLABELLED) for label in labels.values()]
        view = window(np.any([np.zeros(store.shape, dtype=bool), *marked], axis=0), 0.8)
        for axis, name in zip(row, ["image", *names], strict=True):
            axis.imshow(image[view], cmap="gray", interpolation="nearest")
            if name in labels:
                axis.imshow(_colours(labels[name][view]), interpolation="nearest")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        row[0].set_ylabel(f"{record.name}\nslice {number}", fontsize=8)
    for axis, name in zip(axes[0], ["scan", *(_title(store, name) for name in names)], strict=True):
        axis.set_title(name, fontsize=10)
    listed = (0, *(classes or range(1, len(store.classes))))
    keys = [Patch(color=PALETTE[k % len(PALETTE)], label=store.classes[k]) for k in listed]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False, fontsize=9)
    try:
        with file_aside(file) as part:
            figure.savefig(part, dpi=150, format=kind)
    finally:
        plt.close(figure)


def _title(store: Store, name: str) -> str:
    strategy = store.about(name).get("strategy", "")
    return "truth" if name == FULL else name if strategy == name else f"{name} ({strategy})"


def _fullest(store: Store, record: Record, names: Sequence[str]) -> int:
    source = store.truth if record.truth else (store.label(names[0]) if names else None)
    if source is None:
        return record.slices // 2
    label = source[record.span]
    return int(((label != 0) & (label != UNLABELLED)).sum(axis=(1, 2)).argmax())


def _colours(label: np.ndarray) -> np.ndarray:
    """Red for background, a colour for each class, nothing where unlabelled."""
    from matplotlib.colors import to_rgb

    overlay = np.zeros((*label.shape, 4))
    for value in np.unique(label):
        if value != UNLABELLED:
            where = label == value
            faint = value == 0 and where.mean() > 0.2  # a whole background would hide the scan
            overlay[where] = (*to_rgb(PALETTE[int(value) % len(PALETTE)]), 0.3 if faint else 0.75)
    return overlay
