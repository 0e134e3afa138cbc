"""`python -m reproduction NAME`: the paper's tables and figures, the paper beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from inbounds.cli import run_program
from inbounds.cli.shared import open_store, seed_numbers
from inbounds.errors import BadInput
from reproduction import ablation
from reproduction import reproduce as library
from reproduction.experiment import ABLATION, NAMES, TIMING, experiment
from reproduction.pages import write_timing

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join((*NAMES, ABLATION))} or {TIMING}.", metavar="NAME")],
    out: Annotated[Path, typer.Option(help="The folder for runs, results, tables and figures.")],
    store: Annotated[
        Path | None, typer.Option(help="The data; without it nothing is trained, and tables and figures are made anew.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="A run for each, such as 0,1,2.")] = "0",
    preset: Annotated[
        str,
        typer.Option(
            help="paper: as the authors ran it; default: as `inbounds train` plans it, for a GPU, and what `ablation` "
            "takes; small: for a CPU."
        ),
    ] = "paper",
    rows: Annotated[str, typer.Option(help="Which rows, such as full,individual; all if not given.")] = "",
    parts: Annotated[
        str, typer.Option(help="Of `ablation`: which parts, such as whole,no-border; all if not given.")
    ] = "",
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of all rows, such as training.epochs=2; repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on, and leave what is finished.")] = False,
) -> None:
    """Train the rows of one of the paper's tables, and lay the results beside the paper's."""
    if name == TIMING:
        typer.echo(f"{write_timing(out / 'results')}: written")
        return
    if name != ABLATION:
        experiment(name)
        if parts:
            raise BadInput(f"--parts {parts}: {name} has rows alone; leave it out, or run {ABLATION!r}")
    if store is None:
        if name == ABLATION:
            ablation.write_all(out)
        else:
            library.write_all(name, out, say=typer.echo)
        return
    asked: dict[str, Any] = {
        "store": open_store(store),
        "rows": _names(rows),
        "seeds": seed_numbers(seeds),
        "changes": changes or [],
        "resume": resume,
        "say": typer.echo,
    }
    try:
        if name == ABLATION:
            failures = ablation.ablate(out, parts=_names(parts), **asked)
        else:
            failures = library.reproduce(name, out, preset=preset, **asked)
    except KeyboardInterrupt:
        typer.echo("Every finished epoch is kept; go on with the same command and --resume", err=True)
        raise typer.Exit(130) from None
    for path, reason in failures.items():
        typer.secho(f"Failed: {path}: {reason}", fg="red", err=True)
    if failures:
        raise typer.Exit(1)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    run_program(app, "python -m reproduction")
