"""How well masks agree with what is known where nobody drew the truth: labelled pixels, sizes, volumes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from inbounds.annotations.annotation import Annotation
from inbounds.evaluation.overlap import overlap
from inbounds.regions.statistic import one_hot


@dataclass(frozen=True)
class Agreement:
    """Of one scan and each class, background first; NaN where nothing is known.

    Attributes:
        labels: The share of the pixels labelled as a class that have it in the mask.
        sizes: By how much of the known size that of the mask differs, slice by slice; NaN where the region is absent.
        volume: The same of the whole scan.
    """

    labels: Float[Tensor, " K"]
    sizes: Float[Tensor, "n K"]
    volume: Float[Tensor, " K"]


def agreement(mask: Integer[Tensor, "n H W"], known: Annotation, classes: int) -> Agreement:
    """Compare the mask of a whole scan with all that is known of it.

    Args:
        mask: The class of each pixel.
        known: Labels, and facts of the slices and of the scan.
        classes: How many there are, background included: K.

    Example:
        >>> known = Annotation(torch.tensor([[[1, 1, 0, 255]]]), {"size": torch.tensor([[[torch.nan], [4.0]]])})
        >>> agreement(torch.tensor([[[0, 1, 0, 1]]]), known, classes=2)  # half of class 1; 2 pixels instead of 4
        Agreement(labels=tensor([1.0000, 0.5000]), sizes=tensor([[   nan, 0.5000]]), volume=tensor([nan, nan]))
    """
    marked = overlap(mask, known.label.to(mask.device), classes)
    pixels = one_hot(mask, classes).flatten(2).sum(dim=2).float()
    sizes, volume = (
        _apart(own, facts["size"][..., 0].to(own)) if "size" in facts else torch.full_like(own, torch.nan)
        for own, facts in ((pixels, known.facts), (pixels.sum(dim=0, keepdim=True), known.scan_facts))
    )
    return Agreement(marked.intersection.sum(dim=0) / marked.true.sum(dim=0), sizes, volume[0])


def _apart(own: Float[Tensor, "N K"], known: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
    return torch.where(known > 0, (own - known).abs() / known, torch.nan)
