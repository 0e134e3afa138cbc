"""What is chosen for volumes: patches that fit the device, and a network that minds how far apart slices are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from inbounds.config import read_settings
from inbounds.config.plan import plan
from inbounds.config.volumes import VOXELS, in_dimensions, patch_of, wants_volumes
from inbounds.errors import BadInput
from inbounds.networks import build
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from making import CLASSES, source, truth_like


def volumes(path: Path, spacing: tuple[float, float, float], slices: int = 24, side: int = 64) -> Store:
    truth = truth_like(0, slices, (side, side))
    grid = Plan("tiny", CLASSES, (side, side), GridWindow.pad, "pad", dimensions=3)
    return prepare([source("a", truth, spacing=spacing)], path, grid).store


@pytest.mark.parametrize(
    ("spacing", "slices", "side", "flat", "patch"),
    [
        ((1.0, 1.0, 1.0), 24, 64, 2, [24, 64, 64]),  # as deep as is halved with four slices left
        ((1.0, 1.0, 1.0), 64, 64, 1, [32, 64, 64]),
        ((8.0, 1.0, 1.0), 24, 64, 3, [24, 64, 64]),
        ((8.0, 1.0, 1.0), 6, 64, 4, [6, 64, 64]),
        ((1.0, 1.0, 1.0), 1, 64, 4, [1, 64, 64]),
    ],
)
def test_patches_and_network_follow_from_the_spacing(
    tmp_path: Path, spacing: tuple[float, float, float], slices: int, side: int, flat: int, patch: list[int]
) -> None:
    store = volumes(tmp_path / "store", spacing, slices, side)
    given = read_settings("full", None, [])
    chosen = plan(given, store, "full", None, list(CLASSES[1:]), gpu=False)
    network, training = chosen.settings["network"], chosen.settings["training"]
    assert training["patch"] == patch
    assert math.prod(patch) <= VOXELS["cpu"]
    assert training["batch"] == 2
    assert (network["dimensions"], network["settings"]["flat"]) == (3, flat)
    settings = read_settings("full", layers=[chosen.settings])
    made = build(settings.network.name, 1, 3, **in_dimensions(settings.network))
    coarsest = [math.ceil(side / multiple) for side, multiple in zip(patch, made.multiple, strict=True)]
    assert min(coarsest[1:]) >= 4
    assert coarsest[0] >= min(4, slices)


def test_who_says_otherwise_gets_it(tmp_path: Path) -> None:
    store = volumes(tmp_path / "store", (2.0, 1.0, 1.0))
    for change, wanted in (
        ("network.dimensions=2", False),
        ("network.dimensions=3", True),
        ("network.name=enet", False),
    ):
        assert wants_volumes(read_settings("full", None, [change]), store) == wanted
    assert wants_volumes(read_settings("full", None, []), store)
    given = read_settings("full", None, ["training.patch=[8,32,32]", "network.dimensions=3"])
    chosen = plan(given, store, "full", None, list(CLASSES[1:]), gpu=True).settings
    assert chosen["training"]["patch"] == [8, 32, 32]
    assert chosen["network"]["settings"]["levels"] == 4


def test_builders_are_told_in_their_own_way() -> None:
    def of(*changes: str) -> dict:
        return in_dimensions(read_settings("full", None, list(changes)).network)

    assert of("network.name=unet", "network.settings={width=4}") == {"width": 4}
    assert of("network.name=unet", "network.dimensions=3") == {"dimensions": 3}
    assert of("network.name=monai:UNet", "network.dimensions=3") == {"spatial_dims": 3}
    with pytest.raises(BadInput, match="residual_unet sees slices"):
        of("network.name=residual_unet", "network.dimensions=3")
    with pytest.raises(BadInput, match=r"set training\.patch"):
        patch_of(None)
