"""`python -m reproduction.doubt RUN STORE`: does `predict` doubt the masks that are bad?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from inbounds.batches.samples import class_table
from inbounds.cli import run_program
from inbounds.cli.shared import open_store
from inbounds.errors import BadInput
from inbounds.evaluation.overlap import dice_per_volume, overlap
from inbounds.inference import Predictor
from inbounds.inference.doubt import PARTS
from inbounds.progress import bar
from inbounds.regions.scans import Scans
from inbounds.store.store import Store

EVERY = "all"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Measured = dict[str, np.ndarray]
"""By class, for each scan: DSC, doubt, then each part of it."""


def measure(predictor: Predictor, store: Store, split: str) -> Measured:
    """DSC of each mask, in the scan's own voxels, and what speaks against it. What is not defined is NaN."""
    records = [record for record in store.records if record.split == split and record.truth]
    if not records:
        raise BadInput(f"{store.path}: no scan with a truth is in the split {split!r}")
    remap = class_table(len(store.classes), store.chosen(predictor.classes))
    rows: dict[str, list[list[float]]] = {name: [] for name in predictor.classes}
    for number in bar("predicting")(range(len(records))):
        record = records[number]
        found = predictor.predict_stored(store, record)
        truth = record.fit.back(remap[store.truth[record.first : record.range.stop]])
        counts = overlap(torch.from_numpy(found.mask), torch.from_numpy(truth), len(rows) + 1)
        dsc = dice_per_volume(counts, Scans(torch.zeros(record.slices, dtype=torch.long), 1))[0]
        for region in found.regions:
            assert region.doubt is not None
            parts = [getattr(region.doubt, part) for part in PARTS]
            rows[region.name].append([float(dsc[region.value]), region.doubt.total, *parts])
    return {name: np.array(each) for name, each in rows.items()}


def correlation(measured: np.ndarray, column: int) -> float:
    """Spearman's rank correlation of a column with the DSC, over the scans that have both; NaN where all are alike."""
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    both = measured[~np.isnan(measured[:, [0, column]]).any(axis=1)][:, [0, column]]
    if len(both) < 2 or (both == both[0]).all(axis=0).any():
        return float("nan")
    return float(spearmanr(both[:, 0], both[:, 1]).statistic)


@app.command()
def doubt(
    runs: Annotated[Path, typer.Argument(metavar="RUN", help="A run, a folder of runs, or several: RUN,RUN.")],
    store: Annotated[Path, typer.Argument(help="A store with truth, prepared as the run's.")],
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Rank correlation of the doubt, and of each of its parts, with the DSC of the masks; -1 is as good as can be."""
    measured = measure(Predictor(runs, model, device), open_store(store), split)
    measured[EVERY] = np.concatenate(list(measured.values()))
    table = Table("class", "masks", "mean DSC", "doubt", *PARTS, box=None)
    for name, each in measured.items():
        numbers = [correlation(each, column) for column in range(1, each.shape[1])]
        cells = ("" if np.isnan(number) else f"{number:.2f}" for number in numbers)
        table.add_row(name, str(len(each)), f"{np.nanmean(each[:, 0]):.3f}", *cells)
    Console().print(table)


if __name__ == "__main__":
    run_program(app, "python -m reproduction.doubt")
