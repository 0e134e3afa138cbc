"""Several annotations as one, and some images of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import torch
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from inbounds.annotations.annotation import Annotation
from inbounds.regions.patches import Patches
from inbounds.regions.scans import Scans


def joined(annotations: Sequence[Annotation], **_: object) -> Annotation:
    """One annotation of all images in order.

    Example:
        >>> one = Annotation(torch.full((1, 4, 4), 255), facts={"size": torch.ones(1, 2, 1)})
        >>> both = joined([one, Annotation(torch.full((1, 4, 4), 255))])
        >>> both.facts["size"][:, 1, 0]
        tensor([1., nan])
    """
    if not annotations:
        raise ValueError("there is no annotation to make a batch of")
    if any(one.rest is not None or one.part is not None for one in annotations):
        raise ValueError("what is remembered of scans (`rest`), or shared by processes (`part`), is of one batch")
    if len({one.label.shape[1:] for one in annotations}) > 1:
        shapes = [tuple(one.label.shape) for one in annotations]
        raise ValueError(f"labels of different shapes do not make a batch: {shapes}")
    scans = None
    if any(one.scans is not None for one in annotations):
        alone = [Scans(torch.arange(one.batch, device=one.device), one.batch) for one in annotations]
        scans = _scans(
            [other if one.scans is None else one.scans for one, other in zip(annotations, alone, strict=True)]
        )
    patches = _scans([one.patches for one in annotations if one.patches is not None])
    if patches is not None and patches.index.shape[0] != sum(one.batch for one in annotations):
        raise ValueError("some annotations say which part of its image each image is (`patches`), some do not")
    rim = label_weight = None
    if any(one.label_weight is not None for one in annotations):
        alike = [torch.ones(one.batch, device=one.device) for one in annotations]
        label_weight = torch.cat(
            [
                other if one.label_weight is None else one.label_weight
                for one, other in zip(annotations, alike, strict=True)
            ]
        )
    if any(one.rim is not None for one in annotations):
        if any(one.rim is None for one in annotations):
            raise ValueError("some annotations have a rim, some do not: give each its own")
        rim = torch.cat([one.rim for one in annotations if one.rim is not None])
    return Annotation(
        torch.cat([one.label for one in annotations]),
        _facts([one.facts for one in annotations], [one.batch for one in annotations]),
        _facts(
            [one.scan_facts for one in annotations],
            [one.batch if one.scans is None else one.scans.count for one in annotations],
        ),
        scans,
        label_weight,
        rim,
        patches=patches if isinstance(patches, Patches) else None,
        index=_numbers([one.index for one in annotations], "index"),
        scan_index=_numbers([one.scan_index for one in annotations], "scan_index"),
    )


def _numbers(parts: Sequence[Tensor | None], name: str) -> Tensor | None:
    """Numbers of images or scans one after the other."""
    known = [part for part in parts if part is not None]
    if known and len(known) < len(parts):
        raise ValueError(f"some annotations say which images they are of (`{name}`), some do not")
    return torch.cat(known) if known else None


default_collate_fn_map[Annotation] = joined


def chosen(annotation: Annotation, images: int | slice | Sequence[int] | Tensor) -> Annotation:
    """The annotation of some images.

    Raises:
        ValueError: A scan would lose some of its slices, so that nothing is known of what is left.
    """
    every = torch.arange(annotation.batch, device=annotation.device)
    index = every[[images] if isinstance(images, int) else list(images) if isinstance(images, Sequence) else images]
    if annotation.rest is not None or annotation.part is not None:
        raise ValueError("what is remembered of scans (`rest`), or shared by processes (`part`), is of a whole batch")
    scans, scan_facts, order = annotation.scans, annotation.scan_facts, index
    if scans is None:
        scan_facts = {name: fact[index] for name, fact in scan_facts.items()}
    else:
        kept = scans.index[index].long()
        order = kept.unique()
        left = (scans.index.long()[:, None] == order).any(dim=1)
        if int(left.sum()) != len(index):
            raise ValueError("a scan would lose some of its slices: choose all slices of a scan, or none")
        scan_facts = {name: fact[order] for name, fact in scan_facts.items()}
        scans = _some(scans, index, torch.searchsorted(order, kept), order)
    patches = None
    if annotation.patches is not None:
        patches = _some(annotation.patches, index, torch.arange(len(index), device=index.device), index)
    return replace(
        annotation,
        label=annotation.label[index],
        facts={name: fact[index] for name, fact in annotation.facts.items()},
        scan_facts=scan_facts,
        scans=scans,
        label_weight=None if annotation.label_weight is None else annotation.label_weight[index],
        rim=None if annotation.rim is None else annotation.rim[index],
        patches=patches if isinstance(patches, Patches) else None,
        index=None if annotation.index is None else annotation.index[index],
        scan_index=None if annotation.scan_index is None else annotation.scan_index[order],
    )


def _scans(parts: Sequence[Scans]) -> Scans | None:
    """Scans of several batches, numbered on."""
    if not parts:
        return None
    firsts = [0, *accumulate(part.count for part in parts)]
    index = torch.cat([part.index + first for part, first in zip(parts, firsts, strict=False)])
    patches = [part for part in parts if isinstance(part, Patches)]
    if not patches:
        return Scans(index, firsts[-1])
    if len(patches) < len(parts):
        raise ValueError("some annotations hold patches of scans, some whole scans: give `Patches` for all")
    outside, found = (
        _facts([{} if one is None else {"": one} for one in sums], [part.count for part in patches]).get("")
        for sums in zip(*((part.outside, part.found) for part in patches), strict=True)
    )
    places, copies, sides = (
        torch.cat([getattr(part, name) for part in patches]) for name in ("places", "copies", "sides")
    )
    return Patches(index, firsts[-1], places, copies, sides, outside, found)


def _facts(each: Sequence[Mapping[str, Tensor]], rows: Sequence[int]) -> dict[str, Tensor]:
    """Facts one after the other; what some do not have is NaN for them."""
    made = {}
    for name in dict.fromkeys(name for facts in each for name in facts):
        like = next(facts[name] for facts in each if name in facts)
        parts = [
            facts.get(name, like.new_full((n, *like.shape[1:]), torch.nan)) for facts, n in zip(each, rows, strict=True)
        ]
        if len({part.shape[1:] for part in parts}) > 1:
            shapes = [tuple(part.shape) for part in parts]
            raise ValueError(f"fact {name!r} has other classes or components in some annotations: {shapes}")
        made[name] = torch.cat(parts)
    return made


def _some(scans: Scans, images: Tensor, index: Tensor, order: Tensor) -> Scans:
    """Those of some images, whose scans are numbered anew by `index`, and were numbered by `order`."""
    if not isinstance(scans, Patches):
        return Scans(index, len(order))
    return replace(
        scans,
        index=index,
        count=len(order),
        places=scans.places[images],
        copies=scans.copies[images],
        sides=scans.sides[order],
        outside=None if scans.outside is None else scans.outside[order],
        found=None if scans.found is None else scans.found[order],
    )
