"""The commands in README and docs/ are run as they stand there; only training is cut short."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest

from archives import done
from inbounds.sources.phantom import generate
from inbounds.store.store import Store
from pages import ROOT, blocks, commands
from slurm_cluster import slurm_cluster, why_not

SHORT = ["training.epochs=1", "training.batch=16", "training.device=cpu", "network.name=monai:UNet"]
SHORT += ["network.settings={spatial_dims=2,channels=[4,8],strides=[2]}"]
DOWNLOADED = ("acdc", "promise12", "spine")
"""These need the data; tests/sources/test_real.py runs them where it is."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(program: str, *words: str) -> None:
    if program != "inbounds":
        subprocess.run([program, *words], check=True)
        return
    if words[0] == "train":
        words += tuple(part for change in SHORT for part in ("--set", change))
    if words[:2] == ("prepare", "phantom") or words[0] == "example":
        words = (*words, "--patients", "4", "--side", "48")
    done(*words)


def run_page(name: str) -> None:
    for program, *words in commands(ROOT / name, "inbounds", "tar"):
        if words[0] == "prepare" and words[1] in DOWNLOADED:
            continue
        run(program, *words)
        if "--template" in words:
            filled_in(Path(words[-1]))


def my_scans(folder: Path) -> None:
    """What a user may have: a few scans with masks."""
    for patient in range(1, 5):
        scan = generate(patient, "ED", shape=(64, 60), seed=3)
        for name, array in (("images", scan.image[0]), ("labels", (scan.truth == 3).astype(np.uint8))):
            (folder / name).mkdir(parents=True, exist_ok=True)
            image = nibabel.Nifti1Image(array.T, np.diag([*scan.spacing[::-1], 1.0]))
            nibabel.save(image, folder / name / f"liver{patient}.nii.gz")


def new_scans() -> None:
    """What is to be segmented."""
    my_scans(Path("others"))
    Path("others/images").rename("new_scans")


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


def test_readme() -> None:
    my_scans(Path("my_scans"))
    lines = ["case,slice,row,column,class", *(f"liver{n},3,30,30,LV" for n in range(1, 5))]
    Path("clicks.csv").write_text("\n".join(lines) + "\n")
    lines = ["case,slice,class,size_px", *(f"liver{n},3,LV,200" for n in range(1, 5))]
    Path("sizes.csv").write_text("\n".join(lines) + "\n")
    new_scans()
    run_page("README.md")
    assert Path("masks/predictions.csv").is_file()
    assert Path("report/index.html").is_file()


def test_quick_start() -> None:
    shutil.copytree(ROOT / "examples", "examples")
    run_page("docs/quick-start.md")
    assert Path("masks/predictions.csv").is_file()
    assert Path("report/index.html").is_file()


def test_own_data() -> None:
    my_scans(Path("my_scans"))
    my_scans(Path("more_scans"))
    for file in Path("more_scans").rglob("*.nii.gz"):
        file.rename(file.with_name(f"new_{file.name}"))
    run_page("docs/own-data.md")
    assert Path("preview.png").is_file()
    assert Path("store.tar.xz").is_file()


def test_labels_and_facts() -> None:
    my_scans(Path("my_scans"))
    done("prepare", "folder", "my_scans", "store", "--classes", "background,liver", "--side", "64")
    clicks, reports = blocks(ROOT / "docs" / "labels-and-facts.md", "text")
    Path("clicks.csv").write_text(clicks)
    Path("reports.csv").write_text(reports)
    run_page("docs/labels-and-facts.md")
    assert Path("runs/reports/run.json").is_file()
    assert Path("rough.csv").is_file()


def test_clicks_and_masks_have_rows_and_columns_as_the_page_says(tmp_path: Path) -> None:
    """With nibabel a pixel is `image.dataobj[column, row, slice]`."""
    my_scans(Path("my_scans"))
    mask = nibabel.load("my_scans/labels/liver1.nii.gz")
    column, row, slice_ = np.argwhere(np.asarray(mask.dataobj) == 1)[0]
    Path("clicks.csv").write_text(f"case,slice,row,column,class\nliver1,{slice_},{row},{column},liver\n")
    done("prepare", "folder", "my_scans", "store", "--classes", "background,liver", "--side", "64")
    done("annotate", "store", "--points", "clicks.csv", "--name", "clicks")
    assert "annotation clicks: 0 labelled pixels differ from the truth" in done("verify", "store").out
    assert row != column


def test_training() -> None:
    done("example", "example", "--patients", "4", "--side", "48")
    done("prepare", "folder", "example/scans", "store", "--classes", "background,RV,MYO,LV")
    done("annotate", "store", "--points", "example/clicks.csv", "--name", "clicks")
    done("facts", "store", "--import", "example/sizes.csv", "--name", "sizes")
    (settings,) = blocks(ROOT / "docs" / "training.md", "toml")
    Path("tags.toml").write_text(settings)
    run_page("docs/training.md")
    for name in ("first", "individual", "common", "fitted", "tags", "compared/tags/seed-1", "hybrid"):
        assert list(Path("runs", name, "checkpoints").glob("*/last.safetensors")), name
    assert Path("compared/index.html").is_file()


def test_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["network.name=unet", "network.dimensions=3", "network.settings={width=4,levels=2}"]
    more = ["training.epochs=1", "training.device=cpu", "training.patch=[4,48,48]"]
    monkeypatch.setattr("test_commands.SHORT", [*small, *more])
    my_scans(Path("my_scans"))
    clicks = ["case,slice,row,column,class", *(f"liver{n},3,30,30,LV" for n in range(1, 5))]
    Path("clicks.csv").write_text("\n".join(clicks) + "\n")
    Path("sizes.csv").write_text("case,class,volume_ml\n" + "".join(f"liver{n},LV,90\n" for n in range(1, 5)))
    new_scans()
    run_page("docs/volumes.md")
    assert Path("masks/liver1.nii.gz").is_file()


def plan_of_the_page() -> None:
    """The plan as printed, on data as people have them; each run is small."""
    my_scans(Path("my_scans"))
    done("prepare", "folder", "my_scans", "store", "--classes", "background,LV", "--side", "64")
    lines = ["case,slice,row,column,class", *(f"liver{n},3,30,30,LV" for n in range(1, 5))]
    Path("clicks.csv").write_text("\n".join(lines) + "\n")
    lines = ["case,slice,class,size_px", *(f"liver{n},3,LV,200" for n in range(1, 5))]
    Path("sizes.csv").write_text("\n".join(lines) + "\n")
    done("annotate", "store", "--points", "clicks.csv", "--name", "clicks")
    done("facts", "store", "--import", "sizes.csv", "--name", "sizes")
    (plan,) = blocks(ROOT / "docs" / "cluster.md", "toml")
    assert "epochs = 40" in plan
    small = plan.replace("epochs = 40", 'epochs = 1\nbatch = 16\ndevice = "cpu"')
    network = '[settings.network]\nname = "monai:UNet"\nsettings = {spatial_dims=2,channels=[4,8],strides=[2]}\n'
    Path("plan.toml").write_text(small.replace("[grid]", f"{network}\n[grid]"))


@pytest.mark.slow
def test_cluster() -> None:
    plan_of_the_page()
    new_scans()
    run_page("docs/cluster.md")
    assert len(list(Path("runs/sweep/runs").glob("*/seed-*/checkpoints/*"))) == 8
    assert Path("report/index.html").is_file()
    assert Path("masks/liver1.nii.gz").is_file()
    assert len(Store("many").records) == 4


@pytest.mark.slow
def test_the_script_for_slurm_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := why_not():
        pytest.skip(why)
    pytest.importorskip("submitit", reason="submitit is not installed: make cluster")
    plan_of_the_page()
    script, *_ = blocks(ROOT / "docs" / "cluster.md", "bash")
    Path("sweep.sh").write_text(script)
    Path("bin").mkdir()
    Path("bin/inbounds").write_text(f'#!/bin/sh\nexec {sys.executable} -m inbounds "$@"\n')
    Path("bin/inbounds").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with slurm_cluster(tmp_path / "slurm") as cluster:
        cluster.told("sbatch", "--wait", "sweep.sh")
    assert "runs/sweep: 8 of 8 done." in Path("sweep.log").read_text()


def test_predicting() -> None:
    for words in (
        ("prepare", "phantom", "hearts"),
        ("annotate", "hearts", "--strategy", "disc", "--classes", "LV", "--name", "disc"),
        ("train", "individual", "--store", "hearts", "--annotation", "disc", "--run", "runs/individual"),
    ):
        run("inbounds", *words)
    new_scans()
    run_page("docs/predicting.md")
    assert Path("masks/liver1.nii.gz").is_file()
    assert Path("runs/individual/evaluation/validation-best/cases.csv").is_file()
    assert Path("report/index.html").is_file()
    assert Path("individual.onnx").is_file()
    for block in blocks(ROOT / "docs" / "predicting.md", "python"):
        exec(compile(block, "predicting.md", "exec"), {})
