"""How large each class is in the training scans: what the volumes of new masks are compared with."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.batches.samples import Samples
from inbounds.constraints import Individual, Known
from inbounds.inference.forward import probabilities
from inbounds.regions.facts import range_of
from inbounds.regions.statistic import most_probable
from inbounds.runs.model import load_network
from inbounds.runs.run import Run

SCANS = 50
"""So many are segmented at most, spread over the training set."""

Ranges = dict[str, tuple[float, float]]


def volume_ranges(run: Run, samples: Samples, device: torch.device | str) -> Ranges:
    """The least and the most volume of each class in a training scan, in ml.

    As complete labels, or sizes that bound the run, say; of a class of which these say nothing, as the run's own
    network finds it in its training scans.
    """
    low, high = _known(run, samples)
    if bool((unknown := low.isnan() & high.isnan()).all(dim=0)[1:].any()):
        predicted = _predicted(run, samples, device)
        low, high = (torch.where(unknown.all(dim=0), predicted, side) for side in (low, high))
    voxel = torch.tensor([math.prod(r.grid_spacing) / 1000 for r in samples.records], dtype=torch.float64)
    least, most = ((side * voxel[:, None]).T.tolist() for side in (low, high))
    ranges: Ranges = {}
    for k, name in enumerate(run.classes, start=1):
        first, last = ([value for value in side[k] if not math.isnan(value)] for side in (least, most))
        if first and last:
            ranges[name] = round(min(first), 6), round(max(last), 6)
    return ranges


def _known(run: Run, samples: Samples) -> tuple[Float[Tensor, "scans K"], Float[Tensor, "scans K"]]:
    """The least and the most pixels of each scan and class; NaN where the run was told nothing of them."""
    bounds = [one.bounds for one in run.supervision.constraints if one.statistic.fact == "size"]
    facts = samples.scan_facts if any(isinstance(one, Known | Individual) for one in bounds) else {}
    nothing = torch.full((len(samples.records), samples.classes), torch.nan, dtype=torch.float64)
    size, *ends = (
        facts[name][..., 0].double().cpu() if name in facts else nothing for name in ("size", *range_of("size"))
    )
    low, high = (torch.where(size.isnan(), end, size) for end in ends)
    for scan in range(len(samples.records)):
        places = samples.slices_of(scan)
        values = samples.labels[places.start : places.stop].flatten().bincount(minlength=256)
        if not values[-1]:  # which are the unlabelled
            low[scan] = high[scan] = values[: samples.classes].double().cpu()
    return low, high


def _predicted(run: Run, samples: Samples, device: torch.device | str) -> Float[Tensor, "scans K"]:
    """The pixels of each scan and class in the masks of the run's network; NaN where nobody looked."""
    network = load_network(run, run.default_model, device)
    pixels = torch.full((len(samples.records), samples.classes), torch.nan, dtype=torch.float64)
    for scan in range(0, len(pixels), math.ceil(len(pixels) / SCANS)):
        mask = most_probable(probabilities(network, samples.scan_batch([scan]).image))
        pixels[scan] = mask.flatten().bincount(minlength=samples.classes).double().cpu()
    return pixels
