"""Commands on a store: weak labels, facts, looking."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inbounds.cli.shared import Json, Seed, StorePath, answer, listed, open_store
from inbounds.errors import BadInput
from inbounds.locks import locked

if TYPE_CHECKING:
    from inbounds.store.facts import Facts
    from inbounds.store.sentences import Heard

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace one of this name; what was trained on it stays bound to the old.")
]
Strategy = StrEnum("Strategy", ["erosion", "disc", "centroid", "scribble", "box"])
"""How weak labels are simulated."""


def example(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    patients: Annotated[int, typer.Option(min=4, help="How many patients, two scans each; a quarter is new.")] = 40,
    side: Annotated[int, typer.Option(min=48, help="Rows and columns of a slice.")] = 96,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write generated hearts as a person would have them: scans, clicks.csv, sizes.csv, and new scans to segment."""
    from inbounds.progress import bar
    from inbounds.sources import phantom
    from inbounds.sources.example import write_example

    scans = phantom.sources(patients, side=side, seed=seed)
    write_example(scans, phantom.CLASSES, folder, seed=seed, track=bar("drawing"))
    count = sum(scan.split == "train" for scan in scans)
    text = f"{folder}: {count} scans with clicks.csv and sizes.csv, and {len(scans) - count} new ones; classes: "
    answer(as_json, text + ",".join(phantom.CLASSES), folder=folder, scans=count, classes=phantom.CLASSES)


def annotate(
    store: StorePath,
    name: Annotated[str, typer.Option(help="What to call the annotation.")],
    strategy: Annotated[Strategy | None, typer.Option(help="How to simulate weak labels from the truth.")] = None,
    points: Annotated[Path | None, typer.Option(help="Or clicks: a CSV of case, slice, row, column, class.")] = None,
    classes: Annotated[str, typer.Option(help="Which classes, such as LV,RV; all if not given.")] = "",
    background: Annotated[bool, typer.Option("--background", help="Label some background too.")] = False,
    radius: Annotated[float | None, typer.Option(min=0, max=10_000, help="Of discs and clicks, in pixels.")] = None,
    margin: Annotated[int | None, typer.Option(min=0, help="Of boxes, in pixels.")] = None,
    box_share: Annotated[
        tuple[float, float], typer.Option(help="For boxes: the size of a region as a share of its box, from and to.")
    ] = (0.5, 0.9),
    noise: Annotated[
        float, typer.Option(min=0, help="How far off sizes in the facts are, at most, as a share (0.1 is 10 %).")
    ] = 0.0,
    jitter: Annotated[float, typer.Option(min=0, help="Error of centroids in the facts, in pixels.")] = 0.0,
    every: Annotated[int, typer.Option(min=1, help="Simulate on every third slice only, if 3.")] = 1,
    absent_elsewhere: Annotated[
        bool, typer.Option("--absent-elsewhere", help="A class clicked in a scan is absent from its other slices.")
    ] = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Add weak labels and facts to a store: simulated from its truth, or clicked by people."""
    from inbounds.progress import bar
    from inbounds.store.annotate import import_points, simulate
    from inbounds.store.doubts import doubts
    from inbounds.store.measure import Noise
    from inbounds.store.verify import labelled

    opened = open_store(store)
    if (strategy is None) == (points is None):
        raise BadInput("give either --strategy or --points")
    if points is not None:
        options = {"--classes": classes, "--background": background, "--margin": margin, "--noise": noise}
        options |= {"--every": every > 1}
        if unused := [option for option, value in (options | {"--jitter": jitter}).items() if value]:
            raise BadInput(f"{unused[0]} goes with --strategy, not with --points; leave it out")
        brought = [opened.facts(facts) for facts in opened.facts_brought]  # a damaged one is refused before all else
        how: dict[str, Any] = {"radius": radius or 0.0, "absent_elsewhere": absent_elsewhere, "overwrite": overwrite}
        clicks, ignored = import_points(opened, points, name, **how)
        text = f"{store}: {clicks} clicks as annotation {name!r}" + _aside(ignored)
        notes = list(opened.about(name).get("notes", []))
        notes += [doubt for facts in brought for doubt in doubts(opened, name, facts)]
        _warn(notes)
        answer(as_json, text, store=store, annotation=name, clicks=clicks, ignored=ignored, notes=notes)
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
        opened.chosen(listed(classes)),
        seed=seed,
        background=background,
        noise=Noise(noise, jitter),
        box_share=box_share,
        settings=settings,
        every=every,
        overwrite=overwrite,
        track=bar("annotating"),
    )
    shares = labelled(opened, name)
    text = f"{store}: annotation {name!r} labels {sum(shares.values()):.3%} of all pixels"
    answer(as_json, text, store=store, annotation=name, strategy=strategy, labelled_share_by_class=shares)


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"Warning: {note}", err=True)


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
    overwrite: Overwrite = False,
    reports: Annotated[
        Path | None, typer.Option("--reports", help="Or sentences of reports: a CSV of case and report.")
    ] = None,
    words: Annotated[
        list[str] | None, typer.Option("--word", help='What reports call a class, as "left ventricle=LV"; repeat it.')
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is understood and what is not, and bring in nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring what people know into a store, or take it out: sizes, centres, presence, in the units of the scans."""
    opened = open_store(store)
    if sum(x is not None for x in (import_file, export_file, template, reports)) != 1:
        raise BadInput("give one of --import, --reports, --export and --template")
    bring = import_file is not None or reports is not None
    if not name and template is None and not (dry_run and bring):
        raise BadInput("say which facts, with --name")
    if (words and reports is None) or (dry_run and not bring):
        raise BadInput(f"{'--word goes with --reports' if words else '--dry-run goes with --import and --reports'}")
    if bring:
        from inbounds.store.doubts import of_all
        from inbounds.store.sentences import read_sentences

        if not dry_run:
            opened.check_new(name, opened.facts_brought if overwrite else ())
        said: list[dict[str, Any]] = []
        if reports is None:
            assert import_file is not None
            read = opened.read_facts(import_file)
        else:
            found = read_sentences(reports, opened.classes, opened.cases, _words(words or []))
            read, said = found.facts, [_told(one, found.facts) for one in found.heard]
            if not dry_run and not read.rows:
                raise BadInput(f"{reports}: nothing was understood; see what there is with --dry-run")
        if not dry_run:
            opened.add_facts(name, lambda: read, overwrite=overwrite)
        notes = of_all(opened, read)
        left = [one for one in said if "reason" in one]
        notes += [f"{one['where']}: {one['part']!r} was not understood: {one['reason']}" for one in left]
        _warn(notes)
        count = len(read.rows) + len(read.relations)
        text = f"{store}: {count} facts" + ("; nothing was brought in" if dry_run else f" as {name!r}")
        lines = [f"{one['where']}: {one['part']!r}: {one['fact']}" for one in said if "fact" in one] if dry_run else []
        shown = "\n".join([*lines, text + _aside(read.ignored)])
        kept = None if dry_run else name
        heard = {} if reports is None else {"sentences": said}
        answer(as_json, shown, store=store, facts=kept, rows=count, ignored=read.ignored, notes=notes, **heard)
        return
    target = export_file or template
    assert target is not None
    with locked(target):
        if target.exists() and not overwrite:
            raise BadInput(f"{target}: already exists; remove it or choose another name")
        table = opened.facts(name) if export_file else opened.empty_facts()
        table.write(target)
    answer(as_json, f"{target}: written", store=store, written=target, rows=len(table.rows))


def _words(written: Sequence[str]) -> dict[str, str]:
    """What classes are called in reports."""
    pairs = [text.partition("=") for text in written]
    if wrong := [text for text, (word, _, klass) in zip(written, pairs, strict=True) if not word.strip() or not klass]:
        raise BadInput(f'--word {wrong[0]}: write it as word=class, such as "left ventricle=LV"')
    return {word.strip(): klass.strip() for word, _, klass in pairs}


def _told(one: Heard, facts: Facts) -> dict[str, Any]:
    """A part of a report, and what it means or why it means nothing."""
    if one.fact is None:
        return {"where": one.where, "part": one.part, "reason": one.reason}
    fact = one.fact
    values = [f"{column} {number:g}" for column, number in fact.known.items()] or [f"present {int(bool(fact.present))}"]
    place = "" if fact.slice is None else f" slice {fact.slice}"
    return {
        "where": one.where,
        "part": one.part,
        "fact": f"{fact.case}{place}, {facts.name(fact)}: {', '.join(values)}",
    }


def info(store: StorePath, as_json: Json = False) -> None:
    """Tell what is in a store."""
    from inbounds.reports.terminal import store_tables
    from inbounds.store.verify import summary

    content = summary(open_store(store))
    answer(as_json, lambda: store_tables(content), **content)


def verify(store: StorePath, as_json: Json = False) -> None:
    """Check a store: checksums, shapes, values, and whether simulated seeds lie inside the truth."""
    from inbounds.progress import bar
    from inbounds.store.verify import verify as look

    verdict = look(store, bar("verifying"))
    text = "".join(f"ok    {line}\n" for line in verdict.checks)
    answer(as_json, lambda: typer.echo(text, nl=False), store=store, **vars(verdict))
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
    as_json: Json = False,
) -> None:
    """Draw scans with their truth and their weak labels side by side."""
    from inbounds.reports.preview import preview as draw

    opened = open_store(store)
    chosen = opened.chosen(listed(classes)) if classes else ()
    draw(opened, out, annotations=listed(annotations), scans=scans, classes=chosen)
    answer(as_json, f"{out}: written", store=store, written=out)
