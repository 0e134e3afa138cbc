"""A network of volumes, as all else sees scans: as stacks of slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inbounds.errors import BadInput
from inbounds.memory import available, require

OVERLAP = 0.5
"""The share of a window that the next one sees again, when scans are segmented."""
BUFFERS = 5
"""So often probabilities are held at once: of windows beside each other, of those before them, added up, divided, and
on their way out."""
NARROW = 0.125
"""The standard deviation of the weights of a window, as a share of its side; MONAI takes the same."""


class Volumetric(nn.Module):
    """A network for volumes `(B, C, D, H, W)`, which is given slices and gives the scores of slices.

    While it trains, a batch is patches, so many slices each, one behind the other. In evaluation mode a batch is all
    slices of one scan, of any size: windows as large as a patch are laid over it (MONAI's sliding windows), and their
    probabilities averaged with Gaussian weights, so that the middle of a window counts most.

    Windows that begin at one slice take `4 m (C + 5 K)` bytes beside what the network does with one of them, where `m`
    are their voxels together: as many slices as a window, and all rows and columns. What comes out may be let go slab
    by slab; who wants it as a whole holds as much of all slices. What does not fit is refused.

    Attributes:
        overlap: The share of a window that the next one sees again: the more, the smoother and the slower.

    Args:
        network: Takes volumes.
        patch: Slices, rows and columns of a window.
        classes: How many scores it gives, that of the background included.
    """

    def __init__(self, network: nn.Module, patch: Sequence[int], classes: int) -> None:
        super().__init__()
        self.network, self.patch, self.classes = network, tuple(patch), classes
        self.overlap = OVERLAP

    def forward(self, slices: Float[Tensor, "N C H W"]) -> Float[Tensor, "N K H W"]:
        """The scores of every class; of a whole scan, logarithms of probabilities."""
        if self.training:
            scores: Tensor = self.network(as_volumes(slices, self.patch[0]))
            return as_slices(scores)
        probs = self.probabilities(slices)
        return probs.clamp(min=torch.finfo(probs.dtype).tiny).log()

    def probabilities(self, slices: Float[Tensor, "D C H W"], overlap: float | None = None) -> Float[Tensor, "D K H W"]:
        """Those of every voxel of a scan, with windows that overlap as they do, or by another share."""
        self._check_room(slices, len(slices))
        return torch.cat(list(self.slabs(slices.__getitem__, len(slices), overlap)))

    def slabs(
        self, read: Callable[[slice], Float[Tensor, "n C H W"]], depth: int, overlap: float | None = None
    ) -> Iterator[Float[Tensor, "n K H W"]]:
        """The same of a scan whose slices are read a few at a time, from the first to the last.

        Windows that begin at the same slice are put together by MONAI; those further on are added with the weights that
        Gaussian windows have along the slices. What no further window sees is given away.

        Args:
            read: Gives some of the slices.
            depth: How many there are.
            overlap: As of `probabilities`.
        """
        try:
            from monai.inferers.utils import sliding_window_inference
        except ImportError as error:
            raise BadInput(f"3-D networks need MONAI ({error}): pip install 'inbounds[evaluate]'") from None
        part, deep = self.overlap if overlap is None else overlap, self.patch[0]
        step, last = max(1, int(deep * (1 - part))), max(0, depth - deep)
        begins = [*range(0, last, step), last]
        before: tuple[Tensor, Tensor] | None = None
        for begin, following in zip(begins, [*begins[1:], depth], strict=True):
            slices = read(slice(begin, begin + deep))
            if not begin:
                self._check_room(slices, depth)
            found = sliding_window_inference(
                slices.transpose(0, 1)[None],
                self.patch,
                1,
                lambda window: self.network(window).float().softmax(dim=1),
                overlap=part,
                mode="gaussian",
            )
            assert isinstance(found, Tensor)
            weight = _along(deep, found.device)[: len(slices)]
            sums = found[0].transpose(0, 1) * weight
            if before is not None:
                for now, earlier in zip((sums, weight), before, strict=True):
                    now[: len(earlier)] += earlier
            done = following - begin
            yield sums[:done] / weight[:done]
            before = sums[done:].clone(), weight[done:]  # a view would keep all of it

    def _check_room(self, slices: Tensor, depth: int) -> None:
        """Refuse a scan of so many slices, of which these are looked at together, if the device has no room for it."""
        together, _, height, width = slices.shape
        what, free = f"a scan of {depth} slices of {height} x {width} pixels", available()
        if together < depth:
            what += f", {together} at a time,"
        remedy = "prepare a coarser grid (--pixel, --slice-spacing), or cut the scan"
        if slices.device.type == "cuda":
            kept = torch.cuda.memory_reserved(slices.device) - torch.cuda.memory_allocated(slices.device)
            free = torch.cuda.mem_get_info(slices.device)[0] + kept
            remedy += ", or take the CPU (--device cpu)"
        require(self.bytes_of(slices.shape), what, remedy, free)

    def bytes_of(self, shape: Sequence[int]) -> int:
        """What looking at so many slices, channels, rows and columns at once takes, beside one window."""
        depth, channels, *sides = shape
        voxels = math.prod(max(side, window) for side, window in zip((depth, *sides), self.patch, strict=True))
        return 4 * voxels * (channels + BUFFERS * self.classes)

    def seen(self, shape: Sequence[int]) -> int:
        """The voxels of all windows on a scan of so many slices, rows and columns, if they do not overlap."""
        windows = math.prod(math.ceil(side / window) for side, window in zip(shape, self.patch, strict=True))
        return windows * math.prod(self.patch)


def _along(deep: int, device: torch.device) -> Float[Tensor, "deep 1 1 1"]:
    """How much each slice of a window counts."""
    away = (torch.arange(deep, device=device) - (deep - 1) / 2) / (NARROW * deep)
    return torch.exp(-away.square() / 2).clamp(min=1e-3).reshape(-1, 1, 1, 1)


def sees_volumes(network: nn.Module) -> bool:
    """Whether it takes the slices of a scan together."""
    return any(isinstance(part, Volumetric) for part in network.modules())


def as_volumes(slices: Float[Tensor, "N C H W"], depth: int) -> Float[Tensor, "B C D H W"]:
    """From slices behind each other to volumes of so many."""
    if len(slices) % depth:
        raise ValueError(f"{len(slices)} slices are no patches of {depth}")
    return slices.reshape(-1, depth, *slices.shape[1:]).transpose(1, 2)


def as_slices(volumes: Float[Tensor, "B C D H W"]) -> Float[Tensor, "N C H W"]:
    """From volumes to their slices behind each other."""
    return volumes.transpose(1, 2).flatten(0, 1)
