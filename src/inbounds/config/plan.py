"""A plan turns a data set and a device into settings: a person may change any of it, and need change none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.fact_tensors import to_tensors
from inbounds.config.build import in_training
from inbounds.config.settings import ConstraintSettings, Settings
from inbounds.config.volumes import plan_volumes, wants_volumes
from inbounds.store.doubts import MARGIN, doubts
from inbounds.store.store import FULL, Store

COARSE = 192
"""Pixels along the shorter side from which a CPU computes at half the resolution: else it makes too few steps."""
COARSEST = 5
"""Pixels along the shorter side at the coarsest level of a network: fewer show no shape."""
WAIT = (0.05, 0.3)
"""Between these shares of the training bounds begin to act, where labels can teach what to bound."""
SHARE = 0.02
"""Of each class before training: what nobody labelled is background until something says otherwise."""
LR, FURTHER = 2e-3, 0.5
"""The learning rate, and the share of it at which a trained network goes on: in full, it would forget first."""
AUGMENT = {"rotate": 30, "zoom": 1.25, "contrast": 1.3, "brightness": 0.1}
REGULARISERS: dict[str, dict[str, Any]] = {
    "pairwise": {"term": {"name": "pairwise", "sigma": 0.1}, "weight": 0.3},
    "border": {
        "term": {"name": "border", "power": 1.5, "framed": True, "edge": 0.035},
        "weight": 100.0,
        "where": "present",
    },
}
"""What helps where few pixels are labelled; which of the two a plan takes depends on what is labelled."""
WEIGHT = {"image": 3.0, "volume": 10.0}
"""Of bounds around sizes: a scan's volume leaves open which slice has how much, and spreads over them."""
LOOSE = 0.3
"""Of bounds that say no size of any one region: tags, and a range common to all."""
OTHERS = 3
"""One slice in so many that are seen is of a scan labelled weakly, where others are labelled in full."""
BESIDE = {"labels": 0.01, "bounds": 1 / 30}
"""What weak labels and loose bounds of other scans count beside these: which show where the borders are."""
RARE = 2.0
"""Times as many clicks would be a class's equal share: from there on classes count the same."""
SLICES = 4000
"""Slices in an epoch on a CPU, at most: a few minutes."""

DERIVED = ("cut", "added_up")
"""What stands beside facts without being any."""


@dataclass(frozen=True)
class Plan:
    """Settings, and why.

    Attributes:
        settings: A layer of settings, below all that a person gives.
        words: What is known, what was chosen and why, a line each.
    """

    settings: dict[str, Any]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """What is known of the slices and scans to train on.

    Attributes:
        scans: How many there are.
        slices: And of slices.
        labelled: Labelled pixels by class of the store, background (0) first, and how many are unlabelled.
        sizes: Slices that have the size of a class, or a range.
        tags: Slices of which it is known whether a class is there.
        volumes: Scans whose own volume, or range, was given.
        words: What of it is used, in words.
        unknown: The classes that no label shows, and that no fact says are there.
    """

    scans: int
    slices: int
    labelled: dict[int, int]
    sizes: int
    tags: int
    volumes: int
    words: str
    unknown: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether no pixel is unlabelled."""
        return UNLABELLED not in self.labelled


def plan(
    settings: Settings,
    store: Store,
    annotation: str,
    facts: str | None,
    classes: Sequence[str],
    *,
    gpu: bool,
    margin: float | None = None,
    trained: bool = False,
    devices: int = 1,
) -> Plan:
    """Choose all that depends on the data and the device.

    Args:
        settings: What a person gave. A plan looks at the recipe, at hybrid training, and at whether a network is named.
        store: The data.
        annotation: The name of the labels.
        facts: The name of the facts, if there are any.
        classes: The classes that are learnt.
        gpu: Whether training runs on one.
        margin: How far off sizes that people gave may be, as a share; by default as the recipe has it.
        trained: Whether the network begins with weights that were trained before.
        devices: How many share a batch: each has an image at least.
    """
    known = look(store, annotation, facts, classes, settings)
    batch = max(2, min(16 if gpu else 8, known.slices // 4), devices)
    layer: dict[str, Any] = {
        "training": {
            "batch": batch,
            "lr": LR * (FURTHER if trained else 1),
            "schedule": "cosine",
            "ema": 0.99,
            "precision": "bf16-mixed" if gpu or half_on_cpu() else "32",
            **({} if gpu or known.slices <= SLICES else {"slices": SLICES}),
        },
        "augment": dict(AUGMENT),
    }
    noted = list(store.about(annotation).get("notes", ()))
    if facts is not None and not _simulated(store, facts):
        noted += doubts(store, annotation, store.facts(facts), MARGIN if margin is None else margin)
    words = [known.words, *(f"Warning: {note}" for note in noted)]
    if known.unknown and not settings.hybrid.full_scans:
        words.append(
            f"Warning: nothing in the training scans shows {', '.join(known.unknown)}: no pixel is labelled, and no "
            "fact says that it is there. Label some, bring facts with `inbounds facts`, or choose others with --classes"
        )
    if "name" not in settings.network.model_fields_set:
        layer["network"] = _network(store, gpu)
        shape = layer["network"]["settings"]
        half = " at half the resolution" if "coarse" in shape else ""
        words.append(
            f"network: a U-Net of width {shape['width']} with {shape['levels']} levels{half} "
            f"({'GPU' if gpu else 'CPU'}, {store.shape[0]}x{store.shape[1]} pixels)"
        )
    rate = f"learning rate {layer['training']['lr']:g} on a cosine"
    words.append(f"steps: batches of {batch}, {rate}{', as it goes on' * trained}, averaged weights")
    words.append("augmentation: turns of up to 30 degrees, zoom of up to 1.25, contrast and brightness")
    full = known.everything or settings.hybrid.only_full
    if settings.hybrid.full_scans and not full:
        often = _often(settings.hybrid.full_scans, known.scans)
        layer["hybrid"] = {"repeat": often, "weak_label_weight": BESIDE["labels"]}
        words.append(
            f"labels: the {settings.hybrid.full_scans} scans labelled in full are gone through {often} times as often, "
            f"so that about two thirds of the slices seen are theirs; labels of others count {BESIDE['labels']:g}"
        )
    taught = bool(settings.hybrid.full_scans) or known.labelled.keys() >= {0, *store.chosen(classes)}
    if not full and store.about(annotation).get("strategy") == "points":
        weights = _alike(known, store.chosen(classes))
        if max(weights) > RARE:
            layer["training"]["class_weight"] = weights
            words.append("labels: each class counts the same, as some were clicked much more often than others")
    if trained and not full:
        layer["training"]["label_mean"] = "classes"
        words.append(
            "labels: each class of a slice counts the same, as corrections are of one class and from few slices"
        )
    if not (full or settings.proposals):
        sized = any(_sized(written, known) for written in settings.constraints.values())
        _regularise(layer, words, taught, sized)
        # A trained network says so itself; in 3-D it was not shown to help where labels teach.
        if not trained and not (taught and wants_volumes(settings, store)):
            layer.setdefault("network", {})["initial_share"] = min(SHARE, 0.5 / len(classes))
        if taught and "coarse" in layer.get("network", {}).get("settings", {}):
            layer["regularisers"]["pairwise"]["term"]["stride"] = 4
    if not full and settings.proposals is None:
        alone = "background or a class has no label to learn from"
        first = "the network is trained already" if trained else "labels" if taught else alone
        _bound(layer, words, settings, known, first, margin)
    if wants_volumes(settings, store):
        plan_volumes(layer, words, settings, store, gpu=gpu, devices=devices)
    return Plan(layer, tuple(words))


def half_on_cpu() -> bool:
    """Whether this CPU computes in bfloat16 by itself, which takes a step to about 0.6 of its time."""
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def look(store: Store, annotation: str, facts: str | None, classes: Sequence[str], settings: Settings) -> Known:
    """Count what is known of the scans to train on; in words, what of it the settings use."""
    training = [record for record in store.records if record.split == "train"]
    labels, chosen = store.label(annotation), store.chosen(classes)
    labelled: dict[int, int] = {}
    for record in training:
        values, pixels = np.unique(labels[record.span], return_counts=True)
        for value, number in zip(values.tolist(), pixels.tolist(), strict=True):
            labelled[value] = labelled.get(value, 0) + number
    tables = to_tensors(store, None if facts is None else store.facts(facts), chosen)
    slices, scans = (in_training(store, tables, scope) for scope in ("image", "volume"))
    given = scans.get("added_up", torch.zeros_like(scans["present"])) != 1

    def count(table: dict[str, torch.Tensor], names: Sequence[str], where: torch.Tensor | bool = True) -> int:
        there = [(~table[name].isnan().all(dim=-1, keepdim=True) & where) for name in names if name in table]
        return int(torch.stack(there).any(dim=0).flatten(1).any(dim=1).sum())

    ends = ("size", "size_min", "size_max")
    sizes, tags, total = count(slices, ends), count(slices, ["present"]), sum(r.slices for r in training)
    bounds = settings.constraints.values()
    of_slices, of_scans = ({b.bounds["kind"] for b in bounds if b.scope == scope} for scope in ("image", "volume"))
    volumes = (
        count(scans, ends) if "individual" in of_scans else 0 if _simulated(store, facts) else count(scans, ends, given)
    )
    sized = sizes and of_slices & {"known", "individual"}
    parts = [f"sizes of {sizes} of {total} slices"] if sized else []
    parts += [f"tags of {tags}" + ("" if sized else f" of {total} slices")] if tags and of_slices - {"fixed"} else []
    parts += [f"volumes of {volumes} of {len(training)} scans"] if volumes and of_scans else []
    if annotation == FULL:
        parts.append("every pixel")
    else:
        seen = sum(number for value, number in labelled.items() if value != UNLABELLED)
        what = "clicks" if store.about(annotation).get("settings") == {"radius": 0.0} else "labelled pixels"
        foreground = len(labelled.keys() & set(chosen))
        parts.append(
            f"{seen} {what} in {foreground} class{'es' * (foreground != 1)}"
            + (" and background" if labelled.keys() - {UNLABELLED, *chosen} else "")
        )
    said = [values.nan_to_num() for table in (slices, scans) for name, values in table.items() if name not in DERIVED]
    unknown = tuple(
        store.classes[value]
        for column, value in enumerate(chosen, start=1)
        if value not in labelled and not any(bool(values[:, column].any()) for values in said)
    )
    return Known(len(training), total, labelled, sizes, tags, volumes, "known: " + ", ".join(parts), unknown)


def _simulated(store: Store, facts: str | None) -> bool:
    """Whether facts were measured on the truth, with errors that somebody asked for."""
    return facts in store.annotations and bool(store.about(str(facts)).get("simulated", False))


def _often(full: int, scans: int) -> int:
    """How often scans labelled in full are gone through, so that two thirds of what is seen are theirs."""
    return max(1, math.ceil((OTHERS - 1) * (scans - full) / full))


def _alike(known: Known, chosen: Sequence[int]) -> list[float]:
    """Weights by which the labelled pixels of each class count the same together; few of them at most tenfold."""
    counts = [known.labelled.get(value, 0) for value in chosen]
    background = sum(number for value, number in known.labelled.items() if value not in (UNLABELLED, *chosen))
    total = background + sum(counts)
    return [round(min(10.0, total / (len(counts) + 1) / max(1, count)), 3) for count in (background, *counts)]


def _network(store: Store, gpu: bool) -> dict[str, Any]:
    width, side = (32 if gpu else 16), min(store.shape)
    coarse = 2 if not gpu and side >= COARSE else 1
    levels = max(2, min(6 if gpu else 5, 1 + int(math.log2(max(1, side / coarse / COARSEST)))))
    settings = {"width": width, "levels": levels, "most": 10 * width if gpu else 8 * width}
    return {"name": "unet", "settings": settings | ({"coarse": coarse} if coarse > 1 else {})}


def _sized(written: ConstraintSettings, known: Known) -> bool:
    """Whether bounds are around sizes of slices or volumes of scans, each its own."""
    kind, there = written.bounds["kind"], known.volumes if written.scope == "volume" else known.sizes
    return written.statistic["name"] == "size" and (kind == "individual" or (kind == "known" and bool(there)))


def _regularise(layer: dict[str, Any], words: list[str], taught: bool, sized: bool) -> None:
    """Choose what helps where few pixels are labelled.

    Where background is labelled too, neighbours that look alike should be of one class. Where it is not, that would
    shrink regions to the cores that seeds come from: they should spread to where the image has an edge instead. Where
    sizes are known, these say more in the end, and the asking fades.
    """
    name = "pairwise" if taught else "border"
    layer["regularisers"] = {name: deepcopy(REGULARISERS[name])}
    if sized and not taught:
        layer["regularisers"]["border"]["schedule"] = "lr"
    what = "neighbours that look alike belong together" if taught else "regions spread to the edges of the image"
    words.append(f"regulariser: {what}")


def _bound(
    layer: dict[str, Any], words: list[str], settings: Settings, known: Known, first: str, margin: float | None
) -> None:
    """Weigh bounds on sizes by what is typical, let them wait where labels teach first, and leave out idle ones."""
    ramp = {"ramp": list(WAIT)} if first == "labels" else {}
    chosen: dict[str, Any] = {}
    for name, written in settings.constraints.items():
        if written.statistic["name"] != "size" or written.bounds["kind"] == "fixed":
            continue
        idle = not (known.volumes if written.scope == "volume" else known.sizes or known.tags)
        if written.bounds["kind"] == "known" and idle:
            chosen[name] = False
            continue
        loose = LOOSE * (BESIDE["bounds"] if settings.hybrid.full_scans else 1)
        weight = WEIGHT[written.scope] if _sized(written, known) else loose
        chosen[name] = {"penalty": "hinge", "scale": "typical", "weight": weight, **ramp}
        if margin is not None and written.bounds["kind"] in ("known", "individual"):
            chosen[name]["bounds"] = {"relative": margin}
    acting = [name for name, content in chosen.items() if content]
    if chosen:
        layer["constraints"] = chosen
    if acting:
        words.append(
            f"bounds: from {WAIT[0]:.0%} of the training on, in full from {WAIT[1]:.0%}; labels teach first"
            if first == "labels"
            else f"bounds: from the first step, as {first}"
        )
    elif 0 not in known.labelled and not settings.hybrid.full_scans:
        words.append(
            "Warning: no background is labelled, and nothing is known of sizes: every pixel may become foreground. "
            "Click some background, or bring sizes with `inbounds facts`"
        )
