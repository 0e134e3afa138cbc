from __future__ import annotations

import pytest
import torch
from torch import nn

from inbounds.networks import ResidualUNet
from inbounds.networks.residual_unet import Residual


def test_is_as_large_as_the_authors() -> None:
    with torch.device("meta"):
        network = ResidualUNet(1, 2)
    assert sum(parameter.numel() for parameter in network.parameters()) == pytest.approx(19.6e6, rel=0.05)


def test_width_scales_every_level() -> None:
    network = ResidualUNet(1, 2, width=3)
    widths = {m.out_channels for m in network.modules() if isinstance(m, nn.Conv2d)}
    assert widths == {2, 3, 6, 12, 24, 48}
    with pytest.raises(ValueError, match="at least 1 feature map, not 0"):
        ResidualUNet(1, 2, width=0)


def test_a_residual_block_without_weights_changes_nothing() -> None:
    block = Residual(4).eval()
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    image = torch.rand(1, 4, 6, 6)
    torch.testing.assert_close(block(image), image, rtol=0, atol=0)


def test_long_connections_are_sums() -> None:
    """With the way through the bridge shut off, the finest level still arrives at the scores."""
    network = ResidualUNet(1, 2, width=2).eval()
    for parameter in network.enlarge.parameters():
        nn.init.zeros_(parameter)
    image = torch.rand(1, 1, 16, 16)
    expected = network.scores(network.decoder[-1](network.encoder[0](image)))
    torch.testing.assert_close(network(image), expected, rtol=0, atol=0)
