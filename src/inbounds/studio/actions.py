"""What people can do on the page, as it is sent: each is looked at before anything is changed."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Unit = Literal["ml", "mm2", "px"]
COLUMNS: dict[str, str] = {"ml": "volume_ml", "mm2": "size_mm2", "px": "size_px"}
"""The column of a facts table that has a size in each unit."""


def _finite(value: float) -> float:
    if not (math.isfinite(value) and abs(value) < 1e6):
        raise ValueError("a place must be a number of voxels")
    return value


def _name(value: str) -> str:
    name = value.strip()
    if not name or "," in name or name.isdecimal() or not name.isprintable():
        raise ValueError("a name needs letters, and has no comma")
    return name


Coordinate = Annotated[float, AfterValidator(_finite)]
Place = tuple[Coordinate, Coordinate, Coordinate]
Value = Annotated[int, Field(ge=0, le=250)]
Axis = Literal[0, 1, 2]
Number = Annotated[int, Field(ge=0, le=1_000_000)]
Who = Annotated[str, Field(min_length=1, max_length=80)]


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)
    who: Who

    def content(self) -> dict[str, Any]:
        """What is written down of it, beside who did it to which scan."""
        return self.model_dump(exclude={"who", "scan", "kind"}, by_alias=True)


class _OnScan(_Action):
    scan: int


class Stroke(_OnScan):
    """A line of a brush, or a click; without a class it takes labels away."""

    kind: Literal["stroke"]
    klass: Value | None = Field(alias="class")
    plane: Axis = 0
    points: Annotated[list[Place], Field(min_length=1, max_length=20_000)]
    radius: Annotated[float, Field(ge=0, le=1000)] = 0.0


class Box(_OnScan):
    """A class lies inside a box of one slice."""

    kind: Literal["box"]
    klass: Annotated[int, Field(alias="class", ge=1, le=250)]
    plane: Axis = 0
    corners: tuple[Place, Place]


class Size(BaseModel):
    """How large a region is, from and to."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    low: Annotated[float, Field(ge=0, le=1e12)] | None = None
    high: Annotated[float, Field(ge=0, le=1e12)] | None = None
    unit: Unit

    @model_validator(mode="after")
    def _ordered(self) -> Size:
        if self.low is None and self.high is None:
            raise ValueError("a size needs a number: the least, the most or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"a size goes from {self.low:g} to {self.high:g}: put the smaller number first")
        return self


class SetFact(_OnScan):
    """What is known of a class in a slice, in several, or in the whole scan."""

    kind: Literal["fact"]
    klass: Annotated[int, Field(alias="class", ge=1, le=250)]
    slice: Number | None = None
    slices: Annotated[list[Number], Field(min_length=1, max_length=100_000)] | None = None
    present: bool | None = None
    size: Size | None = None

    @property
    def places(self) -> list[int | None]:
        """The slices that it is about; `None` is the whole scan."""
        return [self.slice] if self.slices is None else list(self.slices)


class Accept(_OnScan):
    """The mask of a scan is good."""

    kind: Literal["accept"]
    accepted: bool


class SetClass(_Action):
    """A class, new or with another name or colour."""

    kind: Literal["class"]
    value: Value
    name: Annotated[str, Field(max_length=60), AfterValidator(_name)]
    colour: Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")] | None = None


class DeleteClass(_Action):
    """A class that nobody needs."""

    kind: Literal["class_delete"]
    value: Annotated[int, Field(ge=1, le=250)]


class Rescan(_Action):
    """Look for new scans in the folder."""

    kind: Literal["rescan"]


Done = Annotated[Stroke | Box | SetFact | Accept | SetClass | DeleteClass | Rescan, Field(discriminator="kind")]
