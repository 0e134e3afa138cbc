"""What the JSON files of a run hold: `run.json`, and `state.json` in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from inbounds.config import Settings
from inbounds.described import Count, Described, Digest, Line, Name
from inbounds.errors import BadInput

SCHEMA = 3
"""Of `run.json`; the runs of 0.1 have none, and settings with other names; those of 2 have settings that are gone."""
AGAIN = "start the run again"
Words = dict[str, Line]
Epochs = Annotated[int, Field(ge=1, le=100_000)]


def _readable(schema: int) -> int:
    if schema != SCHEMA:
        raise BadInput(
            "made by another version of inbounds, which has other settings; train it again, or use the version "
            "that made it"
        )
    return schema


class Data(Described):
    """What `run.json` says of the store."""

    name: Line
    checksums: dict[str, Digest]
    source: dict[str, Any] = Field(default_factory=dict)


class Labels(Described):
    """What it says of the annotation."""

    name: Name
    checksums: dict[str, Digest] = Field(default_factory=dict)


class Identity(Described):
    """What it says of files beside the arrays, and of each scan in any of them."""

    files: dict[str, Digest]
    parts: dict[str, dict[str, Annotated[str, StringConstraints(max_length=64)]]]


class Planned(Described):
    """What was chosen for the person, and why."""

    settings: dict[str, Any]
    words: tuple[Line, ...]


class Description(Described):
    """All of `run.json`."""

    version: Annotated[int, AfterValidator(_readable)] = Field(default=0, alias="schema", validate_default=True)
    recipe: Line
    settings: Settings
    store: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]+$")]
    data: Data
    preparation: dict[str, Any] = Field(default_factory=dict)
    annotation: Labels
    facts: Annotated[str, StringConstraints(max_length=1000)] | None
    known: tuple[Line, ...] = Field(min_length=1)
    classes: tuple[Name, ...] = Field(min_length=1, max_length=255)
    channels: int = Field(ge=1, le=1000)
    seed: Count
    plan: Planned | None = None
    fold: tuple[Count, Count] | None = None
    versions: Words = Field(default_factory=dict)
    commit: Line | None = None
    machine: Words = Field(default_factory=dict)
    epochs: Epochs | None = None
    volumes: dict[str, tuple[float, float]] = Field(default_factory=dict)
    identity: Identity

    @model_validator(mode="after")
    def _whole(self) -> Description:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("two classes have the same name")
        if self.fold and self.fold[0] >= self.fold[1]:
            raise ValueError("fold {} of {}, and they are counted from 0".format(*self.fold))
        return self


@dataclass
class Standing:
    """All of `state.json`: where a run stands, but for tensors.

    Attributes:
        epoch: Epochs finished.
        lr: The learning rate of the next one.
        bad_epochs: How many have passed without progress.
        best: The best score so far, and its epoch.
        fewest: The fewest violations so far.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    epoch: Count = 0
    lr: Annotated[float, Field(ge=0, le=10)] = 0.0
    bad_epochs: Count = 0
    best: tuple[float, Count] | None = None
    fewest: float | None = None
