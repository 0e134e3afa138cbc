"""What a teacher, such as a slowly moving copy of the network, finds in the same image."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.statistic import check_probs, wide


def agreement(
    probs: Float[Tensor, "B K *space"],
    image: Float[Tensor, "B channels *space"] | None = None,  # noqa: ARG001 (what every term gets)
    *,
    teacher: Float[Tensor, "B K *space"] | None = None,
    sharpness: float = 1.0,
) -> Float[Tensor, " B"]:
    """The cross-entropy to a teacher's soft labels `q`, where it is certain: `mean_p c_p (-sum_k q_pk log S_pk)`.

    Its certainty is `c_p = 1 - H(q_p) / log K`, with the entropy `H`: 1 where it names one class, 0 where all are alike
    to it. The teacher gets no gradient.

    Args:
        probs: Probabilities, of two classes or more.
        image: Not looked at.
        teacher: The teacher's probabilities. Without a teacher the value is 0, and has no gradient.
        sharpness: The power to which these are raised, to be divided by their sum then.

    Example:
        >>> probs = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).movedim(1, 0)
        >>> agreement(probs, teacher=torch.tensor([[[1.0, 0.5], [0.0, 0.5]]]))  # log(2) at one pixel of two
        tensor([0.3466])
    """
    check_probs(probs)
    dtype = wide(probs.dtype)
    if teacher is None:
        return torch.zeros(probs.shape[0], dtype=dtype, device=probs.device)
    if teacher.shape != probs.shape or probs.shape[1] < 2:
        raise ValueError(
            f"a teacher's probabilities {tuple(teacher.shape)} and those of shape {tuple(probs.shape)} must be of the "
            "same shape, with two classes or more"
        )
    if not sharpness > 0:
        raise ValueError(f"sharpness must be above 0, not {sharpness}")
    least = torch.finfo(dtype).tiny
    with torch.no_grad():
        log_labels = (sharpness * teacher.to(dtype).clamp(min=least).log()).log_softmax(dim=1)
        labels = log_labels.exp()
        certain = 1 + (labels * log_labels).sum(dim=1, keepdim=True) / math.log(probs.shape[1])
        labels = labels * certain
    return -(labels * probs.to(dtype).clamp(min=least).log()).sum(dim=1).flatten(1).mean(dim=1)
