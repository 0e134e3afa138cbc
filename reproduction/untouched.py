"""`python -m reproduction.untouched OUT`: the five commands of the README on a person's folder, with nothing set.

OUT/folder has scans, clicks and sizes (see `inbounds example`): generated hearts, or ACDC or PROMISE12, where every
fifth training patient is new and those that validate elsewhere stay out of sight. What the masks are worth is printed,
and written to OUT/untouched.json.
"""

from __future__ import annotations

import csv
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import spearmanr  # type: ignore[import-untyped]

from inbounds.cli import run_program
from inbounds.progress import bar
from inbounds.runs.run import Run
from inbounds.scans.scan import read_labels, stem
from inbounds.sources import acdc, phantom, promise12
from inbounds.sources.example import write_example
from inbounds.sources.source import Source
from inbounds.writing import write_json
from reproduction.split import every_fifth

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
COMMANDS = (
    "prepare folder {folder}/scans {out}/store --classes {classes}",
    "annotate {out}/store --points {folder}/clicks.csv --name clicks",
    "facts {out}/store --import {folder}/sizes.csv --name sizes",
    "train --store {out}/store --annotation clicks --facts sizes --run {out}/run --minutes {minutes:g}",
    "predict {out}/run {folder}/new --out {out}/masks",
)


def held_out(sources: Sequence[Source]) -> list[Source]:
    """The training patients of an archive, of whom every fifth is new."""
    scans = [scan for scan in sources if scan.split == "train"]
    new = every_fifth(scan.patient for scan in scans)
    return [replace(scan, split="validation" if scan.patient in new else "train") for scan in scans]


def overlap(masks: Path, truth: Path, classes: int) -> np.ndarray:
    """DSC of each new scan and class, `(scans, classes)`; NaN where a class is neither there nor found."""
    scores = []
    for file in sorted(truth.iterdir()):
        found, real = read_labels(masks / file.name).array, read_labels(file).array
        pairs = [(found == k, real == k) for k in range(1, classes)]
        scores.append([2 * (a & b).sum() / (a.sum() + b.sum()) if (a | b).any() else np.nan for a, b in pairs])
    return np.array(scores)


@app.command()
def untouched(
    out: Annotated[Path, typer.Argument(help="The folder for everything.")],
    minutes: Annotated[float, typer.Option(help="Time for training.")] = 5,
    archive: Annotated[Path | None, typer.Option("--acdc", help="The ACDC archive; else generated hearts.")] = None,
    prostates: Annotated[Path | None, typer.Option("--promise12", help="The PROMISE12 archive instead.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Train from clicks and rough sizes as a person would, and see what the masks are worth."""
    classes: tuple[str, ...]
    name, classes, scans = phantom.NAME, phantom.CLASSES, phantom.sources(40, seed=seed)
    if archive is not None:
        name, classes, scans = acdc.NAME, acdc.CLASSES, held_out(acdc.sources(archive))
    elif prostates is not None:
        name, classes, scans = promise12.NAME, promise12.CLASSES, held_out(promise12.sources(prostates))
    write_example(scans, classes, out / "folder", seed=seed, track=bar("writing"))
    names = {"folder": out / "folder", "out": out, "classes": ",".join(classes), "minutes": minutes}
    for command in COMMANDS:
        words = shlex.split(command.format(**names))
        typer.secho(f"inbounds {shlex.join(words)}", bold=True)
        begun = time.monotonic()
        subprocess.run([sys.executable, "-m", "inbounds", *words], check=True)
        typer.echo(f"({time.monotonic() - begun:.0f} s)")
    result: dict[str, Any] = {"data": name, "minutes": minutes, "seed": seed} | measure(out, classes)
    write_json(out / "untouched.json", result)
    typer.echo(
        f"DSC of new scans: {result['mean']:.3f} ({', '.join(f'{k} {v:.3f}' for k, v in result['dsc'].items())})"
    )


def measure(out: Path, classes: Sequence[str]) -> dict[str, Any]:
    """What the masks are worth, whether `predict` doubts the bad ones, and what they come from."""
    truth = out / "folder" / "truth"
    scores = overlap(out / "masks", truth, len(classes))
    means = dict(zip(classes[1:], np.nanmean(scores, axis=0).round(4).tolist(), strict=True))
    with (out / "masks" / "predictions.csv").open(encoding="utf-8") as stream:
        doubt = {(row["case"], row["class"]): float(row["doubt"]) for row in csv.DictReader(stream)}
    names = [stem(file) for file in sorted(truth.iterdir())]
    doubts = np.array([[doubt[name, klass] for klass in classes[1:]] for name in names])
    there = ~np.isnan(scores)
    pairs = doubts[there], scores[there]
    varied = all(np.ptp(side) > 0 for side in pairs)  # else there are no ranks, as where every mask is empty
    run = Run.open(out / "run")
    return {
        "scans": len(scores),
        "dsc": means,
        "mean": round(float(np.mean(list(means.values()))), 4),
        "rank_correlation_of_doubt": round(float(spearmanr(*pairs).statistic), 3) if varied else None,
        "epochs": run.epochs,
        "plan": run.about["plan"]["words"],
        **{key: run.about[key] for key in ("commit", "machine", "versions")},
    }


if __name__ == "__main__":
    run_program(app, "python -m reproduction.untouched")
