"""The fully residual U-Net of the paper's prostate experiments.

After T. M. Quan, D. G. C. Hildebrand and W.-K. Jeong, *FusionNet: A deep fully residual convolutional neural network
for image segmentation in connectomics*, 2016 (arXiv:1612.05360): a U-Net whose every level holds a residual block, and
whose long connections from encoder to decoder are sums too, where U-Net concatenates.
"""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inbounds.networks.layers import BatchNorm, convolution


class Residual(nn.Module):
    """Three convolutions, added to what they were given."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            convolution(features, features),
            convolution(features, features),
            nn.Conv2d(features, features, 3, padding=1, bias=False),
            BatchNorm(features),
        )

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """Add the branch to its input; the sum passes a ReLU."""
        return functional.relu(x + self.branch(x))


def level(inputs: int, outputs: int) -> nn.Sequential:
    """What happens at one resolution: a convolution, a residual block, a convolution."""
    return nn.Sequential(convolution(inputs, outputs), Residual(outputs), convolution(outputs, outputs))


def enlarge(inputs: int, outputs: int) -> nn.Sequential:
    """A 3x3 transposed convolution that doubles the image, batch normalisation and a ReLU."""
    return nn.Sequential(
        nn.ConvTranspose2d(inputs, outputs, 3, stride=2, padding=1, output_padding=1, bias=False),
        BatchNorm(outputs),
        nn.ReLU(inplace=True),
    )


class ResidualUNet(nn.Module):
    """From an image whose sides are multiples of 16 to one score per class and pixel.

    Four levels down, a bridge, four levels up; the number of feature maps doubles from level to level. The width of 32
    gives the 19.6 million parameters of the network the paper's authors used; FusionNet itself is twice as wide and
    adds noise and dropout, which the paper does not mention. Weights start as PyTorch initialises them;
    `torch.manual_seed` fixes them.

    Args:
        channels: Channels of the image.
        classes: Classes, the background included.
        width: Feature maps at the full resolution.
    """

    multiple: ClassVar[int] = 16

    def __init__(self, channels: int, classes: int, *, width: int = 32) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"the width must be at least 1 feature map, not {width}")
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.encoder = nn.ModuleList(level(i, o) for i, o in zip([channels, *widths], widths, strict=False))
        self.bridge = level(widths[-1], 2 * widths[-1])
        self.enlarge = nn.ModuleList(enlarge(2 * w, w) for w in reversed(widths))
        self.decoder = nn.ModuleList(level(w, w) for w in reversed(widths))
        self.scores = nn.Conv2d(width, classes, 1)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        """The scores of every class, before the softmax."""
        x, kept = image, []
        for encode in self.encoder:
            kept.append(encode(x))
            x = functional.max_pool2d(kept[-1], 2)
        x = self.bridge(x)
        for larger, decode, skip in zip(self.enlarge, self.decoder, reversed(kept), strict=True):
            x = decode(larger(x) + skip)
        scores: Tensor = self.scores(x)
        return scores
