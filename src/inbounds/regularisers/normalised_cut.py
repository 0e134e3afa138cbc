"""Classes that hang together within themselves more than with each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regularisers.pairwise import pulled


def normalised_cut(
    probs: Float[Tensor, "B K *space"],
    image: Float[Tensor, "B channels *space"],
    *,
    sigma: float = 0.1,
    reach: int = 5,
    spread: float = 6.0,
    stride: int | Sequence[int] = 2,
) -> Float[Tensor, " B"]:
    """How much of each class's ties leads out of it: `sum_k S_k' W (1 - S_k) / (d' S_k)`, with `d = W 1`.

    Ties `W` are those of `pairwise`, with the same arguments (Shi and Malik, 2000; as a loss, Tang et al., 2018).
    Divided by all ties of a class, small classes pay for their border as large ones do, and do not vanish to save it.

    A class with fewer ties than one average block has is divided by those of such a block: an empty class costs 0, and
    its gradient stays finite. A class costs at most 1.

    Example:
        >>> left = torch.tensor([1.0, 1.0, 0.0, 0.0])  # of six ties, seen from both ends, one leads out of each class
        >>> probs = torch.stack([left, 1 - left])[None, :, None]
        >>> normalised_cut(probs, torch.zeros(1, 1, 1, 4), reach=1, spread=1e3, stride=1)
        tensor([0.6667])
    """
    blocks, pull, degree = pulled(probs, image, sigma, reach, spread, stride)
    inside = (blocks * pull).flatten(2).sum(dim=2)
    # The gradient is known: keeping all neighbours of all pixels for it would take much memory.
    inside = 2 * inside - inside.detach()
    ties = (blocks * degree.unsqueeze(1)).flatten(2).sum(dim=2)
    least = degree.flatten(1).mean(dim=1, keepdim=True).clamp(min=torch.finfo(degree.dtype).tiny)
    return ((ties - inside) / ties.maximum(least)).sum(dim=1)
