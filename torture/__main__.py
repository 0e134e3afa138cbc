"""`python -m torture`: what kills, broken files and large amounts do to the package."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inbounds.cli import run_program
from inbounds.errors import BadInput, nearest
from inbounds.writing import write_json
from torture.process import Place, warm_up

if TYPE_CHECKING:
    from torture.campaign import Result

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Out = Annotated[Path, typer.Option(help="The folder for results; a campaign that was killed goes on there.")]
Count = Annotated[int, typer.Option(min=1, help="How many cases.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn.")]
Only = Annotated[str, typer.Option(help="These cases alone, such as 417 or 3,5: done anew.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many cases at once.")]
Summary = Annotated[Path | None, typer.Option(help="Where to write what was found, as JSON.")]
OUT, SAMPLE, CORES = Path("out/torture"), Path("out/torture-sample"), os.cpu_count() or 1
FEW = 20
"""Of fewer cases each is told of."""


@app.callback()
def main() -> None:
    """What kills, broken files and large amounts do to the package. All that it needs is made by itself."""


@app.command()
def kills(
    count: Count = 1000, seed: Seed = 0, out: Out = OUT, only: Only = "", jobs: Jobs = CORES, summary: Summary = None
) -> None:
    """Kill every command that writes, at changes of files and at random moments, and repeat it; two at once too."""
    _all({"kills": count}, seed, out, jobs, summary, numbers(only))


@app.command()
def inputs(
    count: Count = 2000, seed: Seed = 0, out: Out = OUT, only: Only = "", jobs: Jobs = CORES, summary: Summary = None
) -> None:
    """Spoil scans, tables, settings, stores, runs and archives, and give them to the commands that read them."""
    _all({"inputs": count}, seed, out, jobs, summary, numbers(only))


@app.command()
def strokes(
    count: Count = 50, seed: Seed = 0, out: Out = OUT, only: Only = "", jobs: Jobs = CORES, summary: Summary = None
) -> None:
    """Kill the studio's server amid the strokes of two people, three times each, and look what is there then."""
    _all({"strokes": count}, seed, out, jobs, summary, numbers(only))


@app.command()
def fuzz(
    count: Annotated[int, typer.Option(min=1, help="How many inputs for each parser.")] = 3000,
    seed: Seed = 0,
    out: Out = OUT,
    only: Only = "",
    jobs: Jobs = CORES,
    summary: Summary = None,
    atheris: Annotated[str, typer.Option(help="Give this parser, such as nifti, to Atheris instead.")] = "",
    seconds: Annotated[int, typer.Option(min=1, help="How long Atheris has.")] = 60,
) -> None:
    """Feed the parsers of the package with spoilt files; those that make them do something new are spoilt further."""
    if not atheris:
        _all({"fuzz": count}, seed, out, jobs, summary, numbers(only))
    from torture.fuzz import by_atheris
    from torture.parsers import PARSERS

    if atheris not in PARSERS:
        raise BadInput(f"--atheris {atheris}: {nearest(atheris, PARSERS)}")
    by_atheris(prepared(out), atheris, seconds, out.resolve() / "atheris" / atheris)


@app.command()
def load(
    share: Annotated[float, typer.Option(min=0.001, help="Of the 2,000 scans, 20,000 slices and 300 predictions.")] = 1,
    out: Out = OUT,
    summary: Summary = None,
) -> None:
    """Prepare 2,000 scans, train on their 20,000 slices and predict 300 more, and look at what grows."""
    _all({"load": share}, 0, out, 1, summary)


@app.command(name="all")
def everything(seed: Seed = 0, out: Out = OUT, jobs: Jobs = CORES, summary: Summary = None) -> None:
    """All campaigns in full."""
    _all({"kills": 1000, "inputs": 2000, "strokes": 50, "fuzz": 3000, "load": 1}, seed, out, jobs, summary)


@app.command()
def sample(seed: Seed = 0, out: Out = SAMPLE, jobs: Jobs = CORES) -> None:
    """A few cases of each, in three minutes; the same ones each time, done anew."""
    shutil.rmtree(out, ignore_errors=True)
    _all({"kills": 60, "inputs": 300, "strokes": 4, "fuzz": 100}, seed, out, jobs, None)


def prepared(out: Path) -> Place:
    """What the cases begin with, made anew, by a process in which everything is imported."""
    warm_up()
    from torture.material import make

    material = Place(out.resolve() / "material")
    shutil.rmtree(material.root, ignore_errors=True)
    make(material)
    return material


def numbers(only: str) -> list[int]:
    """Cases given as `3,5`."""
    parts = [part.strip() for part in only.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise BadInput(f"--only {only}: give numbers of cases, such as 417 or 3,5")
    return [int(part) for part in parts]


def _all(
    counts: Mapping[str, float], seed: int, out: Path, jobs: int, summary: Path | None, only: Sequence[int] = ()
) -> None:
    """Some campaigns, one after the other. Ends with 1 if any found what is not accepted."""
    from torture import fuzz as fuzz_
    from torture import inputs as inputs_
    from torture import kills as kills_
    from torture import strokes as strokes_
    from torture.load import campaign as loaded
    from torture.summary import accepted, failures, repeat, summarise

    begun, known = time.monotonic(), accepted()
    material = prepared(out)
    found: dict[str, list[Result]] = {}
    for name, count in counts.items():
        if name == "load":
            found[name] = loaded(out, count)
        else:
            modules = {"kills": kills_, "inputs": inputs_, "strokes": strokes_, "fuzz": fuzz_}
            found[name] = modules[name].campaign(out, material, int(count), seed, jobs, only)
    for name, results in found.items():
        for result in results if len(results) < FEW else ():
            took = f"{result.seconds:.0f} s, {result.memory:.0f} MB more"
            typer.echo(f"{name}, {result.command}: {result.what}, {result.outcome}, {took}")
        wrong = failures(name, results, known)
        for result, problems in wrong:
            typer.secho(f"{name} {result.number}: {result.command}, {result.kind}, {result.what}", fg="red")
            typer.echo("".join(f"  {problem}\n" for problem in problems) + f"  {repeat(name, result.number, seed)}")
        typer.echo(f"{name}: {len(results)} cases, {len(wrong)} of them failed")
    page = summarise(found, material, seed=seed, jobs=jobs, seconds=time.monotonic() - begun)
    if summary is not None:
        write_json(summary, page)
    raise typer.Exit(int(page["failures"] > 0))


if __name__ == "__main__":
    run_program(app, "python -m torture")
