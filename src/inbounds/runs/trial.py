"""Whether a network and a supervision take the slices of a store, found out before a run is made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inbounds.annotations.annotation import UNLABELLED, Annotation
from inbounds.batches.fact_tensors import to_tensors
from inbounds.batches.patches import in_space, whole_volume
from inbounds.config import Settings
from inbounds.config.volumes import patch_of
from inbounds.errors import BadInput, reason
from inbounds.memory import require
from inbounds.networks import Volumetric
from inbounds.networks.needs import kept, weights
from inbounds.networks.volumetric import as_slices, as_volumes
from inbounds.regions import fact_name
from inbounds.regions.scans import Scans
from inbounds.runs.machine import gpu
from inbounds.scans.format import by
from inbounds.store.store import Store
from inbounds.supervision import Supervision


def try_out(
    network: nn.Module, supervision: Supervision, settings: Settings, store: Store, classes: Sequence[str]
) -> None:
    """Refuse a network that cannot take the store's slices, such as one for volumes, and terms that fail on them."""
    volumes = isinstance(network, Volumetric)
    depth, *sides = 1, *(min(side, 64) for side in store.shape)
    if isinstance(network, Volumetric):
        depth, *sides = network.patch[0], *(min(side, 64) for side in network.patch[1:])
    image, label = torch.zeros(depth, store.channels, *sides), torch.full((depth, *sides), UNLABELLED)
    seen = f"volumes of {depth}x{sides[0]}x{sides[1]}" if volumes else f"slices of {sides[0]}x{sides[1]}"
    what = f"network.name={settings.network.name}: cannot take {seen}"
    try:
        network.eval()
        with kept(network) as sizes:
            scores = _of_volume(network, image) if isinstance(network, Volumetric) else network(image)
        if scores.shape != (depth, len(classes) + 1, *sides):
            raise ValueError(f"gives scores of shape {tuple(scores.shape)}")
        what = "settings: the loss cannot be computed"
        tables = to_tensors(store, None, [store.class_index(name) for name in classes])
        facts, scan_facts = ({name: fact[:1] for name, fact in table.items()} for table in tables)
        related = _of_several(supervision, len(classes) + 1)
        facts, scan_facts = facts | related, scan_facts | related
        first = torch.zeros(1, dtype=torch.long)
        known = Annotation(label[:1], facts, scan_facts, Scans(first, 1), index=first, scan_index=first)
        if volumes:
            whole, alone = whole_volume(label)
            facts = {name: fact.expand(depth, -1, -1) for name, fact in facts.items()}
            index = first.expand(depth)
            known = Annotation(label, facts, in_space(scan_facts), whole, patches=alone, index=index, scan_index=first)
        supervision.remembering(1, 1, scores.detach().softmax(1), image, known)(scores.detach(), image, known)
    except Exception as error:  # whatever a network or a term of a person's own raises
        raise BadInput(f"{what} ({reason(error)}); correct its arguments") from None
    _check_step(weights(network), sum(sizes) / math.prod((depth, *sides)), settings, store)


def _of_several(supervision: Supervision, K: int) -> dict[str, Tensor]:
    """Facts of several classes together, and of relations, of which nothing is known yet."""
    found = {}
    for one in supervision.constraints:
        fact, columns = getattr(one.bounds, "fact", None) or one.statistic.fact, one.statistic.columns
        if columns is None:
            continue
        for group in one.groups(K):
            if len(group) > 1 or not isinstance(group[0], int):
                found[fact_name(fact, *group)] = torch.full((1, 1, len(columns.names)), torch.nan)
    return found


def _of_volume(network: Volumetric, slices: Tensor) -> Tensor:
    """The scores of a patch, which it is given as its slices."""
    scores: Tensor = network.network(as_volumes(slices, len(slices)))
    return as_slices(scores)


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
    of = f"{batch:,} images of {store.shape[0]} x {store.shape[1]} pixels"
    if settings.network.dimensions == 3:
        patch = patch_of(training.patch)
        pixels, of = training.batch * math.prod(patch), f"{training.batch:,} patches of {by(patch)} voxels"
    needed = 4 * network + round(each * pixels / (1 if training.precision == "32" else 2))
    most = torch.cuda.get_device_properties(0).total_memory if gpu(training.device) else None
    what = f"training.batch={training.batch}: a step with {of}"
    require(needed, what, "lower it, choose a smaller network, or prepare a smaller grid", most)
