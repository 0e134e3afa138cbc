"""The commands that reproduce and measure, as they stand on the pages; small stores stand in for the real ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from inbounds.cli import run_program
from inbounds.sources import phantom
from inbounds.store.annotate import simulate
from inbounds.store.prepare import FITS, Plan, prepare
from making import train_here
from pages import ROOT, commands

SHORT = ["training.epochs=1", "training.batch=16", "training.device=cpu", "network.name=monai:UNet"]
SHORT += ["network.settings={spatial_dims=2,channels=[4,8],strides=[2]}"]
SHORT += ["training.compile=nothing"]  # which plans may, and shape checks at run time do not allow
ROWS = {"hybrid": "full_5", "bounds": "individual", "ablation": "scribbles"}
"""A row of each is enough; `full`, where there is one."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("inbounds.jobs.training.train_many", train_here)


def called(name: str, *words: str) -> None:
    """`python -m NAME ...`, in this process."""
    program = import_module(f"{name}.__main__").app
    with patch.object(sys, "argv", [name, *words]), pytest.raises(SystemExit) as end:
        run_program(program, f"python -m {name}")
    assert not end.value.code


def of_page(page: str) -> Iterator[list[str]]:
    """The commands of a page; preparing needs the data, and tests/sources/test_real.py runs it where it is."""
    for python, flag, *words in commands(ROOT / page, "python -m"):
        assert (python, flag) == ("python", "-m")
        yield words


def stand_in(name: str, words: list[str]) -> None:
    """A few generated hearts in the place of a data set, prepared with the same options."""
    kind, options = words[1], dict(zip(words[4::2], words[5::2], strict=True))
    klass = {"acdc": "LV", "spine": "vertebra", "promise12": "prostate"}[kind]
    called_so = f"{kind} split at random" if "--split" in options else "tiny"
    rows = 256 if "--columns" in options else 48  # bounds in pixels are of 256 rows
    fit = options.get("--fit", "none")
    classes = tuple(klass if known == "LV" else known for known in phantom.CLASSES)
    scans = phantom.sources(8 if kind == "acdc" else 4, side=48)  # of eight patients six train: one can be held out
    made = prepare(scans, Path(name), Plan(called_so, classes, (rows, 48), FITS[fit], fit)).store
    if kind == "acdc":
        simulate(made, "scribble", "scribble", [1, 2, 3], background=True)


def reproduce(page: str) -> set[str]:
    """Run all that a page has; which folders then have a table."""
    for words in commands(ROOT / page, "inbounds"):
        if not Path(words[4]).exists():
            stand_in(words[4], words[1:])
    for name, *words in of_page(page):
        if name == "benchmarks":
            words += ["--quick", "--device", "cpu", "--sections", "steps"]
        if "--store" in words:
            if "--seeds" in words:
                words[words.index("--seeds") + 1] = "0"
            if words[0] == "hybrid" and "--rows" in words:  # there are not more scans than that
                words[words.index("--rows") + 1] = "hybrid_5"
            if words[0] == "fractions":  # no image here shows all of a heart, so that nothing is known of its spread
                words[words.index("--rows") + 1] = "tags_both"
            if "--rows" not in words:
                words += ["--rows", ROWS.get(words[0], "full")]
            words += [part for change in SHORT for part in ("--set", change)]
        called(name, *words)
    return {path.parts[1] for path in Path("out").glob("*/results/table.md")}


def test_left_ventricle() -> None:
    assert reproduce("docs/reproducing.md") == {"default", "paper"}


def test_other_tables() -> None:
    assert reproduce("reproduction/README.md") == {
        *("hybrid", "fractions", "spine", "spine-default", "prostate", "prostate-default", "prostate-drawn"),
        *("bounds", "bounds-paper", "bounds-small", "heart", "ablation", "timing"),
    }


def test_benchmarks() -> None:
    for name, *words in of_page("docs/speed.md"):
        called(name, *words, "--quick", "--device", "cpu", "--sections", "modes")
    assert Path("bench.json").is_file()
