"""What an averaged network found in whole scans lately: by it, the rest of a scan is estimated where patches train."""

from __future__ import annotations

import zlib

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.batches.patches import Shown
from inbounds.batches.samples import Samples, as_float
from inbounds.networks import Volumetric
from inbounds.regions import Patches
from inbounds.training.group import Group

SHARE = 0.15
"""Voxels of the windows that are looked at between two epochs, as a share of those that were trained on. A look takes
less than half of a step's time: with what is looked up in each step, all of it is below a tenth of an epoch."""


class ScanEstimate:
    """Probabilities of every voxel of the training scans as they were last looked at, on the device.

    They are kept as the square root in 8 bits: exact at 0 and 1, and fine where they are small. What is outside of a
    patch is all of a scan less what these have at the patch: a network that finds there what was found before changes
    nothing. Until a scan was looked at, nothing is known of its rest.

    Args:
        samples: The scans.
        network: Looks at them, in evaluation mode.
        group: The processes that look at scans in turn, and tell each other.
    """

    def __init__(self, samples: Samples, network: Volumetric, group: Group | None = None) -> None:
        self.samples, self.network, self.group = samples, network, group
        device, count, classes = samples.device, len(samples), samples.classes
        self.roots = torch.zeros(count, classes - 1, *samples.labels.shape[1:], dtype=torch.uint8, device=device)
        self.scans = torch.full((len(samples.records), classes, 7), torch.nan, device=device)
        self.slices = torch.full((count, classes, 5), torch.nan, device=device)
        self.due, self.credit = 0, 0

    @property
    def complete(self) -> bool:
        """Whether every scan was looked at."""
        return not bool(self.scans[:, 1:].isnan().any())

    @property
    def sizes(self) -> list[int]:
        """How many voxels the windows have that show each scan."""
        sides = self.samples.labels.shape[1:]
        return [self.network.seen((record.slices, *sides)) for record in self.samples.records]

    @torch.no_grad()
    def refresh(self, voxels: int) -> int:
        """Look at the scans whose turn it is, after so many voxels were trained on; returns how many they are."""
        self.credit += int(voxels * SHARE)
        sizes = self.sizes
        training, due = self.network.training, list[int]()
        while len(due) < len(sizes) and self.credit >= sizes[self.due]:
            self.credit -= sizes[self.due]
            due.append(self.due)
            self.due = (self.due + 1) % len(sizes)
        self.network.eval()
        for number, scan in enumerate(due):
            if self.group is None or number % self.group.ranks == self.group.rank:
                self._look(scan)
        self.network.train(training)
        for number, scan in enumerate(due):
            if self.group is not None:
                here = self.samples.slices_of(scan)
                self.group.share(self.roots[here.start : here.stop], number % self.group.ranks)
            self._sum(scan)
        if len(due) == len(sizes):
            self.credit = min(self.credit, max(sizes))
        return len(due)

    def _look(self, scan: int) -> None:
        """Segment a scan, with windows that do not overlap."""
        here = self.samples.slices_of(scan)
        images = self.samples.images
        assert isinstance(images, Tensor)
        probs = self.network.probabilities(as_float(images[here.start : here.stop]), overlap=0.0)
        self.roots[here.start : here.stop] = (probs[:, 1:].sqrt() * 255).round().clamp(0, 255).to(torch.uint8)

    def _sum(self, scan: int) -> None:
        """The sums over a scan and over its slices, of what is kept."""
        here = self.samples.slices_of(scan)
        kept = _opened(self.roots[here.start : here.stop]).double()
        self.scans[scan, 1:] = Patches.over(kept.transpose(0, 1)).float()
        for number, one in zip(here, kept, strict=True):
            self.slices[number, 1:] = Patches.over(one).float()

    def outside(self, shown: Shown) -> tuple[Float[Tensor, "B K 7"], Float[Tensor, "B K 1"]]:
        """The sums over what patches do not show of their scans, and what was found in all of these."""
        seen = self._seen(shown) / shown.copies[0][:, None]
        powers = [torch.ones_like(shown.centred[:, 0]), *shown.centred.unbind(1), *shown.centred.square().unbind(1)]
        inside = torch.stack([(seen * one[:, None]).flatten(2).sum(dim=2) for one in powers], dim=2)
        whole = self.scans[shown.scan]
        return self._less(whole, inside), whole[..., :1]

    def outside_of_slices(self, shown: Shown) -> tuple[Float[Tensor, "N K 5"], Float[Tensor, "N K 1"]]:
        """The same of their slices."""
        seen = self._seen(shown) / shown.copies[1][:, None]
        within = shown.centred[:, 1:]
        powers = [torch.ones_like(within[:, 0]), *within.unbind(1), *within.square().unbind(1)]
        inside = torch.stack([(seen * one[:, None]).flatten(3).sum(dim=3) for one in powers], dim=3)
        whole = self.slices[shown.rows[0][:, :, 0, 0].flatten()]
        return self._less(whole, inside.transpose(1, 2).flatten(0, 1)), whole[..., :1]

    def _seen(self, shown: Shown) -> Float[Tensor, "B k d h w"]:
        """What is kept at the voxels of patches, of all classes but the background."""
        rows, y, x = shown.rows
        return torch.stack([_opened(self.roots[rows, k, y, x]) for k in range(self.roots.shape[1])], dim=1)

    @staticmethod
    def _less(whole: Float[Tensor, "n K M"], inside: Float[Tensor, "n k M"]) -> Float[Tensor, "n K M"]:
        """A whole without a part of it; of the background nothing is known."""
        return torch.cat([whole[:, :1], whole[:, 1:] - inside], dim=1)

    def state(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps of it."""
        packed = zlib.compress(self.roots.cpu().numpy().tobytes(), 1)
        return {
            "estimate.roots": torch.from_numpy(np.frombuffer(packed, dtype=np.uint8).copy()),
            "estimate.scans": self.scans.cpu().clone(),
            "estimate.slices": self.slices.cpu().clone(),
            "estimate.turn": torch.tensor([self.due, self.credit]),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        packed = state["estimate.roots"].numpy().tobytes()
        limit = self.roots.numel()
        opened = zlib.decompressobj().decompress(packed, limit + 1)
        if len(opened) != limit:
            raise ValueError(f"the estimate has {len(opened)} bytes, and the scans {limit} voxels")
        array = np.frombuffer(bytearray(opened), dtype=np.uint8).reshape(self.roots.shape)
        self.roots.copy_(torch.from_numpy(array))
        self.scans.copy_(state["estimate.scans"])
        self.slices.copy_(state["estimate.slices"])
        self.due, self.credit = state["estimate.turn"].tolist()


def _opened(roots: Tensor) -> Tensor:
    """Probabilities, from their roots in 8 bits."""
    return (roots.float() / 255).square()
