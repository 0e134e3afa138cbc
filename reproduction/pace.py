"""`python -m reproduction.pace OUT --store STORE`: how soon one row has what DSC, from a store to the last epoch.

A process of its own trains the row, so that the time holds what a person waits for: the start of Python, the choice of
kernels, compilation, and the measuring of each epoch. Written to OUT/pace.json.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from inbounds.cli import run_program
from inbounds.errors import BadInput
from inbounds.writing import write_json
from reproduction.results import read_all

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
EPOCH = re.compile(r"epoch (\d+)/\d+, .*, DSC ")


@app.command()
def pace(
    out: Annotated[Path, typer.Argument(help="The folder for everything.")],
    store: Annotated[Path, typer.Option(help="The data.")],
    row: Annotated[str, typer.Option(help="Experiment and row.")] = "heart/scribbles_sizes",
    preset: Annotated[str, typer.Option(help="How it is trained.")] = "default",
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Train one row with nothing beside it, and write after how many seconds each epoch was measured."""
    experiment, _, name = row.partition("/")
    command = [sys.executable, "-u", "-m", "reproduction", experiment, "--rows", name, "--preset", preset]
    command += ["--store", str(store), "--out", str(out / "row"), "--seeds", str(seed)]
    seconds: dict[int, float] = {}
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as training:
        for line in training.stdout or ():
            if found := EPOCH.search(line):
                seconds[int(found[1])] = round(time.monotonic() - begun, 1)
            typer.echo(line, nl=False)
    if training.returncode:
        raise BadInput(f"{row}: it did not train, see above")
    (result,) = read_all(out / "row" / "results")
    curves = [values for metric, values in result.curves.items() if metric.split("/")[0] == "dsc_volume"]
    scores = np.mean(curves, axis=0).round(4).tolist()
    about: dict[str, Any] = {key: result.about[key] for key in ("commit", "hardware", "versions")}
    content = {"row": row, "preset": preset, "seed": seed, **about, "ended": round(time.monotonic() - begun, 1)}
    write_json(out / "pace.json", {**content, "seconds": [seconds[e] for e in sorted(seconds)], "dsc": scores})
    for epoch, score in zip(sorted(seconds), scores, strict=True):
        typer.echo(f"{seconds[epoch]:6.1f} s  epoch {epoch:3d}  DSC {score:.3f}")


if __name__ == "__main__":
    run_program(app, "python -m reproduction.pace")
