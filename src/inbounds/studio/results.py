"""What the last training found: masks, volumes and doubts, as `inbounds predict` wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inbounds.scans.scan import is_series, stem

TABLE = "predictions.csv"


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
    """

    number: int = 0
    folder: Path | None = None
    values: Sequence[int] = ()
    scans: Mapping[str, Found] = field(default_factory=dict)

    def of(self, name: str) -> Found:
        """What was found in a scan."""
        return self.scans.get(name, Found())

    def mask(self, name: str, scan: Path) -> Path | None:
        """The file of a scan's mask, if there is one."""
        if self.folder is None or not self.of(name).predicted:
            return None
        return self.folder / (name + (".nii.gz" if is_series(scan) else scan.name[len(stem(scan)) :].lower()))
