"""The data of runs: loaded once for all that share them, on the device where they fit."""

from __future__ import annotations

import math
import os
from typing import Any

import torch
from torch import Tensor

from inbounds.batches.samples import Samples, load, truth_of
from inbounds.config import Hybrid
from inbounds.runs.run import Run


class Data:
    """What runs train and are judged on, loaded once for all runs that share it."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def samples(self, run: Run, device: torch.device, split: str) -> Samples:
        """The slices of a split with the run's annotation."""
        hybrid = run.settings.hybrid if split == "train" else Hybrid()
        chosen: dict[str, Any] = {
            "facts": run.facts,
            "classes": run.classes,
            "split": split,
            "device": device,
            "data_on_device": self.on_device(run, device),
            "full_scans": hybrid.full_scans,
            "only_full": hybrid.only_full,
            "repeat": hybrid.repeat,
            "weak_label_weight": hybrid.weak_label_weight,
            "seed": run.seed if hybrid.full_scans else 0,
        }
        key = (run.store, run.annotation, *chosen.values())
        if key not in self.kept:
            self.kept[key] = load(run.opened_store(), run.annotation, **chosen)
        samples: Samples = self.kept[key]
        return samples

    def on_device(self, run: Run, device: torch.device) -> bool:
        """Whether the run's slices lie on the device: as its settings say, else where they fit."""
        wanted = run.settings.training.data_on_device
        if wanted is not None:
            return wanted
        key = (run.store, device)
        if key not in self.kept:  # asked once: what is loaded then takes of what is free
            store = run.opened_store()
            labels_and_truth = 2 * store.slices * math.prod(store.shape)
            self.kept[key] = store.images.nbytes + labels_and_truth <= _memory(device) / 2
        fits: bool = self.kept[key]
        return fits

    def truth(self, run: Run, device: torch.device) -> Tensor:
        """The full masks of the validation split."""
        key = (run.store, run.classes, device)
        if key not in self.kept:
            self.kept[key] = truth_of(run.opened_store(), classes=run.classes, device=device)
        truth: Tensor = self.kept[key]
        return truth


def _memory(device: torch.device) -> float:
    """Bytes: what is free on a GPU, all of a computer's; without bound where that is unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # as on Windows
        return math.inf
