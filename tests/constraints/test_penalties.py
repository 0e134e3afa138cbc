from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import PENALTIES
from inbounds import Fixed, hinge, log_barrier, quadratic
from inbounds.constraints import Constraint
from inbounds.regions import size

numbers = st.floats(-1e4, 1e4)
sharpness = st.floats(0.1, 100)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=list(PENALTIES))


def priced(penalty, violation: float) -> tuple[float, float]:
    """The price of a violation and its slope there."""
    z = torch.tensor(violation, dtype=torch.float64, requires_grad=True)
    price = penalty(z)
    price.backward()
    return price.item(), z.grad.item()


def barrier(z: float, t: float) -> float:
    """The extension as its authors write it."""
    return -math.log(-z) / t if z <= -1 / t**2 else t * z - math.log(1 / t**2) / t + 1 / t


def test_by_hand() -> None:
    violation = torch.tensor([-5.0, 0.0, 0.5, 3.0])
    assert quadratic(violation).tolist() == [0, 0, 0.25, 9]
    assert hinge(violation).tolist() == [0, 0, 0.5, 3]
    assert log_barrier(1.0)(torch.tensor([-math.e, -1.0, 0.0, 2.0])).tolist() == pytest.approx([-1, 0, 1, 3])


@given(numbers)
def test_quadratic_and_hinge(z) -> None:
    if z <= 0:
        assert priced(quadratic, z) == priced(hinge, z) == (0, 0)
    else:
        assert priced(quadratic, z) == pytest.approx((z * z, 2 * z))
        assert priced(hinge, z) == (z, 1)


@given(numbers, sharpness)
def test_log_barrier_follows_its_formula(z, t) -> None:
    price, slope = priced(log_barrier(t), z)
    assert price == pytest.approx(barrier(z, t), rel=1e-9, abs=1e-9)
    assert slope == pytest.approx(-1 / (t * z) if z <= -1 / t**2 else t)


@given(sharpness)
def test_log_barrier_meets_its_tangent_smoothly(t) -> None:
    edge = -1 / t**2
    left, right = priced(log_barrier(t), edge * (1 + 1e-7)), priced(log_barrier(t), edge * (1 - 1e-7))
    assert left == pytest.approx(right, rel=1e-5, abs=1e-6)
    assert priced(log_barrier(t), edge) == pytest.approx((2 * math.log(t) / t, t))


@every_penalty
@given(x=numbers, y=numbers)
def test_convex_and_rising(penalty, x, y) -> None:
    x, y = sorted((x, y))
    low, middle, high = (priced(penalty, z)[0] for z in (x, (x + y) / 2, y))
    assert middle <= (low + high) / 2 + 1e-9 * (1 + abs(low) + abs(high))
    assert low <= high


@given(z=st.floats(-(2.0**60), 2.0**60), t=st.floats(1e-3, 1e6))
def test_log_barrier_is_finite_everywhere(z, t) -> None:
    assert all(map(math.isfinite, priced(log_barrier(t), z)))


@pytest.mark.parametrize("t", [1e10, 1e25, torch.tensor(1e10), torch.tensor(1e25)])
@pytest.mark.parametrize("z", [-1.0, 0.0, 1.0])
def test_log_barrier_is_finite_when_a_schedule_has_run_far(t, z) -> None:
    violation = torch.tensor(z, requires_grad=True)
    price = log_barrier(t)(violation)
    price.backward()
    assert price.isfinite()
    assert violation.grad.isfinite()


@every_penalty
def test_gradcheck(penalty) -> None:
    violation = torch.tensor([-30.0, -2.0, -0.3, -0.03, 0.02, 0.7, 5.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(penalty, violation)


def test_t_changes_in_place() -> None:
    t = torch.tensor(1.0, dtype=torch.float64)
    penalty = log_barrier(t)
    z = torch.tensor([-2.0, -0.5, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        torch.testing.assert_close(penalty(z), log_barrier(t.item())(z))
        assert torch.autograd.gradcheck(penalty, z)
        t.mul_(3)
    assert t == 27


@pytest.mark.parametrize("t", [5.0, torch.tensor(5.0)], ids=["number", "tensor"])
@pytest.mark.parametrize(("lower", "upper"), [(None, None), (None, 20), (3, None), (9, 20), (None, 4), (12, None)])
def test_open_sides_never_reach_the_logarithm(t, lower, upper) -> None:
    probs = torch.full((1, 2, 4, 4), 0.5, requires_grad=True)
    loss = Constraint(size, Fixed(lower, upper), log_barrier(t))(probs)
    expected = sum(barrier(z, 5.0) for z in (lower and lower - 8, upper and 8 - upper) if z is not None) / 16
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert probs.grad.isfinite().all()
    assert (probs.grad == 0).all() == (lower is None and upper is None)


@pytest.mark.parametrize("t", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_sharpness_that_is_not_positive(t) -> None:
    with pytest.raises(ValueError, match=f"t must be positive and finite, not {t}"):
        log_barrier(t)


@pytest.mark.parametrize("t", [torch.ones(2), torch.tensor(3)])
def test_refuses_a_tensor_that_is_no_number(t) -> None:
    with pytest.raises(ValueError, match="t must be a number or a 0-d floating-point tensor"):
        log_barrier(t)
