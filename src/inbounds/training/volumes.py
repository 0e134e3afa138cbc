"""How a run trains on patches of volumes."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from inbounds.batches.augment import Augment
from inbounds.batches.patches import PatchSamples
from inbounds.batches.samples import Samples
from inbounds.config.settings import Training
from inbounds.config.volumes import patch_of
from inbounds.errors import BadInput
from inbounds.memory import amount
from inbounds.networks import Volumetric
from inbounds.runs.run import Run
from inbounds.supervision import Supervision
from inbounds.training.estimate import ScanEstimate
from inbounds.training.group import Group

WHILE_TRAINING = 0.25
"""How far windows overlap when held-out scans are looked at between epochs."""


class Volumes:
    """The patches of a run, and what is estimated of the rest of its scans.

    Args:
        run: Whose network sees volumes.
        samples: What is trained on.
        supervision: Whose bounds say whether slices or scans have to be measured.
        judged: The network that is judged and kept: the averaged one, if there is one.
        group: The processes that train the run together, if there are others.
    """

    def __init__(
        self, run: Run, samples: Samples, supervision: Supervision, judged: nn.Module, group: Group | None = None
    ) -> None:
        settings = run.settings
        self.samples, self.training = samples, settings.training
        if samples.rows is not None:
            needed = len(samples) * math.prod(samples.labels.shape[1:]) * (1 + run.channels)
            raise BadInput(
                f"{run.store}: patches are gathered on the device, and its scans take {amount(needed)} there, more "
                "than half of what is free; train on fewer, or prepare a coarser grid (--pixel, --slice-spacing)"
            )
        assert isinstance(judged, Volumetric)
        judged.overlap = WHILE_TRAINING
        scopes = {constraint.scope for constraint in supervision.constraints}
        self.bounded = bool(scopes)
        self.estimate = ScanEstimate(samples, judged, group) if scopes and self.training.estimate else None
        spacing = [record.grid_spacing for record in samples.records]
        thick = float(np.median([steps[0] / min(steps[1:]) for steps in spacing]))
        self.patches = PatchSamples(
            samples,
            patch_of(self.training.patch),
            Augment(**settings.augment.model_dump()),
            thick=thick,
            of_slices="image" in scopes,
            around_labels=self.training.around_labels,
            estimate=self.estimate,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear of bounds."""
        if not self.bounded:
            return ()
        if self.estimate is None:
            return ("bounds: of what patches show a part of, the upper sides alone act (training.estimate=false)",)
        return ("bounds: until a scan was looked at as a whole, their upper sides alone act on its patches",)

    def steps(self) -> int:
        """How many there are in an epoch: patches have as many voxels together as the scans."""
        return steps_of(self.training, len(self.samples) * self.samples.pixels, self.samples.pixels)

    @property
    def voxels(self) -> int:
        """How many an epoch trains on."""
        return self.steps() * self.training.batch * math.prod(self.patches.patch)

    def plan(self, generator: torch.Generator) -> list[Tensor]:
        """The voxels around which the patches of each step of an epoch lie."""
        batch = self.training.batch
        return list(self.patches.draw(self.steps() * batch, generator).split(batch))

    def refresh(self) -> None:
        """Look at some scans again, after an epoch."""
        if self.estimate is not None:
            self.estimate.refresh(self.voxels)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {} if self.estimate is None else self.estimate.state()

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        if self.estimate is not None:
            self.estimate.restore(kept)


def steps_of(training: Training, voxels: int, slice_: int) -> int:
    """The steps of an epoch on so many voxels."""
    most = math.inf if training.slices is None else training.slices * slice_
    each = training.batch * math.prod(patch_of(training.patch))
    return max(1, math.ceil(min(voxels * training.repeats, most) / each))
