"""What a run is made with: versions, the commit of this package, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from inbounds.config.settings import Training
from inbounds.errors import BadInput


def machine(device: str) -> dict[str, str]:
    """What a run will be trained on."""
    return {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        **gpu(device),
    }


def on_gpu(device: str) -> bool:
    """Whether a run looks for a GPU: if its settings name one, or leave the choice and there is one."""
    return device.startswith(("cuda", "gpu")) or (device == "auto" and torch.cuda.is_available())


def gpu(device: str) -> dict[str, str]:
    """The name of the GPU that a run will find, if it looks for one and there is one."""
    return {"device": torch.cuda.get_device_name()} if on_gpu(device) and torch.cuda.is_available() else {}


def versions() -> dict[str, str]:
    """Of Python and of what decides results."""
    found = {"python": platform.python_version()}
    for name in ("inbounds", "torch", "numpy", "lightning", "lightning-fabric", "monai"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def commit() -> str | None:
    """The commit of this package's source, if it runs from a checkout; of a copy, what `INBOUNDS_COMMIT` says."""
    if named := os.environ.get("INBOUNDS_COMMIT"):
        return named
    command, here = ["git", "rev-parse", "HEAD"], Path(__file__).parent
    try:
        answer = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def cores() -> int:
    """How many this process may use: of a machine that is shared, those that it was given."""
    given = os.environ.get("SLURM_CPUS_PER_TASK", "")
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(given), allowed) if given.isdecimal() and int(given) else allowed


def devices(training: Training) -> int:
    """On how many devices a run is trained, where nobody has started a process for each."""
    if training.devices == "auto":
        return max(1, torch.cuda.device_count()) if on_gpu(training.device) and ":" not in training.device else 1
    number: int = training.devices
    if number > 1 and ":" in training.device:
        raise BadInput(f"training.devices={number}: training.device={training.device} is one; name it without a number")
    if number > 1 and on_gpu(training.device) and number > torch.cuda.device_count():
        raise BadInput(
            f"training.devices={number}: there are {torch.cuda.device_count()} GPUs here; ask for as many, or start a "
            "process for each on several machines with torchrun or srun"
        )
    return number
