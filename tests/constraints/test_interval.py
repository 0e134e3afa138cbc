from __future__ import annotations

import pytest
import torch

from inbounds import Interval

INF, NAN = torch.inf, torch.nan


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (60, 2000, (60.0, 2000.0)),
        (3, 3, (3.0, 3.0)),
        (None, 5, (-INF, 5.0)),
        (5, None, (5.0, INF)),
        (None, None, (-INF, INF)),
        ([[[1.0], [-INF]]], [[[INF], [2.0]]], ([[[1.0], [-INF]]], [[[INF], [2.0]]])),
        (torch.tensor([[[1], [2]]]), torch.tensor(3.0), ([[[1.0], [2.0]]], 3.0)),
    ],
)
def test_takes_numbers_lists_and_tensors(lower, upper, expected) -> None:
    interval = Interval(lower, upper)
    assert (interval.lower.tolist(), interval.upper.tolist()) == expected
    assert interval.lower.is_floating_point()
    assert interval.upper.is_floating_point()


@pytest.mark.parametrize("sides", [(torch.tensor(5), None), (None, torch.tensor([[[5], [6]]]))])
def test_an_open_side_beside_whole_numbers(sides) -> None:
    interval = Interval(*sides)
    assert interval.lower.is_floating_point()
    assert interval.upper.is_floating_point()
    assert interval.lower.isinf().all() == (sides[0] is None)
    assert interval.upper.isinf().all() == (sides[1] is None)


def test_an_open_side_takes_the_type_of_the_other() -> None:
    assert Interval(torch.zeros(2, 3, 1, dtype=torch.float64), None).upper.dtype == torch.float64


def test_equality_holds_across_precisions() -> None:
    assert Interval(0.1, torch.tensor(0.1, dtype=torch.float64)).upper.item() == 0.1


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (3, 2, r"lower 3.0 lies above upper 2.0 at index \(\)"),
        ([[[1.0], [5.0]]], [[[2.0], [4.0]]], r"lower 5.0 lies above upper 4.0 at index \(0, 1, 0\)"),
        ([[[1.0], [5.0]]], 4, r"lower 5.0 lies above upper 4.0 at index \(0, 1, 0\)"),
        (NAN, 2, r"lower is nan at index \(\)"),
        (1, [[[2.0, NAN]]], r"upper is nan at index \(0, 0, 1\)"),
        (INF, None, r"lower is inf at index \(\)"),
        (None, [[[3.0], [-INF]]], r"upper is -inf at index \(0, 1, 0\)"),
    ],
)
def test_refuses_numbers_that_make_no_interval(lower, upper, message) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(lower, upper)


def test_trusted_numbers_are_not_looked_at() -> None:
    assert Interval(3, 2, trusted=True).lower == 3


@pytest.mark.plain
@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (torch.zeros(2, 3, 1), torch.ones(2, 4, 1), r"lower of shape \(2, 3, 1\) and upper of shape \(2, 4, 1\)"),
        (torch.zeros(1, 1, 1, 1), None, r"must be \(N, K, M\).*\(1, 1, 1, 1\)"),
        ("many", 2, "lower must be a number, nested lists of numbers or a tensor, not 'many'"),
        (1, [[1.0], [1.0, 2.0]], "upper must be a number, nested lists"),
        (True, 2, "lower must hold real numbers, not torch.bool"),
        (0, torch.tensor(1j), "upper must hold real numbers, not torch.complex64"),
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_refuses_shapes_and_types_always(lower, upper, message, trusted) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(lower, upper, trusted=trusted)
