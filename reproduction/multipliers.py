"""`python -m reproduction.multipliers [STORE]`: is a penalty whose weight nobody sets as good as one with a weight?

First on a problem with a known solution, the nearest probabilities that keep to sizes; then, given a store with an
annotation and facts, on training patients, some of which are held out. `cooper` is compared where it is installed.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from inbounds import (
    UNLABELLED,
    Annotation,
    Constraint,
    Individual,
    Multipliers,
    Supervision,
    cross_entropy,
    hinge,
    size,
    typical_values,
)
from inbounds.batches.samples import Samples, by_slice, load, truth_of
from inbounds.cli import run_program
from inbounds.config.plan import SHARE, WAIT
from inbounds.evaluation.overlap import dice_per_volume, overlap
from inbounds.networks import InitialShare, build
from inbounds.regions.statistic import most_probable
from inbounds.store.store import Store

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
BOUNDS = Individual(relative=0.1)
Price = Callable[[Tensor, Annotation], Tensor]


def penalties(typical: Sequence[float], images: int) -> dict[str, Constraint]:
    """What is compared: the paper's penalty and weight, the default method's, and multipliers."""
    C, how = len(typical), partial(Constraint, size, BOUNDS, scale="typical", typical=typical)
    made = {
        "quadratic, weight 0.05": Constraint(size, BOUNDS, weight=0.05),
        "hinge, weight 3 (default)": how(penalty=hinge, weight=3.0, ramp=WAIT),
    }
    for step_size, damping in ((0.1, 0.0), (0.1, 1.0)):
        name = f"multipliers, step {step_size:g}" + (f", damping {damping:g}" if damping else "")
        made[name] = how(penalty=Multipliers(step_size, damping, images, C))
    return made


class Cooper:
    """The same Lagrangian as `cooper` has it: indexed multipliers, updated with the primal variables."""

    def __init__(self, watch: Constraint, images: int, regions: int, step_size: float) -> None:
        import cooper  # type: ignore[import-not-found]

        self.watch, self.regions, self.state = watch, regions, cooper
        self.multiplier = cooper.multipliers.IndexedMultiplier(num_constraints=images * regions * 2)
        self.constraint = cooper.Constraint(
            multiplier=self.multiplier,
            constraint_type=cooper.ConstraintType.INEQUALITY,
            formulation_type=cooper.formulations.Lagrangian,
        )
        self.dual = torch.optim.SGD(self.multiplier.parameters(), lr=step_size, maximize=True)

    def __call__(self, probs: Tensor, annotation: Annotation) -> Tensor:
        """The Lagrangian's part of the loss; its backward pass gives the multipliers their gradient too."""
        interval, values = self.watch.interval(probs, None, annotation), self.watch.values(probs, None, annotation)
        typical = torch.tensor(self.watch.typical)
        sides = torch.stack([interval.lower - values, values - interval.upper], dim=1) / typical
        assert annotation.index is not None
        number = annotation.index[:, None, None] * 2 + torch.arange(2)[:, None]
        features = (number * self.regions + torch.arange(self.regions)).flatten()
        known = (sides > -torch.inf).flatten()
        seen = self.state.ConstraintState(violation=sides.flatten()[known], constraint_features=features[known])
        cmp = self.state.CMPState(loss=probs.new_zeros(()), observed_constraints={self.constraint: seen})
        self.dual.zero_grad()
        count = sides.numel() / 2
        lagrangian: Tensor = cmp.compute_primal_lagrangian().lagrangian / count
        cmp.compute_dual_lagrangian().backward()
        return lagrangian

    def step(self) -> None:
        """Of the multipliers."""
        self.dual.step()
        self.multiplier.post_step_()


def toy(images: int = 8, steps: int = 2000) -> list[tuple[str, str, str, str]]:
    """Steps until all bounds hold within 1 % of what is typical, how many hold at the end, and the divergence then."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(images, 2, 16, 16, generator=generator)
    target = logits.log_softmax(dim=1)
    sizes = torch.full((images, 2, 1), torch.nan)
    sizes[:, 1, 0] = 256 * (0.05 + 0.9 * torch.rand(images, generator=generator))
    annotation = Annotation(torch.full((images, 16, 16), UNLABELLED), {"size": sizes}, index=torch.arange(images))
    watch = Constraint(size, BOUNDS, scale="typical", typical=[128.0])
    rows = []
    terms: dict[str, Price] = {
        name: (lambda probs, known, one=one: one(probs, None, known))  # type: ignore[misc]
        for name, one in penalties([128.0], images).items()
    }
    if importlib.util.find_spec("cooper"):
        terms["cooper, step 0.1"] = Cooper(watch, images, 1, 0.1)
    for name, term in terms.items():
        free, first = logits.clone().requires_grad_(), ""
        adam = torch.optim.Adam([free], lr=0.02)
        for step in range(1, steps + 1):
            adam.zero_grad()
            mine = free.log_softmax(dim=1)
            divergence = (mine.exp() * (mine - target)).flatten(1).sum(dim=1).mean() / 256
            (divergence + term(mine.exp(), annotation)).backward()
            adam.step()
            if isinstance(term, Cooper):
                term.step()
            holds = watch.violation(free.detach().softmax(1), None, annotation) <= 0.01
            first = first or (f"{step}" if bool(holds.all()) else "")
        rows.append((name, first or "never", f"{int(holds.sum())} of {images}", f"{divergence.item():.4f}"))
    return rows


def trained(
    store: Store,
    term: Price,
    samples: Samples,
    held: Samples,
    epochs: int,
    watch: Constraint,
    ramp: tuple[float, float] | None,
) -> tuple[str, float, float, float]:
    """Steps until all training bounds hold, the shares that hold at the end in training and held out, and the DSC."""
    torch.manual_seed(0)
    order = torch.Generator().manual_seed(0)
    network = InitialShare(build("unet", store.channels, samples.classes, width=8), SHARE, samples.classes)
    adam = torch.optim.Adam(network.parameters(), lr=2e-3)
    supervise, first, step = Supervision(cross_entropy), "never", 0
    steps = epochs * -(-len(samples) // 8)

    def keeps(some: Samples) -> tuple[float, Tensor]:
        network.eval()
        with torch.no_grad():
            batches = [some.batch(index) for index in torch.arange(len(some)).split(32)]
            probs = [network(batch.image).softmax(1) for batch in batches]
        pairs = [watch.violation(p, None, b.annotation) for p, b in zip(probs, batches, strict=True)]
        network.train()
        violation = torch.cat(pairs)
        known = violation > -torch.inf
        return float((violation[known] <= 0).float().mean()), torch.cat([most_probable(p) for p in probs])

    for _ in range(epochs):
        for index in by_slice(samples, 8, order):
            batch = samples.batch(index)
            adam.zero_grad()
            logits = network(batch.image)
            total = supervise(logits, None, batch.annotation).total
            share = 1.0 if ramp is None else min(max((step / steps - ramp[0]) / (ramp[1] - ramp[0]), 0.0), 1.0)
            (total + share * term(logits.softmax(1), batch.annotation)).backward()
            adam.step()
            if isinstance(term, Cooper):
                term.step()
            step += 1
        inside, _ = keeps(samples)
        if first == "never" and inside == 1:
            first = str(step)
    outside, masks = keeps(held)
    truth = truth_of(store, split="validation")[: len(masks)]
    counts = overlap(masks, truth, held.classes)
    return first, inside, outside, float(dice_per_volume(counts, held.scans)[:, 1:].nanmean())


@app.command()
def main(
    store: Annotated[Path | None, typer.Argument(help="A store whose validation split may be looked at.")] = None,
    annotation: Annotated[str, typer.Option(help="Of the store, with facts of the same name.")] = "clicks",
    epochs: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """Compare penalties."""
    print("| toy | all bounds hold after | hold at the end | divergence |\n|---|---|---|---|")
    for row in toy():
        print("|", " | ".join(row), "|", flush=True)
    if store is None:
        return
    opened = Store(store)
    samples, held = load(opened, annotation), load(opened, annotation, split="validation")
    typical = typical_values(samples.facts, size, pixels=float(math.prod(opened.shape)))
    watch = Constraint(size, BOUNDS, scale="typical", typical=typical)
    terms: dict[str, Any] = penalties(typical, len(samples))
    if importlib.util.find_spec("cooper"):
        terms["cooper, step 0.1"] = Cooper(watch, len(samples), len(typical), 0.1)
    print("\n| method | all hold after | training bounds that hold | held out | DSC | s |\n|---|---|---|---|---|---|")
    for name, one in terms.items():
        term: Price = one
        if isinstance(one, Constraint):
            term = lambda probs, known, one=one: one(probs, None, known)  # type: ignore[misc]  # noqa: E731
        begun = time.monotonic()
        first, inside, outside, dsc = trained(opened, term, samples, held, epochs, watch, getattr(one, "ramp", None))
        took = time.monotonic() - begun
        print(f"| {name} | {first} | {inside:.1%} | {outside:.1%} | {dsc:.3f} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    run_program(app, "python -m reproduction.multipliers")
