"""How much memory a large scan takes on its way into a store and to a mask: the program, watched from outside."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Row, row
from inbounds.errors import BadInput
from inbounds.scans.format import library

Shape = tuple[int, int, int]

FORMS = ("nii.gz", "nii", "mha", "packed.mha", "nrrd", "dicom")
CLASSES = ("background", "lung", "liver", "bone")
SPACING = (1.0, 0.75, 0.75)
BASE = {
    "prepare": "inbounds.cli.prepare inbounds.sources.folder inbounds.store.prepare inbounds.store.survey",
    "predict": "inbounds.cli.runs inbounds.inference scipy.ndimage",
}
"""What the commands import."""
_WATCHED = """
import sys
from inbounds.cli import run
sys.argv[0] = "inbounds"
try:
    run()
finally:
    import benchmarks.scans
    print("peak", benchmarks.scans.peak(), file=sys.stderr)
"""


_IMPORTED = """
import sys
import {names}
import benchmarks.scans
print("peak", benchmarks.scans.peak(), file=sys.stderr)
"""
MEGABYTE = 2**20


def peak() -> int:
    """The most memory that this process has had in bytes, without what the one that started it had."""
    status = Path("/proc/self/status")
    if status.is_file():
        return next(1024 * int(line.split()[1]) for line in status.read_text().splitlines() if line[:6] == "VmHWM:")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def hounsfield(shape: Shape, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A body of three organs in air, in int16 with the noise of a scanner, and its mask."""
    slices, rows, columns = shape
    rng = np.random.default_rng(seed)
    image, mask = np.empty(shape, np.int16), np.zeros(shape, np.uint8)
    y, x = np.ogrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    noise = rng.normal(0, 20, (8, rows, columns)).astype(np.int16)
    for number in range(slices):
        drift = 0.1 * np.sin(6 * number / slices)
        mask[number][np.hypot((y + 0.2) / 0.4, (x - 0.35 + drift) / 0.25) < 1] = 1
        mask[number][np.hypot((y - 0.25) / 0.3, (x + 0.3 + drift) / 0.4) < 1] = 2
        mask[number][np.hypot(y - 0.55, x - drift) < 0.1] = 3
        body = np.where(np.hypot(y / 0.9, x / 0.95) < 1, 40, -1000)
        image[number] = np.choose(mask[number], [body, -800, 120, 700]) + noise[number % len(noise)]
    return image, mask


def write(image: np.ndarray, path: Path, form: str) -> Path:
    """A scan in one of the formats: a file, or a folder of slices."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if form in ("nii", "nii.gz"):
        nibabel = library("nibabel", path)
        nibabel.Nifti1Image(image.T, np.diag([*SPACING[::-1], 1.0])).to_filename(path)
        return path
    sitk = library("SimpleITK", path)
    if form != "dicom":
        whole = sitk.GetImageFromArray(image)
        whole.SetSpacing(SPACING[::-1])
        sitk.WriteImage(whole, str(path), form != "mha")
        return path
    path.mkdir()
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for number, plane in enumerate(image):
        one = sitk.GetImageFromArray(plane[None])
        one.SetSpacing(SPACING[::-1])
        tags = {"0008|0060": "CT", "0020|000d": "1.2.3", "0020|000e": "1.2.3.1", "0008|0018": f"1.2.3.1.{number + 1}"}
        place = {"0020|0032": f"0\\0\\{number * SPACING[0]}", "0020|0037": "1\\0\\0\\0\\1\\0"}
        for tag, value in (tags | place | {"0020|0013": str(number + 1)}).items():
            one.SetMetaData(tag, value)
        writer.SetFileName(str(path / f"{number:04d}.dcm"))
        writer.Execute(one)
    return path


def watched(*words: Any, code: str = _WATCHED) -> tuple[int, float]:
    """Run a command in a process of its own: the most memory it had, and the milliseconds it took."""
    begun = time.perf_counter()
    told = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)
    if told.returncode:
        raise BadInput(f"{' '.join(map(str, words))}: {told.stderr[-2000:]}")
    return int(told.stderr.rsplit("peak ", 1)[1]), 1000 * (time.perf_counter() - begun)


def baseline(command: str, form: str) -> int:
    """What a process has that has imported what the command does, and done nothing."""
    names = [*BASE[command].split(), "nibabel", *([] if form.startswith("nii") else ["SimpleITK"])]
    return watched(code=_IMPORTED.format(names=", ".join(names)))[0]


def measure(folder: Path, shape: Shape, forms: tuple[str, ...], run: Callable[[Path], Path]) -> list[Row]:
    """Peaks of `prepare` and of `predict` by format.

    Args:
        folder: For the scans, which are removed one after the other.
        shape: Slices, rows and columns of the scan.
        forms: Some of `FORMS`.
        run: Trains a network on a store and says where the run is.
    """
    few = folder / "few"
    for number in range(4):
        image, mask = hounsfield((4, *shape[1:]), number)
        for kind, array in (("images", image), ("labels", mask)):
            write(array, few / kind / f"case{number}.nii.gz", "nii.gz")
    named = "--classes", ",".join(CLASSES)
    watched("prepare", "folder", few, folder / "few-store", *named)
    trained = run(folder / "few-store")
    image, mask = hounsfield(shape)
    rows = []
    for form in forms:
        place = folder / form
        name = "scan" if form == "dicom" else f"scan.{form.removeprefix('packed.')}"
        scan = write(image, place / "images" / name, form)
        write(mask, place / "labels" / "scan.nii.gz", "nii.gz")
        for command, words in (
            ("prepare", ("folder", place, place / "store", *named)),
            ("predict", (trained, scan, "--out", place / "masks", "--device", "cpu")),
        ):
            most, ms = watched(command, *words)
            memory: dict[str, Any] = {
                "peak_mb": most / MEGABYTE,
                "above_mb": (most - baseline(command, form)) / MEGABYTE,
                "images": len(image),
            }
            rows.append(row("scans", f"{command} {form}", 1, [ms], **memory))
        shutil.rmtree(place)
    return rows
