"""Ways of making training steps, measured in turn: what slows the machine for a while hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from inbounds.annotations import UNLABELLED
from inbounds.batches.samples import Samples, as_float, by_slice
from inbounds.progress import bar
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.training.loop import TURN, Trainer
from inbounds.training.stream import AHEAD, MARK, WARM

Row = dict[str, Any]
Way = Callable[[int], None]
"""Makes so many steps (or epochs); on a GPU they are on their way when it returns."""

MOST = 20
"""Steps of one way in one round, at most."""


class Steps:
    """A run's steps one after the other, as its epochs make them.

    Args:
        trainer: The run.
        remainder: Whether the last batch of an epoch may be shorter, as in training; else it is left out.
    """

    def __init__(self, trainer: Trainer, *, remainder: bool = False) -> None:
        self.trainer, self.remainder, self.made = trainer, remainder, 0
        trainer.network.train()

    def plan(self) -> list[Tensor]:
        """The batches of an epoch."""
        if self.trainer.volumes is not None:
            return self.trainer.volumes.plan(self.trainer.order)
        size = self.trainer.run.settings.training.batch
        batches = by_slice(self.trainer.samples, size, self.trainer.order)
        return [batch for batch in batches if self.remainder or len(batch) == size]

    def __call__(self, count: int) -> None:
        """Make some, and begin the next epoch where one ends."""
        step, stream = self.trainer.step, self.trainer.stream
        for _ in range(count):
            with stream.here():
                if step.at == len(step.plan):
                    step.begin(self.plan())
                step()
            self.made += 1
            if self.made % MARK == 0:
                stream.mark()
            while stream.ahead() > AHEAD:
                stream.wait()


class Many:
    """Several runs that take turns, as they do when they are trained side by side."""

    def __init__(self, runs: Sequence[Steps]) -> None:
        self.runs = runs

    def __call__(self, count: int) -> None:
        """So many steps of each."""
        for done in range(0, count, TURN):
            for run in self.runs:
                run(min(TURN, count - done))


class Epochs:
    """The steps of whole epochs alone; of several runs, side by side."""

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        self.together = Many([Steps(trainer, remainder=True) for trainer in trainers])
        self.steps = len(self.together.runs[0].plan())

    def __call__(self, count: int) -> None:
        """So many epochs."""
        self.together(count * self.steps)


class Training:
    """Whole epochs as training makes them, with validation and checkpoints; of several runs, side by side."""

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        self.going = [(trainer, trainer.steps()) for trainer in trainers]

    def __call__(self, count: int) -> None:
        """So many epochs of each; they must have more of them to go."""
        goal = self.going[0][0].state.epoch + count
        while behind := [steps for trainer, steps in self.going if trainer.state.epoch < goal]:
            for steps in behind:
                next(steps)


class Plain:
    """What people write: float images from a `DataLoader`, Adam as it comes, the loss looked at after each step."""

    def __init__(self, run: Run, samples: Samples, device: str) -> None:
        training = run.settings.training
        assert isinstance(samples.images, torch.Tensor)
        content = TensorDataset(as_float(samples.images.cpu()), samples.resident.cpu().long())
        self.loader = DataLoader(content, batch_size=training.batch, shuffle=True, drop_last=True)
        self.device, self.total = device, 0.0
        self.network = build_network(run).to(device).train()
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=training.lr)
        self.batches = self._batches()

    def _batches(self) -> Iterator[list[Tensor]]:
        while True:
            yield from self.loader

    def __call__(self, count: int) -> None:
        """So many steps."""
        for _ in range(count):
            image, label = (tensor.to(self.device) for tensor in next(self.batches))
            self.optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.network(image), label, ignore_index=UNLABELLED)
            loss.backward()
            self.optimiser.step()
            self.total += loss.item()


def in_turn(
    ways: Mapping[str, Way], rounds: int, title: str, *, seconds: float = 0.0, warm: int = 1
) -> dict[str, list[float]]:
    """Milliseconds per step of each way, round by round; every other round goes through them backwards.

    Args:
        ways: By name.
        rounds: How often each has its turn.
        title: Of the progress shown.
        seconds: About how long a turn is; one step at least.
        warm: Steps before anything is measured.
    """
    counts: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in bar(title)(range(rounds + 1)):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            way = ways[name]
            if number:
                times[name].append(1000 * _seconds(way, counts[name]) / counts[name])
                continue
            way(warm)
            counts[name] = max(1, min(MOST, int(seconds / _seconds(way, 1)))) if seconds else 1
    return times


def warm_up(cuda: bool) -> int:
    """The steps that a new run needs before it goes at its pace: on a GPU it is captured."""
    return WARM + 2 if cuda else 1


def _seconds(way: Way, count: int) -> float:
    _wait()
    begun = time.perf_counter()
    way(count)
    _wait()
    return time.perf_counter() - begun


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def row(
    section: str, name: str, batch: int, times: Sequence[float], base: Sequence[float] | None = None, **more: Any
) -> Row:
    """What was measured of one way.

    Args:
        section: Of the benchmark.
        name: Of the way.
        batch: Images a step.
        times: Milliseconds, round by round.
        base: Those of what it is compared with, in the same rounds: the ratio is the median of theirs.
        more: What else there is to tell; `images`, if a time is not that of one batch.
    """
    ms = median(times)
    low, _, high = quantiles(times, n=4, method="inclusive") if len(times) > 1 else (ms, ms, ms)
    ratio = None if base is None else median(mine / theirs for mine, theirs in zip(times, base, strict=True))
    speed = 1000 * more.get("images", batch) / ms
    numbers = {"section": section, "name": name, "batch": batch, "ms": ms, "low": low, "high": high, "ratio": ratio}
    return {**numbers, "images_per_second": speed, **more, "times": list(times)}
