"""The training loop. It receives a supervision and never asks which one it is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from inbounds.datasets.augment import Augment
from inbounds.datasets.batches import Batch, Samples, by_scan, by_slice, load, truth_of
from inbounds.errors import BadInput
from inbounds.evaluation.validate import numbers, validate
from inbounds.runs import checkpoint
from inbounds.runs.checkpoint import State
from inbounds.runs.metrics import Log, Measured
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.runs.supervise import supervision_of
from inbounds.supervision import Supervision


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
        rate: The learning rate.
        terms: Mean of each loss term over this epoch so far.
        validation: What the last validation found, by metric (of all classes together).
        seconds_left: An estimate for the whole run.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    rate: float
    terms: dict[str, float]
    validation: dict[str, float]
    seconds_left: float


def fabric_module() -> ModuleType:
    """Lightning Fabric, from whichever of its two packages is installed."""
    try:
        import lightning.fabric as fabric
    except ImportError:
        try:
            import lightning_fabric as fabric  # type: ignore[no-redef]
        except ImportError:
            raise BadInput("training needs Lightning Fabric: pip install 'inbounds[train]'") from None
    return fabric


class Trainer:
    """One run on its way: data, network, optimiser and where it stands."""

    def __init__(self, run: Run, show: Callable[[Progress], None] = lambda _: None) -> None:
        settings = run.settings
        self.run, self.show = run, show
        store = run.opened_store()
        self.fabric = fabric_module().Fabric(
            accelerator=settings.training.device if settings.training.device != "auto" else "auto",
            devices=1,
            precision="32-true" if settings.training.precision == "32" else settings.training.precision,
        )
        torch.manual_seed(run.seed)
        device = self.fabric.device
        self.supervision: Supervision = supervision_of(settings, store, run.classes, run.facts)
        chosen: dict[str, Any] = {"facts": run.facts, "classes": run.classes, "device": device}
        self.samples = load(
            store,
            run.annotation,
            split="train",
            resident=settings.training.resident,
            full_scans=settings.hybrid.full_scans,
            only_full=settings.hybrid.only_full,
            seed=run.seed,
            **chosen,
        )
        held_out = [record for record in store.records if record.split == "validation"]
        self.held_out: Samples | None = None
        self.truth: Tensor | None = None
        if held_out:
            self.held_out = load(
                store, run.annotation, split="validation", resident=settings.training.resident, **chosen
            )
            if any(record.truth for record in held_out):
                self.truth = truth_of(store, classes=run.classes, split="validation", device=device)
        self.augment = Augment(**settings.augment.model_dump())
        self.network: nn.Module = build_network(run).to(device)
        self.rate = torch.tensor(settings.training.rate, device=device)
        self.optimiser = torch.optim.Adam(
            self.network.parameters(),
            lr=self.rate,
            betas=settings.training.betas,
            weight_decay=settings.training.weight_decay,
            fused=True,
        )
        # Fused Adam skips its step while this is 1: once a loss is not finite, nothing is updated any more.
        self.broken = torch.zeros((), device=device)
        self.optimiser.found_inf = self.broken  # type: ignore[attr-defined]
        self.broken_at = torch.full((), -1, dtype=torch.long, device=device)
        self.broken_terms: dict[str, Tensor] = {}
        self.wrapped = self.fabric.setup_module(self.network)
        self.order = torch.Generator().manual_seed(run.seed)
        self.state = State(rate=settings.training.rate)
        self.found: dict[str, float] = {}
        whole = settings.training.whole_scans
        volumes = any(constraint.scope == "volume" for constraint in self.supervision.constraints)
        self.whole_scans = volumes if whole is None else whole
        if volumes and not self.whole_scans:
            raise BadInput(
                "a constraint on volumes needs whole scans: leave training.whole_scans out, or set it to true"
            )

    def fit(self, *, resume: bool = False) -> None:
        """Train until the last epoch. With `resume`, go on from the newest checkpoint.

        Raises:
            NotFinite: The loss was NaN or infinite; the last good checkpoint is kept.
            BadInput: The disk does not take the checkpoint, which leaves the last one intact.
        """
        latest = self.run.checkpoint
        if latest is not None and not resume:
            raise BadInput(f"{self.run.path}: this run has begun already; add --resume to go on with it")
        if latest is not None:
            self.state = checkpoint.load(latest, self.network, self.optimiser)
            self._restore_generators()
        self._set_rate(self.state.rate)
        log = Log(self.run.path, self.state.epoch)
        begun, before = time.monotonic(), self.state.epoch
        try:
            while self.state.epoch < self.run.settings.training.epochs:
                rows = self._epoch(begun, before)
                better = self._judge(rows)
                log.write(rows)
                self.state.generators = self._generators()
                checkpoint.save(self.run.path, self.state, self.network, self.optimiser, better)
        finally:
            log.close()

    def _batches(self) -> Iterator[tuple[Batch, Callable[[], list[str]]]]:
        """Each batch of an epoch, and a way to learn which slices it holds, for messages."""
        if self.whole_scans:
            for scan in by_scan(self.samples, self.order):
                yield self.samples.scan_batch([scan]), partial(self._scan_names, scan)
        else:
            training = self.run.settings.training
            for index in by_slice(self.samples, training.batch, self.order, copies=training.copies):
                yield self.samples.batch(index), partial(self._names, index)

    def _steps(self) -> int:
        training = self.run.settings.training
        if self.whole_scans:
            return len(self.samples.records)
        return math.ceil(len(self.samples) * training.copies / training.batch)

    def _epoch(self, begun: float, before: int) -> list[Measured]:
        self.network.train()
        number, steps = self.state.epoch + 1, self._steps()
        sums: dict[str, Tensor] = {}
        told = time.monotonic()
        recent: dict[int, Callable[[], list[str]]] = {}
        neutral = self.augment == Augment()
        for step, (batch, names) in enumerate(self._batches(), start=1):
            if not neutral:
                batch, _ = self.augment(batch)
            recent[step] = names
            named = self._step(batch, step)
            for name, term in named.items():
                sums[name] = sums[name] + term if name in sums else term
            now = time.monotonic()
            if step == steps or now - told > 1:
                told = now
                self._stop_if_broken(number, recent)
                recent.clear()
                done = (number - 1 - before + step / steps) or 1e-9
                left = (now - begun) / done * (self.run.settings.training.epochs - before - done)
                terms = {name: float(value) / step for name, value in sums.items()}
                self.show(
                    Progress(
                        number, self.run.settings.training.epochs, step, steps, self.state.rate, terms, self.found, left
                    )
                )
        rows = [Measured(number, "train", f"loss_{name}", "", float(value) / steps) for name, value in sums.items()]
        rows.append(Measured(number, "train", "rate", "", self.state.rate))
        self.state.epoch = number
        if self.held_out is not None:
            seen = validate(self.wrapped, self.held_out, self.truth, self.supervision)
            for metric, klass, value in numbers(seen, self.held_out, self.run.classes):
                rows.append(Measured(number, "validation", metric, klass, value))
        return rows

    def _step(self, batch: Batch, step: int) -> dict[str, Tensor]:
        self.optimiser.zero_grad(set_to_none=True)
        total, named = self.supervision(self.wrapped(batch.image), batch.image, batch.annotation)
        self.fabric.backward(total)
        first = (~total.detach().isfinite()) & (self.broken == 0)
        self.broken_at.copy_(torch.where(first, step, self.broken_at))
        for name, term in named.items():
            self.broken_terms[name] = torch.where(first, term, self.broken_terms.get(name, term))
        self.broken.copy_(torch.maximum(self.broken, first.float()))
        self.optimiser.step()
        return named

    def _stop_if_broken(self, epoch: int, recent: dict[int, Callable[[], list[str]]]) -> None:
        """Look at the latch, and tell what it caught; `recent` names the batches since the last look."""
        if not bool(self.broken):
            return
        at = int(self.broken_at)
        cases = ", ".join(recent[at]())
        terms = ", ".join(f"{name} {float(value):g}" for name, value in self.broken_terms.items())
        raise NotFinite(
            f"{self.run.path}: the loss was not finite in epoch {epoch}, step {at}, on {cases} (terms: {terms}): "
            f"nothing was updated since. The checkpoint after epoch {epoch - 1} is kept; a lower rate or weight helps"
        )

    def _judge(self, rows: list[Measured]) -> dict[str, bool]:
        """Which kept networks this epoch's takes the place of; and the rate of the next epoch."""
        self.found = {row.metric: row.value for row in rows if row.split == "validation" and not row.klass}
        score, violations = self.found.get("dsc_slice"), self.found.get("violations")
        better = {"best": False, "constraints": False}
        if score is not None and not math.isnan(score) and (self.state.best is None or score > self.state.best[0]):
            self.state.best, better["best"] = (score, self.state.epoch), True
        if violations is not None and (self.state.fewest is None or violations < self.state.fewest[0]):
            self.state.fewest, better["constraints"] = (violations, self.state.epoch), True
        judge = "best" if score is not None else "constraints"
        if score is None and violations is None:
            return better
        self.state.bad_epochs = 0 if better[judge] else self.state.bad_epochs + 1
        if self.state.bad_epochs >= self.run.settings.training.patience:
            self.state.bad_epochs = 0
            self._set_rate(self.state.rate * self.run.settings.training.factor)
        return better

    def _set_rate(self, rate: float) -> None:
        self.state.rate = rate
        self.rate.fill_(rate)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate

    def _generators(self) -> dict[str, Tensor]:
        found = {"generator.order": self.order.get_state(), "generator.cpu": torch.get_rng_state()}
        if self.fabric.device.type == "cuda":
            found["generator.cuda"] = torch.cuda.get_rng_state(self.fabric.device)
        return found

    def _restore_generators(self) -> None:
        kept = self.state.generators
        self.order.set_state(kept["generator.order"])
        torch.set_rng_state(kept["generator.cpu"])
        if self.fabric.device.type == "cuda" and "generator.cuda" in kept:
            torch.cuda.set_rng_state(kept["generator.cuda"], self.fabric.device)

    def _scan_names(self, scan: int) -> list[str]:
        return [self.samples.records[scan].name]

    def _names(self, index: Tensor) -> list[str]:
        found = []
        for position in index.tolist():
            scan = next(n for n in range(len(self.samples.records)) if position in self.samples.slices_of(n))
            record = self.samples.records[scan]
            found.append(f"{record.name} slice {position - self.samples.slices_of(scan).start}")
        return found
