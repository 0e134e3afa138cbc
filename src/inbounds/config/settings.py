"""The settings of a training run, with their units and limits."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(gt=0, le=1000)]
Side = Annotated[int, Field(ge=1, le=8192)]
Devices = Annotated[int, Field(ge=1, le=1024)]


def _rising(ramp: tuple[float, float]) -> tuple[float, float]:
    if ramp[0] >= ramp[1]:
        raise ValueError("a ramp has a beginning and a later end, such as [0.05, 0.3]")
    return ramp


Ramp = Annotated[tuple[Share, Annotated[float, Field(gt=0, le=1)]], AfterValidator(_rising)]


class Model(BaseModel):
    """Settings that cannot be changed once read, and know no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Network(Model):
    """Which network; `settings` go to its builder."""

    name: str = "enet"
    """`enet`, `unet`, `residual_unet`, or any of MONAI's as `monai:UNet`."""
    settings: dict[str, Any] = {}
    """What its builder takes, such as `{width = 32}`."""
    weights: str = ""
    """A file of weights to begin with: `.safetensors`, `.pt`."""
    initial_share: float = Field(default=0.0, ge=0, lt=1)
    """The probability of each class before training, such as 0.02; as the network has it, if 0."""
    dimensions: Literal[2, 3] = 2
    """3 for a network that sees volumes; if not set, as the store was prepared."""


class Training(Model):
    """How it is trained."""

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    """How often all slices are gone through; if not given, as often as `minutes` allow."""
    minutes: float | None = Field(default=None, gt=0, le=100_000)
    """Time for the whole training, from which the epochs follow; if not given, 10 on a CPU and 5 on a GPU."""
    slices: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Slices in an epoch, drawn anew each time; all of them if not given."""
    batch: int = Field(default=1, ge=1, le=10_000)
    """Slices in a step."""
    patch: tuple[Side, Side, Side] | None = None
    """Of volumes, slices, rows and columns of a patch; if not given, what fits the device. `batch` counts patches."""
    around_labels: float = Field(default=0.5, ge=0, le=1)
    """The share of patches that are drawn around labelled voxels, each class as often; the others lie anywhere."""
    estimate: bool = True
    """Of bounds on whole scans, and on slices that patches show a part of: what is outside of a patch counts as the
    averaged network found it lately. Without, only upper sides act."""
    whole_scans: bool | None = None
    """A batch is one whole scan; by default where a constraint is on volumes."""
    repeats: int = Field(default=1, ge=1, le=10_000)
    """How often a slice is there in an epoch, each time augmented anew."""
    lr: float = Field(default=5e-4, gt=0, le=10)
    """The learning rate of Adam."""
    betas: tuple[Share, Share] = (0.9, 0.99)
    """Of Adam."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Of Adam."""
    schedule: Literal["plateau", "cosine"] = "plateau"
    """`plateau`: times `factor` after `patience` epochs without progress. `cosine`: down to 0 at the last epoch."""
    patience: int = Field(default=20, ge=1, le=100_000)
    """Epochs without progress until `plateau` acts."""
    factor: float = Field(default=0.5, gt=0, le=1)
    """What `plateau` multiplies the learning rate by."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Judge and keep a running mean of the weights; the share of the old mean that stays at each step, such as 0.99."""
    class_weight: list[Weight] | None = None
    """How much a labelled pixel of each class counts, background first; all alike if not given."""
    label_mean: Literal["images", "classes"] = "images"
    """What counts the same in the loss of labels: each labelled image, or each class that is labelled in an image."""
    precision: Literal["32", "bf16-mixed"] = "32"
    """Of the network; losses are always in float32."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:1`."""
    devices: Devices | Literal["auto"] = 1
    """So many processes share each batch, each with a GPU, or with cores of a CPU; `auto`: all GPUs of this machine. A
    run may go on with another number."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """On a CPU, of each process; all cores, shared, if not given. Results are the same bit for bit for the same number
    of threads."""
    data_on_device: bool | None = None
    """Whether all slices lie on the device; if not given, where they take at most half of its memory. Else they are
    read from the disk, ahead of the steps."""
    cuda_graphs: bool = True
    """On a GPU, replay each step as a CUDA graph."""
    compile: Literal["nothing", "network", "all"] | None = None
    """`all` is the network and the loss. By default so where the run is long enough to repay the minute it takes."""
    save_optimizer: bool = True
    """Without it, as large as two networks, checkpoints are small, and a resumed run is not the same bit for bit."""

    @field_validator("device")
    @classmethod
    def _known(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|mps|(cuda|gpu)(:\d{1,2})?", device):
            raise ValueError("there are auto, cpu, mps, cuda and, of several, cuda:1")
        return device


class Augmentation(Model):
    """What `inbounds.batches.augment.Augment` takes."""

    flip: bool | Literal["rows", "columns"] = False
    """Mirror both axes at random; or one of them."""
    quarter: bool = False
    """Turn by 0, 90, 180 or 270 degrees; square grids only."""
    rotate: float = Field(default=0.0, ge=0, le=180)
    """Degrees, at most, either way."""
    translate: float = Field(default=0.0, ge=0, lt=1)
    """Shift, at most, as a share of the side."""
    zoom: float = Field(default=1.0, ge=1, le=10)
    """Factor, at most: 1.1 is 1/1.1 to 1.1."""
    contrast: float = Field(default=1.0, ge=1, le=10)
    """Factor of the brightness, at most, or its inverse."""
    brightness: float = Field(default=0.0, ge=0, le=1)
    """What is added, at most; images go from 0 to 1."""


class Hybrid(Model):
    """How many scans are fully labelled, and whether the others are left out."""

    full_scans: int = Field(default=0, ge=0)
    """How many scans, drawn by the seed, are fully labelled."""
    only_full: bool = False
    """Leave the others out."""
    repeat: int = Field(default=1, ge=1, le=10_000)
    """How often an epoch goes through the fully labelled scans while it goes through the others once."""
    weak_label_weight: float = Field(default=1.0, gt=0, le=1e9)
    """How much the labels of the other scans count in the loss, where those of the fully labelled ones count as 1."""

    @model_validator(mode="after")
    def _of_some(self) -> Hybrid:
        if self.repeat > 1 and not self.full_scans:
            raise ValueError("repeat is of fully labelled scans, and full_scans is 0")
        if self.weak_label_weight != 1 and (self.only_full or not self.full_scans):
            left = "the others are left out" if self.only_full else "full_scans is 0"
            raise ValueError(f"weak_label_weight is of scans beside fully labelled ones, and {left}")
        return self


Part = dict[str, Any]
"""A thing by its name, with its own arguments: `{name = "log_barrier", t = 5}`, or the name alone."""


class _Parts(Model):
    @model_validator(mode="before")
    @classmethod
    def _names(cls, content: Any) -> Any:
        """A name alone stands for the thing without arguments."""
        if not isinstance(content, dict):
            return content
        parts = {key: value for key, value in content.items() if key in PARTS and isinstance(value, str)}
        return content | {key: {PARTS[key]: value} for key, value in parts.items()}


PARTS = {"statistic": "name", "bounds": "kind", "penalty": "name", "term": "name", "project": "name"}
"""The settings that are a thing with arguments, and what its name is called."""


class ProposalSettings(_Parts):
    """How the recipes `proposals_*` make their proposals."""

    project: Part
    """`ascent`, the paper's, with `step_size`, `iterations` and `early_stop` (off, authors, corrected); or `exact`."""
    harden: bool = True
    """Train on a mask instead of probabilities."""
    sides: Literal["both", "upper"] = "both"
    """Both bounds, or the upper one alone, as the authors do with tags."""


class ConstraintSettings(_Parts):
    """A statistic, its bounds and a penalty; recipes expand to such constraints."""

    statistic: Part
    """What is measured: `size`, `centroid`, `spread`, `{name = "moment", order = 2}`, `mean_intensity`, ...; of two
    regions `ratio`, `inclusion`, `distance`, `offset`."""
    bounds: Part
    """`tags`; `{kind = "common", lower, upper}`, or `mean` and `sd` of a population, or `patient`, fitted on one;
    `{kind = "individual", relative}` or `absolute`, `tight = "upper"`; `{kind = "known", relative, lower, upper}`, all
    that is known together; `{kind = "fixed", lower, upper}`."""
    penalty: Part = {"name": "quadratic"}
    """What a violation costs: `quadratic`, `hinge`, `{name = "log_barrier", t = 5}`,
    `{name = "multipliers", step_size, damping}`, one for each image."""
    classes: list[str] | None = None
    """Which classes; all if not set. `"LV+MYO"` takes two together; a relation is of each and the next."""
    class_weight: list[Weight] | None = None
    """How much each of them counts, or each relation; all alike if not set."""
    weight: float = Field(default=0.01, ge=0, le=1e9)
    """Of the penalty in the loss."""
    scope: Literal["image", "volume"] = "image"
    """Measure each slice, or whole scans."""
    ramp: Ramp | None = None
    """The weight rises from 0 to its full value between these two shares of the training, such as [0.05, 0.3]."""
    scale: Literal["natural", "typical"] = "natural"
    """What weights are measured by: the statistic's own scale, or the class's median size in the training set."""


class RegulariserSettings(_Parts):
    """What a prediction should be whatever is known of the image."""

    term: Part
    """`{name = "pairwise", sigma = 0.1, reach = 5, spread = 6, stride = 2}`: neighbours that look alike and differ;
    `normalised_cut`, with the same;
    `{name = "border", edge = 0.1, reach = 3, framed = false, power = 2}`: borders where the image has no edge."""
    weight: float = Field(default=1.0, ge=0, le=1e9)
    """Of the term in the loss."""
    schedule: Literal["constant", "lr"] = "constant"
    """`lr`: the weight falls as the learning rate does."""
    where: Literal["everywhere", "present"] = "everywhere"
    """In all images, or where a class is known to be present."""
    classes: list[str] | None = None
    """Which classes; all if not set."""


class Settings(Model):
    """Everything that decides what a run does, but for its seed, its data and where it goes."""

    recipe: str
    """What is known: see `inbounds recipes`. The command names it; it expands to constraints and proposals."""
    network: Network = Network()
    training: Training = Training()
    augment: Augmentation = Augmentation()
    hybrid: Hybrid = Hybrid()
    constraints: dict[str, ConstraintSettings] = {}
    """By the name of their loss term; `size` is that of the recipe's own bounds."""
    regularisers: dict[str, RegulariserSettings] = {}
    """By the name of their loss term."""
    proposals: ProposalSettings | None = None

    def on(self, devices: int | Literal["auto"]) -> Settings:
        """The same for another number of devices, which changes no result."""
        return self.model_copy(update={"training": self.training.model_copy(update={"devices": devices})})
