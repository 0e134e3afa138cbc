"""Whether part of a region lies outside its image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from inbounds.annotations import Annotation
from inbounds.regions.patches import Patches
from inbounds.regions.region import Region, any_of, members, select
from inbounds.regions.scans import Scans
from inbounds.regions.statistic import Probs


def cut_off(
    probs: Probs, annotation: Annotation, classes: Sequence[Region], scope: Literal["image", "volume"] = "image"
) -> Bool[Tensor, "N C 1"]:
    """Where the fact `cut` is 1; and where it is NaN, if the region's labels or prediction reach the rim.

    A region is predicted where its probability is above one half. The rim is the annotation's `rim`, or the outermost
    ring of the image. A scan is cut where any of its slices in the batch is. Without the fact nothing is cut.

    Args:
        probs: The prediction, which gets no gradient from this.
        annotation: What is known.
        classes: Which regions are asked for.
        scope: Of each image, or of each scan.

    Example:
        >>> nobody_knows = {"cut": torch.full((1, 2, 1), torch.nan)}
        >>> label = torch.tensor([[[255, 255, 255], [255, 1, 255], [255, 255, 255]]])
        >>> cut_off(torch.zeros(1, 2, 3, 3), Annotation(label, nobody_knows), [1])  # a click in the middle
        tensor([[[False]]])
    """
    slices, scans = annotation.facts.get("cut"), annotation.scan_facts.get("cut")
    unknown = probs.new_full((probs.shape[0], probs.shape[1], 1), torch.nan)
    if scope == "image":
        return _of_images(probs, annotation, classes, torch.zeros_like(unknown) if slices is None else slices)
    if scans is None:
        count = probs.shape[0] if annotation.scans is None else annotation.scans.count
        return probs.new_zeros((count, len(classes), 1), dtype=torch.bool)
    cut = _of_images(probs, annotation, classes, unknown if slices is None else slices)
    parts = cut.to(probs.dtype)
    found = parts if annotation.scans is None else Scans.total(annotation.scans, parts)
    return _resolved(scans, classes, found > 0)


def _of_images(probs: Tensor, annotation: Annotation, classes: Sequence[Region], fact: Tensor) -> Tensor:
    rim = annotation.rim
    if rim is None:
        patches = annotation.patches or annotation.scans
        rim = patches.rim() if isinstance(patches, Patches) else _ring(annotation.label)
    predicted = select(probs.detach(), classes) > 0.5
    labelled = torch.stack([_labelled(annotation.label, region) for region in classes], dim=1)
    reaches = ((labelled | predicted) & rim.reshape(-1, 1, *probs.shape[2:])).flatten(2).any(dim=2)
    return _resolved(fact, classes, reaches[..., None])


def _labelled(label: Tensor, region: Region) -> Tensor:
    first, *others = (label == k for k in members(region))
    for other in others:
        first = first | other
    return first


def _resolved(fact: Tensor, classes: Sequence[Region], reaches: Tensor) -> Tensor:
    chosen = any_of(fact, classes)
    return (chosen == 1) | (chosen.isnan() & reaches)


def _ring(label: Tensor) -> Bool[Tensor, "*space"]:
    ring = torch.ones(label.shape[1:], dtype=torch.bool, device=label.device)
    ring[(slice(1, -1),) * ring.ndim] = False
    return ring
