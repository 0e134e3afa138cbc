from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inbounds import Scans, size


def test_numbers_scans_in_order_of_appearance() -> None:
    scans = Scans.of(["b", "a", "b"])
    assert (scans.index.tolist(), scans.count) == ([0, 1, 0], 2)
    assert Scans.of(torch.tensor([7, 3, 7])).index.tolist() == [0, 1, 0]


def test_total_and_each_by_hand() -> None:
    scans = Scans(torch.tensor([1, 0, 1]), 3)
    values = torch.tensor([[1.0], [2.0], [4.0]])
    assert scans.total(values).tolist() == [[2.0], [5.0], [0.0]]
    assert scans.each(scans.total(values)).tolist() == [[5.0], [2.0], [5.0]]


def test_an_unknown_value_stays_in_its_scan() -> None:
    totals = Scans.of("aab").total(torch.tensor([1.0, torch.nan, 2.0]))
    assert totals.isnan().tolist() == [True, False]
    assert totals[1] == 2


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_totals_add_up_to_the_whole(names) -> None:
    scans, values = Scans.of(names), torch.arange(1.0, len(names) + 1)
    assert scans.count == len(set(names))
    assert scans.total(values).sum() == values.sum()
    for number, name in enumerate(dict.fromkeys(names)):
        assert scans.total(values)[number] == sum(v for v, n in zip(values, names, strict=True) if n == name)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_any_integer_type_counts(dtype) -> None:
    scans = Scans(torch.tensor([0, 1, 1], dtype=dtype), 2)
    assert scans.each(torch.tensor([5.0, 7.0])).tolist() == [5, 7, 7]


def test_moves_to_a_device() -> None:
    assert Scans.of("ab").to("meta").index.device.type == "meta"


@pytest.mark.plain
@pytest.mark.parametrize(
    "index",
    [torch.tensor([0.0, 1.0]), torch.tensor([[0, 1]]), torch.tensor([True, False])],
    ids=["float", "two axes", "bool"],
)
def test_refuses_an_index_that_is_no_list_of_integers(index) -> None:
    with pytest.raises(ValueError, match="the scan index must be an integer tensor"):
        Scans(index, 2)


@pytest.mark.plain
def test_an_unsigned_index_selects_or_is_refused() -> None:
    """As a mask, which is what indexing makes of uint8, it would silently pick other slices."""
    try:
        scans = Scans(torch.tensor([0, 1, 1], dtype=torch.uint8), 2)
    except ValueError:
        return
    assert scans.each(torch.tensor([5.0, 7.0])).tolist() == [5, 7, 7]


def test_refuses_no_scans_and_wrong_lengths() -> None:
    with pytest.raises(ValueError, match="at least one scan, not 0"):
        Scans(torch.tensor([0]), 0)
    with pytest.raises(ValueError, match="no slices"):
        Scans.of([])
    with pytest.raises(ValueError, match="names 3 slices, the batch holds 2"):
        size(torch.ones(2, 2, 4, 4), scans=Scans.of("aab"))
