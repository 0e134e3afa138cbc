"""One vocabulary for all tests: every statistic, bounds and penalty by name, and a batch of which all is known."""

from __future__ import annotations

import functools
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

import inbounds
from inbounds import UNLABELLED, Annotation, Common, Constraint, Fixed, Individual, Known, Scans, Tags

PLANE, VOLUME = (5, 6), (3, 4, 5)
SPACES = [PLANE, VOLUME]
INDEX = [0, 1, 0, 1]

STATISTICS = [
    "size",
    "size_mm",
    "fraction",
    "centroid",
    "spread",
    "moment",
    "mean_intensity",
    "variance_intensity",
    "compactness",
]
PENALTIES = {"quadratic": inbounds.quadratic, "hinge": inbounds.hinge, "log_barrier": inbounds.log_barrier(50.0)}
BOUNDS = {
    "tags": Tags(),
    "common": Common(0.5, 2.0),
    "individual": Individual(relative=0.1),
    "individual_absolute": Individual(absolute=0.2),
    "individual_upper": Individual(relative=0.1, tight="upper"),
    "known": Known(),
    "fixed": Fixed(0.5, 2.0),
    "lower_only": Fixed(1.0, None),
    "open": Fixed(None, None),
}


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers in [0, 1), the same at every call."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_probs(B: int, K: int, space: tuple[int, ...], seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return (4 * random(B, K, *space, seed=seed, dtype=dtype)).softmax(dim=1)


def one_hot(mask: Tensor, K: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A hard mask `(B, *space)` as probabilities."""
    return torch.nn.functional.one_hot(mask.long(), K).movedim(-1, 1).to(dtype)


def scans_of(space: tuple[int, ...]) -> Scans:
    """Four slices of two scans; a volume is a scan by itself, as parts of one have to say where they lie."""
    return Scans(torch.tensor(INDEX), 2) if len(space) < 3 else Scans(torch.arange(4), 4)


def potential(space: tuple[int, ...]) -> Tensor:
    """A potential of two components, the same for every image."""
    return random(2, *space, seed=7)


def statistic(name: str, space: tuple[int, ...]) -> inbounds.regions.Statistic:
    """A statistic by name, with its settings for images of this space."""
    if name == "size_mm":
        return inbounds.size.using(spacing=[0.5, 2.0, 3.0][: len(space)])
    if name == "fraction":
        return inbounds.fraction.using(potential=potential(space))
    if name == "moment":
        return inbounds.moment.using(order=2)
    return getattr(inbounds, name)


def measure(name: str, probs: Tensor, image: Tensor | None = None, scans: Scans | None = None) -> Tensor:
    measured = statistic(name, tuple(probs.shape[2:]))
    return measured(probs, **measured.inputs(image, scans))


def constraint(name: str, space: tuple[int, ...], bounds: object, /, *args: object, **settings: object) -> Constraint:
    """A constraint on a named statistic, without the warning about tags that say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Constraint(statistic(name, space), bounds, *args, **settings)


def related(**settings: object) -> list[Constraint]:
    """A union, and every relation, of three classes and the background."""
    return [
        Constraint(inbounds.size, Individual(relative=0.1), classes=[(1, 2)], name="union", **settings),
        Constraint(inbounds.ratio, Fixed(0.1, 0.2), classes=[1, (1, 2)], **settings),
        Constraint(inbounds.inclusion, Fixed(0.9, None), classes=[1, (1, 2)], **settings),
        Constraint(inbounds.distance, Common(5.0, 6.0), classes=[1, 2, 0], **settings),
        Constraint(inbounds.offset, Common(1.0, None), classes=[1, 2], class_weight=[0.5], **settings),
    ]


class Batch(NamedTuple):
    logits: Tensor
    image: Tensor
    annotation: Annotation


def batch(K: int, space: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Batch:
    """Four images, in 2-D of two scans: some labels, every fact; image 1 lacks a class, image 2 is little known."""
    logits = 4 * random(4, K, *space, dtype=dtype)
    return Batch(logits, *_known(K, space, dtype))


@functools.cache
def _known(K: int, space: tuple[int, ...], dtype: torch.dtype) -> tuple[Tensor, Annotation]:
    image = random(4, 2, *space, seed=1, dtype=dtype)
    label = torch.full((4, *space), UNLABELLED)
    label[0, 0], label[1, -1, :2] = K - 1, 0
    scans = scans_of(space)
    present = torch.ones(4, K, 1)
    present[1, -1], present[2, -1] = 0, torch.nan
    facts, scan_facts = {"present": present}, {"present": torch.ones(scans.count, K, 1)}
    other = random_probs(4, K, space, seed=2, dtype=dtype)
    for name in STATISTICS:
        if name != "size_mm":
            facts[name] = measure(name, other, image)
            facts[name][2] = torch.nan
            scan_facts[name] = measure(name, other, image, scans)
    facts["size"][1, -1] = 0  # as it is absent
    return image, Annotation(label, facts, scan_facts, scans)
