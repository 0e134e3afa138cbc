"""Of each class, the largest piece: what people do with masks of an organ that is one."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8


def keep_largest(mask: UInt8[np.ndarray, "*space"]) -> UInt8[np.ndarray, "*space"]:
    """Turn all but the largest connected piece of every class into background; of equal ones the first is kept.

    Voxels are connected by their faces, across slices too.

    Example:
        >>> keep_largest(np.array([[[1, 1, 0, 1, 0, 2]]], dtype=np.uint8))
        array([[[1, 1, 0, 0, 0, 2]]], dtype=uint8)
    """
    from scipy import ndimage  # type: ignore[import-untyped]

    kept = np.zeros_like(mask)
    for klass in np.unique(mask[mask > 0]):
        pieces, _ = ndimage.label(mask == klass)
        sizes = np.bincount(pieces.ravel())
        sizes[0] = 0
        kept[pieces == sizes.argmax()] = klass
    return kept
