"""What the labelled pixels say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from inbounds.annotations import UNLABELLED
from inbounds.ranks import Part, ratio
from inbounds.regions.statistic import may_look, some_pixels, wide


def cross_entropy(
    log_probs: Float[Tensor, "B K *space"],
    label: Integer[Tensor, "B *space"] | Float[Tensor, "B K *space"],
    *,
    mean: Literal["images", "classes", "pixels"] = "images",
    label_weight: Float[Tensor, " B"] | None = None,
    class_weight: Sequence[float] | None = None,
    part: Part | None = None,
) -> Float[Tensor, ""]:
    """Full or partial cross-entropy, `-sum_{p in Omega_L} log S_p` as a mean: unlabelled pixels (255) do not count.

    The mean is over the labelled pixels of each image, then over the images that have any (`mean="images"`), so that a
    scribbled image weighs as much as a fully labelled one beside it. The paper's text writes a sum; the authors' code
    takes the mean over all labelled pixels of the batch (`mean="pixels"`), which is the same for a batch of one.
    With `mean="classes"` each class that is labelled in an image counts the same, however much of it is: an image in
    which somebody has labelled one class alone does not count as much as one that shows what lies beside it.

    With `label_weight`, what an image adds is multiplied by its own. The mean does not follow: an image that counts
    half adds half as much, whatever stands beside it.

    With `class_weight`, a labelled pixel counts as much as its class: clicks on background may outnumber all others.

    With a `part`, where several processes share a batch, the mean is over all of its images.

    With no labelled pixel at all the loss is 0 and so is its gradient. A soft label, probabilities `(B, K, *space)`,
    counts everywhere: `-sum_p sum_k Q_pk log S_pk`.

    Example:
        >>> log_probs = torch.tensor([[[[0.5, 0.25]], [[0.5, 0.75]]]]).log()
        >>> cross_entropy(log_probs, torch.tensor([[[1, 255]]])).exp()  # only the first pixel is labelled
        tensor(2.)
    """
    if mean not in ("images", "classes", "pixels"):
        raise ValueError(f"mean must be 'images', 'classes' or 'pixels', not {mean!r}")
    soft = label.ndim == log_probs.ndim and label.is_floating_point()
    fitting = log_probs.shape if soft else (log_probs.shape[0], *log_probs.shape[2:])
    if log_probs.ndim < 3 or 0 in log_probs.shape or label.shape != fitting:
        raise ValueError(
            f"log-probabilities (B, K, *space) and labels (B, *space) do not fit: {tuple(log_probs.shape)} and "
            f"{tuple(label.shape)}"
        )
    wrong_type = label.is_floating_point() or label.is_complex() or label.dtype == torch.bool
    if not log_probs.is_floating_point() or (wrong_type and not soft):
        raise ValueError(
            f"log-probabilities must be floating-point and labels of an integer type, not {log_probs.dtype} and "
            f"{label.dtype}"
        )
    if may_look(log_probs) and (most := float(some_pixels(log_probs).max())) > 1e-3:
        raise ValueError(f"log-probabilities must be 0 or less, but there is {most:.4g}: give logits.log_softmax(1)")
    log_probs = log_probs.to(wide(log_probs.dtype))
    if soft:
        losses = -torch.where(label > 0, label * log_probs, 0).sum(dim=1)
        known = torch.ones_like(losses, dtype=torch.bool)
    else:
        # Written out on the device: a copy from the host could not be part of a CUDA graph.
        weights = None
        if class_weight is not None:
            if len(class_weight) != log_probs.shape[1] or not min(class_weight) >= 0:
                raise ValueError(f"class_weight must be {log_probs.shape[1]} numbers of 0 or more, not {class_weight}")
            weights = torch.stack([log_probs.new_full((), weight) for weight in class_weight])
        losses = torch.nn.functional.nll_loss(
            log_probs, label.long(), weights, ignore_index=UNLABELLED, reduction="none"
        )
        known = label != UNLABELLED
    space = tuple(range(1, known.ndim))
    if mean == "classes" and not soft:
        each = torch.stack([label == k for k in range(log_probs.shape[1])], dim=1)
        there = each.sum(dim=tuple(range(2, each.ndim))).to(losses.dtype)
        means = torch.where(each, losses[:, None], 0).sum(dim=tuple(range(2, each.ndim))) / there.clamp(min=1)
        if label_weight is not None:
            means = means * label_weight[:, None]
        return ratio(means.sum(), (there > 0).sum(), part)
    sums = losses.sum(dim=space)
    if label_weight is not None:
        sums = sums * label_weight
    pixels = known.sum(dim=space).to(sums.dtype)
    if mean == "pixels":
        return ratio(sums.sum(), pixels.sum(), part)
    return ratio((sums / pixels.clamp(min=1)).sum(), (pixels > 0).sum(), part)
