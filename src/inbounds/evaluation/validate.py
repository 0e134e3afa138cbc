"""How good a network is on held-out scans: overlap with the truth where there is one, and constraints that hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from inbounds.batches.ahead import LabelMaps
from inbounds.batches.samples import Group, Samples
from inbounds.constraints.constraint import kept
from inbounds.evaluation.overlap import Overlap, dice_per_slice, dice_per_volume, overlap
from inbounds.inference.forward import CHUNK, probabilities
from inbounds.ranks import Part
from inbounds.regions import size
from inbounds.regions.statistic import most_probable, one_hot
from inbounds.supervision import Supervision


@dataclass(frozen=True)
class Validation:
    """What a network reaches on a split: the names of the numbers, and the numbers, still on the device.

    Attributes:
        names: Metric and class of each; an empty class stands for all of them together.
        values: One for each name.
    """

    names: list[tuple[str, str]]
    values: Float[Tensor, " n"]


@torch.no_grad()
def validate(
    network: nn.Module,
    samples: Samples,
    truth: Integer[Tensor, "n *space"] | LabelMaps | None,
    supervision: Supervision,
    classes: Sequence[str],
    groups: Sequence[Group] | None = None,
    deal: Callable[[int], Part] | None = None,
) -> Validation:
    """Look at every scan of a split with the network in evaluation mode; it is put back as it was.

    Nothing is read back from the device, so that all of it can be captured as a graph.

    Args:
        network: Gives logits.
        samples: Of the split.
        truth: Their full masks, if there are any.
        supervision: Whose constraints are looked at: do they hold, for the probabilities and for the mask? Images of
            which nothing is known do not count; where all are like that, the numbers are NaN. Where there are several
            classes, each has numbers of its own, `satisfied_class_soft` and `satisfied_class_hard`.
        classes: The names of the network's outputs 1, 2, ...
        groups: What to look at together: `samples.groups(CHUNK)`, which may be made once and kept.
        deal: Of so many of them, which this process looks at, where several do; each gets the numbers of all.
    """
    training = network.training
    network.eval()
    overlaps, soft_sizes, hard_sizes = [], [], []
    satisfied: dict[str, list[tuple[Tensor, ...]]] = {constraint.name: [] for constraint in supervision.constraints}
    by_class: dict[int, list[Tensor]] = {k: [] for k in range(1, len(classes) + 1) if len(classes) > 1}
    groups = samples.groups(CHUNK) if groups is None else groups
    part = None if deal is None else deal(len(groups))
    mine = groups if part is None else groups[part.own]
    for group, batch in zip(mine, samples.wholes(mine), strict=True):
        probs = probabilities(network, batch.image)
        mask = most_probable(probs)
        for constraint in supervision.constraints:
            soft, hard = (constraint.violation(probs, batch.image, batch.annotation, hard=h) for h in (False, True))
            satisfied[constraint.name].append(_inside(soft, hard))
            for place, (k, *others) in enumerate(constraint.groups(probs.shape[1])):
                if isinstance(k, int) and k in by_class and not others:
                    by_class[k].append(torch.stack(_inside(soft[:, place], hard[:, place])).sum(dim=1))
        soft_sizes.append(size(probs)[..., 0])
        hard_sizes.append(one_hot(mask, probs.shape[1]).flatten(2).sum(dim=2).float())
        if truth is not None:
            true = truth[group.index.to(truth.device)].to(mask.device, non_blocking=True)
            overlaps.append(overlap(mask, true, probs.shape[1]))
    network.train(training)

    def summed(count: Tensor) -> Tensor:
        return (count if part is None else part.total(count)).float()

    def of_all(rows: Sequence[Tensor]) -> Tensor:
        if part is None:
            return torch.cat(list(rows))
        before, after = (
            sum(len(one.index) for one in some) for some in (groups[: part.own.start], groups[part.own.stop :])
        )
        ends = [rows[0].new_zeros((count, *rows[0].shape[1:])) for count in (before, after)]
        return part.total(torch.cat([ends[0], *rows, ends[1]]))

    counts = {
        name: [summed(torch.cat(rows).sum()) for rows in zip(*parts, strict=True)] for name, parts in satisfied.items()
    }
    sizes = of_all(soft_sizes), of_all(hard_sizes)
    numbers: dict[tuple[str, str], Tensor] = {}
    if overlaps:
        found = Overlap.cat(overlaps)
        counted = Overlap(*(of_all([one]) for one in (found.intersection, found.predicted, found.true)))
        numbers = _overlap_numbers(counted, sizes, samples, classes)
    for k, name in enumerate(classes, start=1):
        numbers |= {("soft_size", name): sizes[0][:, k].mean(), ("hard_size", name): sizes[1][:, k].mean()}
    for name, (soft, hard, known) in counts.items():
        numbers |= {("satisfied_soft", name): soft / known, ("satisfied_hard", name): hard / known}
    if counts:
        _, hard, known = (torch.stack(part).sum() for part in zip(*counts.values(), strict=True))
        numbers |= {("satisfied", ""): hard / known, ("violations", ""): (known - hard) * (known / known)}
    for k, tallies in by_class.items():
        if tallies:
            name, (soft, hard, known) = classes[k - 1], summed(torch.stack(tallies).sum(dim=0))
            numbers |= {("satisfied_class_soft", name): soft / known, ("satisfied_class_hard", name): hard / known}
    return Validation(list(numbers), torch.stack(list(numbers.values())))


def _inside(soft: Float[Tensor, "N *any"], hard: Float[Tensor, "N *any"]) -> tuple[Tensor, ...]:
    """From violations: do the probabilities keep to all bounds of an image, does the mask, and are there any?"""
    (by_probs, _), (by_mask, known) = kept(soft), kept(hard)
    return by_probs & known, by_mask & known, known


def _overlap_numbers(
    counts: Overlap, sizes: tuple[Tensor, Tensor], samples: Samples, classes: Sequence[str]
) -> dict[tuple[str, str], Tensor]:
    by_slice, by_volume = dice_per_slice(counts), dice_per_volume(counts, samples.scans)
    ratios = [each.sum(dim=0) / counts.true.sum(dim=0).clamp(min=1) for each in sizes]
    both = counts.intersection.sum(dim=0)
    precision, recall = (both / part.sum(dim=0) for part in (counts.predicted, counts.true))
    numbers: dict[tuple[str, str], Tensor] = {}
    for k, name in enumerate(classes, start=1):
        numbers |= {
            ("dsc_slice", name): by_slice[:, k].nanmean(),
            ("dsc_volume", name): by_volume[:, k].nanmean(),
            ("soft_size_over_true", name): ratios[0][k],
            ("hard_size_over_true", name): ratios[1][k],
            ("precision", name): precision[k],
            ("recall", name): recall[k],
        }
    numbers[("dsc_slice", "")] = by_slice[:, 1:].nanmean()
    numbers[("dsc_volume", "")] = by_volume[:, 1:].nanmean()
    return numbers
