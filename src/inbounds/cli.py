"""The command line. Commands only parse, call the library and print; heavy imports happen inside them."""

from __future__ import annotations

from typing import Annotated

import typer

import inbounds

app = typer.Typer(
    name="inbounds",
    help="Segment medical images from a few clicks and a rough size.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"inbounds {inbounds.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Segment medical images from a few clicks and a rough size."""


@app.command()
def recipes() -> None:
    """List the supervisions known by name, with their settings."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    table = Table("recipe", "what is known", "settings")
    for name, build in inbounds.recipes.items():
        settings = ", ".join(f"{p.name}={p.default}" for p in inspect.signature(build).parameters.values())
        table.add_row(name, (build.__doc__ or "").splitlines()[0], settings)
    Console().print(table)
