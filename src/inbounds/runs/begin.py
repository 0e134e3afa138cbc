"""From what a person asks for to runs that are ready to train: the settings, the plan, and one folder each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inbounds.config import Settings, read_settings
from inbounds.config.plan import REGULARISERS, Plan, plan
from inbounds.config.read import who_said
from inbounds.errors import BadInput
from inbounds.runs.machine import devices, on_gpu
from inbounds.runs.run import Run
from inbounds.store.store import FULL, Store


@dataclass(frozen=True)
class Wanted:
    """What a person asks for: one run, or one for each recipe, seed and fold.

    Attributes:
        recipes: Their names.
        seeds: Of all that is drawn.
        several: Whether runs lie in folders named by recipe and seed.
        folds: So many runs of each, which validate on different patients; 0 for the store's own split.
        annotation: The name of the labels; the only one there is, if not given.
        facts: The name of the facts, if any.
        classes: Which classes to learn; all, if none are named.
        config: Settings as a TOML file.
        changes: Single settings.
        start: A run with whose weights to begin.
        margin: How far off sizes that people gave may be, as a share; by default as the recipe has it.
        devices: How many processes were started, where somebody did; else as the settings have it.
    """

    recipes: Sequence[str]
    seeds: Sequence[int] = (0,)
    several: bool = False
    folds: int = 0
    annotation: str | None = None
    facts: str | None = None
    classes: Sequence[str] = ()
    config: Path | None = None
    changes: Sequence[str] = ()
    start: Path | None = None
    margin: float | None = None
    devices: int | None = None


def places(path: Path, wanted: Wanted) -> Iterator[tuple[Path, str, int, int | None]]:
    """The folder of each run, its recipe, its seed and its fold."""
    for recipe in wanted.recipes:
        for seed in wanted.seeds:
            folder = path / recipe / f"seed-{seed}" if wanted.several else path
            for fold in range(wanted.folds) if wanted.folds else [None]:
                yield folder if fold is None else folder / f"fold-{fold}", recipe, seed, fold


def begin(path: Path, store: Store, wanted: Wanted, *, resume: bool = False) -> Iterator[Run]:
    """Make the runs, or open those that were begun before.

    Raises:
        BadInput: Something does not fit together; the run that it is about leaves no folder behind.
    """
    for place, recipe, seed, fold in places(path, wanted):
        yield begin_one(place, store, wanted, recipe, seed, fold, resume=resume)


def begin_one(
    path: Path, store: Store, wanted: Wanted, recipe: str, seed: int, fold: int | None, *, resume: bool = False
) -> Run:
    """One of the runs."""
    classes = [store.classes[value] for value in store.chosen(wanted.classes)]
    shared = len(wanted.recipes) > 1
    labels = None if recipe == "full" and shared else wanted.annotation
    if resume and (path / "run.json").is_file() and (begun := Run.open(path)).whole:
        layers = [begun.about["plan"]["settings"]] if "plan" in begun.about else []
        settings = read_settings(recipe, wanted.config, wanted.changes, layers=layers, shared=shared)
        if begun.settings != settings.on(begun.settings.training.devices) or begun.seed != seed:
            raise BadInput(f"{path}: it was begun with other settings or another seed; resume it with the same command")
        facts = wanted.facts and store.facts_beside(begun.annotation, wanted.facts)
        for what, asked in (("annotation", labels), ("facts", facts), ("classes", wanted.classes and tuple(classes))):
            if asked and getattr(begun, what) != asked:
                raise BadInput(f"{path}: it was begun with other {what}; resume it with the same command")
        return replace(begun.moved(store), settings=settings)
    likely = [{"regularisers": REGULARISERS}]  # so that single settings may change what a plan chooses
    given = read_settings(recipe, wanted.config, wanted.changes, layers=likely, shared=shared)
    labels = _labels(store, given, labels)
    start = None if wanted.start is None else Run.open(wanted.start)
    facts = store.facts_beside(labels, wanted.facts)
    if recipe == "known" and wanted.facts is None and len(brought := store.facts_brought) == 1:
        facts = store.facts_beside(labels, brought[0])
    split = store if fold is None else store.folded(fold, wanted.folds)
    trained, gpu = start is not None, on_gpu(given.training.device)
    together = wanted.devices or devices(given.training)
    chosen = plan(
        given, split, labels, facts, classes, gpu=gpu, margin=wanted.margin, trained=trained, devices=together
    )
    if start is not None:
        network = {"network": start.settings.network.model_dump(exclude={"weights"})}
        chosen = Plan(chosen.settings | network, (*chosen.words, f"weights: those of {start.path}, and its network"))
    settings = read_settings(recipe, wanted.config, wanted.changes, layers=[chosen.settings], shared=shared)
    try:
        return Run.create(
            path,
            settings,
            store,
            annotation=labels,
            facts=facts,
            classes=classes,
            seed=seed,
            plan=chosen,
            fold=None if fold is None else (fold, wanted.folds),
            start=start,
        )
    except BadInput as error:
        where = who_said(wanted.config, wanted.changes, str(error))
        raise BadInput(f"{where}: {error}" if where else str(error)) from None


def _labels(store: Store, settings: Settings, annotation: str | None) -> str:
    """The labels to train on: those named, every pixel for `full`, else the only ones that there are."""
    if annotation is not None:
        return annotation
    if settings.recipe == "full":
        return FULL
    made = [name for name in store.annotations if name != FULL]
    if len(made) == 1:
        return made[0]
    what = f"name the labels with --annotation; there are: {', '.join(made)}" if made else "there are no labels yet"
    raise BadInput(f"{store.path}: {what}; `inbounds annotate` makes some from clicks")
