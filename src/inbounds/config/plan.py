"""A plan turns a data set and a device into settings: a person may change any of it, and need change none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inbounds.annotations.annotation import UNLABELLED
from inbounds.config.build import expanded
from inbounds.config.settings import Settings
from inbounds.store.store import Store

COARSEST = 8
"""Pixels along the shorter side at the coarsest level of a network: fewer show no shape."""
WAIT = (0.05, 0.3)
"""Between these shares of the training bounds begin to act, where labels can teach what to bound."""
LISTEN = (0.1, 0.4)
"""Between these the teacher gains its say: before, it has little to teach."""
SLICES = 4000
"""Slices in an epoch on a CPU, at most: a few minutes."""


@dataclass(frozen=True)
class Plan:
    """Settings, and why.

    Attributes:
        settings: A layer of settings, below all that a person gives.
        words: What was chosen and why, a line each.
    """

    settings: dict[str, Any]
    words: tuple[str, ...]


def plan(settings: Settings, store: Store, annotation: str, classes: Sequence[str], *, gpu: bool) -> Plan:
    """Choose all that depends on the data and the device.

    Args:
        settings: What a person gave. A plan looks at the recipe, at hybrid training, and at whether a network is named.
        store: The data.
        annotation: The name of the labels.
        classes: The classes that are learnt.
        gpu: Whether training runs on one.
    """
    slices = sum(record.slices for record in store.records if record.split == "train")
    batch = max(2, min(16 if gpu else 8, slices // 4))
    layer: dict[str, Any] = {
        "training": {
            "batch": batch,
            "lr": 2e-3,
            "schedule": "cosine",
            "ema": 0.99,
            "precision": "bf16-mixed" if gpu else "32",
            **({} if gpu or slices <= SLICES else {"slices": SLICES}),
        },
        "augment": {"rotate": 15, "zoom": 1.1},
    }
    words = []
    if "name" not in settings.network.model_fields_set:
        layer["network"] = _network(store, gpu)
        shape = layer["network"]["settings"]
        words.append(
            f"network: a U-Net of width {shape['width']} with {shape['levels']} levels ({'GPU' if gpu else 'CPU'}, "
            f"{store.shape[0]}x{store.shape[1]} pixels)"
        )
    words.append(f"steps: batches of {batch}, learning rate 0.002 on a cosine, averaged weights")
    words.append("augmentation: turns of up to 15 degrees, zoom of up to 1.1")
    labelled = set(np.unique(store.label(annotation).values).tolist())
    full = UNLABELLED not in labelled or settings.hybrid.only_full
    wanted = {store.class_index(name) for name in classes}
    taught = bool(settings.hybrid.full_scans) or wanted | {0} <= labelled
    if not (full or settings.proposals):
        _regularise(layer, words, taught)
    bounds = [] if full else [name for name in expanded(settings.recipe).get("constraints", {}) if name in SIZES]
    if bounds and settings.proposals is None:
        ramp = {"ramp": list(WAIT)} if taught else {}
        layer["constraints"] = {name: {"scale": "typical", "weight": 1.0, **ramp} for name in bounds}
        words.append(
            f"bounds: from {WAIT[0]:.0%} of the training on, in full from {WAIT[1]:.0%}; labels teach first"
            if taught
            else "bounds: from the first step, as background or a class has no label to learn from"
        )
    return Plan(layer, tuple(words))


SIZES = ("size", "volume")
"""What recipes call their bounds on sizes."""


def _network(store: Store, gpu: bool) -> dict[str, Any]:
    width = 32 if gpu else 16
    levels = max(2, min(6 if gpu else 5, 1 + int(math.log2(max(1, min(store.shape) / COARSEST)))))
    return {"name": "unet", "settings": {"width": width, "levels": levels, "most": 10 * width if gpu else 8 * width}}


def _regularise(layer: dict[str, Any], words: list[str], taught: bool) -> None:
    """What helps where few pixels are labelled: neighbours that look alike, and a teacher; brightness varies."""
    layer["augment"] |= {"contrast": 1.2, "brightness": 0.1}
    words[-1] += ", brightness"
    weight, sigma = (0.1, 0.1) if taught else (1.0, 0.05)
    layer["regularisers"] = {
        "pairwise": {"term": {"name": "pairwise", "sigma": sigma}, "weight": weight},
        "teacher": {"term": {"name": "teacher"}, "weight": 1.0, "ramp": list(LISTEN)},
    }
    words.append(
        f"regularisers: neighbours that look alike belong together (weight {weight:g}); a teacher, the averaged "
        f"network, from {LISTEN[0]:.0%} on"
    )
    if not taught:
        layer.setdefault("network", {})["initial_share"] = 0.02
