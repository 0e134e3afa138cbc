"""The training loop. It receives a supervision and never asks which one it is."""

from __future__ import annotations

import copy
import math
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from inbounds.batches.augment import Augment
from inbounds.batches.samples import by_scan, by_slice
from inbounds.errors import BadInput, some
from inbounds.evaluation.validate import Validation, validate
from inbounds.inference.forward import CHUNK
from inbounds.inference.volumes import volume_ranges
from inbounds.locks import locked
from inbounds.losses import Proposals
from inbounds.networks import sees_volumes
from inbounds.networks.shared_norm import synchronised
from inbounds.runs import checkpoint
from inbounds.runs.checkpoint import State, load_weights
from inbounds.runs.machine import cores
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.runs.table import Log, Row
from inbounds.supervision import Supervision
from inbounds.training.data import Data
from inbounds.training.devices import fabrics
from inbounds.training.group import joined, leaving
from inbounds.training.scan_sizes import ScanSizes
from inbounds.training.schedule import Schedule
from inbounds.training.selection import select
from inbounds.training.step import Step
from inbounds.training.stream import AHEAD, MARK, WARM, Fetched, GraphedStep, Stream
from inbounds.training.volumes import Volumes

Decided = TypeVar("Decided")

COMPILE_FROM = {"cuda": 100_000 * 256**2, "cpu": 20_000 * 256**2}
"""Pixels seen from which compiling pays. It takes about a minute; ENet on a slice of 256x256 then saves about a
millisecond on a GPU, and 40 on a CPU."""

MINUTES = {"cuda": 5.0}
"""For a whole training, by the kind of device, if nobody says how many; 10 on any other."""
TRIAL = 8
"""Steps by which the time of an epoch is measured."""
RESERVE = 0.05
"""The share of the time that is left for what is not measured, such as writing checkpoints."""
NAMED = 8
"""How many slices of a batch are named in words."""
TURN = 4
"""How many steps a run makes before another may have its turn."""


class NotFinite(RuntimeError):  # noqa: N818 (it names what happened)
    """The loss became NaN or infinite. The message says where; the last good checkpoint is kept."""


@dataclass(frozen=True)
class Progress:
    """What a screen may show while a run goes on.

    Attributes:
        epoch: The one under way, from 1.
        epochs: How many there will be.
        step: Steps done in this epoch.
        steps: Of this epoch.
        lr: The learning rate.
        terms: Mean of each loss term over this epoch so far.
        validation: What the last validation gave, by metric (of all classes together).
        seconds_left: An estimate for the whole run; infinite before the first step.
        notes: What a person should hear, in sentences; each is told once.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    lr: float
    terms: dict[str, float]
    validation: dict[str, float]
    seconds_left: float
    notes: tuple[str, ...] = ()


class Trainer:
    """One run on its way: data, network, optimiser and where it stands.

    Args:
        run: What decides what it does.
        show: Receives the progress, about once a second.
        data: Where runs in one process share their data.
    """

    def __init__(self, run: Run, show: Callable[[Progress], None] = lambda _: None, data: Data | None = None) -> None:
        settings = run.settings
        training = settings.training
        self.run, self.show = run, show
        store = run.opened_store()
        self.group = joined()
        self.fabric, self.plain = fabrics(training, self.group)
        device: torch.device = self.fabric.device
        threads = training.threads
        if threads is None and self.group is not None and "OMP_NUM_THREADS" not in os.environ:
            threads = max(1, cores() // self.group.here)
        if threads is not None and device.type == "cpu":
            torch.set_num_threads(threads)
        torch.manual_seed(run.seed)
        network = build_network(run)
        self.network: nn.Module = (network if self.group is None else synchronised(network, device)).to(device)
        fast = device.type == "cpu" or training.precision != "32"
        if fast:
            # A U-Net takes two thirds of the time on a CPU, half of it on tensor cores; PyTorch's own types do not know
            # the argument.
            deep = any(weight.ndim > 4 for weight in self.network.parameters())
            layout = torch.channels_last_3d if deep else torch.channels_last
            self.network.to(memory_format=layout)  # type: ignore[call-overload]
        if run.start is not None:
            load_weights(run.start, self.network)
        self.judged = copy.deepcopy(self.network) if training.ema else self.network
        self.stream = Stream(device, run.seed, cuda_graphs=training.cuda_graphs, group=self.group)
        if self.stream.cuda_graphs:
            # Shapes do not change, so that looking for the fastest kernels pays, where any will do.
            torch.backends.cudnn.benchmark = not torch.backends.cudnn.deterministic
        self.schedule = Schedule(training, device)
        data = data or Data()
        self.samples = data.samples(run, device, "train")
        self.supervision = self.schedule.following(self._remembering(run.supervision))
        self._require_knowledge()
        held_out = [record for record in store.records if record.split == "validation"]
        self.held_out = data.samples(run, device, "validation") if held_out else None
        self.truth = data.truth(run, device) if any(record.truth for record in held_out) else None
        self.optimiser = torch.optim.Adam(
            self.network.parameters(),
            lr=self.schedule.lr,
            betas=training.betas,
            weight_decay=training.weight_decay,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.order = torch.Generator().manual_seed(run.seed)
        self.state = State(lr=training.lr)
        self.notes: tuple[str, ...] = self._impossible()
        self.warned: set[str] = set()
        self.validation: dict[str, float] = {}
        self.progress: Progress | None = None
        volumes = any(constraint.scope == "volume" for constraint in self.supervision.constraints)
        proposed = volumes and self.supervision.proposals is not None
        self.whole_scans = proposed if training.whole_scans is None else training.whole_scans
        if proposed and not self.whole_scans:
            raise BadInput(
                "proposals for whole scans need all of their slices: leave training.whole_scans out, or set it to true"
            )
        in_space = sees_volumes(self.network)
        self.volumes = Volumes(run, self.samples, self.supervision, self.judged, self.group) if in_space else None
        self.notes += () if self.volumes is None else self.volumes.notes
        slices_alone = volumes and not self.whole_scans and not in_space
        self.scan_sizes = ScanSizes(self.samples) if slices_alone else None
        self.step = self._make_step()
        self.fetched: Fetched | None = None
        self.validated = self._make_validation()
        self.stream.ready()

    def _remembering(self, supervision: Supervision) -> Supervision:
        """The supervision with a multiplier for each image and scan, wherever it has some."""
        batch = self.samples.scan_batch([0])
        shape = batch.image.shape
        probs = batch.image.new_zeros(shape[0], len(self.run.classes) + 1, *shape[2:])
        counts = len(self.samples), len(self.samples.records)
        return supervision.remembering(*counts, probs, batch.image, batch.annotation)

    def _multipliers(self) -> dict[str, Tensor]:
        """All multipliers, by what a checkpoint calls them."""
        return {f"multipliers.{name}": values for name, values in self.supervision.multipliers.items()}

    def _require_knowledge(self) -> None:
        """Refuse a constraint whose bounds are not known for any image: it would never act, and nobody would see."""
        run = self.run
        idle = [] if run.settings.hybrid.only_full else self.supervision.constraints
        for group in self.samples.groups(CHUNK) if idle else ():
            batch = self.samples.whole(group)
            shape = batch.image.shape
            probs = batch.image.new_full((shape[0], len(run.classes) + 1, *shape[2:]), 1 / (len(run.classes) + 1))
            idle = [one for one in idle if not bool(one.satisfied(probs, batch.image, batch.annotation)[1].any())]
            if not idle:
                return
        if idle:
            have = ", ".join(run.opened_store().fact_names) or "none"
            raise BadInput(
                f"{run.store}: of no training image is the {idle[0].name} known, so that the recipe "
                f"{run.settings.recipe!r} would learn from the labels alone; name other facts with --facts (there are: "
                f"{have}), or write some with `inbounds facts`"
            )

    def _impossible(self) -> tuple[str, ...]:
        """Where bounds that proposals keep to cannot hold together, in a sentence."""
        proposals, places = self.supervision.proposals, list[str]()
        if not isinstance(proposals, Proposals):
            return ()
        for group in self.samples.groups(CHUNK):
            batch = self.samples.whole(group)
            shape, K = batch.image.shape, len(self.run.classes) + 1
            even = batch.image.new_full((shape[0], K, *shape[2:]), -math.log(K))
            cannot = ~proposals.possible(even, batch.annotation).cpu()
            if proposals.constraint.scope == "volume":
                places += [self.samples.records[scan].name for scan in group.which.cpu()[cannot].tolist()]
            else:
                places += self._slices(group.index.cpu()[cannot].tolist())
        if not places:
            return ()
        return (f"Warning: bounds cannot hold together on {some(places, NAMED)}; the nearest that can are kept to",)

    def _slices(self, positions: Sequence[int]) -> list[str]:
        """Slices by the names of their scans."""
        owners = self.samples.scans.index.cpu()[torch.tensor(positions, dtype=torch.long)].tolist()
        places = zip(owners, positions, strict=True)
        return [f"{self.samples.records[n].name} slice {at - self.samples.slices_of(n).start}" for n, at in places]

    def _make_step(self) -> Step:
        training = self.run.settings.training
        part, kind = training.compile, self.stream.device.type
        compilers = [os.environ.get("CXX", "g++")] if kind == "cpu" else [os.environ.get("CC", "gcc"), "clang"]
        there = any(shutil.which(name) is not None for name in compilers)  # what `torch.compile` calls in its turn
        if part is None:
            seen = len(self.samples) * self.samples.pixels * training.repeats * (training.epochs or 0)
            part = "all" if there and seen >= COMPILE_FROM.get(kind, seen + 1) else "nothing"
        elif part != "nothing" and not there:
            raise BadInput(
                f"training.compile={part}: there is no compiler here (g++ for a CPU, gcc for a GPU); install one, or "
                "set training.compile=nothing"
            )
        compiled, network = None, None
        # Scans are of many lengths: for one of them it does not pay, and for all at once it took a minute a run.
        if part != "nothing" and not self.whole_scans:
            # Runs side by side differ more often than the compiler accepts by default, and the rest would stay slow.
            torch._dynamo.config.recompile_limit = 1000
            network = self.fabric.setup_module(torch.compile(self.network, dynamic=False))
            supervision: Callable[..., Any] = self.supervision.__call__
            if part == "all":
                supervision = torch.compile(supervision, dynamic=False)
            if self.group is None:  # else a loss is of all processes, and gradients are taken from one module alone
                compiled, network = (training.batch, network, supervision), None
        return Step(
            self.fabric.setup_module(self.network) if network is None else network,
            self.supervision,
            self.samples,
            Augment(**self.run.settings.augment.model_dump()),
            self.optimiser,
            self.fabric.backward,
            self.stream,
            whole_scans=self.whole_scans,
            compiled=compiled,
            mean=(self.judged, training.ema) if training.ema else None,
            schedule=self.schedule,
            scan_sizes=self.scan_sizes,
            patches=None if self.volumes is None else self.volumes.patches,
            group=self.group,
        )

    def _make_validation(self) -> Callable[[], Validation] | None:
        if self.held_out is None:
            return None
        groups, held_out = self.held_out.groups(CHUNK if self.volumes is None else 1), self.held_out
        judged = self.plain.setup_module(self.judged)
        deal = None if self.group is None else self.group.part

        def look(_length: int = 0) -> Validation:
            return validate(judged, held_out, self.truth, self.supervision, self.run.classes, groups, deal)

        # Streamed data are gathered by the host, which a graph cannot hold; and windows are laid out by it.
        return GraphedStep(look, self.stream) if held_out.rows is None and self.volumes is None else look

    def fit(self, *, resume: bool = False) -> None:
        """Train until the last epoch. With `resume`, go on from the newest checkpoint.

        Raises:
            NotFinite: The loss was NaN or infinite; the last good checkpoint is kept.
            BadInput: The disk does not take the checkpoint, which leaves the last one intact; or another process trains
                the run.
        """
        for waits in self.steps(resume=resume):
            if waits:
                self.stream.wait()

    def steps(self, *, resume: bool = False) -> Iterator[bool]:
        """The same, a few steps at a time. Yields whether nothing could be done but wait for the GPU.

        On a GPU the steps are on their way, not done; so that others can use the host meanwhile, this never waits.
        """
        with leaving(self.group), locked(self.run.path, inside=True) if self.writes else nullcontext():
            yield from self._alone(resume)

    @property
    def writes(self) -> bool:
        """Whether this process writes and speaks: of those that train together, the first."""
        return self.group is None or self.group.first

    def _alone(self, resume: bool) -> Iterator[bool]:
        training = self.run.settings.training
        latest = self._agreed(lambda: checkpoint.tidy(self.run.path))
        if latest is not None and not resume:
            raise BadInput(f"{self.run.path}: this run has begun already; add --resume to go on with it")
        if latest is not None:
            self.state = checkpoint.load(latest, self.judged, self.optimiser, self.network if training.ema else None)
            kept, own = self.state.tensors, f"generator.{self.stream.device.type}"
            with checkpoint.reading(latest):
                self.order.set_state(kept["generator.order"])
                if own in kept:
                    self.stream.generator.set_state(kept[own])
                if self.scan_sizes is not None:
                    self.scan_sizes.sizes.copy_(kept["scan_sizes"])
                if self.volumes is not None:
                    self.volumes.restore(kept)
                for name, values in self._multipliers().items():
                    values.copy_(kept[name])
        self.stream.ready()
        begun, before = time.monotonic(), self.state.epoch
        if self.run.epochs is None:
            yield from self._choose_epochs()
        epochs = self.run.epochs
        assert epochs is not None
        self.schedule.begin(self.state.epoch, epochs, self._steps())
        self.schedule.advance(self.state, epochs, self.optimiser)
        self.stream.ready()
        if self.state.epoch < epochs:
            # The first step may take a minute, to be compiled.
            epoch, lr = self.state.epoch + 1, self.state.lr
            self._show(Progress(epoch, epochs, 0, self._steps(), lr, {}, {}, math.inf, self.notes))
            yield False
        log = Log(self.run.path, self.state.epoch) if self.writes else None
        begun = time.monotonic()
        try:
            # Checkpoints are written while the next epoch goes on.
            with ThreadPoolExecutor(1) as writer:
                written: Future[None] = writer.submit(lambda: None)
                while self.state.epoch < epochs:
                    yield from self._epoch(begun, before)
                    rows = yield from self._rows()
                    if self.volumes is not None:
                        with self.stream.here(), self.fabric.autocast():
                            self.volumes.refresh()
                    best = self._judge(rows)
                    self._warn_of_empty(rows)
                    if self.progress is not None:
                        self._show(replace(self.progress, validation=self.validation, notes=self.notes))
                    taken = self._take()
                    written.result()
                    if log is not None:
                        log.write(rows)
                        written = writer.submit(checkpoint.write, self.run.path, taken, best=best)
                written.result()
        finally:
            if log is not None:
                log.close()
        if self.writes and (self.state.epoch > before or not self.run.volumes):
            self.run.note_volumes(volume_ranges(self.run, self.samples, self.stream.device))

    def _agreed(self, make: Callable[[], Decided]) -> Decided:
        """What this process decides; of those that train together, what the first does."""
        return make() if self.group is None else self.group.agree(make)

    def _show(self, progress: Progress) -> None:
        if self.writes:
            self.show(progress)

    def _take(self) -> checkpoint.Taken:
        """A loss tells of weights that are not finite one step later: the last step of an epoch has none."""
        training = self.run.settings.training
        optimiser = self.optimiser if training.save_optimizer else None
        with self.stream.here():
            generators = {"order": self.order, self.stream.device.type: self.stream.generator}
            self.state.tensors = {f"generator.{kind}": drawn.get_state() for kind, drawn in generators.items()}
            if self.scan_sizes is not None:
                self.state.tensors["scan_sizes"] = self.scan_sizes.sizes.cpu().clone()
            if self.volumes is not None and self.writes:
                self.state.tensors |= self.volumes.state()
            self.state.tensors |= {name: values.cpu().clone() for name, values in self._multipliers().items()}
            taken = checkpoint.take(self.state, self.judged, optimiser, self.network if training.ema else None)
        for name, tensor in taken.weights.items():
            if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                raise NotFinite(
                    f"{self.run.path}: {name} was not finite after epoch {self.state.epoch}. The checkpoint "
                    f"after epoch {self.state.epoch - 1} is kept; a lower training.lr or weight helps"
                )
        return taken

    def _plan(self) -> list[Tensor]:
        """The positions of each batch of an epoch."""
        if self.volumes is not None:
            return self.volumes.plan(self.order)
        if self.whole_scans:
            return [torch.tensor(self.samples.slices_of(scan)) for scan in by_scan(self.samples, self.order)]
        training = self.run.settings.training
        return list(by_slice(self.samples, training.batch, self.order, repeats=training.repeats, most=training.slices))

    def _steps(self) -> int:
        training = self.run.settings.training
        if self.volumes is not None:
            return self.volumes.steps()
        if self.whole_scans:
            return len(self.samples.records)
        slices = len(self.samples) * training.repeats
        return math.ceil(min(slices, training.slices or slices) / training.batch)

    def _choose_epochs(self) -> Iterator[bool]:
        """How many epochs fit the time: some steps and a validation are timed, and undone."""
        begun, minutes = time.monotonic(), self.run.settings.training.minutes
        seconds = 60 * (minutes or MINUTES.get(self.stream.device.type, 10.0))
        undo, steps, took = self._remembered(), self._steps(), []
        self.schedule.begin(0, 1, steps)
        self.network.train()
        for trial in range(TRIAL):
            with self.stream.here():
                if trial % steps == 0:
                    self.step.begin(self._plan())
                start = time.monotonic()
                self.step()
            yield from self._drained()
            took.append(time.monotonic() - start)
        step = sorted(took[WARM + 1 :])[(TRIAL - WARM - 1) // 2]
        validation = 0.0
        if self.validated is not None:
            for _ in range(WARM + 2 if self.stream.cuda_graphs else 1):
                start = time.monotonic()
                with self.stream.here():
                    self.validated()
                yield from self._drained()
                validation = time.monotonic() - start
        undo()
        left = (1 - RESERVE) * seconds - (time.monotonic() - begun)
        each = steps * step * (1.0 if self.volumes is None else 1.1) + validation  # scans are looked at again
        epochs = self._agreed(lambda: max(1, min(100_000, int(left / each))))
        if self.writes:
            self.run.fix_epochs(epochs)
        self.run.about["epochs"] = epochs
        self.notes += (f"{epochs} epochs of {steps} steps, about {epochs * each / 60:.1f} minutes in all",)
        if epochs * each > 1.5 * seconds:
            self.notes += (
                f"one epoch takes {each / 60:.1f} minutes, more than there are: give more --minutes, or set "
                "training.slices, which makes epochs shorter",
            )

    def _remembered(self) -> Callable[[], None]:
        """What some steps would change, and a function that puts it back in place, where graphs find it."""
        networks = {id(one): one for one in (self.network, self.judged)}.values()
        tensors = [tensor for one in networks for tensor in one.state_dict().values()]
        tensors += [] if self.scan_sizes is None else [self.scan_sizes.sizes]
        tensors += self._multipliers().values()
        kept = [tensor.clone() for tensor in tensors]
        order, drawn = self.order.get_state(), self.stream.generator.get_state()

        def undo() -> None:
            with self.stream.here(), torch.no_grad():
                for tensor, before in zip(tensors, kept, strict=True):
                    tensor.copy_(before)
                for state in self.optimiser.state.values():
                    for moment in state.values():
                        moment.zero_()
                self.step.broken.zero_()
            self.order.set_state(order)
            self.stream.generator.set_state(drawn)

        return undo

    def _epoch(self, begun: float, before: int) -> Iterator[bool]:
        self.network.train()
        steps = self._steps()
        shown = time.monotonic()
        self.stream.begin(self.state.epoch)
        with self.stream.here():
            self.step.begin(self._plan())
        for step in range(1, steps + 1):
            with self.stream.here():
                self.step()
                if step % MARK == 0:
                    self.stream.mark()
                now = time.monotonic()
                if now - shown > 1 and step < steps and self.writes:
                    shown = now
                    self._report(begun, before, final=False)
            if step % TURN == 0:
                yield False
                while self.stream.ahead() > AHEAD:
                    yield True
        yield from self._drained()
        with self.stream.here():
            self._report(begun, before, final=True)

    def _drained(self) -> Iterator[bool]:
        """Go on when the device has done all that it was given."""
        self.stream.mark()
        while self.stream.ahead():
            yield True

    def _report(self, begun: float, before: int, *, final: bool) -> None:
        """Look at the latch, and show where the run stands; but for the end of an epoch, as of the time before."""
        numbers = self.step.numbers()
        if final and self.group is not None:
            numbers[1] = self.group.added(numbers[1].clone())
        if final or not self.stream.cuda:
            read, self.fetched = numbers.tolist(), None
        else:
            # Copied while the GPU goes on, and looked at a second later: nobody waits.
            earlier, there = self.fetched, self.fetched is not None and self.fetched.there()
            if earlier is None or there:
                self.fetched = Fetched(numbers)
            if earlier is None or not there:
                return
            read = earlier.values.tolist()
        number, names = self.state.epoch + 1, self.step.names
        step, labelled, broken, at, *sums = read
        terms = {name: value / step for name, value in zip(names, sums, strict=False)}
        if broken and (final or self.group is None):  # processes that train together stop together
            self._stop(number, int(at), dict(zip(names, sums[len(names) :], strict=True)))
        steps, epochs = self._steps(), self.run.epochs or 0
        done = number - 1 - before + step / steps
        left = (time.monotonic() - begun) / done * (epochs - before - done)
        if final and not labelled:
            self._warn("labels", f"epoch {number} saw no labelled pixel: the network learns from bounds alone")
        self.progress = Progress(
            number, epochs, int(step), steps, self.state.lr, terms, self.validation, left, self.notes
        )
        if final:
            self.means = terms  # shown when this epoch's validation is known
        else:
            self._show(self.progress)

    def _warn(self, about: str, sentence: str) -> None:
        """Say something, but of each thing only once."""
        if about not in self.warned:
            self.warned.add(about)
            self.notes += (f"Warning: {sentence}",)

    def _warn_of_empty(self, rows: list[Row]) -> None:
        """Say which classes no held-out scan is given, once after a third of the epochs, and again at the end."""
        number, epochs = self.state.epoch, self.run.epochs or 1
        found = {(row.klass, row.metric): row.value for row in rows if row.split == "validation"}
        for klass in self.run.classes:
            absent = math.isnan(found.get((klass, "recall"), 0))  # the truth has none of it
            if found.get((klass, "hard_size")) != 0 or absent or 3 * number <= epochs:
                continue
            empty = f"the mask of {klass} is empty on all held-out scans"
            if number == epochs:
                self._warn(
                    f"{klass} at last",
                    f"{empty}, also after the last of {epochs} epochs: it was not learnt. Label more of it, in more "
                    "scans, bring sizes with `inbounds facts`, or train for longer",
                )
            else:
                self._warn(klass, f"{empty} after epoch {number} of {epochs}")

    def _stop(self, epoch: int, at: int, caught: dict[str, float]) -> None:
        index = self.step.plan[at - 1]
        named = self._slices((index if self.volumes is None else self.volumes.patches.slices_of(index)).tolist())
        if self.whole_scans:
            named = [named[0].rpartition(" slice ")[0]]
        terms = ", ".join(f"{name} {value:g}" for name, value in caught.items())
        cases = some(named, NAMED)
        kept = f"The checkpoint after epoch {epoch - 1} is kept" if epoch > 1 else "No epoch is finished yet"
        raise NotFinite(
            f"{self.run.path}: the loss was not finite in epoch {epoch}, step {at}, on {cases} (terms: {terms}): "
            f"nothing was updated since. {kept}; a lower lr or weight helps"
        )

    def _rows(self) -> Generator[bool, None, list[Row]]:
        """What the epoch that just ended gave, and what validation finds."""
        self.state.epoch = number = self.state.epoch + 1
        if number == 1 and self.judged is not self.network:
            # The mean starts with the weights after the first epoch, not with the random ones before it.
            with self.stream.here():
                self.judged.load_state_dict(self.network.state_dict())
        rows = [Row(epoch=number, split="train", metric=f"loss_{key}", value=mean) for key, mean in self.means.items()]
        rows.append(Row(epoch=number, split="train", metric="lr", value=self.state.lr))
        if self.validated is not None:
            with self.stream.here():
                validation = self.validated()
            yield from self._drained()
            with self.stream.here():
                values = validation.values.tolist()
            for (metric, klass), value in zip(validation.names, values, strict=True):
                if not (math.isnan(value) and metric.startswith(("satisfied", "violations"))):  # then nothing was known
                    rows.append(Row(epoch=number, split="validation", klass=klass, metric=metric, value=value))
        return rows

    def _judge(self, rows: list[Row]) -> bool:
        """Whether this epoch's network is the best so far; and the learning rate of the next epoch."""
        numbers = {row.metric: row.value for row in rows if row.split == "validation" and not row.klass}
        self.validation = {metric: value for metric, value in numbers.items() if not math.isnan(value)}
        best = select(self.state, self.validation)
        with self.stream.here():
            self.schedule.advance(self.state, self.run.epochs or 1, self.optimiser)
        return best
