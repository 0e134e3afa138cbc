"""The tables and figures in the documentation are those of the result files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.tables import growth, read_benches
from reproduction.drawings import figures
from reproduction.experiment import NAMES, experiment
from reproduction.figures import fingerprint
from reproduction.pages import rewrite
from reproduction.results import read_all
from reproduction.tables import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reproduction" / "results"


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "reproduction" / "README.md"]
FOUND = read_all(RESULTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_is_in_results(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == rewrite(page, RESULTS, FOUND), "run `make results`"


@pytest.mark.parametrize(("name", "preset"), sorted({run.key for run in FOUND}))
def test_tables_and_figures_are_those_of_the_results(name: str, preset: str) -> None:
    folder = RESULTS / name / preset
    assert (folder / "table.md").read_text(encoding="utf-8") == table(name, preset, FOUND), "run `make results`"
    for stem, shown in figures(name, preset, FOUND).items():
        assert fingerprint(shown) in (folder / f"{stem}.svg").read_text(encoding="utf-8"), "run `make results`"


def test_results_hold_no_pictures_of_scans() -> None:
    figures = {
        "curves",
        "violations",
        "growth-cpu",
        *(levels.stem for name in NAMES for levels in experiment(name).levels),
    }
    figures |= {file.stem for file in (RESULTS / "pace").glob("*.json")}
    known = {"table.md", "results.csv", *(f"{stem}.{kind}" for stem in figures for kind in ("svg", "png"))}
    others = [file for file in (RESULTS).rglob("*") if file.is_file() and file.name not in known]
    assert all(file.suffix == ".json" for file in others)


@pytest.mark.parametrize(("name", "bench"), read_benches(RESULTS / "bench").items(), ids=str)
def test_growth_is_drawn_from_the_benchmark(name: str, bench: dict[str, Any]) -> None:
    file = RESULTS / "bench" / f"growth-{name}.svg"
    assert file.is_file() == bool(growth(bench)[0])
    assert not file.is_file() or fingerprint(growth(bench)) in file.read_text(encoding="utf-8"), "run `make results`"
