from __future__ import annotations

import numpy as np
import pytest
import torch

from inbounds.inference.on_grid import SMALL, Due, OnGrid, joined, shared_out
from inbounds.store.grid import GridWindow


def scan(slices: int, *, keep: bool = False) -> OnGrid:
    """Whose grid has two rows more above and below, and whose slices are numbered."""
    stored = np.full((slices, 1, 8, 8), 0, np.uint8) + np.arange(slices, dtype=np.uint8)[:, None, None, None]
    fit = GridWindow.pad((4, 8), (8, 8))
    return Due("a", fit, (1.0, 1.0, 1.0), slices, lambda: stored, classes=2, keep=keep).read()


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7])
def test_batches_come_back_to_their_scans(step: int) -> None:
    scans = [scan(3), scan(1), scan(5)]
    whole, seen = joined(scans), {id(one): [] for one in scans}
    for first in range(0, len(whole), step):
        count = len(whole[first : first + step])
        shares = shared_out(scans, first, count)
        assert sum(part.stop - part.start for *_, part in shares) == count
        for one, begin, part in shares:
            mine = one.stored[begin : begin + part.stop - part.start]
            np.testing.assert_array_equal(whole[first : first + step][part], mine)
            seen[id(one)] += range(begin, begin + len(mine))
    assert list(seen.values()) == [[0, 1, 2], [0], [0, 1, 2, 3, 4]]


def test_a_single_scan_is_not_copied() -> None:
    one = scan(3)
    assert joined([one]) is one.stored


def test_what_is_found_lies_in_the_rows_of_the_scan() -> None:
    one = scan(2, keep=True)
    masks = np.zeros((2, 1, 8, 8), np.uint8)  # the mask, and that of a mirrored image
    masks[0, 0, 2, 5], masks[0, 0, 3, 5], masks[1, 0, 2, 5] = 1, 2, 1
    one.put(1, torch.full((1, 3, 8, 8), 0.25), masks)
    assert one.mask.shape == (2, 4, 8)
    assert (one.mask[1, 0, 5], one.mask[1, 1, 5], one.mask.sum()) == (1, 2, 3)
    assert one.probabilities is not None
    assert (one.probabilities[:, 1] == 0.25).all()
    (agreed,) = one.agreed
    assert agreed.tolist() == [[[1, 2], [0, 1]]]  # the first class is in both, the other in one of them


@pytest.mark.parametrize(("needed", "small"), [(0, True), (SMALL - 1, True), (SMALL, False)])
def test_small(needed: int, small: bool) -> None:
    one = scan(1).due
    assert Due("a", one.fit, one.spacing, 1, one.load, 2, needed=needed).small == small
