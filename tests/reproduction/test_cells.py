"""Every cell of the paper's tables, and what those would cost that were not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reproduction.cells import cells
from reproduction.drawings import figures
from reproduction.experiment import PAPER, experiment, paper
from reproduction.results import read_all, write
from reproduction.tables import comparison

STEPS = {"partial": 4.0, "penalty_2": 5.0, "proposals_1": 8.0, "proposals_2": 10.0, "full": 4.0}


def kept(root: Path, preset: str, row: str, scores: tuple[float, ...], **more: Any) -> None:
    content = {"experiment": "left-ventricle", "preset": preset, "row": row, "seed": 0, "epochs": len(scores)} | more
    held = {"satisfied": [1 - score for score in scores]} if row != "full" else {}
    curves = {"epoch": range(1, len(scores) + 1), "dsc_slice": scores, "dsc_volume": scores, **held}
    write(root / preset / row / "seed-0.json", content, curves)


def bench(**networks: float) -> dict[str, Any]:
    rows = [{"section": "steps", "name": name, "batch": 1, "ms": ms} for name, ms in STEPS.items()]
    rows.append({"section": "steps", "name": "penalty_2", "batch": 8, "ms": 16.0})
    batches = {"enet": 20, "residual_unet": 4}
    rows += [{"section": "networks", "name": name, "batch": batches[name], "ms": ms} for name, ms in networks.items()]
    return {"device": "H1", "rows": rows}


def lines(text: str, *words: str) -> list[list[str]]:
    found = [line.strip("|").split("|") for line in text.splitlines() if all(word in line for word in words)]
    return [[cell.strip() for cell in line] for line in found]


def test_every_figure_of_the_paper_is_there() -> None:
    text = cells([], [])
    figures_there = [cells[2] for cells in lines(text, "not run")]
    wanted = [
        f"{figure:.3f}"
        for name in PAPER
        for row, figure in paper(name).items()
        if figure is not None and "name" not in experiment(name).rows[row].data
    ]
    assert figures_there == wanted
    assert "lower bound: 80, upper bound: 1100" in text


def test_what_was_run_stands_beside_the_paper_and_others_where_nothing_else_does(tmp_path: Path) -> None:
    kept(tmp_path, "default", "full", (0.7, 0.6))
    kept(tmp_path, "fast", "full", (0.3, 0.2))
    kept(tmp_path, "fast", "tags", (0.3, 0.2))
    kept(tmp_path, "paper", "individual", (0.8, 0.7), epochs=9)
    text = cells(read_all(tmp_path), [])
    full, all_ = lines(text, "every pixel, cross-entropy")[0], lines(text, "Full_All")[0]
    assert full[2:] == ["0.887", "not run", "0.600", ""]
    assert all_[2:] == ["0.887", "not run", "0.600", ""]  # the same run
    assert lines(text, "| tags, direct penalty")[0][2:] == ["0.792", "not run", "not run", "0.300 (`fast`)"]
    (individual,) = lines(text, "individual bounds, direct penalty")
    assert individual[2:] == ["0.871", "0.800 (2 of 9 epochs)", "not run", ""]
    beside = comparison("left-ventricle", ["paper", "default"], read_all(tmp_path))
    assert lines(beside, "| known beside")[0][-3:] == ["`paper`", "`default`", "otherwise"]
    assert lines(beside, "| tags | direct penalty")[0][-3:] == ["", "", "0.300 / 0.200 (`fast`)"]


def test_what_cells_would_cost_follows_from_measured_steps(tmp_path: Path) -> None:
    kept(tmp_path, "default", "full", (0.7, 0.6), seconds=240.0)
    text = cells(read_all(tmp_path), [{"device": "CPU (x)", "rows": []}, bench(residual_unet=12.0)])

    def cost(*words: str) -> list[str]:
        return lines(text, *words)[0][3:5]

    steps = 200 * 1446
    assert cost("| tags, direct penalty") == [f"not run ({steps * 5 / 60_000:.0f} min)", "not run (4 min)"]
    assert cost("common bounds, fitted, proposals")[0] == f"not run ({steps * 10 / 60_000:.0f} min)"
    assert cost("Full_5")[0] == f"not run ({steps * 4 * 5 / 150 / 60_000:.0f} min)"
    assert cost("volume bounds, direct penalty")[0] == f"not run ({steps * 16 / 8 / 60_000:.0f} min)"
    assert cost("Prostate (PROMISE12)")[0] == f"not run ({200 * 1280 * 12 * 0.8 / 60_000:.0f} min)"
    assert cost("Vertebral bodies (spine)")[0] == f"not run ({200 * 3660 * 16 / 8 * 0.8 / 60_000:.0f} min)"
    assert lines(cells([], [bench()]), "Prostate (PROMISE12)")[0][3] == "not run"  # nobody measured its network


@pytest.mark.parametrize("rows", [["tags"], ["tags", "exact_tags", "full"]])
def test_bounds_that_do_not_hold_are_drawn_where_there_is_something_to_compare(tmp_path: Path, rows: list[str]) -> None:
    for row in rows:
        kept(tmp_path, "default", row, (0.25, 0.5))
    shown = figures("left-ventricle", "default", read_all(tmp_path)).get("violations")
    if len(rows) == 1:
        assert shown is None
        return
    assert shown is not None
    (((title, curves),),) = shown
    assert (title, [curve.name for curve in curves]) == ("Tags", ["penalty", "exact proposals"])
    assert curves[0].seeds == (((1.0, 0.25), (2.0, 0.5)),)
