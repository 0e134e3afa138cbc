from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from inbounds.inference.largest import keep_largest
from inbounds.scans import format as scans


def test_each_class_keeps_one_piece_across_slices() -> None:
    mask = np.zeros((3, 6, 6), np.uint8)
    mask[:, 1, 1] = 1  # three voxels through the slices
    mask[0, 4, 4:6] = 1  # two in one slice
    mask[1, 3:5, 2] = 2
    mask[2, 5, 5] = 2  # touches the others at a corner at most
    wanted = mask.copy()
    wanted[0, 4, 4:6] = 0
    wanted[2, 5, 5] = 0
    np.testing.assert_array_equal(keep_largest(mask), wanted)
    np.testing.assert_array_equal(keep_largest(wanted), wanted)


def test_an_image_without_slices() -> None:
    assert keep_largest(np.array([[1, 1, 0, 1], [0, 0, 2, 0]], np.uint8)).tolist() == [[1, 1, 0, 0], [0, 0, 2, 0]]


def test_corners_do_not_connect_and_an_empty_mask_stays_empty() -> None:
    mask = np.zeros((1, 4, 4), np.uint8)
    mask[0, 0, :2] = mask[0, 1, 2] = 1
    assert keep_largest(mask).sum() == 2
    assert not keep_largest(np.zeros((2, 3, 3), np.uint8)).any()


@pytest.mark.parametrize("piece", [1, 30, 1 << 21])
def test_slices_a_few_at_a_time_give_what_all_at_once_do(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "PIECE", piece)
    rng = np.random.default_rng(0)
    for _ in range(60):
        shape = tuple(rng.integers(1, 9, 3))
        mask = rng.choice(4, shape, p=[0.5, 0.3, 0.15, 0.05]).astype(np.uint8)
        wanted = np.zeros_like(mask)
        for klass in (1, 2, 3):
            pieces, _ = ndimage.label(mask == klass)
            sizes = np.bincount(pieces.ravel())
            sizes[0] = 0
            wanted[(pieces == sizes.argmax()) & (mask == klass)] = klass
        np.testing.assert_array_equal(keep_largest(mask), wanted)
