"""The command line. Commands only parse, call the library and print; heavy imports happen inside them."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import inbounds
from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.datasets.prepare import Plan
    from inbounds.datasets.source import Source
    from inbounds.datasets.store import Store

app = typer.Typer(
    name="inbounds",
    help="Segment medical images from a few clicks and a rough size.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
prepare = typer.Typer(
    help="Turn scans into a store: sliced, fitted to one grid, split by patient.", no_args_is_help=True
)
app.add_typer(prepare, name="prepare")


class Fitting(StrEnum):
    """How slices are brought to the grid."""

    pad = "pad"
    resize = "resize"


class Depth(StrEnum):
    """How brightness is stored."""

    uint8 = "uint8"
    float16 = "float16"


class Splitting(StrEnum):
    """Who validates."""

    reference = "reference"
    random = "random"


class Strategy(StrEnum):
    """How weak labels are simulated."""

    erosion = "erosion"
    disc = "disc"
    centroid = "centroid"
    scribble = "scribble"
    box = "box"


StorePath = Annotated[Path, typer.Argument(help="The store: a folder made by `inbounds prepare`.")]
NewStore = Annotated[Path, typer.Argument(help="The store to make.")]
Archive = Annotated[Path, typer.Argument(help="The unpacked folder, the downloaded zip, or a folder of zips.")]
Side = Annotated[int, typer.Option(min=16, help="Rows and columns of the grid.")]
Fit = Annotated[Fitting, typer.Option(help="Zero-pad and centre-crop, or stretch to the grid.")]
Stored = Annotated[Depth, typer.Option("--dtype", help="8-bit, or half precision.")]
Split = Annotated[Splitting, typer.Option(help="The reference split of this data set, or a random one by patient.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]
Validation = Annotated[float, typer.Option(min=0, max=0.9, help="The share of patients that validate.")]
Test = Annotated[
    float, typer.Option(min=0, max=0.9, help="The share of patients set aside for `evaluate --split test`.")
]


def run() -> None:
    """The program: what a user got wrong is told in one line, with exit code 2."""
    try:
        app(prog_name="inbounds")
    except BadInput as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        typer.secho(f"Error: {error}; check the name, the permissions and the room on the disk", fg="red", err=True)
        sys.exit(2)


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


@prepare.command()
def acdc(
    source: Archive,
    store: NewStore,
    fit: Fit = Fitting.pad,
    side: Side = 256,
    dtype: Stored = Depth.uint8,
    split: Split = Splitting.reference,
    seed: Seed = 0,
    test: Test = 0.0,
) -> None:
    """ACDC: cardiac MR with LV, myocardium and RV, both phases; expert scribbles where there are any."""
    from inbounds.datasets import acdc as data

    _prepare_archive(data, source, store, fit, side, dtype, split, seed, test)


@prepare.command()
def promise12(
    source: Archive,
    store: NewStore,
    fit: Fit = Fitting.resize,
    side: Side = 256,
    dtype: Stored = Depth.uint8,
    split: Split = Splitting.reference,
    seed: Seed = 0,
    test: Test = 0.0,
) -> None:
    """PROMISE12: prostate MR. The archive comes as three zips; give the folder that holds them."""
    from inbounds.datasets import promise12 as data

    _prepare_archive(data, source, store, fit, side, dtype, split, seed, test)


@prepare.command()
def spine(
    source: Archive,
    store: NewStore,
    side: Side = 256,
    dtype: Stored = Depth.uint8,
    split: Split = Splitting.reference,
    seed: Seed = 0,
    test: Test = 0.0,
) -> None:
    """Vertebral bodies in MR (Zenodo record 22304), cut axially as in the paper."""
    from inbounds.datasets import spine as data

    _prepare_archive(data, source, store, "axial", side, dtype, split, seed, test)


@prepare.command()
def folder(
    source: Annotated[Path, typer.Argument(help="images/ with labels/, an nnU-Net or Decathlon folder, or scans.")],
    store: NewStore,
    classes: Annotated[str, typer.Option(help="Names for label values 0, 1, 2, ...: background,liver,tumour")] = "",
    unlabelled: Annotated[int | None, typer.Option(help="The label value that means: nobody has said.")] = None,
    patient: Annotated[str, typer.Option(help="A regular expression that finds the patient in a scan's name.")] = "",
    fit: Fit = Fitting.pad,
    side: Side = 256,
    dtype: Stored = Depth.uint8,
    seed: Seed = 0,
    validation: Validation = 0.25,
    test: Test = 0.0,
) -> None:
    """Your own scans: NIfTI, MetaImage, NRRD, DICOM, PNG, TIFF; labels full, weak, or none at all."""
    from inbounds.datasets import folder as data
    from inbounds.datasets.prepare import FITS, Plan, split_by_patient

    layout = data.recognise(source)
    names = tuple(name.strip() for name in classes.split(",")) if classes else ()
    found, names = data.sources(layout, source, classes=names, unlabelled=unlabelled, patient=patient)
    typer.echo(f"{source}: {layout.kind}, {len(found)} scans, {sum(s.truth for s in found)} with a full mask", err=True)
    plan = Plan(source.name or "folder", names, (side, side), FITS[fit], fit, dtype.value, layout.kind)
    _prepare(split_by_patient(found, validation=validation, test=test, seed=seed), store, plan)


@prepare.command()
def phantom(
    store: NewStore,
    patients: Annotated[int, typer.Option(min=2, help="How many patients, two scans each.")] = 40,
    side: Side = 96,
    seed: Seed = 0,
) -> None:
    """Generated hearts that look like cine MR: data that needs no download and no permission."""
    from inbounds.datasets import hearts as data
    from inbounds.datasets.fit import Fit as Fitted
    from inbounds.datasets.phantom import SMALLEST
    from inbounds.datasets.prepare import Plan

    if side < SMALLEST:
        raise BadInput(f"--side {side}: a phantom needs at least {SMALLEST} pixels")
    plan = Plan(data.NAME, data.CLASSES, (side, side), Fitted.pad, "none", "uint8", f"generated, seed {seed}")
    _prepare(data.sources(patients, side=side, seed=seed), store, plan)


def _prepare_archive(
    data: Any,
    source: Path,
    store: Path,
    fitting: str,
    side: int,
    dtype: Depth,
    split: Splitting,
    seed: int,
    test: float,
) -> None:
    from inbounds.datasets.archive import unpacked
    from inbounds.datasets.prepare import FITS, Plan, hold_out, split_by_patient

    with unpacked(source, data.wanted) as root:
        found = data.sources(root, reference=split is Splitting.reference)
        if split is Splitting.reference:
            found = hold_out(found, test, seed)
        else:
            found = split_by_patient(found, validation=data.VALIDATION, test=test, seed=seed)
        _prepare(
            found, store, Plan(data.NAME, data.CLASSES, (side, side), FITS[fitting], fitting, dtype.value, data.NAME)
        )


def _prepare(found: list[Source], store: Path, plan: Plan) -> None:
    from inbounds.datasets.prepare import prepare as write
    from inbounds.progress import bar

    report = write(found, store, plan, bar("preparing"))
    for note in report.notes[:10]:
        typer.echo(f"Note: {note}", err=True)
    if len(report.notes) > 10:
        typer.echo(f"Note: and {len(report.notes) - 10} more of this kind", err=True)
    if report.lost:
        typer.secho(
            f"{report.lost} foreground pixels of the truth lie outside the grid: see `info`", fg="yellow", err=True
        )
    made = report.store
    parts = ", ".join(
        f"{sum(r.split == s for r in made.records)} {s}" for s in dict.fromkeys(r.split for r in made.records)
    )
    typer.echo(f"{store}: {len(made.records)} scans ({parts}), {made.slices} slices of {plan.shape[0]}x{plan.shape[1]}")


@app.command()
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
    from inbounds.datasets.annotate import import_points, simulate
    from inbounds.datasets.known import Noise
    from inbounds.progress import bar

    opened = _open(store)
    if (strategy is None) == (points is None):
        raise BadInput("give either --strategy or --points")
    if points is not None:
        clicks = import_points(opened, points, name, radius=radius or 0.0, absent_elsewhere=absent_elsewhere)
        typer.echo(f"{store}: {clicks} clicks as annotation {name!r}")
        return
    assert strategy is not None
    settings: dict[str, Any] = {}
    for option, value, users in (("radius", radius, ("disc", "centroid")), ("margin", margin, ("box",))):
        if value is not None:
            if strategy not in users:
                raise BadInput(f"--{option} goes with the strategies {', '.join(users)}, not with {strategy}")
            settings[option] = value
    chosen = _classes(opened, classes)
    simulate(
        opened,
        name,
        strategy.value,
        chosen,
        seed=seed,
        background=background,
        noise=Noise(noise, jitter),
        box_share=box_share,
        settings=settings,
        track=bar("annotating"),
    )
    from inbounds.datasets.verify import labelled

    shares = labelled(opened, name)
    typer.echo(f"{store}: annotation {name!r} labels {sum(shares.values()):.3%} of all pixels")


@app.command()
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
    from inbounds.datasets.store import writing

    opened = _open(store)
    if sum(x is not None for x in (import_file, export_file, template)) != 1:
        raise BadInput("give one of --import, --export and --template")
    if not name and template is None:
        raise BadInput("say which facts, with --name")
    if import_file is not None:
        typer.echo(f"{store}: {len(opened.import_facts(import_file, name).rows)} facts as {name!r}")
        return
    target = export_file or template
    assert target is not None
    if target.exists():
        raise BadInput(f"{target}: already exists; remove it or choose another name")
    table = opened.facts(name) if export_file else opened.empty_facts()
    with writing(target):
        table.write(target)
    typer.echo(f"{target}: written")


@app.command()
def info(store: StorePath, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Tell what is in a store."""
    from inbounds.datasets.verify import summary

    content = summary(_open(store))
    if as_json:
        typer.echo(json.dumps(content, indent=1))
        return
    from inbounds.reports.tables import store_tables

    store_tables(content)


@app.command()
def verify(store: StorePath) -> None:
    """Check a store: checksums, shapes, values, and whether simulated seeds lie inside the truth."""
    from inbounds.datasets.verify import verify as look
    from inbounds.progress import bar

    verdict = look(_open(store), bar("verifying"))
    for line in verdict.checks:
        typer.echo(f"ok    {line}")
    for line in verdict.problems:
        typer.secho(f"wrong {line}", fg="red", err=True)
    if verdict.problems:
        raise typer.Exit(1)


@app.command()
def preview(
    store: StorePath,
    out: Annotated[Path, typer.Option(help="The picture to write, such as preview.png.")],
    annotations: Annotated[str, typer.Option(help="Which annotations, separated by commas; all if not given.")] = "",
    classes: Annotated[str, typer.Option(help="Which classes to show; all if not given.")] = "",
    scans: Annotated[int, typer.Option(min=1, max=20, help="How many scans.")] = 4,
) -> None:
    """Draw scans with their truth and their weak labels side by side."""
    from inbounds.reports.preview import preview as draw

    opened = _open(store)
    draw(
        opened,
        out,
        annotations=[name for name in annotations.split(",") if name],
        scans=scans,
        classes=_classes(opened, classes) if classes else (),
    )
    typer.echo(f"{out}: written")


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="What is known: see `inbounds recipes`.")],
    store: Annotated[Path, typer.Option(help="The data: a folder made by `inbounds prepare`.")],
    run: Annotated[Path, typer.Option(help="Where the run goes.")],
    annotation: Annotated[str | None, typer.Option(help="The weak labels; `full` needs none.")] = None,
    facts_name: Annotated[
        str | None, typer.Option("--facts", help="The facts; those of the annotation if not given.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Which classes to learn, such as LV,RV; all if not given.")] = "",
    seed: Seed = 0,
    config: Annotated[Path | None, typer.Option(help="Settings as a TOML file.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A single setting, such as training.epochs=50; may be repeated.")
    ] = None,
    full_scans: Annotated[int, typer.Option(min=0, help="Hybrid: so many scans are fully labelled.")] = 0,
    only_full: Annotated[bool, typer.Option("--only-full", help="Train on those alone.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
) -> None:
    """Train a network; killed at any moment, the same command with --resume ends with the same result."""
    from inbounds.config import changed, read_settings
    from inbounds.reports.live import Screen
    from inbounds.runs.run import Run
    from inbounds.runs.supervise import known_recipe
    from inbounds.training.loop import NotFinite, Trainer

    settings = read_settings(known_recipe(recipe), config, changes or [])
    if full_scans or only_full:
        settings = changed(settings, hybrid={"full_scans": full_scans, "only_full": only_full})
    names = [name.strip() for name in classes.split(",") if name.strip()]
    if resume and (run / "run.json").is_file():
        made = Run.open(run)
        if made.settings != settings or made.seed != seed:
            raise BadInput(f"{run}: it was begun with other settings or another seed; resume it with the same command")
    else:
        made = Run.create(
            run, settings, _open(store), annotation=annotation, facts=facts_name, classes=names, seed=seed
        )
    try:
        with Screen(str(run)) as screen:
            Trainer(made, screen.show).fit(resume=resume)
    except NotFinite as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Every finished epoch is kept; go on with the same command and --resume: {run}", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{run}: finished. Measure it with: inbounds evaluate {run}")


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run made by `inbounds train`.")],
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    model: Annotated[str | None, typer.Option(help="best, constraints or last.")] = None,
    surfaces: Annotated[bool, typer.Option(help="Measure surface distances too.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure a run against the truth: DSC per slice and volume, HD95, surface distance, sizes, bounds held."""
    from inbounds.evaluation.evaluate import evaluate as measure
    from inbounds.progress import bar
    from inbounds.reports.tables import evaluation_table
    from inbounds.runs.run import Run

    found = measure(Run.open(run), split=split, model=model, surfaces=surfaces, track=bar("evaluating"))
    if as_json:
        typer.echo(json.dumps(found.summary, indent=1))
        return
    evaluation_table(found.summary)
    typer.echo(f"{found.folder}: written")


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A run made by `inbounds train`.")],
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT", help="Scans, folders of slices (DICOM, PNG), folders of scans.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for masks, predictions.csv and predictions.json.")],
    model: Annotated[str | None, typer.Option(help="best, constraints or last.")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Write probabilities too, as .npz.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results that are there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Segment new scans: masks in each scan's own geometry and format, volumes and centroids as a table."""
    from inbounds.inference import Predictor, predict_files
    from inbounds.progress import bar

    predictor = Predictor(run, model, device)
    found = predict_files(
        predictor, inputs, out, probabilities=probabilities, overwrite=overwrite, track=bar("predicting")
    )
    for warning in found.warnings[:10]:
        typer.echo(f"Note: {warning}", err=True)
    if len(found.warnings) > 10:
        typer.echo(f"Note: and {len(found.warnings) - 10} more; predictions.csv has them all", err=True)
    for name, reason in found.failures.items():
        typer.secho(f"Failed: {name}: {reason}", fg="red", err=True)
    values = ", ".join(f"{value} is {name}" for value, name in enumerate(predictor.classes, start=1))
    typer.echo(f"{out}: {len(found.masks)} of {len(found.masks) + len(found.failures)} masks written; {values}")
    if found.failures:
        raise typer.Exit(1)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Runs made by `inbounds train`.")],
    out: Annotated[Path, typer.Option(help="The folder for index.html.")],
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    title: Annotated[str, typer.Option(help="The heading; by default the data and the classes.")] = "",
) -> None:
    """Compare runs on one page for the browser: table, curves, box plots, cases, settings."""
    from inbounds.evaluation.evaluate import evaluate as measure
    from inbounds.evaluation.evaluate import predict_slices
    from inbounds.progress import bar
    from inbounds.reports.cases import choose
    from inbounds.reports.page import write_page
    from inbounds.reports.results import read_results, unmeasured
    from inbounds.runs.run import Run

    opened = [Run.open(run) for run in runs]
    for run, model in unmeasured(opened, split):
        measure(run, split=split, model=model, track=bar(f"evaluating {run.path.name}, {model}"))
    results = read_results(opened, split)
    shown = choose(results, split)
    places = sorted({view.position for view in shown})
    masks = [predict_slices(run, places) if run.checkpoint else {} for run in opened]
    typer.echo(f"{write_page(out, results, shown, masks, split, title)}: written")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A run made by `inbounds train`.")],
    onnx: Annotated[Path, typer.Option("--onnx", help="The ONNX file to write.")],
    model: Annotated[str | None, typer.Option(help="best, constraints or last.")] = None,
) -> None:
    """Write a run's network as ONNX, for programs without PyTorch."""
    from inbounds.inference.export import export_onnx
    from inbounds.runs.run import Run

    export_onnx(Run.open(run), onnx, model)
    typer.echo(f"{onnx}: written")


@app.command()
def pack(store: StorePath, file: Annotated[Path, typer.Argument(help="The file to write, such as acdc.pack.")]) -> None:
    """Pack a store into a single small file, for another machine."""
    from inbounds.datasets.pack import pack as write
    from inbounds.progress import bar

    write(_open(store), file, bar("packing"))
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


@app.command()
def unpack(file: Annotated[Path, typer.Argument(help="A packed store.")], store: NewStore) -> None:
    """Unpack a store, and check it."""
    from inbounds.datasets.pack import unpack as read
    from inbounds.progress import bar

    read(file, store, bar("unpacking"))
    typer.echo(f"{store}: unpacked and checked")


def _open(path: Path) -> Store:
    from inbounds.datasets.store import Store

    return Store(path)


def _classes(store: Store, names: str) -> list[int]:
    chosen = [store.class_index(name.strip()) for name in names.split(",") if name.strip()]
    if 0 in chosen:
        raise BadInput("background is no class to choose; use --background")
    return chosen or list(range(1, len(store.classes)))
