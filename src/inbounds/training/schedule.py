"""How far training is, and what changes with it: the learning rate, and weights that rise or fall."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from inbounds.config.settings import Training
from inbounds.constraints import Constraint
from inbounds.regularisers import Regulariser
from inbounds.runs.checkpoint import State
from inbounds.supervision import Supervision

Term = TypeVar("Term", Constraint, Regulariser)


class Schedule:
    """A learning rate, and the weights that change, as tensors on the device, which graphs read anew.

    Args:
        training: How it is trained.
        device: Where the tensors are.
    """

    def __init__(self, training: Training, device: torch.device) -> None:
        self.training, self.lr = training, torch.tensor(training.lr, device=device)
        self.done, self.total = torch.zeros((), device=device), torch.ones((), device=device)
        self.weights: list[tuple[Tensor, float, bool, tuple[float, float] | None]] = []

    def following(self, supervision: Supervision) -> Supervision:
        """The same supervision, with terms whose weights this schedule changes."""
        return replace(
            supervision,
            constraints=[self._follow(one, ramp=one.ramp) for one in supervision.constraints],
            regularisers=[self._follow(one, falls=one.schedule == "lr") for one in supervision.regularisers],
        )

    def _follow(self, term: Term, *, falls: bool = False, ramp: tuple[float, float] | None = None) -> Term:
        if not term.weight or not (falls or ramp):
            return term
        weight, full = torch.tensor(float(term.weight), device=self.lr.device), float(term.weight)
        self.weights.append((weight, full, falls, ramp))
        return replace(term, weight=weight)

    def begin(self, epoch: int, epochs: int, steps: int) -> None:
        """Say where training stands: epochs done, epochs in all, and the steps of each."""
        self.done.fill_(epoch * steps)
        self.total.fill_(epochs * steps)

    def step(self) -> None:
        """Set what the next step needs. Part of it, so that it goes into its graph."""
        lr, progress = self.training.lr, self.done / self.total
        if self.training.schedule == "cosine":
            self.lr.copy_(lr * (1 + torch.cos(math.pi * progress)) / 2)
        for weight, full, falls, ramp in self.weights:
            share = self.lr / lr if falls else torch.ones_like(progress)
            if ramp is not None:
                share = share * ((progress - ramp[0]) / max(ramp[1] - ramp[0], 1e-6)).clamp(0, 1)
            weight.copy_(full * share)
        self.done += 1

    def advance(self, state: State, epochs: int, optimiser: torch.optim.Optimizer) -> None:
        """Set the learning rate with which the next epoch begins."""
        training = self.training
        if training.schedule == "cosine":
            state.lr = training.lr * (1 + math.cos(math.pi * state.epoch / epochs)) / 2
        elif state.bad_epochs >= training.patience:
            state.bad_epochs = 0
            state.lr *= training.factor
        self.lr.fill_(state.lr)
        for group in optimiser.param_groups:
            group["lr"] = self.lr
