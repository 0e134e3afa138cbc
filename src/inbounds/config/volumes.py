"""What is chosen, and refused, where a network sees volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inbounds.config.settings import Network, Settings
from inbounds.errors import BadInput
from inbounds.scans.format import by
from inbounds.store.store import Store

VOXELS = {"cpu": 2**17, "cuda": 2**20}
"""Of a patch, at most, by the kind of device: a step then takes about a second on two cores."""
PATCHES = 2
"""In a step."""
WEIGHT = 3.0
"""Of bounds on scans, at most, shared by the slices of a patch, all of which answer for their scan at once."""
LEAST = 4
"""Slices or pixels along a side at the coarsest level: fewer show no shape."""
THICK = 2.0
"""Slices that lie further apart than so many pixels are seen by themselves, until these are as coarse."""
STEP = 8
"""Sides of patches are multiples of this, so that networks can halve them."""


def in_dimensions(network: Network) -> dict[str, Any]:
    """The settings of a network's builder, which says in its own way what it sees."""
    if network.dimensions == 2:
        return network.settings
    if network.name == "unet":
        return {"dimensions": 3} | network.settings
    if network.name.startswith("monai:"):
        return {"spatial_dims": 3} | network.settings
    if ":" in network.name:
        return network.settings
    raise BadInput(f"{network.name} sees slices; for network.dimensions=3 choose unet or one of MONAI's")


def wants_volumes(settings: Settings, store: Store) -> bool:
    """Whether the network is to see volumes: as a person says, else as the store was made, if all is chosen."""
    said = settings.network.model_fields_set
    return (settings.network.dimensions if said & {"dimensions", "name"} else store.dimensions) == 3


def patch_of(patch: Sequence[int] | None) -> tuple[int, int, int]:
    """Slices, rows and columns of a patch, which has to be known."""
    if patch is None:
        raise BadInput("network.dimensions=3 needs the size of a patch: set training.patch=[slices,rows,columns]")
    return patch[0], patch[1], patch[2]


def check_volumes(settings: Settings, store: Store) -> None:
    """Refuse what cannot be trained on volumes, and volumes that cannot be trained on."""
    training = settings.training
    if settings.network.dimensions == 2:
        return
    if store.dimensions != 3:
        raise BadInput(
            f"{store.path}: network.dimensions=3 needs volumes of a common spacing, and this store was prepared for "
            "slices; prepare it again with --dimensions 3"
        )
    patch = patch_of(training.patch)
    if patch[1] > store.shape[0] or patch[2] > store.shape[1]:
        raise BadInput(
            f"training.patch={list(patch)}: larger than the slices of {store.path}, which have {by(store.shape)} "
            "pixels; give at most as many rows and columns (slices that a scan lacks are left empty)"
        )
    of_slices = {"proposals": settings.proposals, "training.whole_scans": training.whole_scans}
    for what, wanted in of_slices.items():
        if wanted:
            raise BadInput(f"{what}: made for batches of slices; leave it out, or set network.dimensions=2")
    if training.data_on_device is False:
        raise BadInput("training.data_on_device=false: patches are gathered on the device; leave it out")


def plan_volumes(
    layer: dict[str, Any], words: list[str], settings: Settings, store: Store, *, gpu: bool, devices: int
) -> None:
    """Choose patches, batch and network for volumes.

    A patch is a whole scan, or as much of it as the device has room for: the side that is longest in mm is halved
    first. Along each axis the network halves it as long as it shows a shape, and keeps slices that lie far apart by
    themselves until pixels are as coarse.
    """
    records = [record for record in store.records if record.split == "train"]
    depth = int(np.median([record.slices for record in records]))
    spacing = [float(np.median(steps)) for steps in zip(*(record.grid_spacing for record in records), strict=True)]
    given = settings.training.patch
    patch = list(given) if given else _patch([depth, *store.shape], spacing, VOXELS["cuda" if gpu else "cpu"])
    ratio = spacing[0] / min(spacing[1:])
    width = 32 if gpu else 16
    levels = max(2, min(6 if gpu else 5, 1 + int(math.log2(max(1, min(patch[1:]) / LEAST)))))
    halved = int(math.log2(max(1, patch[0] / LEAST)))
    flat = min(levels, max(round(math.log2(max(1, ratio / THICK * 1.5))), levels - 1 - halved, 0))
    batch = max(PATCHES, devices)
    layer["training"] |= {"patch": patch, "batch": batch}
    layer["training"].pop("slices", None)
    for name, content in layer.get("constraints", {}).items():
        if content and settings.constraints[name].scope == "volume":
            # A slice of a batch answers for its scan; here all slices of a patch do at once.
            content["weight"] = round(min(content["weight"], WEIGHT) / patch[0], 4)
    chosen = layer.setdefault("network", {})
    chosen["dimensions"] = 3
    if "name" not in settings.network.model_fields_set:
        layer["network"] = {
            **{key: value for key, value in chosen.items() if key not in ("name", "settings")},
            "name": "unet",
            "settings": {"width": width, "levels": levels, "most": (10 if gpu else 8) * width, "flat": flat},
        }
        words[:] = [word for word in words if not word.startswith(("network:", "steps:"))]
        apart = f", of which the finest {flat} see slices by themselves" if flat else ""
        words.append(
            f"network: a 3-D U-Net of width {width} with {levels} levels{apart} ({'GPU' if gpu else 'CPU'}; voxels of "
            f"{' x '.join(f'{step:.3g}' for step in spacing)} mm)"
        )
    share = settings.training.around_labels
    words.append(
        f"steps: {batch} patches of {by(patch)} voxels, {share:.0%} of them around labels and {1 - share:.0%} "
        "anywhere; what they do not show of a scan is estimated by the averaged network"
    )


def _patch(scan: Sequence[int], spacing: Sequence[float], most: int) -> list[int]:
    """Sides of a patch of at most so many voxels."""
    patch = [scan[0], *scan[1:]]
    while math.prod(patch) > most:
        axis = max(range(3), key=lambda axis: patch[axis] * spacing[axis] if patch[axis] > STEP else 0.0)
        if patch[axis] <= STEP:
            break
        patch[axis] = max(STEP, STEP * math.ceil(patch[axis] / 2 / STEP))
    return patch
