"""How much memory a network takes, told by shapes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def weights(network: nn.Module) -> int:
    """The bytes of its parameters and buffers."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*network.parameters(), *network.buffers()))


def without_memory(make: Callable[[], nn.Module]) -> nn.Module | None:
    """A network whose tensors have shapes and no numbers; `None` where it cannot be made like that.

    What is drawn at random later is drawn as if it had not been made.

    Raises:
        RuntimeError: A tensor has more bytes than can be counted.
    """
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return make()
    except Exception as error:  # whatever a network raises that looks at its numbers while it is made
        if "overflow" in str(error):
            raise
        return None


@contextmanager
def kept(network: nn.Module) -> Iterator[list[int]]:
    """The bytes of each tensor that a forward pass keeps for its way back, beside the network's own."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*network.parameters(), *network.buffers())}
    seen: dict[int, Any] = {}
    sizes: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.data_ptr() not in seen:
            seen[storage.data_ptr()] = storage
            sizes.append(storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield sizes
