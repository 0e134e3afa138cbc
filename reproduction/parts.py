"""The parts of the method, as they are written down, and the table of what each is worth."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.tables import markdown
from inbounds.config import Model
from inbounds.errors import BadInput
from inbounds.writing import file_aside, write_table
from reproduction.experiment import HERE
from reproduction.results import Collected

WHOLE = "whole"
LINES = "results.csv"
COLUMNS = ("row", "part", "changed", "seed", "epochs", "dsc", "classes", "seconds", "data", "commit", "hardware")
Line = Mapping[str, str]


class Part(Model):
    """What is removed or exchanged, and of which rows.

    Attributes:
        about: In words.
        changes: Single settings, as `--set` takes them.
        rows: Those that have it.
    """

    about: str
    changes: tuple[str, ...]
    rows: tuple[str, ...]


class Ablation(Model):
    """Rows, each as `experiment/row`, and parts."""

    rows: dict[str, str]
    parts: dict[str, Part]


@cache
def ablation() -> Ablation:
    """The list of parts."""
    return Ablation.model_validate(tomllib.loads((HERE / "ablation.toml").read_text(encoding="utf-8")))


def write_lines(results: Path, collected: Sequence[Collected]) -> Path:
    """The runs that came to their end, one a line, with where they come from."""
    lines: list[tuple[Any, ...]] = []
    for run in collected:
        if not run.finished:
            continue
        about = run.about
        each = {
            name.partition("/")[2]: run.value(name, "last") for name in run.curves if name.startswith("dsc_volume/")
        }
        classes = "; ".join(f"{klass} {value:.4f}" for klass, value in each.items())
        lines.append(
            (
                *(run.row, about["part"], "; ".join(about["changes"]), about["seed"], about["epochs"]),
                *(f"{run.value('dsc_volume', 'last'):.4f}", classes, about["seconds"]),
                *(about["data"]["name"], about["commit"] or "", run.hardware),
            )
        )
    lines.sort(key=lambda line: [str(cell) for cell in line[:4]])
    write_table(results / LINES, COLUMNS, lines)
    return results / LINES


def read_lines(file: Path) -> list[Line]:
    """The lines of such a file; none, if there is no file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        lines: list[Line] = list(csv.DictReader(stream))
    try:
        for line in lines:
            float(line["dsc"]), int(line["seed"]), [line[name] for name in COLUMNS]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: not the results of an ablation ({error!r}); write them again, or remove it") from None
    return lines


def write_page(results: Path) -> Path:
    """Write the table beside the lines that it is made from."""
    file = results / "table.md"
    with file_aside(file) as part:
        part.write_text(table(read_lines(results / LINES)), encoding="utf-8")
    return file


def table(lines: Sequence[Line]) -> str:
    """Parts by rows, in Markdown: the mean over seeds and, paired by seed, its difference to the whole method."""
    if not lines:
        return "Not run yet.\n"
    about = ablation()
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in lines:
        found.setdefault((line["part"], line["row"]), {})[line["seed"]] = float(line["dsc"])
    rows = [row for row in about.rows if any(key[1] == row for key in found)]
    shown = [["", *rows]]
    for part, words in {WHOLE: "the whole method", **{name: one.about for name, one in about.parts.items()}}.items():
        cells = [_cell(found.get((part, row), {}), found.get((WHOLE, row), {}), part) for row in rows]
        if any(cells):
            shown.append([words, *cells])

    def every(column: str) -> str:
        return ", ".join(sorted({line[column][:10] if column == "commit" else line[column] for line in lines}))

    note = (
        "DSC per volume at the last epoch, mean over classes and seeds; in brackets what it is more than the whole "
        f"method, paired by seed. Seeds {every('seed')}; {every('epochs')} epochs; data: {every('data')}; "
        f"{every('hardware')}; commit {every('commit')}."
    )
    return f"{markdown(shown)}\n\n{note}\n"


def _cell(scores: Mapping[str, float], whole: Mapping[str, float], part: str) -> str:
    if not scores:
        return ""
    text = f"{fmean(scores.values()):.3f}"
    more = [scores[seed] - whole[seed] for seed in scores if seed in whole]
    if part == WHOLE or not more:
        return text
    return f"{text} ({fmean(more):+.3f}" + (f" ± {stdev(more):.3f})" if len(more) > 1 else ")")
