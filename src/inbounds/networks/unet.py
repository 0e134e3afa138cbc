"""A plain U-Net of today: padded convolutions, normalised, halved by strides.

After O. Ronneberger, P. Fischer and T. Brox, *U-Net: Convolutional networks for biomedical image segmentation*, 2015
(arXiv:1505.04597), with the widths of F. Isensee et al., *nnU-Net*, 2021 (Nature Methods 18, 203-211).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inbounds.networks.layers import convolution


class UNet(nn.Module):
    """From an image whose sides are multiples of `coarse * 2 ** (levels - 1)` to one score per class and pixel.

    Two convolutions at every resolution on the way down and on the way up. The number of feature maps doubles from
    level to level as far as `most`. Weights start as PyTorch initialises them; `torch.manual_seed` fixes them.

    Args:
        channels: Channels of the image.
        classes: Classes, the background included.
        width: Feature maps at the full resolution.
        levels: Resolutions, the full one included.
        most: Feature maps of the coarser levels; ten times the width if not given, as in nnU-Net.
        coarse: The finest level has one pixel for so many along each axis, and scores are interpolated: with 2 a step
            takes about a quarter of the time. Slices of volumes stay as many.
        dimensions: 2 for slices, 3 for volumes.
        flat: So many of the finest levels of a volume see slices by themselves, with kernels of 1x3x3, and so many
            times the image is halved within slices alone: where slices lie further apart than pixels.
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        width: int = 32,
        levels: int = 6,
        most: int | None = None,
        coarse: int = 1,
        dimensions: int = 2,
        flat: int = 0,
    ) -> None:
        super().__init__()
        if dimensions not in (2, 3) or not 0 <= flat <= levels * (dimensions - 2):
            raise ValueError(
                f"a U-Net has 2 or 3 dimensions, not {dimensions}, and of a volume 0 to {levels} flat levels, not "
                f"{flat}"
            )
        if width < 1 or levels < 2 or coarse < 1:
            raise ValueError(
                f"a U-Net has at least 1 feature map and 2 levels, and is as coarse as 1 or more: not {width}, "
                f"{levels} and {coarse}"
            )
        self.coarse, most_halved = coarse, coarse * 2 ** (levels - 1)
        self.multiple: int | tuple[int, ...] = most_halved
        if dimensions == 3:
            self.multiple = 2 ** max(0, levels - 1 - flat), most_halved, most_halved
        strides = [_beside(dimensions, 1, coarse) if coarse > 1 else (1,) * dimensions]
        strides += [_beside(dimensions, 1 if n < flat else 2, 2) for n in range(levels - 1)]
        kernels = [_beside(dimensions, 1 if n < flat else 3, 3) for n in range(levels)]
        widths = [min(width * 2**i, most or 10 * width) for i in range(levels)]
        before = [channels, *widths]
        self.down = nn.ModuleList(
            nn.Sequential(convolution(i, o, stride=stride, kernel=kernel), convolution(o, o, kernel=kernel))
            for i, o, stride, kernel in zip(before, widths, strides, kernels, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        larger = nn.ConvTranspose2d if dimensions == 2 else nn.ConvTranspose3d
        self.enlarge = nn.ModuleList(
            larger(i, o, stride, stride=stride, bias=False)  # type: ignore[arg-type]
            for (i, o), stride in zip(pairs, strides[:0:-1], strict=True)
        )
        self.up = nn.ModuleList(
            nn.Sequential(convolution(2 * o, o, kernel=kernel), convolution(o, o, kernel=kernel))
            for (_, o), kernel in zip(pairs, kernels[-2::-1], strict=True)
        )
        self.scores = (nn.Conv2d if dimensions == 2 else nn.Conv3d)(width, classes, 1)

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B K *space"]:
        """The scores of every class, before the softmax."""
        x, kept = image, []
        for down in self.down:
            x = down(x)
            kept.append(x)
        for larger, up, skip in zip(self.enlarge, self.up, kept[-2::-1], strict=True):
            x = up(torch.cat([larger(x), skip], dim=1))
        scores: Tensor = self.scores(x)
        if self.coarse == 1:
            return scores
        factor = float(self.coarse)
        if image.ndim == 4:
            return functional.interpolate(scores, scale_factor=factor, mode="bilinear", align_corners=False)
        by = (1.0, factor, factor)
        return functional.interpolate(scores, scale_factor=by, mode="trilinear", align_corners=False)


def _beside(dimensions: int, between: int, within: int) -> tuple[int, ...]:
    """A number for each axis: one between the slices of a volume, one within them."""
    return (within, within) if dimensions == 2 else (between, within, within)
