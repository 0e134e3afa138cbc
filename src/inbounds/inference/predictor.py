"""The network of a run, or those of several, kept in memory and ready for scan after scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from inbounds.batches.samples import as_float
from inbounds.errors import BadInput, reason
from inbounds.inference.doubt import Doubt, apart, in_pieces, shared
from inbounds.inference.forward import chunk, pieces
from inbounds.inference.largest import keep_largest
from inbounds.inference.prediction import Prediction, regions
from inbounds.networks import Volumetric
from inbounds.regions.statistic import most_probable
from inbounds.runs.model import load_network
from inbounds.runs.run import Run, open_runs
from inbounds.scans.format import Mask, Spacing
from inbounds.scans.pictures import PictureGeometry
from inbounds.scans.scan import header, same_geometry
from inbounds.sources.source import Extent, read_image, stacked
from inbounds.store.brightness import black_and_white, on_grid
from inbounds.store.depth import count as count_slices
from inbounds.store.depth import turned, turned_back, turned_sides, turned_spacing
from inbounds.store.grid import GridWindow, nearest
from inbounds.store.needs import check_memory, predicting
from inbounds.store.prepare import placed, read_plan
from inbounds.store.record import Record
from inbounds.store.store import Store
from inbounds.store.survey import LOST

MIRRORED = (-1, -2)
"""The axes along which an image is turned round, to see whether its mask turns with it."""


class Predictor:
    """Networks with their runs' own preparation: a scan is made to look as those in the store did, and back.

    A new scan is normalised over its volume, fitted to the run's grid and rounded exactly as in the run's store, so the
    mask of a training scan is that of its stored slices, bit for bit. Each voxel of the mask takes the class of the
    grid pixel that its centre lies in; what lies outside the grid's window is background. The probabilities of several
    runs are averaged.

    Args:
        runs: A run, its folder, or a folder of runs such as folds; or several of these, prepared alike.
        model: `best` (where a truth could choose it) or `last`; by default the first of them that the run keeps.
        device: Such as `cpu` or `cuda:1`; `auto` takes a GPU where there is one.
        largest: Of each class, keep the largest connected piece of a mask only.
        doubt: Look for what speaks against each mask. The network then sees each image mirrored too: three passes.

    Raises:
        BadInput: A run keeps no such network, does not say how its scans were prepared, or does not fit the others.

    Example:
        predictor = Predictor("runs/tags")
        prediction = predictor.predict("patient007.nii.gz")
        prediction.regions[0].volume_ml
        prediction.write(Path("patient007_mask.nii.gz"))
    """

    def __init__(
        self,
        runs: Run | Path | str | Sequence[Run | Path | str],
        model: str | None = None,
        device: str = "auto",
        *,
        largest: bool = False,
        doubt: bool = True,
    ) -> None:
        given = [runs] if isinstance(runs, Run | Path | str) else runs
        self.runs = [run for one in given for run in ([one] if isinstance(one, Run) else open_runs(Path(one)))]
        if not self.runs:
            raise BadInput("no run to predict with; name at least one")
        self.run = self.runs[0]
        self.models = [model or run.default_model for run in self.runs]
        self.device = _device(device)
        self.largest, self.doubt = largest, doubt
        how = self.run.about.get("preparation", {})
        where, remedy = self.run.path / "run.json", "prepare the store with `inbounds prepare` and train again"
        self.plan = read_plan(how, str(where), remedy)
        for run in self.runs[1:]:
            for what in ("classes", "channels", "preparation"):
                mine, first = run.about.get(what), self.run.about.get(what)
                if mine != first:
                    raise BadInput(
                        f"{run.path}: its {what} are {mine!r}, those of {self.run.path} are {first!r}; predict with "
                        "runs of the same data and classes"
                    )
        self.networks = [load_network(run, name, self.device) for run, name in zip(self.runs, self.models, strict=True)]
        ranges = [run.volumes for run in self.runs]
        self.seen = {
            name: (min(each[name][0] for each in ranges), max(each[name][1] for each in ranges))
            for name in self.classes
            if all(name in each for each in ranges)
        }

    @property
    def classes(self) -> tuple[str, ...]:
        """What the values 1, 2, ... of a mask stand for."""
        return self.run.classes

    @property
    def model(self) -> str:
        """`best` or `last`; both, where some runs had a truth to choose by and others had not."""
        return ", ".join(dict.fromkeys(self.models))

    def predict(self, scan: Path | str | Sequence[Path | str], *, probabilities: bool = False) -> Prediction:
        """Segment a scan of any format that `inbounds.scans.scan` reads.

        Args:
            scan: A file, or a folder of slices; for a run of several channels one of them for each.
            probabilities: Keep the probabilities too: as half-precision numbers they take 2 bytes a voxel and class.

        Raises:
            BadInput: Naming the file, what is wrong with it and the remedy.
        """
        files = tuple(Path(file) for file in ([scan] if isinstance(scan, Path | str) else scan))
        self._check_channels(str(files[0]) if files else "no scan", len(files))
        heads = [header(file) for file in files]
        head = heads[0]
        notes = [note for one in heads for note in one.notes]
        notes += [note for one in heads[1:] for note in same_geometry(head, one)]
        if self.plan.spacing:
            if head.spacing not in (LOST, self.plan.spacing):
                notes.append(f"{files[0]}: its spacing is taken as that of the training scans, {self.plan.spacing} mm")
            head = replace(head, spacing=self.plan.spacing)
        elif isinstance(head.geometry, PictureGeometry):
            notes.append(f"{files[0]}: pictures do not say how large a pixel is; taken as 1 mm, slices 1 mm apart")
        elif head.spacing == LOST and self.plan.pixel not in (None, 1.0):
            notes.append(f"{files[0]}: its spacing is exactly 1 mm, as if it was lost, and the scan is resampled by it")
        axis = self.plan.axis
        sides, spacing = turned_sides(head.shape, axis), turned_spacing(head.spacing, axis)
        _, height, width = spacing
        if max(height, width) > 1.5 * min(height, width):  # hardly the pixels of a slice
            notes.append(
                f"{files[0]}: its pixels are {height:g} x {width:g} mm, as if its slices lay along another axis than "
                "the file's last, where they are looked for"
            )
        fit = placed(str(files[0]), sides[1:], spacing, self.plan)
        size = sum(one.size for one in heads) * (1 + (len(heads) > 1))
        extent = Extent(sides, spacing, len(heads), size)
        kept = (len(self.classes) + 1) * probabilities
        slices = count_slices(sides[0], spacing[0], self.plan.slice_spacing)
        needed = predicting(extent, fit, self.plan.dtype, kept) + self._windows(slices, len(heads), fit)
        check_memory(needed, str(files[0]), extent, fit)
        # What the network sees is all that is kept of the voxels.
        stored = self._stored(turned(stacked([read_image(one) for one in heads]), axis), fit, spacing)
        prediction = self._found(stored, fit, spacing, str(files[0]), probabilities, sides[0])
        return replace(self._turned_back(prediction), notes=tuple(notes), spacing=head.spacing, header=head)

    def predict_array(
        self,
        image: Shaped[np.ndarray, "*channels slices rows columns"],
        spacing: Spacing = (1.0, 1.0, 1.0),
        *,
        probabilities: bool = False,
    ) -> Prediction:
        """Segment a scan that lies in memory, brightness as measured.

        Args:
            image: Slices, rows and columns, behind an axis of channels if there are several.
            spacing: Between slices, rows and columns in mm, for volumes, and where the store was resampled by it.
            probabilities: Keep the probabilities too.
        """
        if image.ndim not in (3, 4):
            raise BadInput(f"an array of shape {image.shape}; give (slices, rows, columns), or (channels, ...)")
        channels = image if image.ndim == 4 else image[None]
        self._check_channels(f"an array of shape {image.shape}", len(channels))
        for number, channel in enumerate(channels):
            if not channel.size or not np.isfinite(channel).all() or channel.min() == channel.max():
                raise BadInput(
                    f"an array of shape {image.shape}: channel {number} is constant, empty or not finite; "
                    "check that this is the scan you meant"
                )
        channels, spacing = turned(channels, self.plan.axis), turned_spacing(spacing, self.plan.axis)
        fit = placed("the array", channels.shape[2:], spacing, self.plan)
        stored = self._stored(channels, fit, spacing)
        found = self._found(stored, fit, spacing, "the array", probabilities, channels.shape[1])
        return self._turned_back(found)

    def predict_stored(self, store: Store, record: Record) -> Prediction:
        """Segment a scan of a store that was prepared as the run's, as if it came from its file."""
        stored = store.images[record.span]
        name = f"{store.path}, {record.name}"
        return self._found(stored, record.fit, record.spacing, name, False, record.original_slices)

    def _windows(self, slices: int, channels: int, fit: GridWindow) -> int:
        """The bytes that networks of volumes take beside one window, where these are put together in memory."""
        if self.device.type != "cpu":
            return 0
        deep = [(one, one.patch[0]) for one in self.networks if isinstance(one, Volumetric)]
        passes = 1 + len(MIRRORED) * self.doubt
        return passes * sum(one.bytes_of((min(slices, most), channels, *fit.shape)) for one, most in deep)

    def _turned_back(self, found: Prediction) -> Prediction:
        """What was found, along the axes of the file."""
        axis, probabilities = self.plan.axis, found.probabilities
        if probabilities is not None:
            probabilities = turned_back(probabilities, axis)
        return replace(found, mask=np.ascontiguousarray(turned_back(found.mask, axis)), probabilities=probabilities)

    def _stored(
        self, image: Shaped[np.ndarray, "channels slices rows columns"], fit: GridWindow, spacing: Spacing
    ) -> Shaped[np.ndarray, "grid_slices channels H W"]:
        """A scan as the run's store would have it."""
        slices = count_slices(image.shape[1], spacing[0], self.plan.slice_spacing)
        stored = np.empty((slices, len(image), *fit.shape), dtype=self.plan.dtype)
        first = 0
        for piece in on_grid(image, fit, self.plan.dtype, black_and_white(image, self.plan.window), slices):
            stored[first : first + len(piece)] = piece
            first += len(piece)
        return stored

    def _found(
        self,
        stored: Shaped[np.ndarray, "slices channels H W"],
        fit: GridWindow,
        spacing: Spacing,
        name: str,
        keep: bool,
        originals: int,
    ) -> Prediction:
        mask = np.zeros((len(stored), *fit.original), dtype=np.uint8)
        kept = np.zeros((len(self.classes) + 1, *mask.shape), dtype=np.float16) if keep else None
        K, agreed, step = len(self.classes), [], chunk(fit.shape)
        axes = (None, *MIRRORED) if self.doubt else (None,)
        passes = zip(*(self._pieces(stored, step, axis) for axis in axes), strict=True)
        # What is in the scan's own size is never held for all classes at once.
        for first, seen in zip(range(0, len(mask), step), passes, strict=True):
            some = slice(first, first + step)
            probs, others = self._compared(seen, name)
            found = np.stack([_mask(probs), *others])
            mask[some] = fit.back(found[0])
            agreed.append(shared(found[0], found[1:], K))
            if kept is not None:
                for k, plane in enumerate(probs.half().cpu().numpy().swapaxes(0, 1)):
                    kept[k, some] = fit.back(plane, outside=int(k == 0))
        if originals != len(mask):
            places = nearest(originals, len(mask))
            mask, kept = mask[places], None if kept is None else kept[:, places]
        doubts: list[Doubt] = []
        if self.doubt or self.largest:
            largest = keep_largest(mask)
            if self.doubt:
                counts, turns = np.sum(agreed, axis=0), len(MIRRORED)
                parts = in_pieces(mask, largest, K), apart(counts[:turns]), apart(counts[turns:])
                doubts = [Doubt(pieces=a, mirrored=b, runs=c) for a, b, c in zip(*parts, strict=True)]
            mask = largest if self.largest else mask
        return Prediction(
            mask, regions(mask, self.classes, spacing, fit, doubts, self.seen), spacing, probabilities=kept
        )

    def _pieces(
        self, stored: Shaped[np.ndarray, "slices channels H W"], step: int, axis: int | None
    ) -> Iterator[list[Tensor]]:
        """Each network's probabilities of some slices after others, of the scan as it is or turned round."""

        def read(some: slice) -> Float[Tensor, "n channels H W"]:
            image = as_float(torch.from_numpy(stored[some]).to(self.device))
            return image if axis is None else image.flip(axis)

        for each in zip(*(pieces(network, read, len(stored), step) for network in self.networks), strict=True):
            yield [one if axis is None else one.flip(axis) for one in each]

    def _compared(self, passes: Sequence[list[Tensor]], name: str) -> tuple[Tensor, list[Mask]]:
        """Probabilities, and masks to compare theirs with: of the mirrored images, and of each of several runs."""
        alone, *mirrored = passes
        for run, model, probs in zip(self.runs, self.models, alone, strict=True):
            if not bool(probs.isfinite().all()):
                raise BadInput(
                    f"{name}: the network {model!r} of {run.path} gives numbers that are not finite; choose "
                    "another model, or train again"
                )
        probs = torch.stack(alone).mean(dim=0)
        if not self.doubt:
            return probs, []
        runs = [_mask(one) for one in alone] if len(alone) > 1 else []
        return probs, [_mask(torch.stack(one).mean(dim=0)) for one in mirrored] + runs

    def _check_channels(self, what: str, count: int) -> None:
        if count != self.run.channels:
            raise BadInput(
                f"{what}: {count} channels given, and {self.run.path} was trained on {self.run.channels}; give one "
                "file for each, in the order of the training data (NAME_0000, NAME_0001, ...)"
            )


def _mask(probs: Float[Tensor, "B K H W"]) -> Mask:
    return most_probable(probs).to(torch.uint8).cpu().numpy()


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"the device {name!r} cannot be used ({reason(error)}); give 'cpu', 'cuda' or 'auto'") from None
    return device
