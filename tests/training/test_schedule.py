"""What changes while a network is trained."""

from __future__ import annotations

import math

import pytest
import torch

from inbounds.config.settings import Training
from inbounds.constraints import Constraint, Fixed
from inbounds.regions import size
from inbounds.regularisers import Regulariser, border
from inbounds.supervision import Supervision
from inbounds.training.schedule import Schedule

CPU = torch.device("cpu")


def walked(schedule: Schedule, read: torch.Tensor, epochs: int = 2, steps: int = 10) -> list[float]:
    """What a number is in each step of a training."""
    schedule.begin(0, epochs, steps)
    seen = []
    for _ in range(epochs * steps):
        schedule.step()
        seen.append(float(read))
    return seen


def test_a_cosine_falls_at_every_step() -> None:
    schedule = Schedule(Training(lr=0.5, schedule="cosine"), CPU)
    expected = [0.25 * (1 + math.cos(math.pi * done / 20)) for done in range(20)]
    assert walked(schedule, schedule.lr) == pytest.approx(expected, abs=1e-6)


def test_a_weight_waits_and_rises_to_its_full_value() -> None:
    schedule = Schedule(Training(lr=1.0), CPU)
    waiting = Constraint(size, Fixed(0, 1), weight=4.0, ramp=(0.25, 0.75))
    steady = Constraint(size, Fixed(0, 1), weight=2.0, name="steady")
    changed = schedule.following(Supervision(constraints=[waiting, steady]))
    weight = changed.constraints[0].weight
    assert isinstance(weight, torch.Tensor)
    expected = [min(max((done / 20 - 0.25) / 0.5, 0), 1) * 4 for done in range(20)]
    assert walked(schedule, weight) == pytest.approx(expected)
    assert changed.constraints[1].weight == 2.0


def test_a_weight_may_follow_the_learning_rate() -> None:
    schedule = Schedule(Training(lr=0.5, schedule="cosine"), CPU)
    falling = Regulariser(border, weight=3.0, schedule="lr")
    weight = schedule.following(Supervision(regularisers=[falling])).regularisers[0].weight
    expected = [3 * (1 + math.cos(math.pi * done / 20)) / 2 for done in range(20)]
    assert walked(schedule, weight) == pytest.approx(expected, abs=1e-6)


def test_training_that_goes_on_is_where_it_was() -> None:
    schedule = Schedule(Training(lr=1.0, schedule="cosine"), CPU)
    whole = walked(schedule, schedule.lr)
    schedule.begin(1, 2, 10)
    schedule.step()
    assert float(schedule.lr) == whole[10]
