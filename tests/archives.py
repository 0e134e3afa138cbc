"""Data sets as users have them, written small, and the command line as they call it."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from inbounds.cli import run_program
from inbounds.sources.source import Loaded, Source
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def command(*words: object, program: str = "inbounds.cli") -> Outcome:
    """`inbounds ...`, or another program by its module, in this process. It must come to an orderly end."""
    app = import_module(program).app
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with patch.object(sys, "argv", [program, *map(str, words)]), redirect_stdout(out), redirect_stderr(err):
        try:
            run_program(app, "inbounds" if program == "inbounds.cli" else program)
        except SystemExit as end:
            code = int(end.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def done(*words: object, **how: str) -> Outcome:
    outcome = command(*words, **how)
    assert outcome.code == 0, outcome.err
    return outcome


def refused(*words: object, saying: Sequence[object], folder: Path | None = None, **how: str) -> str:
    """The command ends with code 2 and one line that says all this; nothing new lies in the folder afterwards."""
    before = sorted(folder.rglob("*")) if folder else []
    outcome = command(*words, **how)
    lines = [line for line in outcome.err.splitlines() if line.startswith("Error: ")]
    assert outcome.code == 2, outcome
    assert len(lines) == 1, outcome.err
    assert outcome.err.splitlines()[-1] == lines[0]
    for word in saying:
        assert str(word) in lines[0], lines[0]
    assert folder is None or sorted(folder.rglob("*")) == before
    return lines[0]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as if the disk were full."""
    resource = pytest.importorskip("resource", reason="no limit on file sizes on this system")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        # Python itself would leave the bytecode of what is imported now cut off, and every later import would fail.
        with patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def nifti(path: Path, array: np.ndarray, affine: np.ndarray | None = None) -> Path:
    """An array (slices, rows, columns) as NIfTI; 1.5 x 1.5 x 10 mm unless told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.Nifti1Image(array.T, np.diag([1.5, 1.5, 10, 1]) if affine is None else affine).to_filename(path)
    return path


def noise(shape: tuple[int, ...], seed: int = 0, dtype: type = np.int16) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4000, shape).astype(dtype)


def heart(shape: tuple[int, int, int] = (4, 40, 36)) -> np.ndarray:
    """RV beside a ring of myocardium around LV; the last slice shows none."""
    _, rows, columns = np.ogrid[: shape[0], : shape[1], : shape[2]]
    far = np.hypot(rows - shape[1] // 2, columns - shape[2] // 2)
    beside = np.hypot(rows - shape[1] // 2, columns - shape[2] // 2 + 11)
    mask = np.where(far < 4, 3, np.where(far < 7, 2, np.where(beside < 4, 1, 0))).repeat(shape[0], axis=0)
    mask[-1] = 0
    return mask.astype(np.uint8)


def acdc(
    root: Path,
    patients: Iterable[int] = (1, 15, 16, 20),
    *,
    suffix: str = ".nii.gz",
    shape: tuple[int, int, int] = (4, 40, 36),
) -> Path:
    """The training set as it is downloaded: 16 bit, true spacing, Info.cfg, a whole cycle that must not be read."""
    mask = heart(shape)
    for number in patients:
        folder = root / f"patient{number:03d}"
        for frame in (1, 12):
            stem = f"{folder.name}_frame{frame:02d}"
            scan = noise(shape, number * 100 + frame) + 500 * mask.astype(np.int16)
            nifti(folder / f"{stem}{suffix}", scan)
            nifti(folder / f"{stem}_gt{suffix}", mask)
            nifti(
                folder / f"{stem}_scribble{suffix}", np.where(np.indices(shape)[1] % 5 == 0, mask, 4).astype(np.uint8)
            )
        (folder / f"{folder.name}_4d.nii.gz").write_bytes(b"never read")
        (folder / "Info.cfg").write_text("ED: 1\nES: 12\nGroup: DCM\nHeight: 184.0\nNbFrame: 30\nWeight: 95.0\n")
    return root


def flat_folder(root: Path, names: Iterable[str] = "abcd", labels: np.ndarray | None = None) -> Path:
    """`images/` and `labels/` of hearts."""
    mask = heart() if labels is None else labels
    for seed, name in enumerate(names):
        nifti(root / "images" / f"{name}.nii.gz", noise(mask.shape, seed))
        nifti(root / "labels" / f"{name}.nii.gz", mask)
    return root


def promise12(root: Path, cases: Iterable[int]) -> Path:
    """Uncompressed `.raw` at mixed sizes."""
    root.mkdir(parents=True, exist_ok=True)
    for number in cases:
        slices, side = 3 + number % 4, 20 + 4 * (number % 5)
        mask = np.zeros((slices, side, side), np.uint8)
        mask[1, 5 : 5 + number % 7 + 2, 6:12] = 1
        for name, array in ((f"Case{number:02d}", noise(mask.shape, number)), (f"Case{number:02d}_segmentation", mask)):
            image = sitk.GetImageFromArray(array)
            image.SetSpacing((0.625, 0.5, 3.6))
            sitk.WriteImage(image, str(root / f"{name}.mhd"), False)
    return root


def zipped(root: Path, file: Path, chosen: Callable[[Path], bool] = lambda _: True) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in sorted(root.rglob("*")):
            if member.is_file() and chosen(member):
                archive.write(member, f"training/{member.relative_to(root)}")
    return file


def made(
    path: Path,
    truths: Mapping[str, np.ndarray],
    *,
    weak: Mapping[str, np.ndarray] | None = None,
    classes: tuple[str, ...] = ("background", "RV", "MYO", "LV"),
    unknown: Sequence[str] = (),
    validation: Sequence[str] = (),
) -> Store:
    """A store from arrays, without a file in between."""
    sources = []
    for seed, (name, truth) in enumerate(truths.items()):
        given = {"scribble": weak[name]} if weak else {}
        loaded = Loaded(noise(truth.shape, seed)[None], (10.0, 1.5, 2.0), None if name in unknown else truth, given)
        sources.append(
            Source(
                name,
                name,
                lambda loaded=loaded: loaded,
                split="validation" if name in validation else "train",
                weak=tuple(given),
                truth=name not in unknown,
            )
        )
    shape = next(iter(truths.values())).shape[1:]
    return prepare(sources, path, Plan("made", classes, shape, GridWindow.pad, "pad")).store
