"""`python -m benchmarks`: how long training takes here, the paper's ratios beside ours."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.bench import QUICK, Bench, Scale, chosen_device, chosen_sections
from benchmarks.tables import paper_times, section_lines, timing_lines
from inbounds.cli import run_program
from inbounds.cli.shared import open_store
from inbounds.errors import BadInput
from inbounds.writing import write_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Where to write all numbers; what is finished is in it.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    sections: Annotated[
        str,
        typer.Option(
            help="Some of memory,steps,networks,method,modes,many,epoch,comparison,plain,growth,devices,streamed,"
            "patches,predict,scans,studio; all but networks and the last six.",
        ),
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Tiny, to see that it works.")] = False,
    rounds: Annotated[int | None, typer.Option(min=2, help="How often everything is measured in turn.")] = None,
    batches: Annotated[str, typer.Option(help="Sizes of batches; 1,8 if not given.")] = "",
    together: Annotated[
        str, typer.Option(help="On a GPU: how many runs at once have whole epochs measured; 1,9 if not given.")
    ] = "",
    patients: Annotated[int | None, typer.Option(min=3, help="Of generated data: how long an epoch is.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Measure on this data instead, made by `inbounds prepare`.")
    ] = None,
    annotation: Annotated[str, typer.Option(help="Its weak labels.")] = "disc",
    classes: Annotated[str, typer.Option(help="Its classes to learn, such as LV.")] = "LV",
    compiled: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="On a CPU: all supervisions compiled too. Or never compile."),
    ] = None,
    cuda_graphs: Annotated[bool, typer.Option(help="On a GPU: replay steps as CUDA graphs.")] = True,
) -> None:
    """Measure training on generated data: a step by supervision, runs side by side, epochs, memory."""
    where = chosen_device(device)
    chosen = chosen_sections([name.strip() for name in sections.split(",") if name.strip()], where)
    changes: dict[str, Any] = {"rounds": rounds, "patients": patients, "compiles": compiled}
    changes |= {"batches": _numbers(batches, "--batches"), "together": _numbers(together, "--together")}
    given = {name: value for name, value in changes.items() if value is not None}
    scale = replace(QUICK if quick else Scale(), **given)
    with tempfile.TemporaryDirectory() as folder:
        made = Bench(
            Path(folder),
            where,
            scale,
            cuda_graphs=cuda_graphs,
            both=compiled is True and where == "cpu",
            store=None if store is None else open_store(store),
            annotation=annotation,
            classes=[name.strip() for name in classes.split(",")],
        )
        content = {**made.about(), "rows": []}
        versions = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
        network, size = content["settings"]["network"]["name"], "x".join(map(str, made.store.shape))
        typer.echo(f"{network}, {size}, {made.mode}; {content['device']}; {versions}")
        for rows in made.sections(chosen):
            content["rows"] += rows
            if json_file is not None:
                write_json(json_file, content)
            for name in dict.fromkeys(row["section"] for row in rows):
                plain_table(*section_lines(name, rows))
            if rows[0]["section"] == "steps":
                plain_table("the paper's table of training times", timing_lines([content], paper_times()))


def _numbers(text: str, option: str) -> tuple[int, ...] | None:
    """Whole numbers from 1 as `1,8`; none if none are given."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() and int(part) for part in parts):
        raise BadInput(f"{option} {text}: give whole numbers from 1 on, such as 1,8")
    return tuple(int(part) for part in parts) or None


def plain_table(title: str, lines: Sequence[Sequence[str]]) -> None:
    """Lines of cells, the first of them the head."""
    head, *others = lines
    table = Table(*head, title=title, title_justify="left")
    for line in others:
        table.add_row(*line)
    Console().print(table)


if __name__ == "__main__":
    run_program(app, "python -m benchmarks")
