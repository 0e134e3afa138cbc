"""Evaluate a run: predictions on a split of its store against the truth, or else against what is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from inbounds.annotations.annotation import UNLABELLED
from inbounds.batches.samples import Batch, Samples, as_float, load, truth_of
from inbounds.constraints.constraint import kept
from inbounds.evaluation.agreement import agreement
from inbounds.evaluation.overlap import dice_per_slice, dice_per_volume, overlap, relative_size_error
from inbounds.evaluation.summary import summarise
from inbounds.evaluation.surface import require_monai, surface_distances
from inbounds.inference.forward import probabilities
from inbounds.inference.largest import keep_largest
from inbounds.locks import locked
from inbounds.memory import require
from inbounds.networks import sees_volumes
from inbounds.progress import Track
from inbounds.regions import Scans
from inbounds.regions.region import spelled
from inbounds.regions.statistic import most_probable, one_hot
from inbounds.runs.model import load_epoch, load_network
from inbounds.runs.run import Run
from inbounds.runs.table import Row, write_rows
from inbounds.scans.format import by
from inbounds.stopping import shielded
from inbounds.writing import write_json


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation gave.

    Attributes:
        rows: Every number: of slices, of volumes.
        summary: Mean, standard deviation and counts by metric and class.
        folder: Where both were written.
    """

    rows: list[Row]
    summary: dict[str, Any]
    folder: Path


def evaluate(
    run: Run,
    *,
    split: str = "validation",
    model: str | None = None,
    device: torch.device | str = "cpu",
    surfaces: bool = True,
    largest: bool = False,
    track: Track[int] = iter,
) -> Evaluation:
    """Measure a run's network on a split, and write `cases.csv` and `summary.json` into the run's folder.

    DSC per slice counts an empty prediction on an empty slice as 1, as in the paper; per volume a class that is neither
    predicted nor there is NaN and counted. Surface distances are in mm (MONAI), of the whole volume. `satisfied` tells
    if a constraint holds, for the probabilities and for the mask. A scan without truth is compared with the labels and
    sizes that are known of it.

    Args:
        run: The run.
        split: `validation`, `test` or `train`.
        model: `best` or `last`; by default the first of them that the run keeps.
        device: Where the network runs.
        surfaces: Measure surface distances, which takes longer than all else.
        largest: Of each class and scan, keep the largest connected piece of the mask first.
        track: Wraps the scans, for a progress bar.
    """
    store = run.opened_store()
    _check_memory(run, max((record.slices for record in store.records if record.split == split), default=0))
    known = any(record.truth for record in store.records if record.split == split)
    if known and surfaces:
        require_monai()
    model = model or run.default_model
    network, epoch = load_epoch(run, model, device)
    samples = load(
        store, run.annotation, facts=run.facts, classes=run.classes, split=split, device=device, data_on_device=False
    )
    truth = truth_of(store, classes=run.classes, split=split) if known else None
    rows: list[Row] = []
    for scan in track(range(len(samples.records))):
        row = partial(Row, run=str(run.path), epoch=epoch, split=split, case=samples.records[scan].name)
        rows += _scan(row, network, samples, truth, run, scan, surfaces, largest)
    folder = run.path / "evaluation" / f"{split}-{model}{'-largest' if largest else ''}"
    about = {"run": str(run.path), "split": split, "model": model, "epoch": epoch, "largest": largest}
    summary = {**about, "metrics": summarise(rows)}
    with locked(folder, inside=True), shielded():  # both tell of the same
        write_rows(folder / "cases.csv", rows)
        write_json(folder / "summary.json", summary)
    return Evaluation(rows, summary, folder)


def _check_memory(run: Run, slices: int) -> None:
    """Refuse a scan that memory has no room for, as all of it is measured at once.

    For each pixel on the grid it takes 4 bytes for each channel, 8 for each class, as probabilities and as a mask, and
    9 for the mask and the truth; a network of volumes holds probabilities three times more.
    """
    held = 20 if run.settings.network.dimensions == 3 else 8
    pixels = slices * math.prod(run.opened_store().shape)
    what = f"{run.store}: evaluating a scan of {slices:,} slices on a grid of {by(run.opened_store().shape)} pixels"
    require(
        pixels * (4 * run.channels + held * (len(run.classes) + 1) + 9), what, "prepare a smaller grid, or cut scans"
    )


def predict_slices(
    run: Run, positions: Sequence[int], *, model: str | None = None, device: torch.device | str = "cpu"
) -> dict[int, UInt8[np.ndarray, "H W"]]:
    """Masks of a few slices by their position in the store, for looking at: 1, 2, ... are the run's classes."""
    if not positions:
        return {}
    store, network = run.opened_store(), load_network(run, model or run.default_model, device)
    groups = [list(positions)]
    if sees_volumes(network):
        groups = [list(record.range) for record in store.records if not set(record.range).isdisjoint(positions)]
    found: dict[int, UInt8[np.ndarray, "H W"]] = {}
    for some in groups:
        masks = most_probable(probabilities(network, as_float(torch.from_numpy(store.images[some]).to(device))))
        found |= zip(some, masks.to(torch.uint8).cpu().numpy(), strict=True)
    return {position: found[position] for position in positions}


def _scan(
    row: Callable[..., Row],
    network: nn.Module,
    samples: Samples,
    truth: Tensor | None,
    run: Run,
    scan: int,
    surfaces: bool,
    largest: bool,
) -> list[Row]:
    """Every number about one scan; `row` knows what they have in common."""
    record = samples.records[scan]
    batch = samples.scan_batch([scan])
    probs = probabilities(network, batch.image)
    mask = most_probable(probs).cpu()
    if largest:
        mask = torch.from_numpy(keep_largest(mask.to(torch.uint8).numpy())).to(mask.dtype)
    rows = _satisfied(row, run, probs, mask, batch)
    fitted = record.grid_spacing
    voxel = fitted[0] * fitted[1] * fitted[2] / 1000
    if truth is None or not record.truth:
        return rows + _agreement(row, run, mask, batch, voxel)
    positions = samples.slices_of(scan)
    real = truth[positions.start : positions.stop]
    counts = overlap(mask, real, probs.shape[1])
    whole = Scans(torch.zeros(record.slices, dtype=torch.long), 1)
    by_slice, by_volume = dice_per_slice(counts), dice_per_volume(counts, whole)
    errors = relative_size_error(counts, whole)
    for k, name in enumerate(run.classes, start=1):
        slices = by_slice[:, k].tolist()
        rows += [row(slice=n, klass=name, metric="dsc_slice", value=value) for n, value in enumerate(slices)]
        numbers = {
            "dsc_volume": float(by_volume[0, k]),
            "volume_ml": float(counts.predicted[:, k].sum()) * voxel,
            "true_volume_ml": float(counts.true[:, k].sum()) * voxel,
            "relative_size_error": float(errors[0, k]),
        }
        if surfaces:
            distances = surface_distances((mask == k) & (real != UNLABELLED), real == k, fitted)
            numbers |= {"hd95_mm": distances.hd95, "assd_mm": distances.assd}
        rows += [row(klass=name, metric=metric, value=value) for metric, value in numbers.items()]
    return rows


def _agreement(row: Callable[..., Row], run: Run, mask: Tensor, batch: Batch, voxel: float) -> list[Row]:
    """How a mask agrees with what is known, where anything is, and what it measures."""
    names = ("background", *run.classes)
    found = agreement(mask, batch.annotation, len(names))
    rows: list[Row] = []
    for k, name in enumerate(names):
        rows += [
            row(slice=n, klass=name, metric="size_error", value=v) for n, v in enumerate(found.sizes[:, k].tolist())
        ]
        numbers = {"label_agreement": float(found.labels[k]), "volume_error": float(found.volume[k])}
        rows += [row(klass=name, metric=metric, value=value) for metric, value in numbers.items()]
        if k:
            rows.append(row(klass=name, metric="volume_ml", value=float((mask == k).sum()) * voxel))
    return [row for row in rows if not math.isnan(row.value)]


def _satisfied(row: Callable[..., Row], run: Run, probs: Tensor, mask: Tensor, batch: Batch) -> list[Row]:
    """Whether each constraint holds, of probabilities and mask, where anything is known: for all classes, then each."""
    rows: list[Row] = []
    masks = one_hot(mask, probs.shape[1]).to(probs)
    names = ["background", *run.classes] if len(run.classes) > 1 else []
    for constraint in run.supervision.constraints:
        scopes = range(len(probs)) if constraint.scope == "image" else [""]
        groups = constraint.groups(probs.shape[1]) if names else []
        for kind, region in (("soft", probs), ("hard", masks)):
            violation = constraint.violation(region, batch.image, batch.annotation)
            parts = {spelled(group, names): violation[:, n] for n, group in enumerate(groups)}
            for klass, part in {"": violation, **parts}.items():
                inside, known = (each.tolist() for each in kept(part))
                metric = f"satisfied_{kind}_{constraint.name}"
                cells = [(s, float(i)) for s, i, k in zip(scopes, inside, known, strict=True) if k]
                rows += [row(slice=s, klass=klass, metric=metric, value=value) for s, value in cells]
    return sorted(rows, key=lambda row: row.klass != "")
