"""nnU-Net's loader, which says of each patch what it shows of its scan."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from batchgeneratorsv2.transforms.spatial.mirroring import MirrorTransform
from batchgeneratorsv2.transforms.spatial.spatial import SpatialTransform
from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader

from inbounds.errors import BadInput


class PlacedLoader(nnUNetDataLoader):
    """A batch has, under `placed`, seven rows of three numbers for each patch, in voxels of the preprocessed scan.

    Three rows are the matrix that turned, zoomed and mirrored it; one says where its middle lies, two where what was
    cut out for this begins and ends, and one the sides of the scan: see `Frames`.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._boxes: list[tuple[Any, Any]] = []
        self._changes: list[dict[str, Any]] = []
        for one in getattr(self.transforms, "transforms", []):
            if isinstance(one, SpatialTransform) and (one.p_elastic_deform or one.random_crop):
                raise BadInput("bounds cannot follow elastic deformation, nor random cropping: leave them out")
            if isinstance(one, SpatialTransform | MirrorTransform):
                one.get_parameters = functools.partial(self._remembered, one)

    def _remembered(self, transform: Any, **data: Any) -> dict[str, Any]:
        parameters: dict[str, Any] = type(transform).get_parameters(transform, **data)
        self._changes[-1] |= parameters
        return parameters

    def get_bbox(self, data_shape: Any, *args: Any, **settings: Any) -> Any:
        """Where the next patch is cut, remembered."""
        lows, highs = super().get_bbox(data_shape, *args, **settings)
        self._boxes.append((np.array(lows), np.array(data_shape)))
        self._changes.append({})
        return lows, highs

    def generate_train_batch(self) -> dict[str, Any]:
        """A batch, and where its patches lie."""
        self._boxes, self._changes = [], []
        batch: dict[str, Any] = super().generate_train_batch()
        placed = zip(self._boxes, self._changes, strict=True)
        rows = [self._placed(low, shape, **changes) for (low, shape), changes in placed]
        return batch | {"placed": torch.from_numpy(np.stack(rows)).float()}

    def _placed(self, low: Any, shape: Any, affine: Any = None, axes: Sequence[int] = (), **_: Any) -> Any:
        cut, final, matrix = np.array(self.patch_size), np.array(self.final_patch_size), np.eye(3)
        if affine is None:  # whole voxels
            middle = cut // 2 - final // 2 + (final - 1) / 2
        else:
            matrix[3 - len(affine) :, 3 - len(affine) :] = affine  # slice by slice, if smaller
            middle = (cut - 1) / 2
        matrix[:, [axis + self.patch_size_was_2d for axis in axes]] *= -1
        return np.stack([*matrix, low + middle, low.clip(min=0), np.minimum(low + cut, shape), shape])
