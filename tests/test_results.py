"""The figures in the documentation are those of the result files beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inbounds.runs.metrics import read

ROOT = Path(__file__).parents[1]


def row(page: str, name: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(rf"\| {re.escape(name)} \|", line)]
    assert lines, f"{page} has no row {name!r}"
    return [cell.strip() for cell in lines[-1].strip("|").split("|")][1:]


@pytest.mark.parametrize("recipe", ["tags", "common", "individual", "full"])
def test_first_runs_on_acdc(recipe: str) -> None:
    rows = [r for r in read(ROOT / "results" / "acdc-first-runs" / f"{recipe}.csv") if r.klass == "LV"]
    by_slice = {r.epoch: r.value for r in rows if r.metric == "dsc_slice"}
    by_volume = {r.epoch: r.value for r in rows if r.metric == "dsc_volume"}
    best = max(by_slice, key=lambda epoch: by_slice[epoch])
    told = row("training.md", recipe)
    assert told[:2] == [f"{by_volume[best]:.3f}", f"{by_volume[max(by_volume)]:.3f}"]


@pytest.mark.parametrize(
    ("told", "measured"),
    [
        ("tags", "tags (size)"),
        ("individual size, 2 bounds", "individual (size, 2 bounds)"),
        ("size and centroid", "size + centroid"),
        ("size, centroid and mean intensity", "size + centroid + intensity"),
    ],
)
def test_what_a_constraint_adds(told: str, measured: str) -> None:
    results = ROOT / "benchmarks" / "results"
    ratios = [
        json.loads((results / f"loss_overhead_h200_batch{batch}.json").read_text())["ratios"][measured]
        for batch in (1, 8)
    ]
    assert row("loops.md", told) == [f"{ratio:.3f}" for ratio in ratios]
