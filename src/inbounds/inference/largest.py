"""Of each class, the largest piece: what people do with masks of an organ that is one."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from inbounds.scans.format import slabs


def keep_largest(mask: UInt8[np.ndarray, "*space"]) -> UInt8[np.ndarray, "*space"]:
    """Turn all but the largest connected piece of every class into background; of equal ones the first is kept.

    Voxels are connected by their faces, across slices too. Pieces are found a few slices at a time and joined where
    these meet, so that beside the two masks little is held but a few numbers for each piece.

    Example:
        >>> keep_largest(np.array([[[1, 1, 0, 1, 0, 2]]], dtype=np.uint8))
        array([[[1, 1, 0, 0, 0, 2]]], dtype=uint8)
    """
    from scipy import ndimage  # type: ignore[import-untyped]

    kept = np.zeros_like(mask)
    for klass, box in enumerate(ndimage.find_objects(mask), start=1):
        if box is not None:
            _keep(mask[box], klass, kept[box])
    return kept


def _keep(mask: np.ndarray, klass: int, kept: np.ndarray) -> None:
    """Write a class to where its largest piece is."""
    from scipy import ndimage
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    # How large pieces are, which meet which, and the number of the first of each part.
    above = np.zeros(mask.shape[1:], dtype=np.int64)
    sizes, meeting, firsts = (
        [np.zeros(1, dtype=np.int64)],
        [],
        [0],
    )
    parts = list(slabs(len(mask), mask[0].size))
    for some in parts:
        pieces, count = ndimage.label(mask[some] == klass)
        pairs = np.unique(above * (count + 1) + np.where(above, pieces[0], 0))
        pairs = pairs[pairs % (count + 1) > 0]
        meeting.append(np.stack([pairs // (count + 1), pairs % (count + 1) + firsts[-1]]))
        above = np.where(pieces[-1], pieces[-1].astype(np.int64) + firsts[-1], 0)
        sizes.append(np.bincount(pieces.reshape(-1), minlength=count + 1)[1:])
        firsts.append(firsts[-1] + count)
    one, other = np.concatenate(meeting, axis=1)
    graph = coo_array((np.ones(len(one), dtype=bool), (one, other)), shape=(firsts[-1] + 1, firsts[-1] + 1))
    _, whole = connected_components(graph, directed=False)
    largest = whole == np.bincount(whole, weights=np.concatenate(sizes)).argmax()
    for some, first, end in zip(parts, firsts, firsts[1:], strict=False):
        if largest[first + 1 : end + 1].any():
            if len(parts) > 1:
                pieces, _ = ndimage.label(mask[some] == klass)
            kept[some][np.append(False, largest[first + 1 : end + 1])[pieces]] = klass
