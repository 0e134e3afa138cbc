"""Train the rows of an experiment, keep what they measured, and lay it beside the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inbounds.config import Settings, known_recipe
from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate, predict_slices
from inbounds.progress import bar
from inbounds.reports.cases import choose
from inbounds.reports.comparison import read_results, unmeasured
from inbounds.reports.pictures import grey
from inbounds.reports.progress_table import Screen
from inbounds.runs.run import Run
from inbounds.store.annotate import simulate
from inbounds.store.store import Store
from inbounds.training.train_many import train_many
from inbounds.writing import write_json
from reproduction.experiment import Experiment, Seeds, chosen, experiment, settings_of
from reproduction.figures import draw_cases
from reproduction.pages import write_results
from reproduction.results import collect, read_all

Say = Callable[[str], None]
SPLIT = "validation"


def reproduce(
    name: str,
    out: Path,
    *,
    store: Store,
    preset: str = "paper",
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    changes: Sequence[str] = (),
    resume: bool = False,
    say: Say = print,
) -> dict[Path, str]:
    """Train what is not trained yet, then write all that can be said of what is there.

    Args:
        name: Of the experiment.
        out: Runs go to `runs/ROW/seed-N` in it, what they measured to `results`.
        store: The data. Weak labels that it lacks are added to it.
        preset: How rows are trained.
        rows: Which of them; all if none are named.
        seeds: A run for each.
        changes: Single settings of all rows, such as `training.epochs=2`.
        resume: Go on with runs that have begun, and leave those that are finished.
        say: Says what is done beside training.

    Returns:
        Of each run that failed, why.

    Raises:
        BadInput: Before anything is written: a name is not known, or a run has begun otherwise.
    """
    table = experiment(name)
    wanted = chosen(table, rows, store)
    if not any(record.split == SPLIT and record.truth for record in store.records):
        raise BadInput(
            f"{store.path}: no scan of the split {SPLIT!r} has a truth to compare with; prepare it with masks"
        )
    for klass in table.classes:
        store.class_index(klass)
    for row in wanted:
        known_recipe(table.rows[row].recipe)
    settings = {row: settings_of(table, row, preset, store, changes) for row in wanted}
    about = {"experiment": name, "preset": preset, "changes": list(changes)}
    if _about(out, about) != about:
        raise BadInput(f"{out}: it holds {_words(_about(out, about))}, not {_words(about)}; choose another folder")
    places = {(row, seed): out / "runs" / row / f"seed-{seed}" for row in wanted for seed in seeds}
    for (row, seed), path in places.items():
        if (path / "run.json").is_file():
            _same(Run.open(path), settings[row], seed, resume)
    write_json(out / "reproduce.json", about)
    labels = {row: _labels(store, table, row, say) for row in wanted}
    runs = [
        Run.open(path).moved(store)
        if (path / "run.json").is_file()
        else Run.create(path, settings[row], store, annotation=labels[row], classes=table.classes, seed=seed)
        for (row, seed), path in places.items()
    ]
    failures = train(runs)
    write_all(name, out, say=say)
    return failures


def write_all(name: str, out: Path, *, say: Say = print) -> None:
    """Write results, table and figures from whatever runs or collected results a folder has."""
    table = experiment(name)
    about = _about(out, None)
    runs = [Run.open(file.parent) for file in sorted(out.glob("runs/*/seed-*/run.json"))]
    if about and about["experiment"] != name:
        raise BadInput(f"{out}: it holds {_words(about)}, not {name}; choose another folder")
    for run in runs if about else ():
        row = run.path.parent.name
        collect(run, {**about, "row": row}, out / "results" / row / f"{run.path.name}.json")
    collected = read_all(out / "results")
    if not collected:
        raise BadInput(f"{out}: there is neither a run nor a result in it; train with --store")
    for preset in dict.fromkeys(run.key[1] for run in collected if run.key[0] == name):
        for file in write_results(out / "results", name, preset, collected):
            say(f"{file}: written")
    for file in compare(table, out):
        say(f"{file}: written")


def train(runs: Sequence[Run]) -> dict[Path, str]:
    """Train runs to their ends, going on where they stand; of each that failed, why."""
    with Screen() as screen:
        return train_many(runs, resume=True, show=screen.show)


def compare(table: Experiment, out: Path) -> list[Path]:
    """Draw the best, the median and the worst scan, by the mean over rows of DSC per volume, beside the truth.

    The pictures show scans and lie outside the results, which hold none. Each row is shown by its first seed.
    """
    runs = {row: next(iter(sorted(out.glob(f"runs/{row}/seed-*/run.json"))), None) for row in table.pictures}
    opened = [Run.open(file.parent) for file in runs.values() if file is not None]
    opened = [run for run in opened if run.checkpoint is not None]
    if not opened:
        return []
    device = _device()
    for run, model in unmeasured(opened, SPLIT):
        title = f"evaluating {run.path.parent.name}, {model}"
        evaluate(run, split=SPLIT, model=model, device=device, surfaces=False, track=bar(title))
    views = choose(read_results(opened, SPLIT), SPLIT)
    predicted = [predict_slices(run, [view.position for view in views], device=device) for run in opened]
    store = opened[0].opened_store()
    pictures = []
    for view in views:
        truth = store.truth[view.position] == store.class_index(view.klass)
        masks = {
            table.pictures[run.path.parent.name]: (masks[view.position] == run.classes.index(view.klass) + 1)
            for run, masks in zip(opened, predicted, strict=True)
        }
        text = f"{view.rank}\n{view.record.name}, slice {view.slice}"
        pictures.append((text, grey(store.images[view.position, 0]), truth, masks))
    return draw_cases(out / "cases", pictures) if pictures else []


def _labels(store: Store, table: Experiment, row: str, say: Say) -> str | None:
    """The name of the row's weak labels; they are made if the store has none like them. None where all is labelled."""
    if table.rows[row].recipe == "full":
        return None
    seeds: Seeds = table.rows[row].seeds or table.seeds
    wanted = {
        "strategy": seeds.strategy,
        "classes": list(table.classes),
        "seed": 0,
        "background": False,
        "settings": seeds.settings,
        "simulated": True,
    }
    for name in store.annotations:
        if {key: store.about(name).get(key) for key in wanted} == wanted:
            return name
    name = seeds.name if seeds.name not in store.annotations else f"{seeds.name}-paper"
    classes = [store.class_index(klass) for klass in table.classes]
    simulate(store, name, seeds.strategy, classes, settings=seeds.settings, track=bar("annotating"))
    say(f"{store.path}: annotation {name!r} added ({seeds.strategy}, {', '.join(table.classes)})")
    return name


def _same(run: Run, settings: Settings, seed: int, resume: bool) -> None:
    if not resume:
        raise BadInput(f"{run.path}: already exists; add --resume to go on, or choose another folder")
    if run.settings != settings or run.seed != seed:
        raise BadInput(f"{run.path}: it was begun with other settings; resume with the same command, or remove it")


def _about(out: Path, default: Any) -> Any:
    file = out / "reproduce.json"
    try:
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else default
    except ValueError as error:
        raise BadInput(f"{file}: damaged ({error}); remove it, or choose another folder") from None


def _words(about: dict[str, Any]) -> str:
    return " ".join([about["experiment"], about["preset"], *about["changes"]])


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
