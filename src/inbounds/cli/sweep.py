"""`inbounds sweep`: many runs from one plan, here or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inbounds.cli.shared import Engine, Imports, Json, Told, answer
from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.jobs.status import Standing

FEW = 20
"""So many lines are told one by one where people did not ask for all."""


def sweep(
    plan: Annotated[Path | None, typer.Argument(help="What to train: a TOML file.", show_default=False)] = None,
    *,
    out: Annotated[Path, typer.Option(help="The folder for the runs, their manifest and results.csv.")],
    on: Annotated[Engine, typer.Option(help="This machine, a Slurm cluster, or a Ray cluster.")] = Engine.local,
    wait: Annotated[bool, typer.Option(help="Wait until all is done; Slurm goes on without.")] = True,
    status: Annotated[bool, typer.Option("--status", help="Say where all runs stand, and train none.")] = False,
    as_json: Json = False,
    imports: Imports = None,  # noqa: ARG001
) -> None:
    """Train many runs; the same command again does what is left, wherever the rest was done."""
    from inbounds.jobs.engine import carry_out
    from inbounds.jobs.manifest import write_manifest
    from inbounds.jobs.plan import lines_of, read_sweep
    from inbounds.jobs.status import counted, in_words, standings, write_results

    if plan is None and not status:
        raise BadInput("which runs? Give a plan, such as `inbounds sweep plan.toml --out runs/sweep`, or --status")
    if status or plan is None:
        found = standings(out)
    else:
        sweep = read_sweep(plan)
        write_manifest(out, lines_of(sweep, plan))
        try:
            found = carry_out(out, on.value, sweep, Told(as_json), waits=wait)
        except KeyboardInterrupt:
            typer.echo(f"Every finished epoch is kept; go on with the same command: {out}", err=True)
            raise
    table = write_results(out)
    text = f"{out}: {in_words(found)}. Results: {table}; compare runs with: inbounds report {out} --out report"
    if wait and not status and any(one.state == "waiting" for one in found):
        text += f"\nSome never began: see what {on.value} says of them, as in {out / on.value}"
    if not as_json:
        _table(found if status else [one for one in found if one.why][:FEW])
    runs = [asdict(one) for one in found]
    answer(as_json, text, sweep=out, counts=counted(found), runs=runs, results=table)
    if not status and any(one.state != "done" for one in found[: None if wait else 0]):
        raise typer.Exit(1)


def _table(found: Sequence[Standing]) -> None:
    """Where the lines of a manifest stand, for people; nothing if there are none."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", "state", "epoch", "began", "where", "why", box=None)
    for one in found:
        of = f"{one.epoch}/{one.epochs}" if one.epochs else ""
        table.add_row(one.place, one.state, of, str(one.attempts or ""), one.where, one.why)
    if found:
        Console().print(table)
