"""A training run as a folder: what decides it, where it stands, what it measured, and the networks it keeps.

run.json                what decides it: recipe, settings, data and its checksum, seed, versions
metrics.csv             one long table: run, epoch, split, case, slice, class, metric, value
start.safetensors       the weights that it begins with, if they are another run's or those of a file
checkpoints/0007/       after epoch 7: last and best (.safetensors), the optimiser, state.json
tensorboard/            the same curves for TensorBoard
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.samples import draw_full
from inbounds.config import Settings, network_of, supervision_of
from inbounds.config.plan import Plan
from inbounds.config.volumes import check_volumes
from inbounds.described import read_json, written
from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.runs.checkpoint import finished, load_weights
from inbounds.runs.describe import describe
from inbounds.runs.description import AGAIN, SCHEMA, Description
from inbounds.runs.identity import differences, identity
from inbounds.runs.machine import commit, machine, versions
from inbounds.runs.trial import try_out
from inbounds.runs.weights import fit_weights
from inbounds.store.store import FULL, Store
from inbounds.supervision import Supervision
from inbounds.writing import clear, file_aside, remove, write_json

MODELS = ("best", "last")
START = "start.safetensors"
PARTS = ("metrics.csv", "tensorboard", "checkpoints", START, "run.json")
"""What lies in the folder of a run that is in training."""


@dataclass(frozen=True)
class Run:
    """A run, opened.

    Attributes:
        path: Its folder.
        settings: What decides what it does.
        store: The path of its data.
        annotation: The name of its weak labels.
        facts: The name of its facts, if any.
        classes: Its classes; outputs 1, 2, ... of the network, in this order.
        channels: Of its images.
        seed: Of all that is drawn.
        about: All of `run.json`.
    """

    path: Path
    settings: Settings
    store: Path
    annotation: str
    facts: str | None
    classes: tuple[str, ...]
    channels: int
    seed: int
    about: dict[str, Any]

    @classmethod
    def create(
        cls,
        path: Path,
        settings: Settings,
        store: Store,
        *,
        annotation: str | None = None,
        facts: str | None = None,
        classes: Sequence[str] = (),
        seed: int = 0,
        plan: Plan | None = None,
        fold: tuple[int, int] | None = None,
        start: Run | None = None,
    ) -> Run:
        """Write down what decides a new run.

        Args:
            path: Its folder.
            settings: All of them.
            store: The data.
            annotation: The name of the labels.
            facts: The name of the facts, if any.
            classes: Which classes to learn; all, if none are named.
            seed: Of all that is drawn.
            plan: What of the settings was chosen for the person, and why.
            fold: Which of how many parts of the patients validates, if not the store's own split.
            start: A run with whose weights to begin.

        Raises:
            BadInput: There is a run with a finished epoch at this path already, or another process is at it, the store
                lacks what was asked for, or the settings do not fit together. Then nothing is written.
        """
        whole, store = store, store if fold is None else store.folded(*fold)
        for place in (path, store.path.resolve()):
            if any("\ud800" <= character <= "\udfff" for character in str(place)):  # no JSON could name it
                raise BadInput(
                    f"{str(place)!r}: a name that is not text in UTF-8; choose another for the run and its data"
                )
        _check_new(path)
        if annotation is None:
            if settings.recipe != "full":
                raise BadInput(
                    f"{store.path}: name the weak labels with --annotation; there are: {', '.join(store.annotations)}"
                )
            annotation = FULL
        labels = store.label(annotation)
        if settings.recipe == "full" and (labels.values == UNLABELLED).any() and annotation != FULL:
            raise BadInput(
                f"{store.path}: the recipe 'full' needs complete labels, and {annotation!r} leaves pixels unlabelled; "
                "leave --annotation out, or train 'partial' on it"
            )
        facts = store.facts_beside(annotation, facts)
        if facts is not None:
            store.facts(facts)
        chosen = [store.classes[value] for value in store.chosen(classes)]
        check_volumes(settings, store)
        supervision = supervision_of(settings, store, chosen, facts)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # as training does: what a file of weights leaves out is the same whatever was run
            network = network_of(settings.network, store.channels, len(chosen) + 1, settings.training.patch)
        try_out(network, supervision, settings, store, chosen)
        if start is not None and settings.network.weights:
            raise BadInput(f"{start.path}: network.weights names other weights to begin with; leave one of them out")
        if start is not None:
            load_weights(start.weights(start.default_model), network)
        elif settings.network.weights:
            said = fit_weights(Path(settings.network.weights), network)
            plan = plan or Plan({}, ())
            plan = replace(plan, words=(*plan.words, said))
        training = [number for number, record in enumerate(store.records) if record.split == "train"]
        draw_full(store, training, settings.hybrid.full_scans, seed, only=settings.hybrid.only_full)
        labelled = store.about(annotation)
        about = {
            "schema": SCHEMA,
            "recipe": settings.recipe,
            "settings": settings.model_dump(),
            "store": str(store.path.resolve()),
            "data": {"name": store.name, "checksums": store.checksums, "source": store.source},
            "preparation": store.preparation,
            "annotation": {"name": annotation} | {key: labelled[key] for key in labelled if key != "blocks"},
            "facts": facts,
            "known": describe(annotation, labelled, settings.hybrid, supervision, chosen),
            "classes": chosen,
            "channels": store.channels,
            "seed": seed,
            **({} if plan is None else {"plan": asdict(plan)}),
            **({} if fold is None else {"fold": list(fold)}),
            **({} if start is None else {"from": str(start.path)}),
            "versions": versions(),
            "commit": commit(),
            "machine": machine(settings.training.device),
            "identity": identity(whole, annotation, facts),
        }
        written(about, Description, str(path), "change what it was made from")
        with locked(path, inside=True):
            _check_new(path)
            _discard(path)
            write_json(path / "run.json", about)
            if start is not None or settings.network.weights:
                with file_aside(path / START) as part:
                    save_file({name: weight.clone() for name, weight in network.state_dict().items()}, part)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Run:
        """Read what decides a run."""
        file = path / "run.json"
        if not file.is_file():
            raise BadInput(f"{path}: this is not a run (no run.json in it); make one with `inbounds train`")
        read = read_json(file, Description, AGAIN)
        about = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return cls(
            path,
            read.settings,
            Path(read.store),
            read.annotation.name,
            read.facts,
            read.classes,
            read.channels,
            read.seed,
            about,
        )

    def discard(self) -> None:
        """Take back a run that never finished an epoch; what else lies in its folder stays."""
        with locked(self.path, inside=True):
            _discard(self.path)
        with suppress(OSError):
            self.path.rmdir()

    def moved(self, store: Store) -> Run:
        """The same run with its data elsewhere, as on another machine; it is written down.

        Raises:
            BadInput: These are other data.
        """
        self._check(store)
        place = store.path.resolve()
        if place == self.store:
            return self
        write_json(self.path / "run.json", {**self.about, "store": str(place)})
        return Run.open(self.path)

    @property
    def epochs(self) -> int | None:
        """How many there will be: as the settings say, or as was found to fit the time; `None` before that."""
        return self.settings.training.epochs or self.about.get("epochs")

    def fix_epochs(self, epochs: int) -> None:
        """Write down how many epochs fit the time, so that the run ends the same wherever it goes on."""
        self.about["epochs"] = epochs
        write_json(self.path / "run.json", self.about)

    @property
    def volumes(self) -> dict[str, tuple[float, float]]:
        """The least and the most of each class in a training scan, in ml, as far as it was noted."""
        return {name: (low, high) for name, (low, high) in self.about.get("volumes", {}).items()}

    def note_volumes(self, volumes: Mapping[str, tuple[float, float]]) -> None:
        """Write down how large classes are in training scans."""
        self.about["volumes"] = {name: list(ends) for name, ends in volumes.items()}
        write_json(self.path / "run.json", self.about)

    @property
    def start(self) -> Path | None:
        """The weights that it begins with, if they were trained before."""
        file = self.path / START
        if not self.whole:
            raise BadInput(f"{file}: missing, as the run was killed when it was made; start it again")
        return file if file.is_file() else None

    @property
    def whole(self) -> bool:
        """Whether it has all that it needs to go on: not if it was killed before it had the weights to begin with."""
        needs = "from" in self.about or self.settings.network.weights
        return not needs or (self.path / START).is_file() or self.checkpoint is not None

    @property
    def checkpoint(self) -> Path | None:
        """The folder of the newest complete checkpoint."""
        found = finished(self.path)
        return found[-1] if found else None

    @property
    def epoch(self) -> int:
        """How many epochs are finished."""
        folder = self.checkpoint
        return int(folder.name) if folder else 0

    @property
    def finished(self) -> bool:
        """Whether it has come to its last epoch, and to all that is noted behind it."""
        return self.epochs is not None and self.epoch >= self.epochs and "volumes" in self.about

    def weights(self, model: str = "best") -> Path:
        """The file of a network that the run keeps: `best` or `last`."""
        if model not in MODELS:
            raise BadInput(f"no model {model!r}; there are: {', '.join(MODELS)}")
        if self.checkpoint is None:
            raise BadInput(f"{self.path}: no epoch is finished yet; go on with `inbounds train --resume`")
        file = self.checkpoint / f"{model}.safetensors"
        if not file.is_file():
            have = ", ".join(sorted(f.stem for f in self.checkpoint.glob("*.safetensors") if f.stem in MODELS))
            raise BadInput(
                f"{self.path}: it keeps no model {model!r} (best needs a truth to validate on); it has: {have}"
            )
        return file

    @property
    def default_model(self) -> str:
        """`best` where there was a truth to choose by, else `last`."""
        folder = self.checkpoint
        kept = [model for model in MODELS if folder is not None and (folder / f"{model}.safetensors").is_file()]
        return kept[0] if kept else "last"

    def opened_store(self) -> Store:
        """The run's data, opened once and checked to be what it was trained on."""
        return self._opened_store

    @cached_property
    def supervision(self) -> Supervision:
        """What the settings describe, built once."""
        return supervision_of(self.settings, self.opened_store(), self.classes, self.facts)

    @cached_property
    def _opened_store(self) -> Store:
        store = Store(self.store)
        self._check(store)
        return store.folded(*self.about["fold"]) if "fold" in self.about else store

    def _check(self, store: Store) -> None:
        """Refuse data, labels and facts that are not the run's own."""
        if store.channels != self.channels:
            what = f"{self.channels} channels, and those of {store.path} have {store.channels}"
            raise BadInput(f"{self.path / 'run.json'}: it is of images of {what}; {AGAIN}")
        if differing := differences(store, self.annotation, self.facts, self.about):
            raise BadInput(
                f"{store.path}: not the data that {self.path} was trained on: checksums differ of {differing}; bring "
                "what it had back, or train a new run"
            )


def open_runs(path: Path) -> list[Run]:
    """The runs that a path stands for: a run, all runs in a folder, such as folds, or several paths with commas."""
    opened = []
    for place in [path] if path.exists() else [Path(part.strip()) for part in str(path).split(",")]:
        inside = [] if (place / "run.json").is_file() else sorted(place.glob("*/run.json"))
        opened += [Run.open(file.parent) for file in inside] or [Run.open(place)]
    return opened


def _check_new(path: Path) -> None:
    """Refuse a folder that holds anything but a start that came to nothing: a run without a finished epoch."""
    there = {file.name for file in path.glob("[!.]*")} if path.is_dir() else set()
    dead = there <= set(PARTS) and "run.json" in there and not _began(path)
    if (there and not dead) or (path.exists() and not path.is_dir()):
        raise BadInput(f"{path}: already exists; add --resume to go on with it, or choose another name")


def _began(path: Path) -> bool:
    """Whether a folder holds a run with a finished epoch, or something that is not known to be a run."""
    try:
        return Run.open(path).checkpoint is not None
    except BadInput:
        return True


def _discard(path: Path) -> None:
    """Remove a start that came to nothing, and last that which tells that it is one."""
    for name in PARTS:
        clear(path / name)
        remove(path / name)
