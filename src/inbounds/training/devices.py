"""Which devices a run computes on, by Lightning Fabric, and what its network has to know of that."""

from __future__ import annotations

import importlib
import logging
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch
from torch import nn

from inbounds.config.settings import Training
from inbounds.errors import BadInput, reason
from inbounds.training.group import Group


def fabric_module() -> ModuleType:
    """Lightning Fabric, from whichever of its two packages is installed."""
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
    kind, _, number = training.device.partition(":")
    precision = "32-true" if training.precision == "32" else training.precision
    try:
        if group is None:
            one = module.Fabric(accelerator=kind, devices=[int(number)] if number else 1, precision=precision)
            return one, one
        if number:
            raise ValueError("of several devices each process takes its own; name none")
        parts = importlib.import_module(f"{module.__name__}.strategies")
        environments = importlib.import_module(f"{module.__name__}.plugins.environments")
        several = module.Fabric(
            accelerator=kind,
            devices=group.here,
            num_nodes=group.ranks // group.here,
            strategy=parts.DDPStrategy(broadcast_buffers=False),
            plugins=[environments.TorchElasticEnvironment()],
            precision=precision,
        )
        several.launch()
        plain = module.Fabric(strategy=parts.SingleDeviceStrategy(device=several.device), precision=precision)
        return several, plain
    except (ValueError, RuntimeError) as error:  # no such device, or none here
        raise BadInput(f"training.device={training.device}: {reason(error)}") from None


def synchronised(network: nn.Module, group: Group | None, device: torch.device) -> nn.Module:
    """The same network, whose batch normalisation sees the batches of all processes."""
    if group is None:
        return network
    made: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    return made
