from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from inbounds.networks import ENet
from inbounds.networks.enet import Bottleneck, pool, unpool


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_is_as_small_as_published() -> None:
    assert 350_000 <= parameters(ENet(1, 2)) <= 500_000
    assert 350_000 <= parameters(ENet(3, 19)) <= 400_000  # the publication's setting, 0.37 million


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_takes_any_number_of_channels(channels: int) -> None:
    assert ENet(channels, 2).eval()(torch.rand(1, channels, 16, 24)).shape == (1, 2, 16, 24)


def test_refuses_more_channels_than_feature_maps() -> None:
    ENet(51, 2)
    with pytest.raises(ValueError, match="at most 51 channels, not 52"):
        ENet(52, 2)


def test_unpooling_by_hand() -> None:
    pooled, indices = pool(torch.tensor([[[[1.0, 2.0, 0.0, 0.0], [4.0, 3.0, 0.0, 9.0]]]]))
    torch.testing.assert_close(pooled, torch.tensor([[[[4.0, 9.0]]]]))
    expected = torch.tensor([[[[0.0, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 6.0]]]])
    torch.testing.assert_close(unpool(torch.tensor([[[[5.0, 6.0]]]]), indices), expected)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("tied", [False, True])
def test_unpooling_agrees_with_pytorch(layout: torch.memory_format, tied: bool) -> None:
    image = torch.zeros(2, 3, 8, 12) if tied else torch.randn(2, 3, 8, 12)
    _, indices = pool(image.contiguous(memory_format=layout))
    ours = torch.randn(2, 3, 4, 6, dtype=torch.float64).contiguous(memory_format=layout).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    mine, other = unpool(ours, indices), functional.max_unpool2d(theirs, indices, 2)
    torch.testing.assert_close(mine, other, rtol=0, atol=0)
    weights = torch.randn_like(mine)
    (mine * weights).sum().backward()
    (other * weights).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=0)


def test_unpooling_keeps_half_precision() -> None:
    pooled, indices = pool(torch.rand(1, 1, 4, 4).bfloat16())
    assert unpool(pooled, indices).dtype == torch.bfloat16


@pytest.mark.parametrize(("settings", "reach"), [({}, 1), ({"dilation": 4}, 4), ({"asymmetric": True}, 2)])
def test_a_bottleneck_looks_as_far_as_it_says(settings: dict[str, int], reach: int) -> None:
    image = torch.randn(1, 8, 21, 21, requires_grad=True)
    Bottleneck(8, 0.0, **settings).eval()(image)[0, :, 10, 10].sum().backward()
    assert image.grad is not None
    rows, columns = image.grad[0].abs().sum(dim=0).nonzero(as_tuple=True)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (10 - reach, 10 + reach, 10 - reach, 10 + reach)


def test_dropout_is_rare_in_stage_1_and_can_be_left_out() -> None:
    rates = [(name, m.p) for name, m in ENet(1, 2).named_modules() if isinstance(m, nn.Dropout2d)]
    assert {rate for name, rate in rates if name.startswith(("down1", "stage1"))} == {0.01}
    assert {rate for name, rate in rates if not name.startswith(("down1", "stage1"))} == {0.1}
    image = torch.rand(2, 1, 32, 32)
    with_dropout, without = ENet(1, 2), ENet(1, 2, dropout=False)
    assert not torch.equal(with_dropout(image), with_dropout(image))
    torch.testing.assert_close(without(image), without(image), rtol=0, atol=0)
