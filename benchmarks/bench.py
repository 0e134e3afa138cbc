"""How long training takes and what it needs: real runs on generated hearts, and what they are compared with."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import predict as predicting
from benchmarks import studio
from benchmarks.devices import streamed, together
from benchmarks.scans import FORMS, measure
from benchmarks.timing import Epochs, Many, Plain, Row, Steps, Training, Way, in_turn, row, warm_up
from benchmarks.volumes import PATCHES, patches
from inbounds.config import read_settings
from inbounds.config.plan import REGULARISERS
from inbounds.config.plan import plan as plan_for
from inbounds.errors import BadInput
from inbounds.runs.run import Run
from inbounds.sources import phantom as hearts
from inbounds.store.annotate import simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.training.data import Data
from inbounds.training.loop import Trainer
from inbounds.training.stream import WARM

SECTIONS = (
    *("memory", "steps", "method", "modes", "many", "epoch", "comparison", "plain", "growth"),
    *("networks", "devices", "streamed", "patches", "predict", "scans", "studio"),
)
"""In the order in which they are measured: on a CPU the peak of memory is the process's, so that comes first."""
EARLY = WARM + 1
"""Epochs after which nothing new happens: training and validation have been captured."""
ONLY = {"cuda": ("many", "comparison"), "cpu": ("growth", "devices", "scans", "studio")}
"""Sections of one device alone."""
ASKED = ("networks", "devices", "streamed", "patches", "predict", "scans", "studio")
"""Sections that are measured where they are named: they take long, quiet, gigabytes of disk or a browser."""
COMPARED = (
    "partial",
    "proposals_tags",
    "tags",
    "proposals_common",
    "common",
    "proposals_individual",
    "individual",
    "volume",
    "full",
)
"""The paper's comparison on the left ventricle."""
PAPER_EPOCHS = 200
TABLES = (("enet", 1), ("residual_unet", 4), ("enet", 20))
"""Networks and batches of the paper: left ventricle, prostate, spine."""
MEGABYTE = 2**20


@dataclass(frozen=True)
class Variant:
    """A supervision as the settings of a run have it."""

    label: str
    recipe: str
    changes: tuple[str, ...] = ()


BRIGHT = 'constraints.bright={statistic="mean_intensity",bounds={kind="fixed",lower=0.4,upper=0.6},weight=1.0}'
ASCENT = ("proposals.project={name='ascent',early_stop='off'}",)
EARLY_STOP = ("proposals.project={name='ascent',early_stop='authors'}",)
VARIANTS = {
    "partial": Variant("partial cross-entropy", "partial"),
    "penalty_1": Variant("direct penalty, 1 bound", "tags"),
    "penalty_2": Variant("direct penalty, 2 bounds", "common"),
    "size_centroid": Variant("size and centroid", "centroid"),
    "size_centroid_intensity": Variant("size, centroid and mean intensity", "centroid", (BRIGHT,)),
    "proposals_1": Variant("proposals, 1 bound", "proposals_tags", ASCENT),
    "proposals_2": Variant("proposals, 2 bounds", "proposals_common", ASCENT),
    "proposals_1_early": Variant("proposals, 1 bound, early stop", "proposals_tags", EARLY_STOP),
    "proposals_2_early": Variant("proposals, 2 bounds, early stop", "proposals_common", EARLY_STOP),
    "proposals_2_exact": Variant("exact proposals, 2 bounds", "proposals_common", ("proposals.project=exact",)),
    "full": Variant("full cross-entropy", "full"),
}
MODES = {
    "eager": ("training.cuda_graphs=false", "training.compile=nothing"),
    "captured": ("training.cuda_graphs=true", "training.compile=nothing"),
    "compiled": ("training.cuda_graphs=false", "training.compile=all"),
    "captured+compiled": ("training.cuda_graphs=true", "training.compile=all"),
}


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        side: Rows and columns of an image.
        patients: Generated hearts; a quarter of them validate.
        batches: Sizes of batches.
        rounds: How often each way has its turn.
        seconds: About how long a turn is.
        many: How many runs go side by side.
        together: How many of them have their whole epochs measured; those of a GPU only.
        epochs: Of the run whose memory is watched.
        variants: Which supervisions.
        compiles: Whether to compile, which takes a minute.
        network: What is trained.
        scan: Slices, rows and columns of the scan that is prepared, predicted and looked at.
        forms: In which formats.
        project: How many scans the project has that is opened.
        presses: How many keys are pressed in each plane.
        patches: Slices, rows and columns of patches of volumes.
        predicted: The scans that are segmented one after the other.
        tables: Networks and batches of the paper.
    """

    side: int = 256
    patients: int = 8
    batches: tuple[int, ...] = (1, 8)
    rounds: int = 10
    seconds: float = 0.2
    many: tuple[int, ...] = (1, 3, 6, 9, 12)
    together: tuple[int, ...] = (1, 9)
    epochs: int = 20
    variants: tuple[str, ...] = tuple(VARIANTS)
    compiles: bool = True
    network: tuple[str, ...] = ("network.name=enet",)
    scan: tuple[int, int, int] = (800, 512, 512)
    forms: tuple[str, ...] = FORMS
    project: int = 1000
    presses: int = 60
    patches: tuple[tuple[int, int, int], ...] = PATCHES
    predicted: predicting.Amount = predicting.MANY
    tables: tuple[tuple[str, int], ...] = TABLES


TINY = ("network.name=residual_unet", "network.settings={width=4}")
FEW = ("partial", "penalty_2", "full")
SHORT = ((4, 48, 48),)
FEW_SCANS = predicting.Amount(6, (3, 48, 48))
ONE = (("residual_unet", 2),)
QUICK = Scale(
    *(48, 3, (1, 4), 2, 0.0, (1, 2), (1,), EARLY + 2, FEW, False, TINY, (12, 64, 64), FORMS[:1], 20, 6),
    *(SHORT, FEW_SCANS, ONE),
)
"""To see that everything works; its numbers mean nothing."""


def chosen_device(name: str) -> str:
    """`cpu` or `cuda`, from what was asked for."""
    has = torch.cuda.is_available()
    if name not in ("auto", "cpu", "cuda") or (name == "cuda" and not has):
        raise BadInput(f"--device {name}: there are {'auto, cpu and cuda' if has else 'auto and cpu'}")
    return name if name != "auto" else "cuda" if has else "cpu"


def chosen_sections(names: Sequence[str], device: str) -> list[str]:
    """Those asked for, or all that the device has."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise BadInput(f"--sections {unknown[0]}: there are {', '.join(SECTIONS)}")
    left_out = [name for other, its in ONLY.items() if other != device for name in its]
    for name in names:
        if name in left_out:
            raise BadInput(f"--sections {name}: not measured on a {'GPU' if device == 'cuda' else 'CPU'}; leave it out")
    wanted = names or [name for name in SECTIONS if name not in ASKED]
    return [name for name in SECTIONS if name not in left_out and name in wanted]


class Bench:
    """Measures section by section.

    Args:
        folder: For the data and the runs.
        device: `cpu` or `cuda`.
        scale: How much is measured.
        cuda_graphs: On a GPU, whether runs are captured where nothing else is compared.
        both: On a CPU, whether the steps of all supervisions are measured compiled too.
        store: Data of one's own, prepared; generated hearts if not given.
        annotation: The name of its weak labels.
        classes: Which classes are learnt.
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        scale: Scale,
        *,
        cuda_graphs: bool = True,
        both: bool = False,
        store: Store | None = None,
        annotation: str = "disc",
        classes: Sequence[str] = ("LV",),
    ) -> None:
        self.folder, self.device, self.scale, self.both = folder, device, scale, both
        self.cuda = device == "cuda"
        words = [word for word, on in (("captured", cuda_graphs), ("compiled", scale.compiles)) if on and self.cuda]
        self.mode = "+".join(words) or "eager"
        self.data, self.runs = Data(), 0
        self.annotation, self.classes = annotation, classes
        if store is not None:
            self.store = store
            return
        plan = Plan(hearts.NAME, hearts.CLASSES, (scale.side, scale.side), GridWindow.pad, "none")
        self.store = prepare(hearts.sources(scale.patients, side=scale.side), folder / "hearts", plan).store
        simulate(self.store, "disc", "disc", [self.store.class_index("LV")])

    def about(self) -> dict[str, Any]:
        """What the numbers were measured on and with."""
        run, threads = self.run("partial"), torch.get_num_threads()
        about, network = run.about, run.settings.network.model_dump()
        name = f"CPU ({about['machine']['processor']}, {threads} thread{'s' * (threads > 1)})"
        load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
        return {
            "device": torch.cuda.get_device_name() if self.cuda else name,
            "versions": about["versions"] | ({"cuda": torch.version.cuda} if self.cuda else {}),
            "commit": about["commit"],
            "data": self.store.name,
            "settings": {**asdict(self.scale), "network": network, "mode": self.mode, "threads": threads, **load},
        }

    def sections(self, names: Sequence[str]) -> Iterator[list[Row]]:
        """The rows of each section, as soon as it is finished."""
        for name in names:
            yield getattr(self, name)()

    def run(self, recipe: str, *changes: str, seed: int = 0) -> Run:
        """A new run."""
        self.runs += 1
        settings = read_settings(recipe, None, [f"training.device={self.device}", *self.scale.network, *changes])
        annotation = None if recipe == "full" else self.annotation
        path = self.folder / f"run-{self.runs}"
        return Run.create(path, settings, self.store, annotation=annotation, classes=self.classes, seed=seed)

    def trainer(self, recipe: str, batch: int, mode: str, *changes: str, seed: int = 0) -> Trainer:
        """The same, ready to go."""
        run = self.run(recipe, f"training.batch={batch}", *MODES[mode], *changes, seed=seed)
        return Trainer(run, data=self.data)

    def measure(self, ways: dict[str, Way], title: str) -> dict[str, list[float]]:
        """Milliseconds per step of each way; new runs are warmed up first."""
        scale = self.scale
        return in_turn(ways, scale.rounds, title, seconds=scale.seconds, warm=warm_up(self.cuda))

    def steps(self) -> list[Row]:
        """A training step by supervision; ratios are to partial cross-entropy."""
        rows = []
        for section, mode in [("steps", self.mode), *([("steps-compiled", "compiled")] if self.both else [])]:
            for batch in self.scale.batches:
                variants = {name: VARIANTS[name] for name in self.scale.variants}
                ways: dict[str, Way] = {
                    name: Steps(self.trainer(one.recipe, batch, mode, *one.changes)) for name, one in variants.items()
                }
                times = self.measure(ways, f"{section}, batch {batch}")
                base = times["partial"]
                rows += [
                    row(section, n, batch, times[n], base, label=one.label, mode=mode) for n, one in variants.items()
                ]
                ways.clear()
                _forget()
        return rows

    def networks(self) -> list[Row]:
        """A step with a direct penalty, of the network and the batch of each anatomy."""
        rows = []
        for name, batch in self.scale.tables:
            ways: dict[str, Way] = {name: Steps(self.trainer("individual", batch, self.mode, f"network.name={name}"))}
            times = self.measure(ways, f"{name}, batch {batch}")
            rows.append(row("networks", name, batch, times[name], None, mode=self.mode))
            ways.clear()
            _forget()
        return rows

    def method(self) -> list[Row]:
        """A step of what `inbounds train` does by itself; ratios are to partial cross-entropy of the same network."""
        given = read_settings("individual", layers=[{"regularisers": REGULARISERS}])
        names = self.annotation, self.annotation, self.classes
        chosen = plan_for(given, self.store, *names, gpu=self.cuda).settings
        parts = ["constraints.size", *(f"regularisers.{name}" for name in chosen["regularisers"])]
        labels = ["partial cross-entropy", *(f"and {part.partition('.')[2]}" for part in parts)]
        device, batch = f"training.device={self.device}", chosen["training"]["batch"]
        ways: dict[str, Way] = {}
        for number, label in enumerate(labels):
            left_out = [f"{part}=false" for part in parts[number:]]
            changes = [device, "training.epochs=10", *MODES[self.mode], *left_out]
            settings = read_settings("individual", None, changes, layers=[chosen])
            self.runs += 1
            path = self.folder / f"run-{self.runs}"
            run = Run.create(path, settings, self.store, annotation=self.annotation, classes=self.classes)
            ways[label] = Steps(Trainer(run, data=self.data))
        times = self.measure(ways, "method")
        base = times[labels[0]]
        rows = [row("method", name, batch, times[name], base, label=name, mode=self.mode) for name in labels]
        ways.clear()
        _forget()
        return rows

    def modes(self) -> list[Row]:
        """A run's step as it is written, captured and compiled; ratios are to the first."""
        names = ["eager", *(["captured"] if self.cuda else []), *self._compiled()]
        rows = []
        for batch in self.scale.batches:
            ways: dict[str, Way] = {name: Steps(self.trainer("individual", batch, name)) for name in names}
            times = self.measure(ways, f"modes, batch {batch}")
            rows += [row("modes", name, batch, times[name], times["eager"]) for name in names]
            ways.clear()
            _forget()
        return rows

    def many(self) -> list[Row]:
        """Runs side by side: times are per run and step, ratios to a run alone."""
        sizes, batch = self.scale.many, self.scale.batches[0]
        runs = [Steps(self.trainer("individual", batch, self.mode, seed=seed)) for seed in range(max(sizes))]
        ways: dict[str, Way] = {f"many_{size}": Many(runs[:size]) for size in sizes}
        times = self.measure(ways, "many")
        each = {size: [ms / size for ms in times[f"many_{size}"]] for size in sizes}
        rows = [row("many", f"many_{size}", batch, ms, each[sizes[0]], runs=size) for size, ms in each.items()]
        ways.clear()
        runs.clear()
        _forget()
        return rows

    def comparison(self) -> list[Row]:
        """Epochs of the paper's comparison, all its supervisions side by side: times are for all of them together."""
        batch = self.scale.batches[0]
        trainers = [self.trainer(recipe, batch, self.mode) for recipe in COMPARED]
        training: Way = Training(trainers)
        times = in_turn({"": training}, min(self.scale.rounds, 3), "comparison", warm=EARLY)[""]
        images = len(COMPARED) * len(trainers[0].samples)
        measured = row("comparison", "comparison", batch, times, runs=len(COMPARED), images=images)
        trainers.clear()
        _forget()
        return [measured | {"minutes": PAPER_EPOCHS * measured["ms"] / 60_000}]

    def epoch(self) -> list[Row]:
        """Whole epochs beside their steps alone: what validation and checkpoints add. Ratios are to the steps."""
        rows = []
        scale, warm = self.scale, EARLY if self.cuda else 0
        batch = scale.batches[0]
        for size in scale.together if self.cuda else (1,):
            whole, alone = (
                [self.trainer("individual", batch, self.mode, seed=n) for n in range(size)] for _ in range(2)
            )
            ways: dict[str, Way] = {"whole": Training(whole), "alone": Epochs(alone)}
            times = in_turn(ways, min(scale.rounds, 3), f"epoch of {size}", warm=warm)
            images = size * len(whole[0].samples)
            measured = row("epoch", f"epoch_{size}", batch, times["whole"], times["alone"], runs=size, images=images)
            rows.append(measured | {"outside": 1 - 1 / measured["ratio"], "alone": times["alone"]})
            for some in (ways, whole, alone):
                some.clear()
            _forget()
        return rows

    def memory(self) -> list[Row]:
        """The most memory that a short run takes, and how much early and late; on a CPU, of the whole process."""
        rows = []
        few = ("hybrid.full_scans=2", "hybrid.only_full=true")
        for batch in self.scale.batches:
            if self.cuda:
                torch.cuda.reset_peak_memory_stats()
            trainer = self.trainer("individual", batch, self.mode, *few)
            training = Training([trainer])
            training(EARLY)
            early = self._in_use()
            times = in_turn({"": training}, self.scale.epochs - EARLY, f"memory, batch {batch}", warm=0)[""]
            memory = {
                "images": len(trainer.samples),
                "peak_mb": (torch.cuda.max_memory_allocated() if self.cuda else _resident()) / MEGABYTE,
                "early_mb": early / MEGABYTE,
                "late_mb": self._in_use() / MEGABYTE,
            }
            rows.append(row("memory", "memory", batch, times, None, **memory))
            del trainer, training
            _forget()
        return rows

    def plain(self) -> list[Row]:
        """The same network and loss in a loop as people write it; ratios are to that."""
        rows = []
        for batch in self.scale.batches:
            trainers = {name: self.trainer("full", batch, name) for name in ("eager", *self._compiled())}
            first = trainers["eager"]
            ways: dict[str, Way] = {"plain": Plain(first.run, first.samples, self.device)}
            ways |= {name: Steps(trainer) for name, trainer in trainers.items()}
            times = self.measure(ways, f"plain, batch {batch}")
            rows += [row("plain", name, batch, times[name], times["plain"]) for name in ways]
            ways.clear()
            trainers.clear()
            _forget()
        return rows

    def growth(self) -> list[Row]:
        """The steps of an epoch over more images and in larger batches."""
        scans = sum(record.split == "train" for record in self.store.records)
        largest, rounds = self.scale.batches[-1], min(self.scale.rounds, 5)
        sizes = [2**power for power in range(largest.bit_length())]
        trainers = {
            f"{count} {batch}": self.trainer(
                "full", batch, self.mode, f"hybrid.full_scans={count}", "hybrid.only_full=true"
            )
            for count, batch in [(scans // 4, largest), *((scans // 2, size) for size in sizes), (scans, largest)]
        }
        times = in_turn({key: Epochs([trainer]) for key, trainer in trainers.items()}, rounds, "growth", warm=0)
        rows = []
        for key, trainer in trainers.items():
            images, batch = len(trainer.samples), trainer.run.settings.training.batch
            measured = row("growth", f"images_{images}", batch, times[key], images=images)
            rows.append(measured | {"ms_per_image": measured["ms"] / images})
        return rows

    def devices(self) -> list[Row]:
        """An epoch of what `inbounds train` does by itself, at batch 16, by one process of one thread and by two."""
        make = partial(self._planned, "training.batch=16")
        return together(make, (1, 2), max(2, self.scale.rounds // 2))

    def streamed(self) -> list[Row]:
        """The same with data in memory and on the disk, at batch 16; ratios are to the first."""
        where = {"in memory": "true", "on the disk": "false"}
        trainers = {
            name: Trainer(self._planned("training.batch=16", "training.epochs=10", f"training.data_on_device={there}"))
            for name, there in where.items()
        }
        rows = streamed(trainers, self.store, lambda ways, title: in_turn(ways, self.scale.rounds, title))
        trainers.clear()
        _forget()
        return rows

    def _planned(self, *changes: str) -> Run:
        """A new run as it is planned."""
        changes = (f"training.device={self.device}", *changes)
        given = read_settings("individual", None, changes, layers=[{"regularisers": REGULARISERS}])
        names = self.annotation, self.annotation, self.classes
        chosen = plan_for(given, self.store, *names, gpu=self.cuda).settings
        settings = read_settings("individual", None, changes, layers=[chosen])
        self.runs += 1
        path = self.folder / f"run-{self.runs}"
        return Run.create(path, settings, self.store, annotation=self.annotation, classes=self.classes)

    def patches(self) -> list[Row]:
        """A step of the default method on volumes, by the size of a patch, and what the estimate of the rest adds."""
        rows = patches(self.folder / "volumes", self.scale.patches, self.device, self.measure)
        _forget()
        return rows

    def scans(self) -> list[Row]:
        """The most memory that `prepare` and `predict` take of a large scan, above what they import."""

        def trained(store: Path) -> Path:
            settings = read_settings("full", None, ["training.device=cpu", "training.epochs=12", *self.scale.network])
            run = Run.create(self.folder / "scans-run", settings, Store(store))
            Trainer(run).fit()
            return run.path

        return measure(self.folder / "scans", self.scale.scan, self.scale.forms, trained)

    def predict(self) -> list[Row]:
        """Scans a second from files to masks, with the network that is planned for them."""
        return predicting.measure(self.folder / "predict", self.scale.predicted, self.device)

    def studio(self) -> list[Row]:
        """How soon the studio shows slices and opens projects."""
        return studio.measure(self.folder / "studio", self.scale.scan, self.scale.project, self.scale.presses)

    def _compiled(self) -> list[str]:
        """The fastest mode, if it is measured."""
        return ["captured+compiled" if self.cuda else "compiled"] if self.scale.compiles else []

    def _in_use(self) -> float:
        return torch.cuda.memory_reserved() if self.cuda else _resident()


def _resident() -> float:
    """The most memory that this process has had, in bytes."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _forget() -> None:
    """Give back the memory of runs that are no longer needed."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
