"""The network of a run, or those of several, kept in memory and ready for scan after scan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from inbounds.batches.samples import as_float
from inbounds.errors import BadInput, reason
from inbounds.inference.doubt import Doubt, apart, in_pieces
from inbounds.inference.forward import chunk, pieces
from inbounds.inference.largest import keep_largest
from inbounds.inference.on_grid import Due, OnGrid, joined, shared_out
from inbounds.inference.prediction import Prediction, regions
from inbounds.networks import Volumetric
from inbounds.regions.statistic import most_probable
from inbounds.runs.bundle import METADATA, Bundle
from inbounds.runs.model import load_network, open_runs
from inbounds.runs.run import Run
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
GROUP = 2
"""Batches that the slices of several scans fill together; a GPU is quicker, and gets four times as many."""


class Predictor:
    """Networks with their runs' own preparation: a scan is made to look as those in the store did, and back.

    A new scan is normalised over its volume, fitted to the run's grid and rounded exactly as in the run's store, so the
    mask of a training scan is that of its stored slices, bit for bit. Each voxel of the mask takes the class of the
    grid pixel that its centre lies in; what lies outside the grid's window is background. The probabilities of several
    runs are averaged.

    Args:
        runs: A run, its folder, a bundle, or a folder of runs such as folds; or several of these, prepared alike.
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
        runs: Run | Bundle | Path | str | Sequence[Run | Bundle | Path | str],
        model: str | None = None,
        device: str = "auto",
        *,
        largest: bool = False,
        doubt: bool = True,
    ) -> None:
        given = [runs] if isinstance(runs, Run | Bundle | Path | str) else runs
        self.runs = [run for one in given for run in ([one] if isinstance(one, Run | Bundle) else open_runs(Path(one)))]
        if not self.runs:
            raise BadInput("no run to predict with; name at least one")
        self.run = self.runs[0]
        self.models = [model or run.default_model for run in self.runs]
        self.device = _device(device)
        self.largest, self.doubt = largest, doubt
        how = self.run.about.get("preparation", {})
        where = self.run.path / (METADATA if isinstance(self.run, Bundle) else "run.json")
        remedy = "prepare the store with `inbounds prepare` and train again"
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
        return self._segmented(self.look(scan, probabilities=probabilities).read())

    def look(self, scan: Path | str | Sequence[Path | str], *, probabilities: bool = False) -> Due:
        """Read the header of a scan, and see that there is room for it; arguments and errors as of `predict`."""
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

        def load() -> Shaped[np.ndarray, "grid_slices channels H W"]:
            """What the network sees is all that is kept of the voxels."""
            return self._stored(turned(stacked([read_image(one) for one in heads]), axis), fit, spacing)

        return Due(
            str(files[0]),
            fit,
            spacing,
            sides[0],
            load,
            len(self.classes),
            keep=probabilities,
            needed=needed,
            notes=tuple(notes),
            header=head,
        )

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
        due = Due(
            "the array",
            fit,
            spacing,
            channels.shape[1],
            lambda: self._stored(channels, fit, spacing),
            len(self.classes),
            keep=probabilities,
        )
        return self._segmented(due.read())

    def predict_stored(self, store: Store, record: Record) -> Prediction:
        """Segment a scan of a store that was prepared as the run's, as if it came from its file."""
        due = Due(
            f"{store.path}, {record.name}",
            record.fit,
            record.spacing,
            record.original_slices,
            lambda: store.images[record.span],
            len(self.classes),
        )
        scan = due.read()
        self.segment([scan])
        return self._measured(scan)

    @property
    def together(self) -> int:
        """How many slices of several scans are worth putting together; networks of volumes see each by itself."""
        if any(isinstance(one, Volumetric) for one in self.networks):
            return 1
        return (GROUP if self.device.type == "cpu" else 4 * GROUP) * chunk(self.plan.shape)

    def segment(self, scans: Sequence[OnGrid]) -> None:
        """Find the masks of some scans, whose slices fill batches together; what goes wrong is kept with each scan."""
        try:
            self._segment(scans)
        except (BadInput, MemoryError, RuntimeError) as error:  # torch tells of too little memory as RuntimeError
            for one in scans:
                one.failure = error
                if len(scans) > 1:  # it may be only one of them
                    one.failure = None
                    one.agreed.clear()
                    self.segment([one])

    def finish(self, scan: OnGrid) -> Prediction:
        """What was found in a scan of a file, in its own voxels, and measured.

        Raises:
            BadInput: Nothing can be found; also what else went wrong.
        """
        due, found = scan.due, self._measured(scan)
        axis, probabilities = self.plan.axis, found.probabilities
        if probabilities is not None:
            probabilities = turned_back(probabilities, axis)
        mask = np.ascontiguousarray(turned_back(found.mask, axis))
        spacing = due.header.spacing if due.header else due.spacing
        return replace(
            found, mask=mask, probabilities=probabilities, notes=due.notes, spacing=spacing, header=due.header
        )

    def _segmented(self, scan: OnGrid) -> Prediction:
        self.segment([scan])
        return self.finish(scan)

    def _windows(self, slices: int, channels: int, fit: GridWindow) -> int:
        """The bytes that networks of volumes take beside one window, where these are put together in memory."""
        if self.device.type != "cpu":
            return 0
        deep = [(one, one.patch[0]) for one in self.networks if isinstance(one, Volumetric)]
        passes = 1 + len(MIRRORED) * self.doubt
        return passes * sum(one.bytes_of((min(slices, most), channels, *fit.shape)) for one, most in deep)

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

    def _segment(self, scans: Sequence[OnGrid]) -> None:
        stored = joined(scans)
        batches = math.ceil(len(stored) / chunk(stored.shape[2:]))
        step = math.ceil(len(stored) / batches)  # the last batch is about as full as the others
        axes = (None, *MIRRORED) if self.doubt else (None,)
        passes = zip(*(self._pieces(stored, step, axis) for axis in axes), strict=True)
        for first, seen in zip(range(0, len(stored), step), passes, strict=True):
            shares = shared_out(scans, first, len(seen[0][0]))
            self._check_finite(seen[0], shares)
            probs, masks = self._compared(seen)
            for one, begin, part in shares:
                one.put(begin, probs[part], masks[:, part])

    def _check_finite(self, alone: Sequence[Tensor], shares: Sequence[tuple[OnGrid, int, slice]]) -> None:
        """Numbers between 0 and 1 can be added up; where the sum is not finite, one of them is not."""
        for run, model, probs in zip(self.runs, self.models, alone, strict=True):
            if bool(probs.sum().isfinite()):
                continue
            one = next(one for one, _, part in shares if not bool(probs[part].sum().isfinite()))
            raise BadInput(
                f"{one.due.name}: the network {model!r} of {run.path} gives numbers that are not finite; choose "
                "another model, or train again"
            )

    def _measured(self, scan: OnGrid) -> Prediction:
        """What was found in a scan, along the axes of the run."""
        if scan.failure is not None:
            raise scan.failure
        due, mask, kept, K = scan.due, scan.mask, scan.probabilities, len(self.classes)
        if due.slices != len(mask):
            places = nearest(due.slices, len(mask))
            mask, kept = mask[places], None if kept is None else kept[:, places]
        doubts: list[Doubt] = []
        if self.doubt or self.largest:
            largest = keep_largest(mask)
            if self.doubt:
                counts, turns = np.sum(scan.agreed, axis=0), len(MIRRORED)
                parts = in_pieces(mask, largest, K), apart(counts[:turns]), apart(counts[turns:])
                doubts = [Doubt(pieces=a, mirrored=b, runs=c) for a, b, c in zip(*parts, strict=True)]
            mask = largest if self.largest else mask
        measured = regions(mask, self.classes, due.spacing, due.fit, doubts, self.seen)
        return Prediction(mask, measured, due.spacing, probabilities=kept)

    def _pieces(
        self, stored: Shaped[np.ndarray, "slices channels H W"], step: int, axis: int | None
    ) -> Iterator[list[Tensor]]:
        """Each network's probabilities of some slices after others, of the scan as it is or turned round."""

        def read(some: slice) -> Float[Tensor, "n channels H W"]:
            image = as_float(torch.from_numpy(stored[some]).to(self.device))
            return image if axis is None else image.flip(axis)

        for each in zip(*(pieces(network, read, len(stored), step) for network in self.networks), strict=True):
            yield [one if axis is None else one.flip(axis) for one in each]

    def _compared(self, passes: Sequence[list[Tensor]]) -> tuple[Tensor, UInt8[np.ndarray, "all n H W"]]:
        """Probabilities, their mask, and those to compare it with: of mirrored images, and of each of several runs."""
        alone, *mirrored = passes
        probs = _mean(alone)
        runs = alone if self.doubt and len(alone) > 1 else []
        return probs, np.stack([_mask(one) for one in (probs, *map(_mean, mirrored), *runs)])

    def _check_channels(self, what: str, count: int) -> None:
        if count != self.run.channels:
            raise BadInput(
                f"{what}: {count} channels given, and {self.run.path} was trained on {self.run.channels}; give one "
                "file for each, in the order of the training data (NAME_0000, NAME_0001, ...)"
            )


def _mean(probs: Sequence[Float[Tensor, "B K H W"]]) -> Float[Tensor, "B K H W"]:
    return probs[0] if len(probs) == 1 else torch.stack(list(probs)).mean(dim=0)


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
