"""What a cluster is asked for, as a person writes it down: the groups `slurm` and `ray` of a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from inbounds.config import Model
from inbounds.config.read import explain
from inbounds.errors import BadInput
from inbounds.reading import read_written

LARGEST = 1 << 20


class Slurm(Model):
    """What Slurm is asked for, of each task.

    Attributes:
        pack: So many lines in one task: side by side on its GPU, or on its cores as far as they go.
        minutes: The time limit; a task that reaches it goes on in a new one.
        cpus: Cores.
        gpus: GPUs.
        memory_gb: Memory.
        partition: Where to.
        account: Who pays.
        at_once: So many tasks at the same time.
        notice: So many seconds before its time is up a task stops, to go on later.
        setup: Lines of shell before each task, such as `module load python`.
        more: Any other option of `sbatch`, such as `{qos = "long"}`.
    """

    pack: int = Field(default=1, ge=1, le=1000)
    minutes: int = Field(default=60, ge=1)
    cpus: int = Field(default=1, ge=1)
    gpus: int = Field(default=0, ge=0)
    memory_gb: float | None = Field(default=None, gt=0)
    partition: str | None = None
    account: str | None = None
    at_once: int = Field(default=256, ge=1)
    notice: int = Field(default=90, ge=1)
    setup: list[str] = Field(default_factory=list)
    more: dict[str, str | int | bool] = Field(default_factory=dict)


class Ray(Model):
    """What Ray is asked for, of each task.

    Attributes:
        pack: So many lines in one task.
        address: Of the cluster; the one that this machine belongs to, if not given.
        cpus: Cores.
        gpus: GPUs, or a share of one.
        retries: How often a task is begun again when its node dies.
    """

    pack: int = Field(default=1, ge=1, le=1000)
    address: str = "auto"
    cpus: float = Field(default=1, ge=0)
    gpus: float = Field(default=0, ge=0)
    retries: int = Field(default=5, ge=0)


class Cluster(Model):
    """How a cluster is asked for its machines."""

    slurm: Slurm = Field(default_factory=Slurm)
    ray: Ray = Field(default_factory=Ray)


def read_cluster(file: Path | None) -> Cluster:
    """How a cluster is to be asked, from a file with the groups `slurm` and `ray`."""
    return Cluster() if file is None else read_toml(file, Cluster)


def read_toml(file: Path, kind: type[Any]) -> Any:
    """What a person wrote, as a model has it."""
    text = read_written(file, LARGEST, "write a plan in TOML, in UTF-8")
    try:
        return kind.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file}: cannot be read as TOML ({error}); correct it") from None
    except ValidationError as error:
        raise BadInput(f"{file}: {explain(error, kind)}") from None
