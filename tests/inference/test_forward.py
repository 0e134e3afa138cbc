"""The forward pass: the same numbers whatever the size of a chunk, and no gradient."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from inbounds.inference.forward import CHUNK, PIXELS, chunk, pieces, probabilities
from inbounds.networks import Volumetric

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


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


@pytest.mark.parametrize("step", [1, 4, 7, 40])
def test_pieces_are_all_of_a_scan(step: int) -> None:
    """Of a network of slices and of one of volumes, so that both can be averaged."""
    image = torch.rand(19, 1, 6, 6)
    flat, deep = nn.Conv2d(1, 2, 1), Volumetric(nn.Conv3d(1, 2, 1), (4, 6, 6), 2).eval()
    for network in (flat, deep):
        found = list(pieces(network, image.__getitem__, len(image), step))
        assert [len(one) for one in found] == [min(step, 19 - first) for first in range(0, 19, step)]
        torch.testing.assert_close(torch.cat(found), probabilities(network, image), atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="a peak that only Linux tells")
def test_a_deep_scan_takes_no_more_memory_than_a_shallow_one() -> None:
    """Its probabilities would take 500 MB, as often as they are held at once."""
    code = """
import resource, torch
from inbounds.inference.forward import pieces
from inbounds.networks import Volumetric

network = Volumetric(torch.nn.Conv3d(1, 4, 1), (8, 128, 128), 4).eval()

def look(depth):
    def read(some):
        return torch.zeros(len(range(depth)[some]), 1, 128, 128)
    seen = sum(len(one) for one in pieces(network, read, depth, 32))
    return seen, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

_, before = look(64)
seen, after = look(2000)
print(seen, (after - before) // 1024)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seen, grown = map(int, said.split())
    assert seen == 2000
    assert grown < 60
