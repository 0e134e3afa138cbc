"""The forward pass that prediction, validation and evaluation share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inbounds.networks import Volumetric, sees_volumes

CHUNK = 32
"""Slices that go through the network at once, of up to `PIXELS` each; of larger ones as many fewer."""
PIXELS = 256 * 256


@torch.no_grad()
def probabilities(network: nn.Module, image: Float[Tensor, "B channels *space"]) -> Float[Tensor, "B K *space"]:
    """Probabilities of some slices, a chunk at a time; a network of volumes sees all of them, which are one scan."""
    if sees_volumes(network):
        found: Tensor = network(image).float().softmax(dim=1)
        return found
    return torch.cat([network(some).float().softmax(dim=1) for some in image.split(chunk(image.shape[2:]))])


@torch.no_grad()
def pieces(
    network: nn.Module, read: Callable[[slice], Float[Tensor, "n channels *space"]], depth: int, step: int
) -> Iterator[Float[Tensor, "n K *space"]]:
    """Probabilities of a scan of so many slices, `step` at a time; no more slices are read than are needed at once."""
    if not isinstance(network, Volumetric):
        for first in range(0, depth, step):
            yield probabilities(network, read(slice(first, min(first + step, depth))))
        return
    held: list[Tensor] = []
    for slab in network.slabs(read, depth):
        held.append(slab)
        while (there := sum(map(len, held))) >= step:
            *whole, rest = torch.cat(held).split([step, there - step]) if there > step else (torch.cat(held), slab[:0])
            yield from whole
            held = [rest] if len(rest) else []
    if held:
        yield torch.cat(held)


def chunk(space: Sequence[int]) -> int:
    """How many slices of so many rows and columns, or patches, go through the network at once."""
    return max(1, CHUNK * PIXELS // max(PIXELS, math.prod(space)))
