"""What a predicted mask and the truth have in common, counted once; DSC and size error follow from the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor

from inbounds.annotations.annotation import UNLABELLED
from inbounds.regions.scans import Scans


@dataclass(frozen=True)
class Overlap:
    """Pixel counts of each class in each slice, background included. Pixels whose truth is unknown are not counted.

    As every other pixel has a class, a slice (or scan) whose `true` counts are 0 for all classes has no known truth:
    all that is derived from it is NaN.

    Attributes:
        intersection: Pixels that have the class in both prediction and truth.
        predicted: Pixels that have it in the prediction.
        true: Pixels that have it in the truth.
    """

    intersection: Int64[Tensor, "n K"]
    predicted: Int64[Tensor, "n K"]
    true: Int64[Tensor, "n K"]

    @classmethod
    def cat(cls, parts: Sequence[Overlap]) -> Overlap:
        """The slices of several batches, one after the other."""
        counts = zip(*((part.intersection, part.predicted, part.true) for part in parts), strict=True)
        return cls(*(torch.cat(count) for count in counts))

    def per_volume(self, scans: Scans) -> Overlap:
        """The same counts of whole scans, `(S, K)`: sums over the slices of each."""
        scans = scans.to(self.true.device)
        return Overlap(scans.total(self.intersection), scans.total(self.predicted), scans.total(self.true))


def overlap(prediction: Integer[Tensor, "n *space"], truth: Integer[Tensor, "n *space"], classes: int) -> Overlap:
    """Count, for each slice and class, the pixels of the prediction, of the truth and of both.

    Pixels whose truth is 255 do not count, whatever was predicted. Values that are no class belong to none: they are
    not looked for, so that nothing is read back from the device. An image may be 3-D; it then counts as one "slice".

    Args:
        prediction: The class of each pixel; any integer type.
        truth: Likewise, 255 where unknown.
        classes: How many there are, background included: K.

    Example:
        >>> prediction, truth = torch.tensor([[[0, 1, 1, 1]]]), torch.tensor([[[1, 1, 0, 255]]])
        >>> counts = overlap(prediction, truth, classes=2)
        >>> counts.intersection, counts.predicted, counts.true
        (tensor([[0, 1]]), tensor([[1, 2]]), tensor([[1, 2]]))
    """
    known = truth != UNLABELLED
    counts = []
    for k in range(classes):
        predicted, true = (prediction == k) & known, truth == k
        counts.append([mask.flatten(1).sum(dim=1) for mask in (predicted & true, predicted, true)])
    intersection, predicted, true = (torch.stack(count, dim=1) for count in zip(*counts, strict=True))
    return Overlap(intersection, predicted, true)


def dice_per_slice(overlap: Overlap) -> Float[Tensor, "n K"]:
    """The Dice similarity coefficient of each class in each slice, `2 |P and T| / (|P| + |T|)`.

    An empty prediction on a slice without the class counts 1, as in the paper: 1 means that nothing is wrong. It is 0
    where only one of the two is empty, and NaN where nothing of the slice's truth is known.

    Example:
        >>> prediction, truth = torch.tensor([[[0, 1, 1, 1]]]), torch.tensor([[[0, 0, 0, 1]]])
        >>> dice_per_slice(overlap(prediction, truth, classes=3))  # 2 * 1 / (1 + 3), 2 * 1 / (3 + 1), absent in both
        tensor([[0.5000, 0.5000, 1.0000]])
    """
    dice = _dice(overlap)
    return torch.where(dice.isnan() & _known(overlap), 1.0, dice)


def dice_per_volume(overlap: Overlap, scans: Scans) -> Float[Tensor, "S K"]:
    """The Dice similarity coefficient of each class in each scan, all slices together.

    Counts are added up over the slices of a scan, then divided. A class that is in neither prediction nor truth gives
    NaN, to be counted and left out of means; it is 0 where only one of the two has it.

    Example:
        >>> counts = overlap(torch.tensor([[1, 1], [0, 0]]), torch.tensor([[1, 1], [1, 1]]), classes=2)
        >>> dice_per_volume(counts, Scans.of("aa"))  # 2 * 2 / (2 + 4) for class 1
        tensor([[0.0000, 0.6667]])
    """
    return _dice(overlap.per_volume(scans))


def relative_size_error(overlap: Overlap, scans: Scans) -> Float[Tensor, "S K"]:
    """By how much the predicted size of each class differs from the true one in each scan, `(predicted - true) / true`.

    NaN where the class is absent from the truth.

    Example:
        >>> counts = overlap(torch.tensor([[1, 1, 1, 0]]), torch.tensor([[1, 1, 0, 0]]), classes=2)
        >>> relative_size_error(counts, Scans.of("a"))
        tensor([[-0.5000,  0.5000]])
    """
    counts = overlap.per_volume(scans)
    return torch.where(counts.true > 0, (counts.predicted - counts.true) / counts.true, torch.nan)


def _dice(counts: Overlap) -> Float[Tensor, "N K"]:
    """NaN where the class is in neither: 0 / 0."""
    return 2 * counts.intersection / (counts.predicted + counts.true)


def _known(counts: Overlap) -> Tensor:
    """Whether anything of the truth is known, `(N, 1)`."""
    return counts.true.sum(dim=1, keepdim=True) > 0
