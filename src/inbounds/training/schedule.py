"""How the learning rate changes from epoch to epoch, and what follows it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from inbounds.config.settings import Training
from inbounds.runs.checkpoint import State
from inbounds.supervision import Supervision


class Schedule:
    """A learning rate, and the weights that fall with it, as tensors on the device, which graphs read anew.

    Args:
        training: How it is trained.
        device: Where the tensors are.
    """

    def __init__(self, training: Training, device: torch.device) -> None:
        self.training, self.lr = training, torch.tensor(training.lr, device=device)
        self.weights: list[tuple[Tensor, float]] = []

    def following(self, supervision: Supervision) -> Supervision:
        """The same supervision, with regularisers whose weights this schedule changes."""
        regularisers = []
        for one in supervision.regularisers:
            if one.schedule == "lr" and one.weight:
                weight = torch.tensor(float(one.weight), device=self.lr.device)
                self.weights.append((weight, float(one.weight)))
                one = replace(one, weight=weight)
            regularisers.append(one)
        return replace(supervision, regularisers=regularisers)

    def advance(self, state: State, optimiser: torch.optim.Optimizer) -> None:
        """Set the learning rate of the next epoch, and all that follows it."""
        training = self.training
        if training.schedule == "cosine":
            state.lr = training.lr * (1 + math.cos(math.pi * state.epoch / training.epochs)) / 2
        elif state.bad_epochs >= training.patience:
            state.bad_epochs = 0
            state.lr *= training.factor
        self.lr.fill_(state.lr)
        for weight, at_first in self.weights:
            weight.fill_(at_first * state.lr / training.lr)
        for group in optimiser.param_groups:
            group["lr"] = self.lr
