"""The nearest bounds that can hold together, against SciPy's optimiser and by brute force over all masks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from inbounds.losses.feasible import EMPTY, nearest_bounds, per_class
from inbounds.regions.region import members, select


def member(regions: list, K: int) -> np.ndarray:
    return np.array([[float(k in members(region)) for k in range(K)] for region in regions])


def by_scipy(lower: np.ndarray, upper: np.ndarray, pixels: float, regions: list, K: int, seed: int) -> np.ndarray:
    """How far each bound gives way: the best of several starts."""
    sums, middle = member(regions, K), np.where(lower > upper, (lower + upper) / 2, lower)
    low, high = np.minimum(lower, middle), np.maximum(upper, middle)

    def squares(sizes: np.ndarray) -> tuple[float, np.ndarray]:
        found = sums @ sizes
        over = np.maximum(found - high, 0) - np.maximum(low - found, 0)
        return over @ over / 2, sums.T @ over

    rule = {"type": "eq", "fun": lambda sizes: sizes.sum() - pixels, "jac": lambda _: np.ones(K)}
    starts = np.random.default_rng(seed).dirichlet(np.ones(K), 5) * pixels
    runs = [
        minimize(
            squares,
            start,
            jac=True,
            bounds=[(EMPTY, None)] * K,
            constraints=[rule],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        for start in starts
    ]
    found = sums @ min(runs, key=lambda run: run.fun).x
    return np.maximum(np.maximum(lower - found, found - upper), 0)


def gives_way(lower: np.ndarray, upper: np.ndarray, pixels: float, regions: list, K: int) -> tuple[np.ndarray, bool]:
    low, high = torch.from_numpy(lower)[None], torch.from_numpy(upper)[None]
    new_low, new_high, can = nearest_bounds(low, high, torch.tensor([[pixels]], dtype=torch.float64), regions, K)
    return torch.maximum(low - new_low, new_high - high)[0].numpy(), bool(can)


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_scipy_whatever_the_order(seed) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 6))
    drawn = [tuple(sorted(rng.choice(K, int(rng.integers(1, K)), replace=False).tolist())) for _ in range(4)]
    regions = list(dict.fromkeys(drawn))
    lower = rng.uniform(-20, 90, len(regions))
    upper = lower + rng.uniform(-10, 40, len(regions))
    wanted = by_scipy(lower, upper, 100.0, regions, K, seed)
    found, can = gives_way(lower, upper, 100.0, regions, K)
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    assert can == (wanted.max() <= 0.01)
    for order in itertools.permutations(range(len(regions))):
        mixed, _ = gives_way(lower[list(order)], upper[list(order)], 100.0, [regions[n] for n in order], K)
        np.testing.assert_allclose(mixed, found[list(order)], atol=1e-5)
    renamed = np.random.default_rng(seed).permutation(K)
    others = [tuple(sorted(renamed[list(region)].tolist())) for region in regions]
    np.testing.assert_allclose(gives_way(lower, upper, 100.0, others, K)[0], found, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3)], ids=["2d", "3d"])
def test_whether_bounds_can_hold_is_what_all_masks_say(shape) -> None:
    """With whole numbers as bounds some mask keeps to them if some probabilities do, where regions are nested."""
    K, pixels = 3, int(np.prod(shape))
    masks = np.array(list(itertools.product(range(K), repeat=pixels)))
    counts = np.stack([(masks == k).sum(axis=1) for k in range(K)], axis=1)
    for regions in ([1, 2], [1, (1, 2)], [0, (1, 2)], [(0, 1)]):
        found = counts @ member(regions, K).T
        bounds = itertools.product(range(0, pixels + 2, 2), range(0, pixels + 2, 3), repeat=len(regions))
        for numbers in bounds:
            lower, upper = (np.array(numbers[side::2], dtype=float) for side in (0, 1))
            some = bool(((found >= lower) & (found <= upper)).all(axis=1).any())
            assert gives_way(lower, upper, float(pixels), regions, K)[1] == some, (regions, lower, upper)


def test_open_sides_and_what_can_hold_stay_as_they_are() -> None:
    lower, upper = torch.tensor([[-torch.inf, 10.0, 20.0]]), torch.tensor([[torch.inf, torch.inf, 30.0]])
    low, high, can = nearest_bounds(lower, upper, torch.tensor([[100.0]]), [1, 2, (1, 3)], 4)
    assert bool(can)
    torch.testing.assert_close(low, lower)
    torch.testing.assert_close(high, upper)


def test_per_class_is_the_transpose_of_select() -> None:
    regions, values, sizes = [1, (0, 2), (1, 2)], torch.rand(2, 3), torch.rand(2, 4)
    left = (select(sizes, regions) * values).sum()
    torch.testing.assert_close(left, (sizes * per_class(values, regions, 4)).sum())
