"""What a network takes is told without making it, and refused before it is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inbounds import memory
from inbounds.config import network_of, read_settings
from inbounds.errors import BadInput
from inbounds.networks.needs import kept, weights, without_memory
from inbounds.runs.run import Run
from making import make_store


def test_weights_without_making_them() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 1_000_000_000, 9), nn.BatchNorm2d(7))

    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    shapes = without_memory(make)
    assert shapes is not None
    assert weights(shapes) == 4 * (1_000_000_000 * (3 * 81 + 1) + 4 * 7) + 8
    assert torch.equal(torch.rand(3), wanted)
    assert without_memory(lambda: nn.Dropout(float(torch.ones(1)))) is None  # which looks at a number


def test_what_a_step_keeps() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Sigmoid(), nn.Conv2d(4, 2, 1))
    with kept(network) as sizes:
        network(torch.zeros(2, 1, 8, 8))
    assert sum(sizes) == 4 * 2 * 8 * 8 * (1 + 4)  # the image, and what the sigmoid gives; weights are not counted


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("residual_unet", "{width=200000}"),
        ("unet", "{width=1000000}"),
        ("monai:BasicUNet", "{spatial_dims=2,features=[1000000,1000000,1000000,1000000,1000000,1000000]}"),
    ],
)
def test_a_network_that_nothing_has_room_for(name: str, settings: str) -> None:
    network = read_settings("full", None, [f"network.name={name}", f"network.settings={settings}"]).network
    with pytest.raises(BadInput, match=rf"network.name={name}.* needs .*iB of memory, and .* free here; choose a sm"):
        network_of(network, 1, 2)


def test_more_bytes_than_can_be_counted() -> None:
    network = read_settings("full", None, ["network.name=residual_unet", "network.settings={width=10000000000}"])
    with pytest.raises(BadInput, match=r"network.name=residual_unet"):
        network_of(network.network, 1, 2)


def test_a_batch_that_memory_has_no_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda: 20_000_000)
    tiny = ["training.device=cpu", "network.name=residual_unet", "network.settings={width=4}"]
    Run.create(tmp_path / "one", read_settings("full", None, [*tiny, "training.batch=1"]), store)
    settings = read_settings("full", None, [*tiny, "training.batch=1000", "training.repeats=1000"])
    with pytest.raises(BadInput, match=r"training.batch=1000: a step with 1,000 images of 32 x 32 pixels needs"):
        Run.create(tmp_path / "two", settings, store)
    assert not (tmp_path / "two").exists()
