"""What a constraint adds to a training step: ratios of medians, all variants in one run, taken in turn.

    python benchmarks/loss_overhead.py [--device cuda] [--batch 1] [--side 256] [--rounds 30] [--json FILE]

A step is forward, supervision, backward and Adam on ENet. Variants alternate step by step, so that whatever else the
machine does hits all of them alike. On a GPU the steps are captured as CUDA graphs, as in training.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import inbounds as ib
from inbounds.networks import build

CENTRE = ib.Constraint(ib.centroid, ib.Individual(absolute=5), weight=10)
BRIGHT = ib.Constraint(ib.mean_intensity, ib.Fixed(0.4, 0.6), weight=1)
VARIANTS: dict[str, ib.Supervision] = {
    "partial": ib.recipes["partial"](),
    "tags (size)": ib.recipes["tags"](),
    "individual (size, 2 bounds)": ib.recipes["individual"](),
    "size + centroid": ib.Supervision(constraints=[*ib.recipes["individual"]().constraints, CENTRE]),
    "size + centroid + intensity": ib.Supervision(
        constraints=[*ib.recipes["individual"]().constraints, CENTRE, BRIGHT]
    ),
}


def make_step(supervision: ib.Supervision, batch: int, side: int, device: torch.device) -> Callable[[], None]:
    """One training step on fixed data; on a GPU, a replay of its graph."""
    torch.manual_seed(0)
    network = build("enet", 1, 2).to(device).train()
    adam = torch.optim.Adam(network.parameters(), lr=5e-4, capturable=device.type == "cuda")
    image = torch.rand(batch, 1, side, side, device=device)
    label = torch.full((batch, side, side), ib.UNLABELLED, dtype=torch.uint8, device=device)
    label[:, side // 2 : side // 2 + 6, side // 2 : side // 2 + 6] = 1
    fact = torch.tensor([[[float("nan")], [600.0]]], device=device).repeat(batch, 1, 1)
    where = torch.full((batch, 2, 2), side / 2, device=device)
    facts = {"present": torch.ones(batch, 2, 1, device=device), "size": fact, "centroid": where}
    annotation = ib.Annotation(label, facts)

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        supervision(network(image), image, annotation).total.backward()
        adam.step()

    if device.type != "cuda":
        return step
    side_stream = torch.cuda.Stream()
    with torch.cuda.stream(side_stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    # The graph does not own the tensors it was captured with; the step that made it does.
    return lambda _keep=step: graph.replay()


def measure(
    steps: dict[str, Callable[[], None]], rounds: int, repeats: int, device: torch.device
) -> dict[str, list[float]]:
    """Milliseconds per step of each variant, round by round, the order turning with every round."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for number in track(range(rounds + 3), description="measuring"):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(repeats):
                steps[name]()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if number >= 3:  # the first rounds warm up
                times[name].append((time.perf_counter() - start) * 1000 / repeats)
    return times


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    steps = {name: make_step(s, arguments.batch, arguments.side, device) for name, s in VARIANTS.items()}
    times = measure(steps, arguments.rounds, 20 if device.type == "cuda" else 1, device)
    base = statistics.median(times["partial"])
    # Ratios within a round, then their median: slow drifts of the machine cancel.
    ratio = {
        name: statistics.median(a / b for a, b in zip(series, times["partial"], strict=True))
        for name, series in times.items()
    }
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"{platform.processor() or 'CPU'}, "
    where += "" if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    title = f"ENet, {arguments.batch}x{arguments.side}x{arguments.side}, {where}, torch {torch.__version__}"
    table = Table("supervision", "ms per step (median)", "interquartile range", "over partial", title=title)
    for name, series in times.items():
        low, _, high = statistics.quantiles(series, n=4)
        table.add_row(name, f"{statistics.median(series):.3f}", f"{low:.3f} to {high:.3f}", f"{ratio[name]:.4f}")
    Console().print(table)
    if arguments.json:
        content = {"title": title, "partial_ms": base, "ratios": ratio, "times_ms": times}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
