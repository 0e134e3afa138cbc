"""What the last training found: masks, volumes and doubts, as `inbounds predict` wrote them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from inbounds.inference.doubt import PARTS, REASONS
from inbounds.scans.scan import is_series, stem

TABLE = "predictions.csv"
DOUBTFUL = 0.25
"""From this doubt on, a sentence says what speaks against a mask."""


@dataclass(frozen=True)
class Found:
    """What is known of the mask of a scan.

    Attributes:
        predicted: Whether there is one.
        doubt: The largest doubt of its classes.
        flags: What speaks against it, in sentences.
        volumes: In ml, by the value of the class.
    """

    predicted: bool = False
    doubt: float | None = None
    flags: tuple[str, ...] = ()
    volumes: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The masks of one training.

    Attributes:
        number: Of the training; 0 if there is none yet.
        folder: Where its masks are.
        values: The classes' values, in the order of the masks' own.
        scans: By name.
        left_out: Why scans could not be read, by name, after the stamps of their files then.
    """

    number: int = 0
    folder: Path | None = None
    values: Sequence[int] = ()
    scans: Mapping[str, Found] = field(default_factory=dict)
    left_out: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of(self, name: str) -> Found:
        """What was found in a scan."""
        return self.scans.get(name, Found())

    def mask(self, name: str, scan: Path) -> Path | None:
        """The file of a scan's mask, if there is one."""
        if self.folder is None or not self.of(name).predicted:
            return None
        return self.folder / (name + (".nii.gz" if is_series(scan) else scan.name[len(stem(scan)) :].lower()))

    def shown(self, mask: UInt8[np.ndarray, "rows columns"]) -> UInt8[np.ndarray, "rows columns"]:
        """A picture of a mask with the values of the project's classes."""
        values = np.zeros(256, dtype=np.uint8)
        values[: len(self.values)] = self.values
        shown: np.ndarray = values[mask]
        return shown


def newest(work: Path) -> Results:
    """The masks of the last training that has come so far."""
    for table in sorted(work.glob(f"[0-9]*/masks/{TABLE}"), reverse=True):
        about = json.loads((table.parents[1] / "job.json").read_text(encoding="utf-8"))
        found = read_results(table, about["number"], dict(zip(about["classes"], about["values"], strict=True)))
        stamps = about["stamps"]
        left = {name: (stamps[name], why) for name, why in about["left_out"].items() if name in stamps}
        return replace(found, left_out=left)
    return Results()


def read_results(table: Path, number: int, values: Mapping[str, int]) -> Results:
    """Read a table of predictions; `values` are those of the classes by the names that they had."""
    by_scan: dict[str, list[dict[str, str]]] = {}
    with table.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            by_scan.setdefault(line["case"], []).append(line)
    scans = {name: _found(lines, values) for name, lines in by_scan.items()}
    return Results(number, table.parent, list(values.values()), scans)


def _found(lines: Sequence[Mapping[str, str]], values: Mapping[str, int]) -> Found:
    doubts = [float(line["doubt"]) for line in lines if line["doubt"]]
    flags = []
    for line in lines:
        if line["doubt"] and float(line["doubt"]) >= DOUBTFUL:
            flags.append(f"{line['class']}: {REASONS[max(PARTS, key=lambda part: float(line[part] or 0))]}")
        flags += [line["note"]] if line["note"] else []
    volumes = {values[line["class"]]: float(line["volume_ml"]) for line in lines if line["class"] in values}
    return Found(True, max(doubts, default=None), tuple(dict.fromkeys(flags)), volumes)
