"""Whether a network and a supervision take the slices of a store, found out before a run is made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from inbounds.annotations.annotation import UNLABELLED, Annotation
from inbounds.batches.fact_tensors import to_tensors
from inbounds.config import Settings
from inbounds.errors import BadInput, reason
from inbounds.memory import require
from inbounds.networks.needs import kept, weights
from inbounds.regions.scans import Scans
from inbounds.runs.machine import gpu
from inbounds.store.store import Store
from inbounds.supervision import Supervision


def try_out(
    network: nn.Module, supervision: Supervision, settings: Settings, store: Store, classes: Sequence[str]
) -> None:
    """Refuse a network that cannot take the store's slices, such as one for volumes, and terms that fail on them."""
    sides = [min(side, 64) for side in store.shape]
    image, label = torch.zeros(1, store.channels, *sides), torch.full((1, *sides), UNLABELLED)
    what = f"network.name={settings.network.name}: cannot take slices of {sides[0]}x{sides[1]}"
    try:
        with kept(network) as sizes:
            scores = network.eval()(image)
        if scores.shape != (1, len(classes) + 1, *sides):
            raise ValueError(f"gives scores of shape {tuple(scores.shape)}")
        what = "settings: the loss cannot be computed"
        tables = to_tensors(store, None, [store.class_index(name) for name in classes])
        facts, scan_facts = ({name: fact[:1] for name, fact in table.items()} for table in tables)
        scans = Scans(torch.zeros(1, dtype=torch.long), 1)
        supervision(scores.detach(), image, Annotation(label, facts, scan_facts, scans))
    except Exception as error:  # whatever a network or a term of a person's own raises
        raise BadInput(f"{what} ({reason(error)}); correct its arguments") from None
    _check_step(weights(network), sum(sizes) / math.prod(sides), settings, store)


def _check_step(network: int, each: float, settings: Settings, store: Store) -> None:
    """Refuse a training step that memory has no room for.

    It takes the network's bytes four times, for its gradients and the optimiser's two means of them too, and for each
    pixel what the network keeps of it on its way, which is half as much in half precision.
    """
    training, hybrid = settings.training, settings.hybrid
    lengths = [record.slices for record in store.records if record.split == "train"] or [0]
    slices = min(hybrid.full_scans, len(lengths)) * max(lengths) if hybrid.only_full else sum(lengths)
    batch = min(training.batch, slices * training.repeats)
    pixels = batch * math.prod(store.shape)
    needed = 4 * network + round(each * pixels / (1 if training.precision == "32" else 2))
    most = torch.cuda.get_device_properties(0).total_memory if gpu(training.device) else None
    what = (
        f"training.batch={training.batch}: a step with {batch:,} images of {store.shape[0]} x {store.shape[1]} pixels"
    )
    require(needed, what, "lower it, choose a smaller network, or prepare a smaller grid", most)
