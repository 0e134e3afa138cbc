"""The command line. Commands only parse, call the library and print; heavy imports happen inside them."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

import inbounds
from inbounds.cli import data, prepare, runs
from inbounds.cli.nnunet import nnunet
from inbounds.cli.studio import studio
from inbounds.cli.sweep import sweep
from inbounds.errors import BadInput, reason
from inbounds.stopping import stoppable

app = typer.Typer(
    name="inbounds",
    help="Segment medical images from a few clicks and a rough size.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(prepare.app, name="prepare")
_on_stores = (data.example, data.annotate, data.facts, data.info, data.verify, data.preview)
_on_runs = (runs.recipes, runs.train, sweep, runs.evaluate, runs.predict, runs.report, runs.export)
for _command in (*_on_stores, *_on_runs, nnunet, studio):
    app.command()(_command)

EXTRAS = {
    "data": {"nibabel", "PIL", "scipy", "SimpleITK"},
    "figures": {"jinja2", "markupsafe", "matplotlib"},
    "train": {"lightning_fabric", "safetensors", "tensorboard"},
    "evaluate": {"monai"},
    "export": {"onnx", "onnxscript"},
    "studio": {"fastapi", "multipart", "python_multipart", "starlette", "uvicorn"},
}
"""The modules of each extra."""


def run() -> None:
    """The program `inbounds`."""
    run_program(app, "inbounds")


def run_program(program: typer.Typer, name: str, words: Sequence[str] | None = None) -> None:
    """A program on the command line, or with other words: what a user got wrong is said in one line, with code 2."""
    try:
        with stoppable() as came:
            try:
                _settle()
                program(words, prog_name=name)
            except (SystemExit, KeyboardInterrupt):
                if not came:
                    raise
                typer.echo("Stopped.", err=True)
                sys.exit(128 + came[0])
    except BadInput as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        sys.exit(2)
    except ImportError as error:
        if not (line := remedy(error)):
            raise
        typer.secho(f"Error: {line}", fg="red", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:  # torch tells of too little memory as RuntimeError
        said = reason(error)
        if said.startswith("Symlink loop"):  # what Python says of it before 3.13
            typer.secho(f"Error: {said}: a link that leads to itself; correct or remove it", fg="red", err=True)
            sys.exit(2)
        if not (isinstance(error, MemoryError) or "memory" in said):
            raise
        typer.secho(
            f"Error: there is too little memory ({said}); close other programs, or give less at once: a "
            "smaller scan, grid, batch or network",
            fg="red",
            err=True,
        )
        sys.exit(2)
    except OSError as error:
        typer.secho(f"Error: {error}; check the name, the permissions and the room on the disk", fg="red", err=True)
        sys.exit(2)


def remedy(error: ImportError) -> str:
    """What to install where a package of an extra is missing; nothing where another import failed."""
    missing = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if missing in modules), None)
    return f"this needs {missing}, which is not installed: pip install 'inbounds[{extra}]'" if extra else ""


def _settle() -> None:
    """How libraries and streams behave under a program."""
    # What libraries have to say to those who call them helps nobody at a terminal.
    for kind in (FutureWarning, DeprecationWarning):
        warnings.filterwarnings("ignore", category=kind, module=r"(monai|torch)\b")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text, and terminals no UTF-8


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"inbounds {inbounds.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Segment medical images from a few clicks and a rough size."""
