"""What the JSON files of a store hold: `dataset.json`, and `annotation.json` beside the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, FailFast, Field, model_validator

from inbounds.described import Count, Described, Digest, Line, Name
from inbounds.errors import BadInput
from inbounds.store.grid import GridSide
from inbounds.store.record import Record

SCHEMA = 1
AGAIN = "prepare the store again"
IMAGES, TRUTH, LABELS = "images.npy", "truth.npy", "labels.npy"
Blocks = dict[str, Annotated[tuple[Digest, ...], FailFast()]]
"""By file, the SHA-256 of what each scan has in it; stores of 0.1 have none."""


def _readable(schema: int) -> int:
    if schema != SCHEMA:
        raise BadInput(f"schema {schema}, but this version reads {SCHEMA}; {AGAIN}")
    return schema


class Grid(Described):
    """What is known of a grid wherever images are prepared for it."""

    shape: tuple[GridSide, GridSide]


class Origin(Described):
    """Where the scans came from, and how more of them are read."""

    patient: Line = ""
    unlabelled: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    series: Line = ""
    folder_names: bool = False
    values: tuple[tuple[int, Name], ...] = ()


class Description(Described):
    """All of `dataset.json`. Nothing it declares is believed before the arrays agree."""

    version: Annotated[int, AfterValidator(_readable)] = Field(alias="schema")
    name: Line
    classes: tuple[Name, ...] = Field(min_length=2, max_length=255)
    channels: int = Field(ge=1, le=1000)
    shape: tuple[GridSide, GridSide]
    dtype: Literal["uint8", "float16"]
    dimensions: Literal[2, 3] = 2
    source: Origin
    checksums: dict[str, Digest]
    blocks: Blocks = Field(default_factory=dict)
    scans: Annotated[tuple[Record, ...], FailFast(), Field(min_length=1)]

    @model_validator(mode="after")
    def _whole(self) -> Description:
        for what, names in (("classes", self.classes), ("scans", tuple(scan.name for scan in self.scans))):
            if len(set(names)) < len(names):
                raise ValueError(f"two {what} have the same name")
        first = 0
        for scan in self.scans:
            if scan.first != first:
                raise ValueError(f"the scans' slices do not follow each other: {scan.name} begins at {scan.first}")
            first += scan.slices
        for name in (IMAGES, TRUTH) if any(scan.truth for scan in self.scans) else (IMAGES,):
            if name not in self.checksums:
                raise ValueError(f"checksums has none of {name}")
            check_blocks(self.blocks, name, len(self.scans))
        return self


class About(Described):
    """All of `annotation.json`: how an annotation was made."""

    strategy: Line = ""
    classes: tuple[Name, ...] = Field(max_length=255)
    simulated: bool = False
    settings: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[Line, ...] = ()
    seed: Count = 0
    every: int = Field(default=1, ge=1)
    checksums: dict[str, Digest]
    blocks: Blocks = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> About:
        if LABELS not in self.checksums:
            raise ValueError(f"checksums has none of {LABELS}")
        return self


def check_blocks(blocks: Mapping[str, Sequence[str]], name: str, scans: int) -> None:
    """Refuse checksums of some scans that leave out others."""
    if blocks and len(blocks.get(name, ())) != scans:
        raise ValueError(f"blocks has {len(blocks.get(name, ()))} checksums of {name}, and there are {scans} scans")
