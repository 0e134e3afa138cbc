"""Which devices a run computes on, by Lightning Fabric."""

from __future__ import annotations

import importlib
import logging
import warnings
from contextlib import suppress
from inspect import signature
from types import ModuleType
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from inbounds.config.settings import Training
from inbounds.errors import BadInput, reason
from inbounds.training.group import Group

_known = signature(DistributedDataParallel).parameters
BUFFERS = "forward_sync_buffers" if "forward_sync_buffers" in _known else "broadcast_buffers"
"""What PyTorch calls sending buffers around before each step; the second before 2.13."""


def fabric_module() -> ModuleType:
    """Lightning Fabric, from whichever of its two packages is installed."""
    warnings.filterwarnings("ignore", message="The `srun` command")  # which need not be used where there is one
    for name in ("lightning.fabric", "lightning_fabric"):
        with suppress(ImportError):
            module = importlib.import_module(name)
            for logger in (name, "lightning.pytorch"):  # what it computes with is in the plan
                logging.getLogger(logger).setLevel(logging.WARNING)
            return module
    raise BadInput("training needs Lightning Fabric: pip install 'inbounds[train]'")


def fabrics(training: Training, group: Group | None) -> tuple[Any, Any]:
    """What a network trains by, and what it is looked at by, which is the same where one process trains.

    Of several processes, each has a device and takes the mean of all their gradients (DDP); buffers are not sent
    around, as all of them have the same.
    """
    module = fabric_module()
    parts = importlib.import_module(f"{module.__name__}.strategies")
    environments = importlib.import_module(f"{module.__name__}.plugins.environments")
    kind, _, number = training.device.partition(":")
    precision = "32-true" if training.precision == "32" else training.precision
    try:
        if group is None:
            chosen = [int(number)] if number else 1
            alone = [environments.LightningEnvironment()]  # wherever it was started
            one = module.Fabric(accelerator=kind, devices=chosen, plugins=alone, precision=precision)
            return one, one
        if number:
            raise ValueError("of several devices each process takes its own; name none")
        several = module.Fabric(
            accelerator=kind,
            devices=group.here,
            num_nodes=group.ranks // group.here,
            strategy=parts.DDPStrategy(**{BUFFERS: False}),
            plugins=[environments.TorchElasticEnvironment()],
            precision=precision,
        )
        several.launch()
        strategy = parts.SingleDeviceStrategy(device=several.device)
        plain = module.Fabric(strategy=strategy, plugins=[environments.LightningEnvironment()], precision=precision)
        return several, plain
    except (ValueError, RuntimeError) as error:  # no such device, or none here
        raise BadInput(f"training.device={training.device}: {reason(error)}") from None
