"""The forward pass: the same numbers whatever the size of a chunk, and no gradient."""

from __future__ import annotations

import torch
from torch import nn

from inbounds.inference.forward import CHUNK, PIXELS, chunk, probabilities


def test_probabilities_do_not_depend_on_chunks() -> None:
    network, image = nn.Conv2d(1, 3, 3, padding=1), torch.rand(CHUNK + 5, 1, 6, 7)
    probs = probabilities(network, image)
    assert probs.shape == (CHUNK + 5, 3, 6, 7)
    assert not probs.requires_grad
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(CHUNK + 5, 6, 7))
    torch.testing.assert_close(probs, torch.cat([network(one[None]).softmax(dim=1) for one in image]))


def test_probabilities_of_patches() -> None:
    network, image = nn.Conv3d(1, 2, 1), torch.rand(CHUNK + 1, 1, 2, 3, 4)
    torch.testing.assert_close(probabilities(network, image), network(image).softmax(dim=1).detach())


def test_of_larger_slices_fewer_go_through_at_once() -> None:
    assert [chunk(space) for space in ((16, 16), (256, 256), (512, 512), (4096, 4096), (2, 256, 256))] == [
        CHUNK,
        CHUNK,
        CHUNK // 4,
        1,
        CHUNK // 2,
    ]
    assert chunk((256, 257)) * 256 * 257 <= CHUNK * PIXELS
