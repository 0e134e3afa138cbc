from __future__ import annotations

import pytest
import torch
from torch import nn

from inbounds.networks import UNet


def test_widths_double_as_far_as_they_may() -> None:
    network = UNet(1, 2, width=3, levels=6)
    widths = [level[1][0].out_channels for level in network.down]
    assert widths == [3, 6, 12, 24, 30, 30]
    assert [level[1][0].out_channels for level in network.up] == [30, 24, 12, 6, 3]
    assert network.multiple == 32
    assert [level[1][0].out_channels for level in UNet(1, 2, width=3, levels=3, most=5).down] == [3, 5, 5]


def test_every_level_halves_the_image() -> None:
    sizes: list[tuple[int, ...]] = []
    network = UNet(1, 2, width=2, levels=4)
    for level in network.down:
        level.register_forward_hook(lambda _m, _i, output: sizes.append(tuple(output.shape[2:])))
    network(torch.rand(1, 1, 32, 48))
    assert sizes == [(32, 48), (16, 24), (8, 12), (4, 6)]


def test_long_connections_reach_the_scores() -> None:
    """With the way through the coarser levels shut off, the finest level still arrives."""
    network = UNet(1, 2, width=2, levels=3).eval()
    for parameter in network.enlarge.parameters():
        nn.init.zeros_(parameter)
    image = torch.rand(1, 1, 8, 8)
    finest = network.down[0](image)
    expected = network.scores(network.up[-1](torch.cat([torch.zeros_like(finest), finest], dim=1)))
    torch.testing.assert_close(network(image), expected, rtol=0, atol=0)


def test_a_coarse_one_sees_blocks_of_pixels() -> None:
    sizes: list[tuple[int, ...]] = []
    network = UNet(1, 2, width=2, levels=3, coarse=2)
    for level in network.down:
        level.register_forward_hook(lambda _m, _i, output: sizes.append(tuple(output.shape[2:])))
    assert network(torch.rand(1, 1, 32, 48)).shape == (1, 2, 32, 48)
    assert sizes == [(16, 24), (8, 12), (4, 6)]
    assert network.multiple == 8


@pytest.mark.parametrize("settings", [{"width": 0}, {"levels": 1}, {"coarse": 0}])
def test_refuses(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1 feature map and 2 levels"):
        UNet(1, 2, **settings)
