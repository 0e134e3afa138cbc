"""Validation by hand, on slices and on patches alike; whole runs go through it in tests/training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inbounds.batches.samples import Samples
from inbounds.evaluation.validate import validate
from inbounds.store.grid import GridWindow
from inbounds.store.record import Record
from inbounds.supervision import recipes


@pytest.mark.parametrize("space", [(2, 6), (2, 2, 3)])
def test_masks_are_counted_whatever_the_number_of_axes(space) -> None:
    """The network takes what is bright for class 1: 3 pixels of the first image, 1 of the second; true are 3 and 2."""
    images = torch.zeros(2, 1, 12, dtype=torch.uint8)
    images[0, 0, :3] = images[1, 0, 0] = 255
    truth = torch.zeros(2, 12, dtype=torch.uint8)
    truth[0, 1:4] = truth[1, :2] = 1
    fit = GridWindow.pad((2, 6), (2, 6))
    records = [Record(name, name, "validation", n, 1, fit, (1.0, 1.0, 1.0), (0.0, 1.0)) for n, name in enumerate("ab")]
    facts = {"present": torch.ones(2, 2, 1), "size": torch.tensor([[[9.0], [3.0]], [[10.0], [2.0]]])}
    samples = Samples(images.reshape(2, 1, *space), truth.reshape(2, *space), facts, facts, records)

    class Bright(nn.Module):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return torch.cat([0.5 - image, image - 0.5], dim=1) * 100

    found = validate(Bright(), samples, truth.reshape(2, *space), recipes["individual"](relative=0.1), ["LV"])
    numbers = dict(zip(found.names, found.values.tolist(), strict=True))
    assert numbers["hard_size", "LV"] == 2
    assert numbers["dsc_slice", "LV"] == pytest.approx((4 / 6 + 2 / 3) / 2)
    assert numbers["precision", "LV"] == pytest.approx(3 / 4)
    assert numbers["satisfied", ""] == 0.5  # 3 lies within 10 % of 3, and 1 not of 2
