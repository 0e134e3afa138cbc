from __future__ import annotations

import numpy as np

from inbounds.inference.largest import keep_largest


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
