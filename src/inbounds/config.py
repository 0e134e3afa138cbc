"""Settings of a training run: pydantic models over TOML. An unknown key is refused with the nearest known one."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from inbounds.errors import BadInput, nearest
from inbounds.regions import statistics

Numbers = float | list[float] | list[list[float]]


class Model(BaseModel):
    """Settings that cannot be changed once read, and know no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Network(Model):
    """Which network; `settings` go to its builder."""

    name: str = "enet"
    """`enet`, `unet`, `residual_unet`, or any of MONAI's as `monai:UNet`."""
    settings: dict[str, Any] = {}
    """What its builder takes, such as `{width = 32}`."""
    edge_filter: float = Field(default=0.0, ge=0)
    """Average scores over neighbours of similar brightness: the difference that counts as an edge, such as 0.1."""
    dilate: int = Field(default=0, ge=0)
    """A pixel has the best score within so many pixels: the network finds the cores that seeds come from."""
    initial_share: float = Field(default=0.0, ge=0, lt=1)
    """The probability of each class before training, such as 0.02; as the network has it, if 0."""


class Training(Model):
    """How it is trained. The defaults are the paper's on ACDC."""

    epochs: int = Field(default=200, ge=1)
    """How often all slices are gone through."""
    batch: int = Field(default=1, ge=1)
    """Slices in a step."""
    whole_scans: bool | None = None
    """A batch is one whole scan; by default where a constraint is on volumes."""
    repeats: int = Field(default=1, ge=1)
    """How often a slice is there in an epoch, each time augmented anew."""
    lr: float = Field(default=5e-4, gt=0)
    """The learning rate of Adam."""
    betas: tuple[float, float] = (0.9, 0.99)
    """Of Adam."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of Adam."""
    schedule: Literal["plateau", "cosine"] = "plateau"
    """`plateau`: times `factor` after `patience` epochs without progress. `cosine`: down to 0 at the last epoch."""
    patience: int = Field(default=20, ge=1)
    """Epochs without progress until `plateau` acts."""
    factor: float = Field(default=0.5, gt=0, le=1)
    """What `plateau` multiplies the learning rate by."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Judge and keep a running mean of the weights; the share of the old mean that stays at each step, such as 0.99."""
    precision: Literal["32", "bf16-mixed"] = "32"
    """Of the network; losses are always in float32."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:1`."""
    threads: int | None = Field(default=None, ge=1)
    """On a CPU; all cores if not given. Results are the same bit for bit for the same number of threads."""
    data_on_device: bool | None = None
    """Whether all slices lie on the device; if not given, where they take at most half of its memory."""
    cuda_graphs: bool = True
    """On a GPU, replay each step as a CUDA graph (needs `data_on_device`)."""
    compile: Literal["nothing", "network", "all"] | None = None
    """`all` is the network and the loss. By default so where the run is long enough to repay the minute it takes."""
    save_optimizer: bool = True
    """Without it, as large as two networks, checkpoints are small, and a resumed run is not the same bit for bit."""


class CommonRange(Model):
    """The range of common bounds: given, or fitted on one patient whose facts are known."""

    lower: Numbers | None = None
    """In pixels of the store's grid: for all classes, or one for each."""
    upper: Numbers | None = None
    """Likewise."""
    patient: str | None = None
    """Fit the range on this patient instead: 0.9 of the smallest size to 1.1 of the largest."""

    @model_validator(mode="after")
    def _one_way(self) -> CommonRange:
        if self.patient and (self.lower is not None or self.upper is not None):
            raise ValueError("give lower and upper, or a patient to fit them on, not both")
        return self


class Augmentation(Model):
    """What `inbounds.batches.augment.Augment` takes."""

    flip: bool | Literal["rows", "columns"] = False
    """Mirror both axes at random; or one of them."""
    quarter: bool = False
    """Turn by 0, 90, 180 or 270 degrees; square grids only."""
    rotate: float = Field(default=0.0, ge=0)
    """Degrees, at most, either way."""
    translate: float = Field(default=0.0, ge=0)
    """Shift, at most, as a share of the side."""
    zoom: float = Field(default=1.0, ge=1)
    """Factor, at most: 1.1 is 1/1.1 to 1.1."""
    contrast: float = Field(default=1.0, ge=1)
    """Factor of the brightness, at most, or its inverse."""
    brightness: float = Field(default=0.0, ge=0)
    """What is added, at most; images go from 0 to 1."""


class Hybrid(Model):
    """How many scans are fully labelled, and whether the others are left out."""

    full_scans: int = Field(default=0, ge=0)
    """How many scans, drawn by the seed, are fully labelled."""
    only_full: bool = False
    """Leave the others out."""
    repeat: int = Field(default=1, ge=1)
    """How often an epoch goes through the fully labelled scans while it goes through the others once."""
    weak_label_weight: float = Field(default=1.0, gt=0)
    """How much the labels of the other scans count in the loss, where those of the fully labelled ones count as 1."""

    @model_validator(mode="after")
    def _of_some(self) -> Hybrid:
        if self.repeat > 1 and not self.full_scans:
            raise ValueError("repeat is of fully labelled scans, and full_scans is 0")
        if self.weak_label_weight != 1 and (self.only_full or not self.full_scans):
            left = "the others are left out" if self.only_full else "full_scans is 0"
            raise ValueError(f"weak_label_weight is of scans beside fully labelled ones, and {left}")
        return self


class ProposalSettings(Model):
    """How the recipes `proposals_*` make their proposals; what is not given is the recipe's own."""

    method: Literal["ascent", "exact"] | None = None
    """The paper's ascent, or the exact solution."""
    early_stop: Literal["off", "authors", "corrected"] | None = None
    """Of the ascent: never, as in the authors' code, or once both multipliers have settled."""
    step_size: float | None = Field(default=None, gt=0)
    """Of the ascent."""
    iterations: int | None = Field(default=None, ge=1)
    """Of the ascent."""
    harden: bool | None = None
    """Train on a mask instead of probabilities."""


class ConstraintSettings(Model):
    """One constraint, written out: what recipes do not have."""

    statistic: str
    """`size`, `centroid`, `spread`, `moment`, `mean_intensity`, `variance_intensity`, `compactness` or `border`."""
    bounds: Literal["tags", "common", "individual", "fixed"]
    """Where the interval comes from."""
    penalty: Literal["quadratic", "hinge", "log_barrier"] = "quadratic"
    """What a violation costs."""
    t: float = Field(default=5.0, gt=0)
    """Of `log_barrier`: its sharpness."""
    lower: Numbers | None = None
    """Of `common` and `fixed`; open if not set."""
    upper: Numbers | None = None
    """Likewise."""
    relative: float | None = None
    """Of `individual`: the margin as a share of the fact."""
    absolute: float | None = None
    """Of `individual`: the margin in the statistic's unit."""
    tight: Literal["both", "upper"] = "both"
    """Of `individual`: both sides, or the upper one."""
    order: int = 2
    """Of `moment`."""
    edge: float = Field(default=0.1, gt=0)
    """Of `border`: the difference in brightness that counts as an edge."""
    reach: int = Field(default=3, ge=1)
    """Of `border`: how far apart two pixels may be."""
    framed: bool = False
    """Of `border`: what reaches the rim of the image has a border there."""
    power: float = Field(default=2.0, ge=1)
    """Of `border`: that of differences in probability; the nearer to 1, the sharper regions are."""
    classes: list[str] | None = None
    """Which classes; all if not set."""
    weight: float = 0.01
    """Of the penalty in the loss."""
    scope: Literal["image", "volume"] = "image"
    """Measure each slice, or whole scans."""
    name: str = ""
    """What its loss term is called."""
    tighten: float = Field(default=0.0, ge=0, lt=1)
    """The loss asks for bounds drawn in by this share of themselves."""
    wish: bool = False
    """Part of the loss, but not among the bounds that are said to hold or not."""
    fades: bool = False
    """The weight falls as the learning rate does."""

    @field_validator("statistic")
    @classmethod
    def _measured(cls, name: str) -> str:
        if name not in statistics:
            raise ValueError(f"no such statistic; {nearest(name, statistics)}")
        return name


class Settings(Model):
    """Everything that decides what a run does, but for its seed, its data and where it goes."""

    recipe: str
    """What is known: see `inbounds recipes`. The command names it."""
    weight: float | None = None
    """Of the recipe's bounds."""
    relative: float | None = None
    """Margin of individual and volume bounds, as a share."""
    absolute: float | None = None
    """Of `centroid`: margin in pixels."""
    centroid_weight: float | None = None
    """Of `centroid`: the weight of the centre."""
    tighten: float = Field(default=0.0, ge=0, lt=1)
    """The loss asks the recipe's sizes to stay within bounds drawn in by this share, such as 0.1."""
    common: CommonRange = CommonRange()
    network: Network = Network()
    training: Training = Training()
    augment: Augmentation = Augmentation()
    hybrid: Hybrid = Hybrid()
    proposals: ProposalSettings = ProposalSettings()
    constraints: list[ConstraintSettings] = []


def read_settings(recipe: str, file: Path | None = None, changes: Sequence[str] = ()) -> Settings:
    """The settings of a run: the defaults, then a TOML file, then single changes such as `training.epochs=50`.

    Raises:
        BadInput: A key is unknown or a value does not fit; the message names it, and the nearest known key.
    """
    content: dict[str, Any] = {}
    where = "settings"
    if file is not None:
        where = str(file)
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadInput(f"{file}: cannot be read as TOML ({error})") from None
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise BadInput(f"--set {change}: write it as key=value, such as training.epochs=50")
        _put(content, key.strip().split("."), _value(value.strip()), change)
    content.setdefault("recipe", recipe)
    if content["recipe"] != recipe:
        raise BadInput(f"{where}: made for the recipe {content['recipe']!r}, not for {recipe!r}")
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{where}: {_explain(error)}") from None


def _value(text: str) -> Any:
    """A value as TOML writes it; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(content: dict[str, Any], path: list[str], value: Any, change: str) -> None:
    for name in path[:-1]:
        content = content.setdefault(name, {})
        if not isinstance(content, dict):
            raise BadInput(f"--set {change}: {name} is no group of settings")
    content[path[-1]] = value


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    key = ".".join(path)
    if first["type"] == "extra_forbidden":
        return f"unknown setting {key!r}; {nearest(key, _keys(Settings), cutoff=0.4)}"
    return f"{key or 'settings'} is {first.get('input')!r}: {first['msg'].removeprefix('Value error, ')}"


def _keys(model: type[BaseModel], before: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys += _keys(inner, f"{before}{name}.")
        else:
            keys.append(f"{before}{name}")
    return keys
