"""From a store to batches on a device.

What training may see (`Samples`) and what evaluation may see (`Truth`) are different objects: no batch holds the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer, Shaped, UInt8
from torch import Tensor

from inbounds.annotations.annotation import UNLABELLED, Annotation
from inbounds.batches.ahead import Ahead, Held, LabelMaps
from inbounds.batches.fact_tensors import to_tensors
from inbounds.errors import BadInput
from inbounds.memory import require
from inbounds.regions.scans import Scans
from inbounds.store.blocks import Images
from inbounds.store.record import Record
from inbounds.store.rle import Labels
from inbounds.store.store import Store


@dataclass(frozen=True)
class Batch:
    """Some images and what is known of them: all that a supervision receives.

    Attributes:
        image: What the network sees.
        annotation: What is known.
        zoom: By what factor augmentation enlarged each of them; `None` where it did not.
    """

    image: Float[Tensor, "B channels *space"]
    annotation: Annotation
    zoom: Float[Tensor, " B"] | None = None


@dataclass(frozen=True)
class Group:
    """Some whole scans of a `Samples`, by position: all on the device, so that nothing travels when it is used.

    Attributes:
        index: The positions of their slices.
        scans: Which of them each slice belongs to.
        which: Their numbers.
    """

    index: Int[Tensor, " B"]
    scans: Scans
    which: Int[Tensor, " S"]


class Samples:
    """Slices with their annotation, as tensors: on the device as stored (8-bit), or streamed from the disk.

    Args:
        images: The slices, in the store's own type.
        labels: Chosen classes as 1, 2, ...; 255 where unlabelled.
        facts: Of each slice, `(n, K, M)`.
        scan_facts: Of each scan, `(scans, K, M)`.
        records: The scans, whose slices follow each other.
        device: Where batches are made.
        rows: Where `images` is the whole store, the row of each slice in it.
        label_weight: How much the labels of each slice count in a loss; all alike if not given.
    """

    def __init__(
        self,
        images: Shaped[Tensor, "stored channels *space"] | Images,
        labels: UInt8[Tensor, "n *space"] | LabelMaps,
        facts: Mapping[str, Float[Tensor, "n K _"]],
        scan_facts: Mapping[str, Float[Tensor, "scans K _"]],
        records: Sequence[Record],
        device: torch.device | str = "cpu",
        *,
        rows: Int[Tensor, " n"] | None = None,
        label_weight: Float[Tensor, " n"] | None = None,
    ) -> None:
        self.images, self.labels, self.records, self.rows = images, labels, tuple(records), rows
        self.facts, self.scan_facts, self.label_weight = dict(facts), dict(scan_facts), label_weight
        self.device = torch.device(device)
        self.firsts = np.cumsum([0, *(record.slices for record in records)])
        self.classes = self.facts["present"].shape[1]
        self.pixels = math.prod(labels.shape[1:])

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def resident(self) -> Integer[Tensor, "n *space"]:
        """The label maps, which are in memory."""
        assert isinstance(self.labels, Tensor)
        return self.labels

    @cached_property
    def known(self) -> Bool[Tensor, " n"]:
        """Of which slices anything is known, a label or a fact; on the CPU."""
        pieces = [(piece != UNLABELLED).flatten(1).any(dim=1) for piece in self.labels.split(256)]
        facts = [~fact.isnan().flatten(1).all(dim=1).cpu() for name, fact in self.facts.items() if name != "cut"]
        return torch.stack([torch.cat(pieces).cpu(), *facts]).any(dim=0)

    def slices_of(self, scan: int) -> range:
        """The positions of a scan's slices."""
        return range(int(self.firsts[scan]), int(self.firsts[scan + 1]))

    @cached_property
    def scans(self) -> Scans:
        """Which scan each slice belongs to, on the device."""
        owner = torch.repeat_interleave(torch.tensor([record.slices for record in self.records]))
        return Scans(owner.to(self.device), len(self.records))

    @cached_property
    def ahead(self) -> Ahead | None:
        """What reads slices that lie on the disk; nothing where they are in memory."""
        if self.rows is None or isinstance(self.images, Tensor):
            return None
        return Ahead(self.images, self.labels, self.rows, pinned=self.device.type == "cuda")

    def batch(self, index: Int[Tensor, " B"], held: Held | None = None) -> Batch:
        """Slices by position, each by itself, which may have been read already."""
        return self._batch(index, {}, None, None, held)

    def group(self, scans: Sequence[int]) -> Group:
        """Some whole scans, ready for use."""
        slices = [self.slices_of(scan) for scan in scans]
        index = torch.tensor([position for some in slices for position in some], device=self.labels.device)
        owner = torch.tensor([number for number, some in enumerate(slices) for _ in some], device=self.device)
        return Group(index, Scans(owner, len(scans)), torch.tensor(list(scans), device=self.device))

    def groups(self, size: int) -> list[Group]:
        """All scans in order, in groups of at most so many slices (or of a single scan)."""
        groups: list[list[int]] = []
        slices = 0
        for scan, record in enumerate(self.records):
            if not groups or slices + record.slices > size:
                groups.append([])
                slices = 0
            groups[-1].append(scan)
            slices += record.slices
        return [self.group(scans) for scans in groups]

    def whole(self, group: Group, held: Held | None = None) -> Batch:
        """All slices of some scans, for constraints on whole volumes; they may have been read already."""
        facts = {name: fact[group.which] for name, fact in self.scan_facts.items()}
        return self._batch(group.index, facts, group.scans, group.which, held)

    def wholes(self, groups: Sequence[Group]) -> Iterator[Batch]:
        """The same of several groups, one after the other."""
        if self.ahead is not None:
            self.ahead.begin(group.index for group in groups)
        for group in groups:
            yield self.whole(group, None if self.ahead is None else self.ahead.next())

    def scan_batch(self, scans: Sequence[int]) -> Batch:
        """The same, of scans by number."""
        return self.whole(self.group(scans))

    def _batch(
        self,
        index: Tensor,
        scan_facts: Mapping[str, Tensor],
        scans: Scans | None,
        which: Tensor | None,
        held: Held | None = None,
    ) -> Batch:
        here = index.to(self.device)
        images, labels = self._held(index) if held is None else held
        stored, label = images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)
        facts = {name: fact[here] for name, fact in self.facts.items()}
        label_weight = None if self.label_weight is None else self.label_weight[here]
        annotation = Annotation(label, facts, scan_facts, scans, label_weight, index=here, scan_index=which)
        return Batch(as_float(stored), annotation)

    def _held(self, index: Tensor) -> Held:
        """Some slices, from memory or from the disk."""
        there = index.to(self.labels.device)
        if self.ahead is not None:
            return self.ahead.read(there)
        assert isinstance(self.images, Tensor)
        return Held(self.images[there if self.rows is None else self.rows[there]], self.labels[there])


def as_float(stored: Shaped[Tensor, "B channels *space"]) -> Float[Tensor, "B channels *space"]:
    """Slices as a network sees them: brightness from 0 to 1, whether stored with 8 bits or as float16."""
    return stored.float() / 255 if stored.dtype == torch.uint8 else stored.float()


def load(
    store: Store,
    annotation: str,
    *,
    facts: str | None = None,
    classes: Sequence[str] = (),
    split: str | None = "train",
    device: torch.device | str = "cpu",
    data_on_device: bool = True,
    full_scans: int = 0,
    only_full: bool = False,
    repeat: int = 1,
    weak_label_weight: float = 1.0,
    seed: int = 0,
) -> Samples:
    """The slices of a split with one of the store's annotations.

    Args:
        store: The prepared data set.
        annotation: The name of the weak labels; `full` for complete ones.
        facts: The name of the facts; those that belong to the annotation if not given, none for `full`.
        classes: Which classes become 1, 2, ... in this order; all of them if not given. The others become background.
        split: `train`, `validation`, `test`, or `None` for everything.
        device: Where batches are made.
        data_on_device: Keep all slices there. Otherwise they stay on the disk, and travel batch by batch.
        full_scans: Hybrid training: so many scans, drawn by the seed, have complete labels and nothing else is known of
            them, which leaves their bounds open. The paper counts scans, not patients.
        only_full: Keep only those scans.
        repeat: How often those scans are there.
        weak_label_weight: How much the labels of the other scans count in a loss, where those scans' own count as 1.
        seed: Of that draw.
    """
    chosen = store.chosen(classes)
    name = facts or (annotation if annotation in store.fact_names else None)
    table, scan_table = to_tensors(store, store.facts(name) if name else None, chosen)
    numbers = _in_split(store, split)
    full = draw_full(store, numbers, full_scans, seed, only=only_full)
    if only_full:
        numbers = sorted(full)
    numbers = [n for n in numbers for _ in range(repeat if n in full else 1)]
    remap = class_table(len(store.classes), chosen)
    spans = [record.span for record in store.records]
    for n in full:
        for fact in table.values():
            fact[spans[n]] = torch.nan
        for fact in scan_table.values():
            fact[n] = torch.nan
    given = store.label(annotation)
    count = sum(store.records[n].slices for n in numbers)
    where = torch.device(device) if data_on_device else torch.device("cpu")
    labels: Tensor | LabelMaps
    if data_on_device:
        each = 2 + store.channels * store.dtype.itemsize * (where.type == "cpu")
        what = f"{store.path}: holding {count:,} slices of {store.shape[0]} x {store.shape[1]} pixels"
        require(count * math.prod(store.shape) * each, what, "use fewer scans, or prepare a smaller grid")
        maps = ((store.truth if n in full else given)[spans[n]] for n in numbers)
        labels = torch.from_numpy(_drawn(maps, remap, (count, *store.shape))).to(where)
    else:
        labels = _kept(store, numbers, remap, lambda n: store.truth if n in full else given)
    rows = torch.tensor([row for n in numbers for row in store.records[n].range])
    label_weight = None
    if weak_label_weight != 1:
        weight = [1.0 if n in full else weak_label_weight for n in numbers for _ in store.records[n].range]
        label_weight = torch.tensor(weight).to(device)
    return Samples(
        torch.from_numpy(store.images[rows.numpy()]).to(where) if data_on_device else store.images,
        labels,
        {name: fact[rows].to(device) for name, fact in table.items()},
        {name: fact[torch.tensor(numbers)].to(device) for name, fact in scan_table.items()},
        [store.records[n] for n in numbers],
        device,
        rows=None if data_on_device else rows,
        label_weight=label_weight,
    )


def draw_full(store: Store, numbers: Sequence[int], count: int, seed: int, *, only: bool) -> set[int]:
    """Scans to be labelled completely, drawn from those whose truth is known; some, if only they are kept."""
    if only and not count:
        raise BadInput(f"{store.path}: to keep only fully labelled scans, ask for some: full_scans is 0")
    known = [n for n in numbers if store.records[n].truth]
    if not 0 <= count <= len(known):
        raise BadInput(f"{store.path}: {count} fully labelled scans asked for, and {len(known)} have a truth")
    return set(np.random.default_rng(seed).permutation(known)[:count].tolist())


def class_table(classes: int, chosen: Sequence[int]) -> UInt8[np.ndarray, " 256"]:
    """From the store's classes to 1, 2, ... for the chosen ones; the others are background, 255 stays 255."""
    table = np.full(256, UNLABELLED, dtype=np.uint8)
    table[:classes] = 0
    for number, value in enumerate(chosen, start=1):
        table[value] = number
    return table


def truth_of(
    store: Store, *, classes: Sequence[str] = (), split: str | None = "validation", device: torch.device | str = "cpu"
) -> UInt8[Tensor, "n *space"]:
    """The full masks of a split, in the order of its `Samples`, 255 where unknown. For evaluation only."""
    chosen = store.chosen(classes)
    remap = class_table(len(store.classes), chosen)
    records = [store.records[n] for n in _in_split(store, split)]
    masks = (store.truth[record.span] for record in records)
    shape = sum(record.slices for record in records), *store.shape
    return torch.from_numpy(_drawn(masks, remap, shape)).to(device)


def truth_maps(store: Store, *, classes: Sequence[str] = (), split: str | None = "validation") -> LabelMaps:
    """The same, drawn when they are asked for."""
    table = class_table(len(store.classes), store.chosen(classes))
    return _kept(store, _in_split(store, split), table, lambda _: store.truth)


def _in_split(store: Store, split: str | None) -> list[int]:
    """The numbers of the scans of a split, of which there must be one."""
    numbers = [n for n, record in enumerate(store.records) if split is None or record.split == split]
    if not numbers:
        raise BadInput(f"{store.path}: no scan is in the split {split!r}")
    return numbers


def _drawn(scans: Iterable[np.ndarray], table: np.ndarray, shape: tuple[int, ...]) -> UInt8[np.ndarray, "n *space"]:
    """The label maps of some scans with other values, one after the other."""
    made = np.empty(shape, dtype=np.uint8)
    for into, one in zip(made, (one for scan in scans for one in scan), strict=True):
        into[:] = table[one]
    return made


def _kept(store: Store, numbers: Sequence[int], table: np.ndarray, maps: Callable[[int], Labels]) -> LabelMaps:
    """The label maps of some scans, drawn when they are asked for."""
    rows = np.array([row for n in numbers for row in store.records[n].range])
    return LabelMaps([maps(n) for n in numbers for _ in store.records[n].range], rows, table)


def by_slice(
    samples: Samples, size: int, generator: torch.Generator, *, repeats: int = 1, most: int | None = None
) -> Iterator[Int[Tensor, " B"]]:
    """The positions of an epoch's batches in random order.

    Of slices that have a label or a fact each appears once. Where they are fewer than half, they appear more often,
    the others less: half of every batch has something known.

    Args:
        samples: What is trained on.
        size: Slices a batch; the last batch may hold fewer.
        generator: On the CPU.
        repeats: How often each slice appears, each time augmented anew: 4 for the paper's prostate set-up.
        most: Slices in an epoch, if not all of them.
    """
    length = min(len(samples) * repeats, most or len(samples) * repeats)
    known, others = samples.known.nonzero()[:, 0], (~samples.known).nonzero()[:, 0]
    if not 0 < len(known) < len(samples):
        yield from (torch.randperm(len(samples) * repeats, generator=generator) % len(samples))[:length].split(size)
        return
    share = max(0.5, len(known) / len(samples))
    first, second = (_cycled(some, length, generator) for some in (known, others))
    used = 0
    for start in range(0, length, size):
        end = min(start + size, length)
        now = math.ceil(round(share * end, 6))  # of those so far, so that in an epoch of all slices each appears once
        yield torch.cat([first[used:now], second[start - used : end - now]])
        used = now


def _cycled(some: Int[Tensor, " n"], length: int, generator: torch.Generator) -> Int[Tensor, " length"]:
    """All of them in random order, again and again, until there are so many."""
    rounds = math.ceil(length / len(some))
    return torch.cat([some[torch.randperm(len(some), generator=generator)] for _ in range(rounds)])[:length]


def by_scan(samples: Samples, generator: torch.Generator) -> Iterator[int]:
    """The scans of an epoch in random order, for batches that hold one whole scan each."""
    yield from torch.randperm(len(samples.records), generator=generator).tolist()
