"""The data of runs: loaded once for all that share them, on the device where they fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from inbounds.batches.ahead import LabelMaps
from inbounds.batches.samples import Samples, load, truth_maps, truth_of
from inbounds.config import Hybrid
from inbounds.memory import available
from inbounds.runs.run import Run
from inbounds.training.group import joined

T = TypeVar("T")


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
            **hybrid.model_dump(),
            "seed": run.seed if hybrid.full_scans else 0,
        }
        key = (run.store, run.annotation, *chosen.values())
        return self._once(key, lambda: load(run.opened_store(), run.annotation, **chosen))

    def on_device(self, run: Run, device: torch.device) -> bool:
        """Whether the run's slices lie on the device: as its settings say, else where they fit."""
        wanted = run.settings.training.data_on_device
        if wanted is not None:
            return wanted
        store = run.opened_store()
        needed = store.images.nbytes + 2 * store.slices * math.prod(store.shape)  # with labels and truth
        together = joined()
        if together is not None and device.type == "cpu":
            needed *= together.here
        # Asked once: what is loaded then takes of what is free.
        return self._once((run.store, device), lambda: needed <= _memory(device) / 2)

    def truth(self, run: Run, device: torch.device) -> Tensor | LabelMaps:
        """The full masks of the validation split."""
        here = self.on_device(run, device)
        key = (run.store, run.classes, device, here)
        if not here:
            return self._once(key, lambda: truth_maps(run.opened_store(), classes=run.classes))
        return self._once(key, lambda: truth_of(run.opened_store(), classes=run.classes, device=device))

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self.kept:
            self.kept[key] = make()
        value: T = self.kept[key]
        return value


def _memory(device: torch.device) -> float:
    """Bytes that are free; without bound where that is unknown."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available()
    return math.inf if free is None else free
