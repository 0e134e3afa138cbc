"""Round regions have little border for their size: by hand, against a slow oracle, and as a fact."""

from __future__ import annotations

import math

import pytest
import torch

import oracles
from cases import SPACES, random_probs, scans_of
from inbounds import Annotation, Constraint, Individual, Scans, compactness
from inbounds.regions import Geometry, statistics


def ball(radius: int, axes: int) -> torch.Tensor:
    steps = torch.arange(-radius - 2, radius + 3)
    squares = sum(grid.square() for grid in torch.meshgrid(*[steps] * axes, indexing="ij"))
    return (squares <= radius**2).float()[None, None]


def box(*sides: int) -> torch.Tensor:
    return torch.ones(1, 1, *sides)


@pytest.mark.parametrize(
    ("probs", "value"),
    [
        (box(10, 10), (4 * 9 + 4 * math.sqrt(0.5)) ** 2 / 100),
        (box(4, 9), (2 * 3 + 2 * 8 + 4 * math.sqrt(0.5)) ** 2 / 36),
        (box(1, 1), 8),
        (0.5 * box(10, 10), 0.5 * (4 * 9 + 4 * math.sqrt(0.5)) ** 2 / 100),
        (box(7, 7, 7), (6 * 36 + 12 * 6 * math.sqrt(0.5) + 8 * math.sqrt(3) / 4) ** 3 / 7**6),
        (0 * box(4, 4), 0),
    ],
    ids=["square", "rectangle", "pixel", "faint", "cube", "empty"],
)
def test_by_hand(probs, value) -> None:
    assert compactness(probs).item() == pytest.approx(value, rel=0.01)


def test_a_disc_has_the_border_of_the_octagon_around_it() -> None:
    assert compactness(ball(60, 2)).item() == pytest.approx((16 * (math.sqrt(2) - 1)) ** 2 / math.pi, rel=0.02)
    assert compactness(ball(20, 3)).item() == pytest.approx(132, rel=0.02)
    assert compactness(ball(20, 2)) < compactness(box(40, 40)) < compactness(box(20, 60))


@pytest.mark.parametrize("of", [lambda _: None, scans_of], ids=["image", "scan"])
@pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
def test_agrees_with_a_slow_oracle_and_its_gradient_with_differences(space, of) -> None:
    scans = of(space)
    probs = random_probs(4, 2, space).requires_grad_()
    slow = oracles.compactness(probs.detach().numpy(), None if scans is None else scans.index.tolist())
    torch.testing.assert_close(compactness(probs, scans=scans).detach(), torch.from_numpy(slow))
    assert torch.autograd.gradcheck(lambda p: compactness(p, scans=scans), probs, fast_mode=True)


def test_slices_add_up() -> None:
    three = box(10, 10).expand(3, 1, 10, 10)
    torch.testing.assert_close(compactness(three, scans=Scans.of("aaa")), 3 * compactness(box(10, 10)))


def test_descent_makes_a_region_rounder() -> None:
    logits = (8 * box(6, 24)[0, 0] - 4)[None, None].repeat(1, 2, 1, 1)
    logits = torch.nn.functional.pad(logits, (8, 8, 8, 8), value=-4.0)
    logits[:, 0] *= -1
    logits.requires_grad_()
    facts = {"compactness_max": torch.full((1, 2, 1), 14.0), "compactness_min": torch.full((1, 2, 1), torch.nan)}
    loss = Constraint(compactness, Individual(relative=0.1), weight=10)
    annotation = Annotation(torch.full((1, 22, 40), 255), facts)
    before = loss(logits.softmax(1), None, annotation)
    adam = torch.optim.Adam([logits], lr=0.1)
    for _ in range(50):
        adam.zero_grad()
        loss(logits.softmax(1), None, annotation).backward()
        adam.step()
    assert loss(logits.softmax(1), None, annotation) < before / 2


def test_a_fact_of_pixels_is_unknown_where_the_grid_stretches_them() -> None:
    columns = statistics["compactness"].columns
    for scale, wanted in (((2.0, 2.0), [20.0]), ((2.0, 1.0), [math.nan])):
        geometry = Geometry((9, 9), None, (1.0, 1.0, 1.0), scale, lambda row, column: (row, column), (0.0, 1.0))
        assert list(columns.to_grid([20.0], geometry)) == pytest.approx(wanted, nan_ok=True)
