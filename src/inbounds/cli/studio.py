"""`inbounds studio`: a page for clicking, training and looking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inbounds.errors import BadInput


def studio(
    scans: Annotated[Path, typer.Argument(help="The folder of the scans, or a store; nothing is written into it.")],
    project: Annotated[
        Path | None, typer.Option(help="Where what you do is kept; SCANS-studio if not given.", show_default=False)
    ] = None,
    classes: Annotated[str, typer.Option(help="For a new project, such as background,LV,MYO,RV.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page's address; any that is free if 0.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    host: Annotated[
        str, typer.Option(help="The name by which others reach this computer; needs --certificate.", show_default=False)
    ] = "",
    certificate: Annotated[
        Path | None,
        typer.Option(help="A certificate for that name, as PEM: the page is encrypted.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Its private key, if it is not in the same file.", show_default=False)
    ] = None,
) -> None:
    """Open a page to click, type rough sizes, train, look and correct: on this computer, in your browser."""
    try:
        from inbounds.studio.serve import Address, serve
    except ImportError as error:
        raise BadInput(
            f"the studio needs {error.name}, which is not installed; pip install 'inbounds[studio]'"
        ) from None
    place = scans.resolve()
    folder = project or place.with_name(f"{place.name}-studio")
    names = [name.strip() for name in classes.split(",")] if classes else []
    serve(place, folder, names, Address(host, port, certificate, key), browser=browser, say=typer.echo)
