"""A trained network that travels: a folder laid out as MONAI's bundles are, of weights and data alone.

configs/metadata.json    what MONAI says of a network; under `inbounds` what predicting needs: classes, preparation
configs/inference.json   for MONAI's own runner; never read here, as it names code
models/model.safetensors
docs/README.md           the model card
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from torch import nn

from inbounds.config import network_of
from inbounds.config.settings import Network
from inbounds.described import Described, Line, Name, read_json
from inbounds.errors import BadInput
from inbounds.runs.checkpoint import load_weights

METADATA, INFERENCE = "configs/metadata.json", "configs/inference.json"
WEIGHTS, CARD = "models/model.safetensors", "docs/README.md"
SCHEMA = 1


def _readable(schema: int) -> int:
    if schema != SCHEMA:
        raise BadInput(f"a bundle of schema {schema}, and this version reads {SCHEMA}; export it again")
    return schema


class Kept(Described):
    """What predicting needs beside the weights."""

    version: Annotated[int, AfterValidator(_readable)] = Field(alias="schema")
    network: Network
    patch: tuple[int, int, int] | None = None
    classes: tuple[Name, ...] = Field(min_length=1, max_length=255)
    channels: int = Field(ge=1, le=1000)
    preparation: dict[str, Any]
    volumes: dict[str, tuple[float, float]] = Field(default_factory=dict)
    model: Line


class Metadata(Described):
    """What is read of `metadata.json`; the rest is for others."""

    inbounds: Kept


@dataclass(frozen=True)
class Bundle:
    """A bundle, opened: what a run is where scans are segmented.

    Attributes:
        path: Its folder.
        kept: What it says.
    """

    path: Path
    kept: Kept

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Read what a bundle says; nothing that it names is imported, run or fetched."""
        return cls(path, read_json(path / METADATA, Metadata, "export the run again").inbounds)

    @property
    def classes(self) -> tuple[str, ...]:
        """Outputs 1, 2, ... of the network."""
        return self.kept.classes

    @property
    def channels(self) -> int:
        """Of its images."""
        return self.kept.channels

    @property
    def about(self) -> dict[str, Any]:
        """What runs that predict together must agree in."""
        return self.kept.model_dump(mode="json", include={"classes", "channels", "preparation"})

    @property
    def volumes(self) -> dict[str, tuple[float, float]]:
        """The least and the most of each class in a training scan, in ml."""
        return self.kept.volumes

    @property
    def default_model(self) -> str:
        """What its network was in the run."""
        return self.kept.model

    def weights(self, model: str) -> Path:
        """The file of its network, of which there is one."""
        if model != self.kept.model:
            raise BadInput(f"{self.path}: the bundle holds the model {self.kept.model!r} alone; leave --model out")
        return self.path / WEIGHTS

    def network(self, model: str) -> nn.Module:
        """Its network, in evaluation mode."""
        made = network_of(self.kept.network, self.channels, len(self.classes) + 1, self.kept.patch)
        load_weights(self.weights(model), made)
        return made.eval()


def is_bundle(path: Path) -> bool:
    """Whether a folder is laid out as a bundle."""
    return (path / METADATA).is_file()
