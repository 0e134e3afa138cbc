"""Commands on runs: training, evaluation, prediction, reports."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import inbounds
from inbounds.cli.shared import (
    Asked,
    Chunk,
    Follow,
    Imports,
    Json,
    On,
    RunPath,
    Seed,
    Told,
    answer,
    hands,
    listed,
    say_notes,
    seed_numbers,
)
from inbounds.errors import BadInput
from inbounds.locks import locked

if TYPE_CHECKING:
    from inbounds.reports.progress_table import Screen
    from inbounds.runs.run import Run

Largest = Annotated[bool, typer.Option("--largest", help="Of each class, keep the largest connected piece only.")]


def recipes(as_json: Json = False) -> None:
    """List the supervisions known by name, with their settings."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    table, listed = Table("recipe", "what is known", "settings"), {}
    for name, build in inbounds.recipes.items():
        known = (build.__doc__ or "").splitlines()[0]
        settings = {p.name: p.default for p in inspect.signature(build).parameters.values()}
        table.add_row(name, known, ", ".join(f"{key}={value}" for key, value in settings.items()))
        listed[name] = {"known": known, "settings": settings}
    answer(as_json, lambda: Console().print(table), recipes=listed)


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE]", help="Use one kind of knowledge alone: see `inbounds recipes`. Several: tags,common."
        ),
    ] = None,
    *,
    store: Annotated[Path, typer.Option(help="The data: a folder made by `inbounds prepare`.")],
    run: Annotated[
        Path, typer.Option("--run", "--out", help="Where the run goes; of several, each to RUN/recipe/seed-0.")
    ],
    annotation: Annotated[str | None, typer.Option(help="The labels; needed where the store has several.")] = None,
    facts_name: Annotated[
        str | None, typer.Option("--facts", help="Facts beside those that the annotation brings.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Which classes to learn, such as LV,RV; all if not given.")] = "",
    margin: Annotated[
        float | None,
        typer.Option(min=0, max=2, help="How far off sizes are, as a share; by default 0.15.", show_default=False),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time for training; by default 10 on a CPU, 5 on a GPU.", show_default=False)
    ] = None,
    seed: Seed = 0,
    seeds: Annotated[str, typer.Option(help="Several runs of each recipe, with these seeds, such as 0,1,2.")] = "",
    folds: Annotated[
        int, typer.Option(min=0, max=100, help="An ensemble: so many runs, each validating on other patients.")
    ] = 0,
    start: Annotated[Path | None, typer.Option("--from", help="Begin with the weights of this run.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings as a TOML file.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Settings, such as training.epochs=50 training.batch=4.")
    ] = None,
    full_scans: Annotated[int, typer.Option(min=0, help="Hybrid: so many scans are fully labelled.")] = 0,
    only_full: Annotated[bool, typer.Option("--only-full", help="Train on those alone.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was stopped.")] = False,
    as_json: Json = False,
    imports: Imports = None,  # noqa: ARG001
) -> None:
    """Train on all that is known; killed at any moment, the same command with --resume ends the same."""
    from inbounds.config import known_recipe
    from inbounds.reports.progress_table import Screen
    from inbounds.runs.begin import Wanted, begin, places
    from inbounds.runs.checkpoint import kept_epochs
    from inbounds.runs.run import Run
    from inbounds.store.store import Store
    from inbounds.training.group import Left, joined, part_ways, stop_at_once

    settings = [word for word in words or [] if "=" in word]
    recipes, *unexpected = [word for word in words or [] if "=" not in word] or ["known"]
    if unexpected or (settings and not changes):
        word = (unexpected or settings)[0]
        raise BadInput(f"{word!r} is not expected here; several recipes are joined by commas, settings follow --set")
    changes = [*(changes or []), *settings]
    options: dict[str, float | None] = {"hybrid.full_scans": full_scans or None, "hybrid.only_full": only_full or None}
    options["training.minutes"] = minutes
    changes += [f"{key}={value}".lower() for key, value in options.items() if value is not None]
    group = joined()
    writes = group is None or group.first
    names = [known_recipe(name) for name in listed(recipes)]
    if len(set(names)) < len(names):
        raise BadInput(f"{recipes}: a recipe is named twice; name each once, and runs of other seeds by --seeds")
    wanted = Wanted(
        names,
        seed_numbers(seeds) if seeds else [seed],
        several=len(names) > 1 or bool(seeds),
        folds=folds,
        annotation=annotation,
        facts=facts_name,
        classes=listed(classes),
        config=config,
        changes=changes,
        start=start,
        margin=margin,
        devices=None if group is None else group.ranks,
    )
    made: list[Run] = []
    with ExitStack() as alone:

        def make() -> list[Path]:
            for place, *_ in places(run, wanted):
                alone.enter_context(locked(place, inside=True))
            for begun in begin(run, Store(store), wanted, resume=resume):
                made.append(begun)
                if not as_json and begun.path == made[0].path:
                    for line in begun.about["plan"]["words"]:
                        typer.echo(line, err=True)
            return [each.path for each in made]

        try:
            begun_at = make() if group is None else group.agree(make)
            made = made if writes else [Run.open(path) for path in begun_at]
            with Screen() if writes else nullcontext() as screen:
                failures = _train(made, resume, screen)
        except KeyboardInterrupt:
            if writes:
                typer.echo(f"Every finished epoch is kept; go on with the same command and --resume: {run}", err=True)
            raise
        except Left as error:
            typer.secho(f"Error: {run}: {error}", fg="red", err=True)
            stop_at_once()
        except BadInput:
            for each in made if writes else ():
                if each.checkpoint is None:
                    each.discard()
            raise
        part_ways()
    if not writes:
        raise typer.Exit(1 if failures else 0)
    for failure in failures.values():
        typer.secho(f"Error: {failure}", fg="red", err=True)
    paths = " ".join(str(each.path) for each in made)
    look = "evaluate" if made[0].default_model == "best" else "report --out report"
    one, many = f"Look at it with: inbounds {look} {run}", f"Compare them with: inbounds report {paths}"
    if folds:
        many = f"Use them as one with: inbounds predict {made[0].path.parent} SCANS --out masks"
    if as_json or not failures:
        facts = [
            {"run": each.path, "models": kept_epochs(each.checkpoint), "failure": failures.get(each.path)}
            for each in made
        ]
        answer(as_json, f"{run}: finished. {one if len(made) == 1 else many}", runs=facts)
    if failures:
        raise typer.Exit(1)


def _train(runs: list[Run], resume: bool, screen: Screen | None) -> dict[Path, str]:
    from inbounds.runs.machine import devices
    from inbounds.training.group import joined
    from inbounds.training.loop import NotFinite, Progress, Trainer
    from inbounds.training.train_many import train_many

    def show(path: Path, progress: Progress) -> None:
        if screen is not None:
            screen.show(path, progress)

    if len(runs) > 1 or (joined() is None and devices(runs[0].settings.training) > 1):
        return train_many(runs, resume=resume, show=show)
    run = runs[0]
    try:
        Trainer(run, lambda progress: show(run.path, progress)).fit(resume=resume)
    except NotFinite as error:
        return {run.path: str(error)}
    return {}


def evaluate(
    run: RunPath,
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    surfaces: Annotated[bool, typer.Option(help="Measure surface distances too.")] = True,
    largest: Largest = False,
    as_json: Json = False,
    imports: Imports = None,  # noqa: ARG001
) -> None:
    """Measure a run against the truth (DSC, HD95, surface distance, sizes), or else against what is known."""
    from inbounds.evaluation.evaluate import evaluate as measure
    from inbounds.progress import bar
    from inbounds.reports.terminal import evaluation_table
    from inbounds.runs.run import Run

    evaluation = measure(
        Run.open(run), split=split, model=model, surfaces=surfaces, largest=largest, track=bar("evaluating")
    )
    if not as_json:
        evaluation_table(evaluation.summary)
    answer(as_json, f"{evaluation.folder}: written", **evaluation.summary, written=evaluation.folder)


def predict(
    run: Annotated[Path, typer.Argument(help="A run, a folder of runs such as folds, or several: RUN,RUN.")],
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT", help="Scans, folders of slices (DICOM, PNG), folders of scans.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for masks, predictions.csv and predictions.json.")],
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Write probabilities too, as .npz.")] = False,
    largest: Largest = False,
    doubt: Annotated[
        bool, typer.Option(help="Look for what speaks against each mask, which takes three times as long.")
    ] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results that are there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    on: On = None,
    cluster: Asked = None,
    chunk: Chunk = 20,
    follow: Follow = False,
    as_json: Json = False,
    imports: Imports = None,
) -> None:
    """Segment new scans: masks in their own geometry and format, and a table: volumes, and what to look at first."""
    from inbounds.inference import Predictor, predict_files
    from inbounds.progress import bar

    how: dict[str, Any] = {"probabilities": probabilities, "overwrite": overwrite}
    if (by := hands(on, cluster, chunk)) is None:
        predictor = Predictor(run, model, device, largest=largest, doubt=doubt)
        if len(predictor.runs) > 1:
            typer.echo(f"{run}: the probabilities of {len(predictor.runs)} runs are averaged", err=True)
        outcome = predict_files(predictor, inputs, out, **how, track=bar("predicting"))
    else:
        from inbounds.jobs.predicting import Asked as Wanted
        from inbounds.jobs.predicting import predict_on

        wanted = Wanted(runs=[str(run)], model=model, device=device, largest=largest, doubt=doubt)
        wanted = wanted.model_copy(update={"follow": follow, "imports": imports or []})
        outcome, predictor = predict_on(by, wanted, inputs, out, **how, heard=Told(as_json))
    say_notes(outcome.warnings, "; predictions.csv has them all")
    for warning in outcome.missing:
        typer.secho(f"Warning: {warning}", fg="yellow", err=True)
    for name, reason in outcome.failures.items():
        typer.secho(f"Failed: {name}: {reason}", fg="red", err=True)
    classes = dict(enumerate(predictor.classes, start=1))
    values = ", ".join(f"{value} is {name}" for value, name in classes.items())
    text = f"{out}: {len(outcome.masks)} of {len(outcome.masks) + len(outcome.failures)} masks written; {values}"
    if outcome.look_first:
        text += f"\nLook at these first: {'; '.join(outcome.look_first)}"
    answer(as_json, text, **vars(outcome), classes=classes, model=predictor.model, written=out)
    if outcome.failures:
        raise typer.Exit(1)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Runs made by `inbounds train`, or a sweep.")],
    out: Annotated[Path, typer.Option(help="The folder for index.html.")],
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    title: Annotated[str, typer.Option(help="The heading; by default the data and the classes.")] = "",
    as_json: Json = False,
    imports: Imports = None,  # noqa: ARG001
) -> None:
    """Compare runs on one page for the browser: table, curves, box plots, cases, settings."""
    from inbounds.evaluation.evaluate import evaluate as measure
    from inbounds.evaluation.evaluate import predict_slices
    from inbounds.jobs.manifest import MANIFEST
    from inbounds.jobs.status import runs_of
    from inbounds.progress import bar
    from inbounds.reports.cases import choose_for_page
    from inbounds.reports.comparison import read_results, unmeasured
    from inbounds.reports.page import write_page
    from inbounds.runs.run import Run

    opened = [one for run in runs for one in (runs_of(run) if (run / MANIFEST).is_file() else [Run.open(run)])]
    with locked(out, inside=True):
        missing = unmeasured(opened, split)
        for run, model in missing:
            measure(run, split=split, model=model, track=bar(f"evaluating {run.path.name}, {model}"))
        results = read_results(opened, split)
        shown = choose_for_page(results, split)
        places = sorted({view.position for view in shown})
        masks = [predict_slices(run, places) if run.checkpoint else {} for run in opened]
        page = write_page(out, results, shown, masks, split, title)
    answer(as_json, f"{page}: written", written=page, split=split, runs=runs, evaluated=len(missing))


def export(
    run: RunPath,
    onnx: Annotated[Path, typer.Option("--onnx", help="The ONNX file to write.")],
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    as_json: Json = False,
    imports: Imports = None,  # noqa: ARG001
) -> None:
    """Write a run's network as ONNX, for programs without PyTorch."""
    from inbounds.inference.export import export_onnx
    from inbounds.runs.run import Run

    export_onnx(Run.open(run), onnx, model)
    answer(as_json, f"{onnx}: written", run=run, written=onnx)
