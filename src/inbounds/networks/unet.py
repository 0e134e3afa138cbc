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
            takes about a quarter of the time.
    """

    def __init__(
        self, channels: int, classes: int, *, width: int = 32, levels: int = 6, most: int | None = None, coarse: int = 1
    ) -> None:
        super().__init__()
        if width < 1 or levels < 2 or coarse < 1:
            raise ValueError(
                f"a U-Net has at least 1 feature map and 2 levels, and is as coarse as 1 or more: not {width}, "
                f"{levels} and {coarse}"
            )
        self.coarse, self.multiple = coarse, coarse * 2 ** (levels - 1)
        widths = [min(width * 2**i, most or 10 * width) for i in range(levels)]
        before = [channels, *widths]
        self.down = nn.ModuleList(
            nn.Sequential(convolution(i, o, stride=2 if n else coarse), convolution(o, o))
            for n, (i, o) in enumerate(zip(before, widths, strict=False))
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2, bias=False) for i, o in pairs)
        self.up = nn.ModuleList(nn.Sequential(convolution(2 * o, o), convolution(o, o)) for _, o in pairs)
        self.scores = nn.Conv2d(width, classes, 1)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
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
        return functional.interpolate(scores, scale_factor=float(self.coarse), mode="bilinear", align_corners=False)
