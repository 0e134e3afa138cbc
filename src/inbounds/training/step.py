"""One training step: gather, augment, forward, supervision, backward, update. Nothing is read back from the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.ahead import Held
from inbounds.batches.augment import Augment
from inbounds.batches.patches import PatchSamples
from inbounds.batches.samples import Batch, Samples
from inbounds.batches.samples import Group as Scanned
from inbounds.ranks import Part
from inbounds.regions.scans import Scans
from inbounds.supervision import Supervision
from inbounds.training.group import Group
from inbounds.training.scan_sizes import ScanSizes
from inbounds.training.schedule import Schedule
from inbounds.training.stream import GraphedStep, Stream


class Step:
    """The steps of a run's epochs.

    All that a step needs lies on the device: the order of the epoch's slices and how many of them are done, the
    learning rate, the sums of the loss terms, and a latch. Once a loss is not finite, the latch keeps the optimiser
    from updating anything, and remembers the step and its terms. So a step is the same sequence of kernels every time.

    Args:
        network: As it is trained: gives logits.
        supervision: Gives a total and its terms.
        samples: What is trained on.
        augment: What changes every batch.
        optimiser: Fused, so that it minds the latch.
        backward: Takes the total.
        stream: Where steps run.
        whole_scans: Whether a batch is one whole scan.
        compiled: A length of batch, and the network and the supervision compiled for it.
        mean: A running mean of the network's weights, and the share of it that stays at each step.
        schedule: Sets the learning rate and the weights of the step.
        scan_sizes: What is remembered of scans, where a constraint is on whole ones and batches are not.
        patches: Of volumes, which take the place of the samples' slices and are augmented already.
        group: The processes that share each batch, if there are others.
    """

    def __init__(
        self,
        network: nn.Module,
        supervision: Supervision,
        samples: Samples,
        augment: Augment,
        optimiser: torch.optim.Optimizer,
        backward: Callable[[Tensor], None],
        stream: Stream,
        *,
        whole_scans: bool = False,
        compiled: tuple[int, Callable[..., Any], Callable[..., Any]] | None = None,
        mean: tuple[nn.Module, float] | None = None,
        schedule: Schedule | None = None,
        scan_sizes: ScanSizes | None = None,
        patches: PatchSamples | None = None,
        group: Group | None = None,
    ) -> None:
        self.network: Callable[..., Any] = network
        self.supervision: Callable[..., Any] = supervision
        self.samples, self.optimiser, self.schedule = samples, optimiser, schedule
        self.scan_sizes, self.patches, self.group = scan_sizes, patches, group
        self.augment = None if augment == Augment() or patches is not None else augment
        self.backward, self.stream, self.whole_scans, self.compiled = backward, stream, whole_scans, compiled
        self.mean: tuple[list[Tensor], list[Tensor], float] | None = None
        if mean is not None:
            averaged, stays = mean
            self.mean = _numbers(averaged), _numbers(network), 1 - stays
        device = stream.device
        self.names: list[str] = []
        self.plan: Sequence[Tensor] = ()
        self.at = 0
        self.held: dict[int, Held] = {}
        self.positions = torch.zeros(0, dtype=torch.long, device=device)
        self.taken = torch.zeros((), dtype=torch.long, device=device)
        counters = (torch.zeros((), dtype=torch.float32, device=device) for _ in range(3))
        self.count, self.broken, self.broken_at = counters
        self.labelled = torch.zeros((), device=device)
        self.sums, self.broken_terms = (torch.zeros(0, device=device) for _ in range(2))
        # Fused Adam skips its update while this is 1.
        optimiser.found_inf = self.broken  # type: ignore[attr-defined]
        self.replayed = GraphedStep(self._step, stream)

    def begin(self, plan: Sequence[Tensor]) -> None:
        """Start an epoch: the positions of each batch, in order."""
        self.plan, self.at = plan, 0
        order = torch.cat(list(plan))
        if self.samples.ahead is not None:
            self.samples.ahead.begin(self._own(index) for index in plan)
        if self.stream.cuda:
            order = order.pin_memory()
        if len(self.positions) != len(order):
            if self.replayed.graphs:
                raise RuntimeError("an epoch cannot change its length: captured graphs read where its order lies")
            self.positions = torch.empty_like(order, device=self.stream.device)
        self.positions.copy_(order, non_blocking=True)
        for counter in (self.taken, self.count, self.labelled, self.sums):
            counter.zero_()

    def __call__(self) -> None:
        """The next batch of the epoch."""
        length = len(self.plan[self.at])
        if self.samples.ahead is not None:
            self._hold(length, self.samples.ahead.next())
        self.replayed(length)
        self.at += 1

    def _hold(self, length: int, read: Held) -> None:
        """Put what was read where the step looks for it: on a GPU always the same place, which its graph knows."""
        if not self.stream.cuda:
            self.held[length] = read
            return
        if length not in self.held:
            self.held[length] = Held(*(torch.empty_like(one, device=self.stream.device) for one in read))
        for place, one in zip(self.held[length], read, strict=True):
            place.copy_(one, non_blocking=True)

    def numbers(self) -> Tensor:
        """How far the epoch is, the labelled pixels, the latch and its step, the sums of terms and those caught.

        Labelled pixels are those that this process has seen; all else is of the whole batches.
        """
        counters = [self.count, self.labelled, self.broken, self.broken_at]
        return torch.cat([torch.stack(counters), self.sums, self.broken_terms])

    def _step(self, length: int) -> None:
        if self.schedule is not None:
            self.schedule.step()
        index = self._index(length)
        part = None if self.group is None else self.group.part(length)
        batch = self._batch(self._own(index), part, self.held.get(length))
        if self.augment is not None:
            batch, _ = self.augment(batch, generator=self.stream.shared)
        if self.scan_sizes is not None:
            batch = self.scan_sizes.annotated(batch, index)
        network, supervision = self.network, self.supervision
        if self.compiled is not None and self.compiled[0] == length:
            _, network, supervision = self.compiled
        self.optimiser.zero_grad(set_to_none=True)
        logits = network(batch.image)
        total, named = supervision(logits, batch.image, batch.annotation)
        self.backward(total)
        terms = torch.stack(list(named.values()))
        if not self.names:
            self.names = list(named)
            self.sums, self.broken_terms = torch.zeros_like(terms), torch.zeros_like(terms)
        self.count += 1
        if part is None or part.counts:
            self.labelled += (batch.annotation.label != UNLABELLED).sum()
        self.sums += terms
        first = (~total.detach().isfinite()) & (self.broken == 0)
        self.broken_at.copy_(torch.where(first, self.count, self.broken_at))
        self.broken_terms.copy_(torch.where(first, terms, self.broken_terms))
        self.broken.copy_(torch.maximum(self.broken, first.float()))
        if self.scan_sizes is not None:
            self.scan_sizes.remember(batch, index, logits, self.broken)
        self.optimiser.step()
        if self.mean is not None:
            torch._foreach_lerp_(*self.mean)

    def _own(self, index: Int[Tensor, " W"]) -> Int[Tensor, " B"]:
        return index if self.group is None else self.group.part(len(index)).take(index)

    def _index(self, length: int) -> Int[Tensor, " B"]:
        """The positions of the next slices."""
        index = self.positions[self.taken + torch.arange(length, device=self.stream.device)]
        self.taken += length
        return index

    def _batch(self, index: Int[Tensor, " B"], part: Part | None, held: Held | None) -> Batch:
        if self.patches is not None:
            return self.patches.batch(index, part, self.stream.shared)
        if self.whole_scans:
            one = torch.zeros(len(index), dtype=torch.long, device=self.stream.device)
            scan = self.samples.scans.index[index[:1].to(one.device)]
            batch = self.samples.whole(Scanned(index, Scans(one, 1, part=part), scan), held)
        else:
            batch = self.samples.batch(index, held)
        return replace(batch, annotation=replace(batch.annotation, part=part))


def _numbers(network: nn.Module) -> list[Tensor]:
    """All weights and running statistics, without counters."""
    return [tensor for tensor in network.state_dict().values() if tensor.is_floating_point()]
