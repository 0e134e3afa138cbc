"""How good a network is on held-out scans: overlap with the truth where there is one, and constraints that hold."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from inbounds.datasets.batches import Samples
from inbounds.evaluation.overlap import Overlap, dice_per_slice, dice_per_volume, overlap
from inbounds.regions import size
from inbounds.supervision import Supervision

CHUNK = 32
"""Slices that go through the network at once."""


@dataclass(frozen=True)
class Validation:
    """What was found on a split, still on the device but for `read`.

    Attributes:
        overlap: Of prediction and truth, slice by slice; `None` without truth.
        held: For each constraint, whether it holds in each image or scan: of the probabilities, and of the mask.
        sizes: Soft and hard size of each class in each slice, `(n, K)` each.
    """

    overlap: Overlap | None
    held: dict[str, tuple[Tensor, Tensor]]
    sizes: tuple[Float[Tensor, "n K"], Float[Tensor, "n K"]]


@torch.no_grad()
def predict(network: nn.Module, image: Float[Tensor, "B channels H W"]) -> Float[Tensor, "B K H W"]:
    """Probabilities of some slices, a chunk at a time."""
    return torch.cat([network(chunk).float().softmax(dim=1) for chunk in image.split(CHUNK)])


@torch.no_grad()
def validate(
    network: nn.Module, samples: Samples, truth: Integer[Tensor, "n H W"] | None, supervision: Supervision
) -> Validation:
    """Look at every scan of a split with the network in evaluation mode; it is put back as it was."""
    training = network.training
    network.eval()
    overlaps, soft_sizes, hard_sizes = [], [], []
    held: dict[str, list[tuple[Tensor, Tensor]]] = {constraint.name: [] for constraint in supervision.constraints}
    for scan in range(len(samples.records)):
        batch = samples.scan_batch([scan])
        probs = predict(network, batch.image)
        mask = probs.argmax(dim=1)
        for constraint in supervision.constraints:
            soft, hard = (
                (constraint.violation(probs, batch.image, batch.annotation, hard=hard) <= 0).flatten(1).all(dim=1)
                for hard in (False, True)
            )
            held[constraint.name].append((soft, hard))
        order = torch.arange(probs.shape[1], device=mask.device)[:, None, None]
        soft_sizes.append(size(probs)[..., 0])
        hard_sizes.append((mask[:, None] == order).flatten(2).sum(dim=2).float())
        if truth is not None:
            positions = samples.slices_of(scan)
            overlaps.append(overlap(mask, truth[positions.start : positions.stop], probs.shape[1]))
    network.train(training)
    both = {
        name: (torch.cat([soft for soft, _ in pairs]), torch.cat([hard for _, hard in pairs]))
        for name, pairs in held.items()
    }
    found = Overlap.cat(overlaps) if overlaps else None
    return Validation(found, both, (torch.cat(soft_sizes), torch.cat(hard_sizes)))


def numbers(validation: Validation, samples: Samples, classes: tuple[str, ...]) -> list[tuple[str, str, float]]:
    """Metric, class and value of what was found on a split; an empty class stands for all of them together."""
    rows: list[tuple[str, str, float]] = []
    if validation.overlap is not None:
        by_slice = dice_per_slice(validation.overlap)
        by_volume = dice_per_volume(validation.overlap, samples.scans())
        ratio = [sizes.sum(dim=0) / validation.overlap.true.sum(dim=0).clamp(min=1) for sizes in validation.sizes]
        for k, name in enumerate(classes, start=1):
            rows += [
                ("dsc_slice", name, float(by_slice[:, k].nanmean())),
                ("dsc_volume", name, float(by_volume[:, k].nanmean())),
                ("soft_size_over_true", name, float(ratio[0][k])),
                ("hard_size_over_true", name, float(ratio[1][k])),
            ]
        rows.append(("dsc_slice", "", float(by_slice[:, 1:].nanmean())))
        rows.append(("dsc_volume", "", float(by_volume[:, 1:].nanmean())))
    for k, name in enumerate(classes, start=1):
        rows.append(("soft_size", name, float(validation.sizes[0][:, k].mean())))
        rows.append(("hard_size", name, float(validation.sizes[1][:, k].mean())))
    for name, (soft, hard) in validation.held.items():
        rows += [("held_soft", name, float(soft.float().mean())), ("held_hard", name, float(hard.float().mean()))]
    if validation.held:
        images = [hard for _, hard in validation.held.values()]
        rows.append(("held", "", float(torch.cat(images).float().mean())))
        broken = sum(int((~hard).sum()) for _, hard in validation.held.values())
        rows.append(("violations", "", float(broken)))
    return rows
