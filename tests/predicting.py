"""Runs whose network is set by hand: what it finds in a scan can be told from the brightness of each voxel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from inbounds.config import read_settings
from inbounds.runs import checkpoint
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.store.prepare import FITS, Plan, prepare
from inbounds.store.store import Store
from making import CLASSES, image_of, source, truth_like

NAME = "by brightness"
DARK, GRAY, WHITE = 100, 685, 1000


def by_brightness(channels: int, classes: int) -> nn.Module:
    """Each pixel by itself: add it to the dictionary of networks as `NAME`."""
    return nn.Conv2d(channels, classes, 1)


def keep(run: Run, network: nn.Module, *, best: bool = True) -> Run:
    """Save a network as if an epoch had ended with it."""
    optimiser = torch.optim.Adam(network.parameters())
    taken = checkpoint.take(checkpoint.State(epoch=1, best=(0.5, 1)), network, optimiser)
    checkpoint.write(run.path, taken, best=best)
    return run


def tiny_store(path: Path, fit: str, shape: tuple[int, int], dtype: str = "uint8", channels: int = 1) -> Store:
    truth = truth_like(0)
    image = np.concatenate([image_of(truth, seed) for seed in range(channels)])
    plan = Plan("tiny", CLASSES, shape, FITS[fit], fit, dtype)
    return prepare([source("a", truth, image=image)], path, plan).store


def made_run(
    path: Path,
    fit: str = "pad",
    *,
    shape: tuple[int, int] = (32, 32),
    classes: tuple[str, ...] = ("LV", "RV"),
    channels: int = 1,
    sees: int = 0,
) -> Run:
    """A run that calls gray the first of its classes and white the last, by the channel it sees."""
    store = tiny_store(path.with_name(f"{path.name}-store"), fit, shape, channels=channels)
    settings = read_settings("full", None, [f"network.name={NAME}", "training.device=cpu"])
    run = Run.create(path, settings, store, classes=classes)
    network = build_network(run)
    (conv,) = (module for module in network.modules() if isinstance(module, nn.Conv2d))
    slopes, offsets = [0.0, 40.0, 100.0], [0.0, -20.0, -68.0]  # background up to 0.5, then the first up to 0.8
    with torch.no_grad():
        conv.weight.zero_()
        conv.weight[:, sees, 0, 0] = torch.tensor(slopes[: len(classes) + 1])
        conv.bias.copy_(torch.tensor(offsets[: len(classes) + 1]))
    return keep(run, network)


def scene(shape: tuple[int, int, int] = (4, 20, 24), corner: tuple[int, int, int] = (1, 4, 6)) -> np.ndarray:
    """What such a run ought to find: two boxes that no turn or flip of the scan maps onto themselves."""
    mask = np.zeros(shape, np.uint8)
    s, r, c = corner
    mask[s : s + 2, r : r + 6, c : c + 8] = 1
    mask[s, r + 1 : r + 3, c + 2 : c + 7] = 2
    return mask


def scan_of(mask: np.ndarray, dtype: type = np.int16) -> np.ndarray:
    """A scan in which each class has its brightness."""
    return np.array([DARK, GRAY, WHITE])[mask].astype(dtype)
