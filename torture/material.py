"""What the cases begin with: a few tiny scans, stores and runs, made once by the package itself and copied."""

from __future__ import annotations

import json
import shutil
import signal
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from inbounds.scans.format import library
from torture.bad_scans import write_formats
from torture.process import Ended, Place, apart, run
from torture.watch import Stop

CLASSES = "background,RV,MYO,LV"
SIDE = 48
TINY = [
    word
    for change in (
        *("network.name=unet", "network.settings={width=4}", "training.batch=8", "training.device=cpu"),
        *("training.threads=1", "training.compile=nothing"),
    )
    for word in ("--set", change)
]
"""Settings by which an epoch takes a tenth of a second."""
EPOCHS = 3
SETTINGS = """
[network]
name = "unet"
settings = { width = 4 }
[training]
epochs = 3
lr = 1e-3
betas = [0.9, 0.99]
[constraints.size]
bounds = { kind = "known", relative = 0.2 }
penalty = "hinge"
[regularisers.pairwise]
term = { name = "pairwise", sigma = 0.1 }
"""
TRAIN = ["train", "--store", "store", *TINY, "--set", f"training.epochs={EPOCHS}"]
"""A training, but for where it goes."""


def make(place: Place) -> None:
    """Fill a place: each line makes what those after it may need.

    hearts/     scans, clicks.csv, sizes.csv, and new scans with their truth
    flat/       images and labels of two patients
    formats/    the same scan in every format
    settings.toml
    acdc.zip    an archive as it is downloaded
    bare/       a store without anything beside its images; store/ has clicks and sizes too
    full/       a store with a truth, and discs drawn inside it
    run/        a training that is finished; half/ one that was killed on its way
    """
    place.made()
    _done(["example", "hearts", "--patients", 4, "--side", SIDE], place)
    for inner, name in (("new", "images"), ("truth", "labels")):
        shutil.copytree(place.here / "hearts" / inner, place.here / "flat" / name)
    _archive(place.here / "acdc.zip")
    (place.here / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    apart(lambda: write_formats(place.here / "formats"))
    prepare = ["prepare", "folder", "hearts/scans", "--classes", CLASSES, "--side", SIDE]
    for store in ("bare", "store"):
        _done([*prepare, store], place)
    _done(["annotate", "store", "--name", "clicks", "--points", "hearts/clicks.csv"], place)
    _done(["facts", "store", "--name", "sizes", "--import", "hearts/sizes.csv"], place)
    _done(["prepare", "phantom", "full", "--patients", 2, "--side", SIDE], place)
    _done(["annotate", "full", "--name", "disc", "--strategy", "disc"], place)
    changes = _done([*TRAIN, "--run", "run"], place).changes
    for event in range(changes // 2, changes):
        run([*TRAIN, "--run", "half"], place, Stop(signal.SIGKILL, event))
        if [folder.name for folder in place.here.glob("half/checkpoints/[0-9]*")] == ["0001"]:
            (place.here / "half" / ".lock").unlink(missing_ok=True)  # what the killed leave is for the next to remove
            break
        shutil.rmtree(place.here / "half", ignore_errors=True)
    else:
        raise RuntimeError("no training could be stopped after its first epoch")


def commit(material: Place) -> str | None:
    """The package's, as a run has it that it made."""
    made: str | None = json.loads((material.here / "run" / "run.json").read_text(encoding="utf-8"))["commit"]
    return made


def copied(material: Place, place: Place, names: Iterable[str]) -> None:
    """Copy some of it to where a case runs. Files that say where they lie are told so."""
    place.made()
    before, after = (str(one.here.resolve()).encode() for one in (material, place))
    for name in names:
        source, target = material.here / name, place.here / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
        for file in [target] if target.is_file() else target.rglob("*.json"):
            content = file.read_bytes()
            if before in content:
                file.write_bytes(content.replace(before, after))


def _done(words: list[object] | list[str], place: Place) -> Ended:
    ended = run(words, place)
    if ended.code or ended.notes:
        raise RuntimeError(f"inbounds {' '.join(map(str, words))} ended with {ended.code}: {ended.err} {ended.notes}")
    return ended


def _archive(file: Path) -> None:
    """Four patients of ACDC, two phases each, as its zip holds them."""
    nibabel = library("nibabel", file)
    mask = np.zeros((3, 24, 20), np.uint8)
    for value in (1, 2, 3):
        mask[:-1, 5 * value : 5 * value + 4, 6:12] = value
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for patient in (1, 15, 16, 20):
            folder = f"training/patient{patient:03d}"
            archive.writestr(f"{folder}/Info.cfg", "ED: 1\nES: 9\nGroup: DCM\n")
            for frame in (1, 9):
                noise = np.random.default_rng([patient, frame]).integers(0, 400, mask.shape)
                for name, array in (("", (noise + 500 * mask.astype(int)).astype(np.int16)), ("_gt", mask)):
                    made = nibabel.Nifti1Image(array.T, np.diag([1.5, 1.5, 10, 1]))
                    archive.writestr(f"{folder}/patient{patient:03d}_frame{frame:02d}{name}.nii", made.to_bytes())
