"""Commands on a store: weak labels, facts, looking."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from inbounds.cli.shared import Seed, StorePath, class_values, open_store
from inbounds.errors import BadInput


class Strategy(StrEnum):
    """How weak labels are simulated."""

    erosion = "erosion"
    disc = "disc"
    centroid = "centroid"
    scribble = "scribble"
    box = "box"


def annotate(
    store: StorePath,
    name: Annotated[str, typer.Option(help="What to call the annotation.")],
    strategy: Annotated[Strategy | None, typer.Option(help="How to simulate weak labels from the truth.")] = None,
    points: Annotated[Path | None, typer.Option(help="Or clicks: a CSV of case, slice, row, column, class.")] = None,
    classes: Annotated[str, typer.Option(help="Which classes, such as LV,RV; all if not given.")] = "",
    background: Annotated[bool, typer.Option("--background", help="Label some background too.")] = False,
    radius: Annotated[float | None, typer.Option(min=0, help="Of discs and clicks, in pixels.")] = None,
    margin: Annotated[int | None, typer.Option(min=0, help="Of boxes, in pixels.")] = None,
    box_share: Annotated[
        tuple[float, float], typer.Option(help="For boxes: the size of a region as a share of its box, from and to.")
    ] = (0.5, 0.9),
    noise: Annotated[float, typer.Option(min=0, help="Error of sizes in the facts, as a share (0.1 is 10 %).")] = 0.0,
    jitter: Annotated[float, typer.Option(min=0, help="Error of centroids in the facts, in pixels.")] = 0.0,
    absent_elsewhere: Annotated[
        bool, typer.Option("--absent-elsewhere", help="A class clicked in a scan is absent from its other slices.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Add weak labels and facts to a store: simulated from its truth, or clicked by people."""
    from inbounds.progress import bar
    from inbounds.store.annotate import import_points, simulate
    from inbounds.store.measure import Noise

    opened = open_store(store)
    if (strategy is None) == (points is None):
        raise BadInput("give either --strategy or --points")
    if points is not None:
        clicks, ignored = import_points(opened, points, name, radius=radius or 0.0, absent_elsewhere=absent_elsewhere)
        typer.echo(f"{store}: {clicks} clicks as annotation {name!r}" + _aside(ignored))
        return
    assert strategy is not None
    settings: dict[str, Any] = {}
    for option, value, users in (("radius", radius, ("disc", "centroid")), ("margin", margin, ("box",))):
        if value is not None:
            if strategy not in users:
                raise BadInput(f"--{option} goes with the strategies {', '.join(users)}, not with {strategy}")
            settings[option] = value
    simulate(
        opened,
        name,
        strategy.value,
        class_values(opened, classes),
        seed=seed,
        background=background,
        noise=Noise(noise, jitter),
        box_share=box_share,
        settings=settings,
        track=bar("annotating"),
    )
    from inbounds.store.verify import labelled

    shares = labelled(opened, name)
    typer.echo(f"{store}: annotation {name!r} labels {sum(shares.values()):.3%} of all pixels")


def _aside(ignored: Sequence[str]) -> str:
    """A note on columns that a table has beside those that are known."""
    return f"; ignored columns: {', '.join(ignored)}" if ignored else ""


def facts(
    store: StorePath,
    name: Annotated[str, typer.Option(help="What the facts are called; a template needs none.")] = "",
    import_file: Annotated[Path | None, typer.Option("--import", help="A CSV to bring in.")] = None,
    export_file: Annotated[Path | None, typer.Option("--export", help="Where to write the facts as CSV.")] = None,
    template: Annotated[
        Path | None, typer.Option("--template", help="Write an empty table for all slices and classes, to fill in.")
    ] = None,
) -> None:
    """Bring what people know into a store, or take it out: sizes, centres, presence, in the units of the scans."""
    opened = open_store(store)
    if sum(x is not None for x in (import_file, export_file, template)) != 1:
        raise BadInput("give one of --import, --export and --template")
    if not name and template is None:
        raise BadInput("say which facts, with --name")
    if import_file is not None:
        read = opened.import_facts(import_file, name)
        typer.echo(f"{store}: {len(read.rows)} facts as {name!r}" + _aside(read.ignored))
        return
    target = export_file or template
    assert target is not None
    if target.exists():
        raise BadInput(f"{target}: already exists; remove it or choose another name")
    (opened.facts(name) if export_file else opened.empty_facts()).write(target)
    typer.echo(f"{target}: written")


def info(store: StorePath, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Tell what is in a store."""
    from inbounds.store.verify import summary

    content = summary(open_store(store))
    if as_json:
        typer.echo(json.dumps(content, indent=1))
        return
    from inbounds.reports.terminal import store_tables

    store_tables(content)


def verify(store: StorePath) -> None:
    """Check a store: checksums, shapes, values, and whether simulated seeds lie inside the truth."""
    from inbounds.progress import bar
    from inbounds.store.verify import verify as look

    verdict = look(open_store(store), bar("verifying"))
    for line in verdict.checks:
        typer.echo(f"ok    {line}")
    for line in verdict.problems:
        typer.secho(f"wrong {line}", fg="red", err=True)
    if verdict.problems:
        raise typer.Exit(1)


def preview(
    store: StorePath,
    out: Annotated[Path, typer.Option(help="The picture to write, such as preview.png.")],
    annotations: Annotated[str, typer.Option(help="Which annotations, separated by commas; all if not given.")] = "",
    classes: Annotated[str, typer.Option(help="Which classes to show; all if not given.")] = "",
    scans: Annotated[int, typer.Option(min=1, max=20, help="How many scans.")] = 4,
) -> None:
    """Draw scans with their truth and their weak labels side by side."""
    from inbounds.reports.preview import preview as draw

    opened = open_store(store)
    draw(
        opened,
        out,
        annotations=[name for name in annotations.split(",") if name],
        scans=scans,
        classes=class_values(opened, classes) if classes else (),
    )
    typer.echo(f"{out}: written")
