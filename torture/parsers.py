"""What reads the bytes of others, as functions of a file; and files that are good, to begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Parser:
    """One of them.

    Attributes:
        name: The file's name, by whose end readers know what it is.
        seeds: Files of the material to begin with.
        beside: What else of the material must lie in its folder, copied there.
        make: Gives the function; called once, so that imports and a store are there before it runs.
    """

    name: str
    seeds: tuple[str, ...]
    make: Callable[[Path], Read]
    beside: str = ""


def _scan(_: Path) -> Read:
    from inbounds.scans.scan import read, read_labels

    def look(file: Path) -> None:
        from inbounds.errors import BadInput

        try:
            read(file)
        except BadInput:
            read_labels(file)

    return look


def _table(material: Path) -> Read:
    from inbounds.store.facts import Facts
    from inbounds.store.store import Store

    store = Store(material / "store")
    return lambda file: Facts.read(file, store.classes, store.cases)


def _clicks(material: Path) -> Read:
    from inbounds.store.annotate import _clicks
    from inbounds.store.store import Store

    store = Store(material / "store")
    return lambda file: _clicks(store, file)


def _settings(_: Path) -> Read:
    from inbounds.config import read_settings

    return lambda file: read_settings("known", file)


def _store(_: Path) -> Read:
    from inbounds.store.store import Store

    def look(file: Path) -> None:
        store = Store(file.parent)
        store.folded(0, 2)
        for name in store.annotations:
            store.about(name)
            store.label(name)[0]
        store.images[0]

    return look


def _run(_: Path) -> Read:
    from inbounds.runs.run import Run

    return lambda file: Run.open(file.parent)


def _state(_: Path) -> Read:
    from inbounds.runs.checkpoint import kept_epochs

    return lambda file: kept_epochs(file.parent)


def _labels(material: Path) -> Read:
    from inbounds.store.rle import Labels
    from inbounds.store.store import Store

    store = Store(material / "store")

    def look(file: Path) -> None:
        labels = Labels(file, (store.slices, *store.shape))
        labels[0], labels[-1], labels[:]

    return look


def _rows(_: Path) -> Read:
    from inbounds.runs.table import read_rows

    return lambda file: read_rows(file, growing=True)


PARSERS = {
    "nifti": Parser("a.nii", ("formats/nii/a.nii",), _scan),
    "nifti packed": Parser("a.nii.gz", ("formats/nii.gz/a.nii.gz",), _scan),
    "metaimage": Parser("a.mha", ("formats/mha/a.mha",), _scan),
    "metaimage header": Parser("a.mhd", ("formats/mhd/a.mhd",), _scan, "formats/mhd/a.raw"),
    "nrrd": Parser("a.nrrd", ("formats/nrrd/a.nrrd", "formats/nrrd packed/a.nrrd"), _scan),
    "nrrd header": Parser("a.nhdr", ("formats/nhdr/a.nhdr",), _scan, "formats/nhdr/a.raw"),
    "picture": Parser("0.png", ("formats/png/a/0.png",), _scan),
    "facts": Parser("table.csv", ("hearts/sizes.csv", "store/annotations/clicks/facts.csv"), _table),
    "clicks": Parser("table.csv", ("hearts/clicks.csv",), _clicks),
    "settings": Parser("settings.toml", ("settings.toml",), _settings),
    "dataset.json": Parser("dataset.json", ("store/dataset.json",), _store, "store"),
    "run.json": Parser("run.json", ("run/run.json",), _run),
    "state.json": Parser("state.json", ("half/checkpoints/0001/state.json",), _state),
    "label runs": Parser("labels.npy", ("store/annotations/clicks/labels.npy",), _labels),
    "metrics": Parser("metrics.csv", ("run/metrics.csv",), _rows),
}
"""By what is read."""
