"""A start with little foreground."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inbounds.config import Network, network_of
from inbounds.errors import BadInput
from inbounds.networks import InitialShare, build


def test_a_prior_makes_classes_rare() -> None:
    """Equal scores give each class its share, and what is learnt counts as without it."""
    image = torch.rand(2, 1, 8, 8)
    even = InitialShare(nn.Conv2d(1, 3, 1), 0.05, 3)
    for weight in even.parameters():
        nn.init.zeros_(weight)
    found = even(image).softmax(dim=1)
    torch.testing.assert_close(found[:, 1:], torch.full((2, 2, 8, 8), 0.05))
    network = build("unet", 1, 2, width=2, levels=2).eval()
    plain, rare = network(image), InitialShare(network, 0.02, 2)(image)
    odds = torch.tensor(0.02 / 0.98).log().expand(2, 8, 8)
    torch.testing.assert_close((rare[:, 1] - rare[:, 0]) - (plain[:, 1] - plain[:, 0]), odds)


@pytest.mark.parametrize(("share", "classes"), [(0.5, 3), (-0.1, 2), (0.0, 2)])
def test_a_prior_is_a_share(share: float, classes: int) -> None:
    with pytest.raises(ValueError, match=f"cannot have a share of {share} each"):
        InitialShare(nn.Identity(), share, classes)
    if share > 0:
        with pytest.raises(BadInput, match=f"network.initial_share={share}: 2 classes"):
            network_of(Network(initial_share=share), 1, classes)
