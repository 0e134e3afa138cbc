"""nnU-Net's loader, which says of each patch what it shows of its scan."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from batchgeneratorsv2.transforms.spatial.spatial import SpatialTransform
from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader


class PlacedLoader(nnUNetDataLoader):
    """A batch has, under `placed`, a row for each patch: its slice, its zoom, whether it leaves out part of the scan.

    The slice is that of the preprocessed scan. The zoom is by how much areas (in 3-D volumes) were enlarged. A patch
    shows all of its slice (in 3-D of its scan) where its frame, seen from the scan, reaches beyond it on all sides; one
    that was turned counts as cut, whatever it shows.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._boxes: list[tuple[Any, Any]] = []
        self._affines: list[Any] = []
        for one in getattr(self.transforms, "transforms", []):
            if isinstance(one, SpatialTransform):
                one.get_parameters = functools.partial(self._remembered, one)

    def _remembered(self, transform: SpatialTransform, **data: Any) -> dict[str, Any]:
        parameters: dict[str, Any] = SpatialTransform.get_parameters(transform, **data)
        self._affines[-1] = parameters["affine"]
        if parameters.get("elastic_offsets") is not None:
            self._affines[-1] = np.full((1, 1), np.nan)
        return parameters

    def get_bbox(self, data_shape: Any, *args: Any, **settings: Any) -> Any:
        """Where the next patch is cut, remembered."""
        lows, highs = super().get_bbox(data_shape, *args, **settings)
        self._boxes.append((np.array(lows), np.array(data_shape)))
        self._affines.append(None)
        return lows, highs

    def generate_train_batch(self) -> dict[str, Any]:
        """A batch, and where its patches lie."""
        self._boxes, self._affines = [], []
        batch: dict[str, Any] = super().generate_train_batch()
        placed = zip(self._boxes, self._affines, strict=True)
        rows = [self._placed(low, shape, affine) for (low, shape), affine in placed]
        return batch | {"placed": torch.tensor(rows)}

    def _placed(self, low: Any, shape: Any, affine: Any) -> tuple[float, float, float]:
        axes = len(shape)
        enlarged = np.eye(axes)
        if affine is not None:
            enlarged[axes - len(affine) :, axes - len(affine) :] = affine  # augmented slice by slice, if smaller
        half = np.array(self.final_patch_size) / 2 * np.diag(enlarged)
        middle = low + np.array(self.patch_size) / 2
        all_of_it = (middle - half <= 1) & (middle + half >= shape - 1)
        turned = not np.allclose(enlarged, np.diag(np.diag(enlarged)), atol=1e-6)
        cut = turned or not all_of_it[self.patch_size_was_2d :].all()
        return float(low[0]), float(1 / abs(np.linalg.det(enlarged))), float(cut)
