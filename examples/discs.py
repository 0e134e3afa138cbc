"""Generated images of one disc beside a square as bright, with weak labels: shared by the examples."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import inbounds as ib


class Discs(Dataset[dict[str, Tensor]]):
    """Each sample has an image, a label with four clicks, the disc's size, and the truth (for evaluation only)."""

    def __init__(self, count: int, side: int = 48, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        axis = torch.arange(side) * 1.0
        row, column = axis[:, None], axis[None, :]
        self.samples = []
        for _ in range(count):
            radius, r, c = (torch.rand(3, generator=generator) * torch.tensor([5.0, 20.0, 12.0])).tolist()
            radius, r, c = radius + 5, r + 14, c + 12
            disc = (row - r) ** 2 + (column - c) ** 2 < radius**2
            square = ((row - (side - r)).abs() < 6) & ((column - 38).abs() < 6)
            noise = 0.1 * torch.randn(side, side, generator=generator)
            inside = disc.nonzero()
            clicks = inside[torch.randperm(len(inside), generator=generator)[:4]]
            label = torch.full((side, side), ib.UNLABELLED)
            label[clicks[:, 0], clicks[:, 1]] = 1
            self.samples.append(
                {
                    "image": (disc * 0.8 + square * 0.8 + noise)[None],
                    "label": label,
                    "size": torch.tensor([[float("nan")], [float(disc.sum())]]),  # one row per class, background first
                    "truth": disc.long(),
                }
            )

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return self.samples[index]


def network() -> nn.Module:
    """A few convolutions, enough for discs."""
    layers: list[nn.Module] = []
    for width_in, width_out, dilation in ((1, 16, 1), (16, 16, 2), (16, 16, 4), (16, 16, 2)):
        layers += [nn.Conv2d(width_in, width_out, 3, padding=dilation, dilation=dilation), nn.BatchNorm2d(width_out)]
        layers += [nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(16, 2, 1))


def dice(logits: Tensor, truth: Tensor) -> float:
    """Overlap of prediction and truth over a whole batch."""
    mask = logits.argmax(dim=1) == 1
    return float(2 * (mask & (truth == 1)).sum() / (mask.sum() + (truth == 1).sum()))


class Pairs(Dataset[tuple[Tensor, ib.Annotation]]):
    """The same discs as many loops want them: an image, and what is known of it. Loaders make batches of both."""

    def __init__(self, count: int) -> None:
        self.discs = Discs(count)

    def __len__(self) -> int:
        return len(self.discs)

    def __getitem__(self, index: int) -> tuple[Tensor, ib.Annotation]:
        sample = self.discs[index]
        return sample["image"], ib.Annotation(sample["label"][None], facts={"size": sample["size"][None]})
