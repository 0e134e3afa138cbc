"""The commands in README and docs/ are run as they stand there; only training is cut short."""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archives import done
from inbounds.sources import phantom as hearts
from inbounds.sources.phantom import generate
from inbounds.store.grid import Fit
from inbounds.store.prepare import FITS, Plan, prepare
from making import train_here

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHORT = ["training.epochs=1", "training.batch=16", "training.device=cpu", "network.name=monai:UNet"]
SHORT += ["network.settings={spatial_dims=2,channels=[4,8],strides=[2]}"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def commands(page: str) -> list[list[str]]:
    """The words of every `inbounds` command on a page, comments left out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for language, block in BLOCK.findall(text) if not language]
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("inbounds ")]
    assert lines, f"{page} has no commands"
    return [shlex.split(line, comments=True)[1:] for line in lines]


def run(words: list[str]) -> None:
    if words[0] == "train":
        words = [*words, *(part for change in SHORT for part in ("--set", change))]
    if words[:2] == ["prepare", "phantom"]:
        words = [*words, "--patients", "4", "--side", "48"]
    done(*words)


def my_scans(folder: Path) -> None:
    """What a user may have: a few scans with masks."""
    import nibabel

    for patient in range(1, 5):
        scan = generate(patient, "ED", shape=(64, 60), seed=3)
        for name, array in (("images", scan.image), ("labels", (scan.truth == 3).astype(np.uint8))):
            (folder / name).mkdir(parents=True, exist_ok=True)
            image = nibabel.Nifti1Image(array.T, np.diag([*scan.spacing[::-1], 1.0]))
            nibabel.save(image, folder / name / f"liver{patient}.nii.gz")


def filled_in(file: Path) -> None:
    """What a user knows: the size in one slice of each scan."""
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if row["slice"] == "3":
            row["size_px"] = "200"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    my_scans(Path("my_scans"))
    lines = ["case,slice,row,column,class", *(f"liver{n},3,30,30,liver" for n in range(1, 5))]
    Path("clicks.csv").write_text("\n".join(lines) + "\n")
    my_scans(Path("mine"))
    Path("mine/images").rename("new_scans")
    for words in commands("README.md"):
        run(words)
        if "--template" in words:
            filled_in(Path("sizes.csv"))
    assert Path("preview.png").is_file()
    assert Path("masks/predictions.csv").is_file()
    assert Path("report/index.html").is_file()
    assert list(Path("runs/first/evaluation").glob("*/summary.json"))


def test_training_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    my_scans(Path("mine"))
    Path("mine/images").rename("new_scans")
    for words in commands("docs/training.md"):
        run(words)
    assert list(Path("runs/individual/evaluation").glob("*/summary.json"))
    assert Path("masks/liver1.nii.gz").is_file()
    assert Path("report/index.html").is_file()


def test_speed_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands("docs/speed.md"):
        done(*words, "--quick", "--device", "cpu", "--sections", "modes")
    assert Path("bench.json").is_file()


def test_reproducing_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small stores that stand in for the real ones; a row of each is enough."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduction.reproduce.train_all", train_here)
    plan = Plan("tiny", hearts.CLASSES, (48, 48), Fit.pad, "none")
    standing_in = dict.fromkeys(("spine", "spine96", "spine128"), "vertebra")
    standing_in |= dict.fromkeys(("promise12", "promise128", "promise192-drawn", "promise192"), "prostate")
    standing_in |= dict.fromkeys(("acdc", "acdc160", "acdc-resized", "acdc96", "acdc96-scans", "acdc96-zoom"), "LV")
    names = {"acdc96-scans": "acdc split by scans", "promise192-drawn": "promise12 split at random"}
    for name, klass in standing_in.items():
        classes = tuple(klass if known == "LV" else known for known in hearts.CLASSES)
        called = names.get(name, "tiny")
        fitting = {"acdc96-zoom": "zoom", "acdc-resized": "resize"}.get(name, "none")
        shape = (256, 48) if name == "spine96" else plan.shape  # which bounds in pixels demand
        made = replace(plan, name=called, classes=classes, shape=shape, fit=FITS[fitting], fitting=fitting)
        prepare(hearts.sources(4, side=48), Path(name), made)
    rows = {"hybrid": "full_5", "bounds": "individual", "loose-bounds": "common_heavy"}
    for words in [*commands("docs/reproducing.md"), *commands("docs/loose-bounds.md")]:
        if words[0] == "prepare":
            continue  # as on the page on data
        if "--store" in words:
            if "--seeds" in words:
                words[words.index("--seeds") + 1] = "0"
            if words[1] == "hybrid" and "--rows" in words:  # there are not more scans than that
                words[words.index("--rows") + 1] = "hybrid_5"
            if "--rows" not in words:
                words += ["--rows", rows.get(words[1], "full")]
            # The preset `fast` compiles, which shape checks at run time do not allow.
            words += [part for change in [*SHORT, "training.compile=nothing"] for part in ("--set", change)]
        done(*words)
    written = {path.parts[1] for path in Path("out").glob("*/results/table.md")}
    assert written == {
        *("left-ventricle", "fast", "unet", "hybrid", "hybrid-fast", "hybrid-plain", "bounds", "bounds-small", "small"),
        *("loose-bounds", "loose-bounds-padded", "loose-bounds-resized"),
        *("spine", "spine-fast", "spine-fast-weak", "spine-small", "spine-weak"),
        *("prostate", "prostate-fast", "prostate-drawn", "prostate-small", "prostate-weak"),
    }


def test_data_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    my_scans(Path("my_scans"))
    Path("clicks.csv").write_text("case,slice,row,column,class\nphantom001_ED,3,20,20,LV\n")
    for words in commands("docs/data.md"):
        if words[0] == "prepare" and words[1] in ("acdc", "promise12", "spine"):
            continue  # these need the data; tests/datasets/test_real.py runs them where it is
        if words[:2] == ["prepare", "folder"]:
            words = ["background,liver" if word.startswith("background") else word for word in words]
        run(words)
    assert Path("preview.png").is_file()
    assert Path("form.csv").is_file()
