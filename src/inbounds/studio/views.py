"""The voxels of the scans that are looked at: mapped where they lie plainly in a file, else read once and kept a while.

At most so many bytes are kept; what was looked at longest ago is let go.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8

from inbounds.errors import BadInput
from inbounds.scans.display import Plane
from inbounds.scans.format import HEARD, Plain, Shape, library
from inbounds.scans.scan import header, read, read_labels

BUDGET = 1_500_000_000
SAMPLE = 16
SIDE = 128
"""Slices, and rows and columns of each at most, by which the window of brightness is chosen."""
ENDS = (0.5, 99.5)
"""Percent of the voxels that are black at least, and that are not white."""
THUMBNAIL = 96

Gray = UInt8[np.ndarray, "down across"]


@dataclass(frozen=True)
class View:
    """The voxels of a scan, and the brightness that is black and white."""

    voxels: Shaped[np.ndarray, "slices rows columns"]
    scale: tuple[float, float]
    window: tuple[float, float]

    def picture(self, plane: Plane, n: int) -> Gray:
        """A picture as the screen shows it: 0 is black, 255 white."""
        low, high = self.window
        seen = plane.picture(self.voxels, n)
        with np.errstate(all="ignore"):
            gray = _scaled(seen, self.scale)
            gray -= np.float32(low)
            gray *= np.float32(255 / (high - low))
        np.nan_to_num(gray, copy=False, nan=0.0, posinf=255.0, neginf=0.0)
        return np.ascontiguousarray((gray + np.float32(0.5)).clip(0, 255).astype(np.uint8))


def open_view(path: Path) -> View:
    """The voxels of a scan."""
    scan = header(path)
    if scan.plain is not None:
        return _view(_mapped(scan.plain, scan.shape), scan.plain.scale)
    voxels = read(path).array
    return _view(voxels.astype(np.float32) if voxels.dtype.itemsize > 4 else voxels, (1.0, 0.0))


def open_mask(path: Path) -> UInt8[np.ndarray, "slices rows columns"]:
    """The values of a mask."""
    values = read_labels(path).array
    if values.dtype != np.uint8:
        raise BadInput(f"{path}: this is no mask; predict again")
    return values


def thumbnail(view: View, plane: Plane) -> bytes:
    """The middle slice, small, as PNG."""
    image = library("PIL.Image", Path("thumbnail")).fromarray(view.picture(plane, plane.count // 2))
    rows, columns = plane.sides
    height, width = rows * plane.spacing[plane.down], columns * plane.spacing[plane.across]
    longer = max(height, width)
    size = max(1, round(THUMBNAIL * width / longer)), max(1, round(THUMBNAIL * height / longer))
    file = BytesIO()
    image.resize(size).save(file, format="PNG")
    return file.getvalue()


class Cache:
    """What is read by threads of its own and kept until room is needed, by key."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Future[Any], int]] = OrderedDict()
        self._shares: dict[Hashable, float] = {}

    def ask(self, key: Hashable, need: Callable[[], int], load: Callable[[], Any]) -> Future[Any]:
        """What `load` gives, now or later; `need` says how many bytes that may be."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            more, held = need(), sum(size for _, size in self._kept.values())
            for other in list(self._kept):
                if held + more <= self.budget:
                    break
                held -= self._kept.pop(other)[1]
            coming: Future[Any] = Future()
            self._kept[key] = (coming, more)
        threading.Thread(target=self._load, args=(key, coming, load), daemon=True).start()
        return coming

    def share(self, key: Hashable) -> float:
        """How much of what is being read is there, from 0 to 1, as far as that is known."""
        return self._shares.get(key, 0.0)

    def _load(self, key: Hashable, coming: Future[Any], load: Callable[[], Any]) -> None:
        HEARD.set(lambda share: self._shares.update({key: round(share, 3)}))  # a thread has a context of its own
        try:
            coming.set_result(load())
        except BaseException as error:  # whoever asked is told
            with self._lock:
                self._kept.pop(key, None)
            coming.set_exception(error)
        self._shares.pop(key, None)


def need(path: Path) -> int:
    """How many bytes opening a scan may take; none where its file is mapped."""
    scan = header(path)
    if scan.plain is not None:
        return 0
    most = 4 * math.prod(scan.shape)
    if most > BUDGET:
        raise BadInput(
            f"{path}: {scan.shape[0]} slices of {scan.shape[1]} x {scan.shape[2]} are too many to unpack only to look "
            "at them; save the scan without compression"
        )
    return most


def _mapped(plain: Plain, shape: Shape) -> Shaped[np.ndarray, "slices rows columns"]:
    return np.memmap(plain.path, mode="r", dtype=plain.dtype, offset=plain.offset, shape=shape)


def _view(voxels: Shaped[np.ndarray, "slices rows columns"], scale: tuple[float, float]) -> View:
    """Choose the window from some of the voxels of some of the slices."""
    slices, rows, columns = voxels.shape
    chosen = np.unique(np.linspace(0, slices - 1, SAMPLE).round().astype(int))
    steps = max(1, rows // SIDE), max(1, columns // SIDE)
    sample = _scaled(np.stack([voxels[number, :: steps[0], :: steps[1]] for number in chosen.tolist()]), scale)
    sample = sample[np.isfinite(sample)]
    low, high = map(float, np.percentile(sample, ENDS)) if sample.size else (0.0, 1.0)
    if high <= low and sample.size:
        low, high = float(sample.min()), float(sample.max())
    return View(voxels, scale, (low, high if high > low else low + 1))


def _scaled(voxels: np.ndarray, scale: tuple[float, float]) -> np.ndarray:
    gray = voxels.astype(np.float32)
    if scale != (1.0, 0.0):
        gray = gray * np.float32(scale[0]) + np.float32(scale[1])
    return gray
