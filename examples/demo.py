"""What bounds add to a few labelled pixels, on one drawn image, in a few seconds.

There is no network here: a logit for brightness and free logits on a coarse grid of places are optimised directly,
under three supervisions. Run it with `python examples/demo.py --out demo.png`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

import inbounds as ib

SIDE, CLICKS = 96, 8


def draw(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A bright organ, a larger structure just as bright beside it, the organ's mask, and a few clicks near its edge."""
    generator = torch.Generator().manual_seed(seed)
    row, column = torch.meshgrid(torch.arange(SIDE) * 1.0, torch.arange(SIDE) * 1.0, indexing="ij")
    organ = ((row - 44) / 16) ** 2 + ((column - 36) / 12) ** 2 < 1
    body = ((row - 48) / 45) ** 2 + ((column - 48) / 41) ** 2 < 1
    other = (((row - 50) / 17) ** 2 + ((column - 61) / 15) ** 2 < 1) & ~organ
    clean = 0.05 + 0.3 * body + 0.45 * (organ | other)
    soft = torch.nn.functional.avg_pool2d(clean[None], 3, stride=1, padding=1, count_include_pad=False)[0]
    image = (soft + 0.06 * torch.randn(SIDE, SIDE, generator=generator)).clamp(0, 1)
    inside = (organ & (((row - 45) / 9) ** 2 + ((column - 45) / 2.5) ** 2 < 1)).nonzero()
    clicks = inside[torch.randperm(len(inside), generator=generator)[:CLICKS]]
    return image, organ.long(), clicks


def optimise(image: Tensor, supervision: ib.Supervision, annotation: ib.Annotation, steps: int, title: str) -> Tensor:
    """Probabilities `(1, 2, H, W)` after gradient descent on nothing but the supervision."""
    brightness = torch.zeros(2, requires_grad=True)
    places = torch.zeros(1, 1, 4, 4, requires_grad=True)
    adam = torch.optim.Adam([brightness, places], lr=0.05)

    def logits() -> Tensor:
        where = torch.nn.functional.interpolate(places, size=image.shape[-2:], mode="bicubic", align_corners=True)
        foreground = 30 * brightness[0] * (image - image.mean()) + brightness[1] + where
        return torch.cat([torch.zeros_like(foreground), foreground], dim=1)

    for _ in track(range(steps), description=f"{title:<32}", transient=True):
        adam.zero_grad()
        supervision(logits(), image, annotation).total.backward()
        adam.step()
    return logits().softmax(dim=1).detach()


def dice(mask: Tensor, truth: Tensor) -> float:
    """Overlap of two masks, 1 if they are the same."""
    return float(2 * (mask & truth).sum() / (mask.sum() + truth.sum()))


def main() -> None:
    """Optimise under three supervisions, print a table, write a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo.png"), help="where the figure goes")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)

    scan, organ, clicks = draw(arguments.seed)
    truth = organ == 1
    image = scan[None, None]
    # All that is known: eight clicks, a size read off a report, and a centre put down by hand.
    label = torch.full((1, SIDE, SIDE), ib.UNLABELLED)
    label[0, clicks[:, 0], clicks[:, 1]] = 1
    nothing = float("nan")
    annotation = ib.Annotation(
        label,
        facts={
            "size": torch.tensor([[[nothing], [600.0]]]),
            "centroid": torch.tensor([[[nothing] * 2, [44.0, 36.0]]]),
        },
    )
    size = ib.Constraint(ib.size, ib.Individual(relative=0.1), weight=0.05)
    centre = ib.Constraint(ib.centroid, ib.Individual(absolute=1.5), weight=300)
    cases = {
        f"{CLICKS} labelled pixels": ib.Supervision(),
        "+ a size, within 10 %": ib.Supervision(constraints=[size]),
        "+ a centre, within 1.5 pixels": ib.Supervision(constraints=[size, centre]),
    }
    table = Table("supervision", "Dice", "size (asked: 540 to 660)", "centre (asked: 44, 36 within 1.5)")
    results = {}
    for name, supervision in cases.items():
        probs = optimise(image, supervision, annotation, arguments.steps, name)
        mask = probs[0, 1] > 0.5
        row, column = ib.centroid(mask[None, None] * 1.0)[0, 0].tolist()
        results[name] = (mask, dice(mask, truth))
        table.add_row(name, f"{results[name][1]:.2f}", f"{int(mask.sum())} pixels", f"{row:.0f}, {column:.0f}")
    Console().print(table)
    figure(scan, truth, clicks, results, arguments.out)
    Console().print(f"Figure: {arguments.out}")


def figure(scan: Tensor, truth: Tensor, clicks: Tensor, results: dict[str, tuple[Tensor, float]], out: Path) -> None:
    """The image with what is known of it, then each result."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    green, orange = "#1ca37a", "#f28e2b"
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.9), layout="constrained")
    for axis in axes:
        axis.imshow(scan, cmap="gray", vmin=0, vmax=1)
        axis.contour(truth, levels=[0.5], colors=green, linewidths=1.8, linestyles="dashed")
        axis.set_axis_off()
    axes[0].scatter(clicks[:, 1], clicks[:, 0], s=16, color=orange, edgecolors="white", linewidths=0.5)
    axes[0].set_title(f"what is known: {CLICKS} clicks\n(dashed: the truth, never seen)", fontsize=11)
    for axis, (name, (mask, overlap)) in zip(axes[1:], results.items(), strict=True):
        overlay = torch.zeros(*mask.shape, 4)
        overlay[mask] = torch.tensor([*matplotlib.colors.to_rgb(orange), 0.55])
        axis.imshow(overlay)
        axis.set_title(f"{name}\nDice {overlap:.2f}, {int(mask.sum())} pixels", fontsize=11)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
