"""The size of a scan from some of its slices and what is remembered of the others."""

from __future__ import annotations

import torch

from inbounds.annotations.rest import Rest
from inbounds.regions import Scans

NOBODY = torch.zeros(3, 1, 1, dtype=torch.bool)


def rest(same: list[list[float]], **changes: torch.Tensor) -> Rest:
    """Three images of one class, of which nothing was enlarged and all was seen."""
    parts = {
        "same": torch.tensor(same),
        "zoom": torch.ones(3),
        "stored": torch.tensor([5.0, 5.0, 7.0]).reshape(3, 1, 1),
        "seen": torch.ones(3, 1, 1, dtype=torch.bool),
        "others": torch.tensor([100.0, 30.0, 0.0]).reshape(3, 1, 1),
        "complete": torch.ones(3, 1, 1, dtype=torch.bool),
    }
    return Rest(**{**parts, **changes})


APART = [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]
TWICE = [[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]
SCANS = Scans(torch.tensor([0, 0, 1]), 3)
SIZES = torch.tensor([4.0, 8.0, 9.0]).reshape(3, 1, 1)


def test_slices_of_the_batch_and_the_others_add_up() -> None:
    values, complete = rest(APART).whole(SIZES, NOBODY, SCANS)
    assert values.flatten().tolist() == [100 + 4 + 8, 30 + 9, 0]
    assert complete.all()


def test_a_slice_that_is_there_twice_counts_once_by_its_mean() -> None:
    values, _ = rest(TWICE).whole(SIZES, NOBODY, SCANS)
    assert values.flatten().tolist() == [100 + 6, 30 + 9, 0]


def test_a_zoom_is_taken_out() -> None:
    values, _ = rest(APART, zoom=torch.tensor([2.0, 1.0, 3.0])).whole(SIZES, NOBODY, SCANS)
    assert values.flatten().tolist() == [100 + 1 + 8, 30 + 1, 0]


def test_a_slice_that_is_cut_enters_as_remembered_without_gradient() -> None:
    cut = torch.tensor([True, False, False]).reshape(3, 1, 1)
    sizes = SIZES.clone().requires_grad_()
    values, complete = rest(APART).whole(sizes, cut, SCANS)
    assert values.flatten().tolist() == [100 + 5 + 8, 30 + 9, 0]
    assert complete.all()
    values.sum().backward()
    assert sizes.grad.flatten().tolist() == [0, 1, 1]


def test_of_two_copies_the_one_that_is_not_cut_counts() -> None:
    cut = torch.tensor([True, False, False]).reshape(3, 1, 1)
    now, measured = rest(TWICE).each(SIZES, cut)
    assert now.flatten().tolist() == [8, 8, 9]
    assert measured.all()


def test_a_scan_is_known_when_all_of_it_is() -> None:
    cut = torch.tensor([True, False, False]).reshape(3, 1, 1)
    unseen = torch.tensor([False, True, True]).reshape(3, 1, 1)
    _, complete = rest(APART, seen=unseen).whole(SIZES, cut, SCANS)
    assert complete.flatten().tolist() == [False, True, True]
    _, complete = rest(APART, seen=unseen).whole(SIZES, NOBODY, SCANS)  # it is measured now
    assert complete.all()
    _, complete = rest(APART, complete=unseen).whole(SIZES, NOBODY, SCANS)
    assert complete.flatten().tolist() == [False, True, True]
