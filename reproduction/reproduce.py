"""Train the rows of an experiment, keep what they measured, and lay it beside the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.evaluation.evaluate import evaluate, predict_slices
from inbounds.jobs.training import train_all
from inbounds.progress import bar
from inbounds.reports.cases import choose
from inbounds.reports.comparison import read_results, unmeasured
from inbounds.reports.pictures import grey
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.writing import write_json
from reproduction.experiment import Experiment, chosen, experiment
from reproduction.figures import draw_cases
from reproduction.jobs import ABOUT, SPLIT, Job, begin, check, check_about, in_words, read_about
from reproduction.knowledge import Say
from reproduction.pages import write_results
from reproduction.results import BEGUN, collect, read_all


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
        store: The data. Weak labels and facts that it lacks are added to it.
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
    jobs = [
        Job(out / "runs" / row / f"seed-{seed}", table, row, preset, tuple(changes), seed)
        for row in wanted
        for seed in seeds
    ]
    about = {"experiment": name, "preset": preset, "changes": list(changes)}
    check_about(out, about)
    check(jobs, store, resume=resume)
    write_json(out / ABOUT, about)
    runs = begin(jobs, store, say)
    failures = train(runs, lambda: _collect(out))
    write_all(name, out, say=say)
    return failures


def write_all(name: str, out: Path, *, say: Say = print) -> None:
    """Write results, table and figures from whatever runs or collected results a folder has."""
    table = experiment(name)
    about = read_about(out)
    if about and about["experiment"] != name:
        raise BadInput(f"{out}: it holds {in_words(about)}, not {name}; choose another folder")
    _collect(out)
    collected = read_all(out / "results")
    if not collected:
        raise BadInput(f"{out}: there is neither a run nor a result in it; train with --store")
    for preset in dict.fromkeys(run.key[1] for run in collected if run.key[0] == name):
        for file in write_results(out / "results", name, preset, collected):
            say(f"{file}: written")
    for file in compare(table, out):
        say(f"{file}: written")


def _collect(out: Path) -> None:
    """Keep what the runs of a folder measured."""
    about = read_about(out)
    for file in sorted(out.glob("runs/*/seed-*/run.json")) if about else ():
        run, row = Run.open(file.parent), file.parent.parent.name
        collect(run, {**about, "row": row}, out / "results" / row / f"{run.path.name}.json")


def train(runs: Sequence[Run], after: Callable[[], object]) -> dict[Path, str]:
    """Train runs to their ends, some at once, going on where they stand; of each that failed, why.

    Args:
        runs: All of them; those that are finished are left.
        after: Called whenever some of them are finished, to keep what they measured.
    """

    def before(some: Sequence[Run]) -> None:
        for file in (run.path / BEGUN for run in some):
            if not file.exists():
                file.touch()

    return train_all(runs, before, after)


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


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
