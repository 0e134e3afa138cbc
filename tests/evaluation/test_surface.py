from __future__ import annotations

import math
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.spatial.distance import cdist

from inbounds.evaluation.surface import SurfaceDistances, surface_distances

pytest.importorskip("monai")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::FutureWarning")


def box(shape: tuple[int, ...], *corners: tuple[int, int]) -> torch.Tensor:
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[tuple(slice(*corner) for corner in corners)] = True
    return mask


def blobs(shape: tuple[int, ...], seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(shape)
    return ndimage.gaussian_filter(noise, sigma=[1.0 if side > 1 else 0.0 for side in shape]) > 0.25


def by_all_pairs(prediction: np.ndarray, truth: np.ndarray, spacing: tuple[float, ...]) -> SurfaceDistances:
    """From the definition: every surface voxel against every other. An axis of length 1 is no axis."""
    axes = [axis for axis in range(3) if axis or prediction.shape[0] > 1]
    step = np.array([spacing[axis] for axis in axes])
    points = []
    for mask in (prediction, truth):
        mask = mask if len(axes) == 3 else mask[0]
        points.append(np.argwhere(mask & ~ndimage.binary_erosion(mask)) * step)
    pairs = cdist(*points)
    there, back = pairs.min(axis=1), pairs.min(axis=0)
    return SurfaceDistances(
        max(np.percentile(there, 95), np.percentile(back, 95)), float(np.concatenate([there, back]).mean())
    )


def close(found: SurfaceDistances, expected: SurfaceDistances) -> None:
    assert found.hd95 == pytest.approx(expected.hd95, rel=1e-5)
    assert found.assd == pytest.approx(expected.assd, rel=1e-5)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("at", [0, 17], ids=["at the border", "inside"])
def test_two_squares_20_pixels_apart(depth, at) -> None:
    """Column c of the left one is 20 - c from the right one: 20 at most, and 15.5 on average."""
    left = box((depth, 64, 64), (0, depth), (at, at + 10), (at, at + 10))
    right = box((depth, 64, 64), (0, depth), (at, at + 10), (at + 20, at + 30))
    found = surface_distances(left, right, (1, 1, 1))
    assert found.hd95 == 20
    assert found.assd == pytest.approx(15.5)


@pytest.mark.parametrize(("axis", "distance"), [(0, 20.0), (1, 6.0), (2, 3.0)])
def test_each_axis_has_its_own_spacing(axis, distance) -> None:
    """A plate moved by two voxels across its plane."""
    corners = [(1, 7)] * 3
    corners[axis] = (2, 3)
    plate = box((8, 8, 8), *corners)
    found = surface_distances(plate, plate.roll(2, dims=axis), (10.0, 3.0, 1.5))
    assert (found.hd95, found.assd) == (distance, distance)


def test_a_single_slice_is_an_image_with_a_contour() -> None:
    """A ring of width 1 around the same square: with all pixels taken for surface the distances would be 0 for most."""
    inner, outer = box((1, 20, 20), (0, 1), (5, 15), (5, 15)), box((1, 20, 20), (0, 1), (4, 16), (4, 16))
    found = surface_distances(outer, inner, (100.0, 2.0, 2.0))
    assert found.assd > 2
    close(found, by_all_pairs(outer.numpy(), inner.numpy(), (100.0, 2.0, 2.0)))


def test_a_region_in_one_slice_of_several_is_all_surface() -> None:
    inner, outer = box((3, 20, 20), (1, 2), (5, 15), (5, 15)), box((3, 20, 20), (1, 2), (4, 16), (4, 16))
    found = surface_distances(outer, inner, (10.0, 1.0, 1.0))
    close(found, by_all_pairs(outer.numpy(), inner.numpy(), (10.0, 1.0, 1.0)))
    assert found.assd < 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(1, 30, 26), (2, 16, 16), (7, 14, 12)])
def test_random_blobs_agree_with_all_pairs(shape, seed) -> None:
    prediction, truth = blobs(shape, seed), blobs(shape, 100 + seed)
    spacing = (8.0, 1.25, 1.5)
    prediction, truth = torch.from_numpy(prediction), torch.from_numpy(truth)
    found = surface_distances(prediction, truth, spacing)
    close(found, by_all_pairs(prediction.numpy(), truth.numpy(), spacing))
    close(surface_distances(truth, prediction, spacing), found)


def test_equal_masks_are_at_distance_0() -> None:
    mask = torch.from_numpy(blobs((5, 12, 12), 0))
    assert surface_distances(mask, mask, (3, 1, 1)) == SurfaceDistances(0.0, 0.0)


@pytest.mark.parametrize("empty", [(True, False), (False, True), (True, True)])
def test_no_surface_no_distance(empty) -> None:
    masks = [torch.zeros(2, 6, 6, dtype=torch.bool) if gone else box((2, 6, 6), (0, 2), (1, 3)) for gone in empty]
    found = surface_distances(*masks, (1, 1, 1))
    assert math.isnan(found.hd95)
    assert math.isnan(found.assd)


@pytest.mark.parametrize("missing", ["monai", "scipy"])
def test_says_what_to_install(missing) -> None:
    """The room itself imports without either, and loads neither until a surface is asked for."""
    code = f"""
import sys
sys.modules["{missing}"] = None
import torch
from inbounds.errors import BadInput
from inbounds.evaluation.surface import surface_distances
assert not [name for name in sys.modules if name.startswith(("monai.", "scipy."))]
mask = torch.ones(1, 4, 4, dtype=torch.bool)
try:
    surface_distances(mask, mask, (1, 1, 1))
except BadInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(rf"need MONAI and SciPy \(.*{missing}.*\): pip install 'inbounds.evaluate.'", done.stdout)
