"""`python -m torture`: what kills, broken files and large amounts do to the package."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from inbounds.cli import run_program
from torture.process import Place, warm_up

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Out = Annotated[Path, typer.Option(help="The folder for results; a campaign that was killed goes on there.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn.")]
Only = Annotated[str, typer.Option(help="These cases alone, such as 417 or 3,5: each is done anew and kept.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many cases at once; as many as there are cores.")]
OUT, CORES = Path("out/torture"), os.cpu_count() or 1


@app.callback()
def main() -> None:
    """What kills, broken files and large amounts do to the package. Run on a copy of nothing: all is made here."""


@app.command()
def kills(count: int = 1000, seed: Seed = 0, out: Out = OUT, only: Only = "", jobs: Jobs = CORES) -> None:
    """Kill every command that writes, at changes of files and at random moments, and repeat it; two at once too."""
    from torture.kills import campaign

    material = prepared(out)
    results = campaign(out, material, count, seed, jobs, [int(number) for number in only.split(",") if number])
    raise typer.Exit(int(any(result.problems for result in results)))


def prepared(out: Path) -> Place:
    """What the cases begin with, made anew."""
    from torture.material import make

    warm_up()
    material = Place(out.resolve() / "material")
    shutil.rmtree(material.root, ignore_errors=True)
    make(material)
    return material


if __name__ == "__main__":
    run_program(app, "python -m torture")
