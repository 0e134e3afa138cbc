"""What each part of the method is worth: each removed or exchanged alone, on patients held out of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inbounds.errors import BadInput, nearest
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.writing import write_json
from reproduction.experiment import ABLATION, experiment
from reproduction.jobs import ABOUT, Job, begin, check, check_about, read_about
from reproduction.knowledge import Say
from reproduction.parts import WHOLE, ablation, write_lines, write_page
from reproduction.reproduce import train
from reproduction.results import collect, read_all
from reproduction.split import held_out

PRESET = "default"


def ablate(
    out: Path,
    *,
    store: Store,
    seeds: Sequence[int] = (0,),
    rows: Sequence[str] = (),
    parts: Sequence[str] = (),
    changes: Sequence[str] = (),
    resume: bool = False,
    say: Say = print,
) -> dict[Path, str]:
    """Train what is not trained yet, and write the table; of each run that failed, why.

    Args:
        out: Runs go to `runs/ROW/PART/seed-N` in it, the split data to `store`, the table to `results`.
        store: The data, as the reference splits it.
        seeds: A run for each.
        rows: Which of them; all if none are named.
        parts: Which of them, `whole` for the method itself; all if none are named.
        changes: Single settings of all runs.
        resume: Go on with runs that have begun, and leave those that are finished.
        say: Says what is done beside training.
    """
    about = ablation()
    known = {WHOLE: ((), tuple(about.rows)), **{name: (one.changes, one.rows) for name, one in about.parts.items()}}
    for what, named, there in (("row", rows, about.rows), ("part", parts, known)):
        for name in named:
            if name not in there:
                raise BadInput(f"the ablation has no {what} {name!r}; {nearest(name, there)}")
    jobs = []
    for part, (own, its) in known.items():
        for row in (row for row in its if part in (parts or known) and row in (rows or about.rows)):
            name, _, origin = about.rows[row].partition("/")
            made = out / "runs" / row / part
            jobs += [
                Job(made / f"seed-{seed}", experiment(name), origin, PRESET, (*own, *changes), seed) for seed in seeds
            ]
    about_runs = {"experiment": ABLATION, "preset": PRESET, "changes": list(changes)}
    check_about(out, about_runs)
    check(jobs, store, resume=resume)
    split = held_out(store, out / "store")
    write_json(out / ABOUT, about_runs)
    runs = begin(jobs, split, say)
    failures = train(runs, lambda: write_all(out))
    for file in write_all(out):
        say(f"{file}: written")
    return failures


def write_all(out: Path) -> list[Path]:
    """Write the table from whatever runs, or collected results, a folder has."""
    parts, about = ablation().parts, read_about(out)
    for file in sorted(out.glob("runs/*/*/seed-*/run.json")):
        run = Run.open(file.parent)
        part, row = run.path.parent.name, run.path.parent.parent.name
        own = parts[part].changes if part in parts else ()
        origin = {**about, "row": row, "part": part, "changes": [*own, *about["changes"]]}
        collect(run, origin, out / "collected" / row / part / f"{run.path.name}.json")
    collected = read_all(out / "collected")
    if not collected:
        raise BadInput(f"{out}: there is neither a run nor a result in it; train with --store")
    return [write_lines(out / "results", collected), write_page(out / "results")]
