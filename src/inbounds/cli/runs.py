"""Commands on runs: training, evaluation, prediction, reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import inbounds
from inbounds.cli.shared import RunPath, Seed, open_store, seed_numbers
from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.reports.progress_table import Screen
    from inbounds.runs.run import Run

Largest = Annotated[bool, typer.Option("--largest", help="Of each class, keep the largest connected piece only.")]


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


def train(
    recipe: Annotated[str, typer.Argument(help="What is known: see `inbounds recipes`. Several: tags,common.")],
    store: Annotated[Path, typer.Option(help="The data: a folder made by `inbounds prepare`.")],
    run: Annotated[Path, typer.Option(help="Where the run goes; of several, each to RUN/recipe/seed-0.")],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    annotation: Annotated[str | None, typer.Option(help="The weak labels; `full` needs none.")] = None,
    facts_name: Annotated[
        str | None, typer.Option("--facts", help="The facts; those of the annotation if not given.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Which classes to learn, such as LV,RV; all if not given.")] = "",
    seed: Seed = 0,
    seeds: Annotated[str, typer.Option(help="Several runs of each recipe, with these seeds, such as 0,1,2.")] = "",
    config: Annotated[Path | None, typer.Option(help="Settings as a TOML file.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Settings, such as training.epochs=50 training.batch=4.")
    ] = None,
    full_scans: Annotated[int, typer.Option(min=0, help="Hybrid: so many scans are fully labelled.")] = 0,
    only_full: Annotated[bool, typer.Option("--only-full", help="Train on those alone.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was stopped.")] = False,
) -> None:
    """Train one network or several at once; killed at any moment, the same command with --resume ends the same."""
    from inbounds.config import read_settings
    from inbounds.reports.progress_table import Screen
    from inbounds.runs.run import Run
    from inbounds.runs.supervise import known_recipe, takes_common

    for word in more or []:
        if "=" not in word or not changes:
            raise BadInput(
                f"{word!r} is not expected here; several recipes are joined by commas, settings follow --set"
            )
    changes = [*(changes or []), *(more or [])]
    recipes = [known_recipe(name.strip()) for name in recipe.split(",")]
    for change in changes:
        if change.startswith("common.") and not any(takes_common(name) for name in recipes):
            raise BadInput(
                f"--set {change}: the recipe {recipe!r} has no common bounds; leave it out, or train 'common'"
            )
    numbers = seed_numbers(seeds) if seeds else [seed]
    opened = open_store(store)
    names = [opened.classes[opened.class_index(name.strip())] for name in classes.split(",") if name.strip()]
    made: list[Run] = []
    options = {"hybrid.full_scans": full_scans, "hybrid.only_full": only_full}
    changes += [f"{key}={value}".lower() for key, value in options.items() if value]
    for name in recipes:
        settings = read_settings(name, config, changes)
        for number in numbers:
            several = len(recipes) > 1 or seeds
            path = run / name / f"seed-{number}" if several else run
            labels = None if name == "full" and len(recipes) > 1 else annotation
            if resume and (path / "run.json").is_file():
                begun = Run.open(path)
                if begun.settings != settings or begun.seed != number:
                    raise BadInput(
                        f"{path}: it was begun with other settings or another seed; resume it with the same command"
                    )
                for what, wanted in (("annotation", labels), ("facts", facts_name), ("classes", tuple(names))):
                    if wanted and getattr(begun, what) != wanted:
                        raise BadInput(f"{path}: it was begun with other {what}; resume it with the same command")
                begun = begun.moved(opened)
            else:
                begun = Run.create(
                    path, settings, opened, annotation=labels, facts=facts_name, classes=names, seed=number
                )
            made.append(begun)
    try:
        with Screen() as screen:
            failures = _train(made, resume, screen)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Every finished epoch is kept; go on with the same command and --resume: {run}", err=True)
        raise typer.Exit(130) from None
    for failure in failures.values():
        typer.secho(f"Error: {failure}", fg="red", err=True)
    if failures:
        raise typer.Exit(1)
    paths = " ".join(str(each.path) for each in made)
    advice = (
        f"Measure it with: inbounds evaluate {run}" if len(made) == 1 else f"Compare them with: inbounds report {paths}"
    )
    typer.echo(f"{run}: finished. {advice}")


def _train(runs: list[Run], resume: bool, screen: Screen) -> dict[Path, str]:
    from inbounds.training.loop import NotFinite, Trainer
    from inbounds.training.train_many import train_many

    if len(runs) > 1:
        return train_many(runs, resume=resume, show=screen.show)
    run = runs[0]
    try:
        Trainer(run, lambda progress: screen.show(run.path, progress)).fit(resume=resume)
    except NotFinite as error:
        return {run.path: str(error)}
    return {}


def evaluate(
    run: RunPath,
    split: Annotated[str, typer.Option(help="validation, test or train.")] = "validation",
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    surfaces: Annotated[bool, typer.Option(help="Measure surface distances too.")] = True,
    largest: Largest = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure a run against the truth: DSC per slice and volume, HD95, surface distance, sizes, bounds satisfied."""
    from inbounds.evaluation.evaluate import evaluate as measure
    from inbounds.progress import bar
    from inbounds.reports.terminal import evaluation_table
    from inbounds.runs.run import Run

    evaluation = measure(
        Run.open(run), split=split, model=model, surfaces=surfaces, largest=largest, track=bar("evaluating")
    )
    if as_json:
        typer.echo(json.dumps(evaluation.summary, indent=1))
        return
    evaluation_table(evaluation.summary)
    typer.echo(f"{evaluation.folder}: written")


def predict(
    run: RunPath,
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT", help="Scans, folders of slices (DICOM, PNG), folders of scans.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for masks, predictions.csv and predictions.json.")],
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Write probabilities too, as .npz.")] = False,
    largest: Largest = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results that are there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Segment new scans: masks in each scan's own geometry and format, volumes and centroids as a table."""
    from inbounds.inference import Predictor, predict_files
    from inbounds.progress import bar

    predictor = Predictor(run, model, device, largest=largest)
    outcome = predict_files(
        predictor, inputs, out, probabilities=probabilities, overwrite=overwrite, track=bar("predicting")
    )
    for warning in outcome.warnings[:10]:
        typer.echo(f"Note: {warning}", err=True)
    if len(outcome.warnings) > 10:
        typer.echo(f"Note: and {len(outcome.warnings) - 10} more; predictions.csv has them all", err=True)
    for name, reason in outcome.failures.items():
        typer.secho(f"Failed: {name}: {reason}", fg="red", err=True)
    values = ", ".join(f"{value} is {name}" for value, name in enumerate(predictor.classes, start=1))
    typer.echo(f"{out}: {len(outcome.masks)} of {len(outcome.masks) + len(outcome.failures)} masks written; {values}")
    if outcome.failures:
        raise typer.Exit(1)


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
    from inbounds.reports.cases import choose_for_page
    from inbounds.reports.comparison import read_results, unmeasured
    from inbounds.reports.page import write_page
    from inbounds.runs.run import Run

    opened = [Run.open(run) for run in runs]
    for run, model in unmeasured(opened, split):
        measure(run, split=split, model=model, track=bar(f"evaluating {run.path.name}, {model}"))
    results = read_results(opened, split)
    shown = choose_for_page(results, split)
    places = sorted({view.position for view in shown})
    masks = [predict_slices(run, places) if run.checkpoint else {} for run in opened]
    typer.echo(f"{write_page(out, results, shown, masks, split, title)}: written")


def export(
    run: RunPath,
    onnx: Annotated[Path, typer.Option("--onnx", help="The ONNX file to write.")],
    model: Annotated[str | None, typer.Option(help="best or last.")] = None,
) -> None:
    """Write a run's network as ONNX, for programs without PyTorch."""
    from inbounds.inference.export import export_onnx
    from inbounds.runs.run import Run

    export_onnx(Run.open(run), onnx, model)
    typer.echo(f"{onnx}: written")
