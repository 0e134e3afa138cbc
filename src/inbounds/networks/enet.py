"""ENet, the small and fast network of the paper's left-ventricle and vertebral-body experiments.

After A. Paszke, A. Chaurasia, S. Kim and E. Culurciello, *ENet: A Deep Neural Network Architecture for Real-Time
Semantic Segmentation*, 2016 (arXiv:1606.02147): a large encoder that shrinks the image by 8, a small decoder, and
everywhere the same bottleneck: a main path that is left alone and a branch of three convolutions added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from inbounds.networks.layers import BatchNorm


def pool(features: Float[Tensor, "B C H W"]) -> tuple[Float[Tensor, "B C h w"], Int[Tensor, "B C h w"]]:
    """The largest of every 2x2 pixels, and where it was: its index in the flattened `H x W` image."""
    pooled, indices = functional.max_pool2d(features, 2, return_indices=True)
    return pooled, indices


def unpool(features: Float[Tensor, "B C h w"], indices: Int[Tensor, "B C h w"]) -> Float[Tensor, "B C H W"]:
    """Put every value back where `pool` found the largest of its 2x2 pixels, and 0 in the other three.

    Example:
        >>> pooled, indices = pool(torch.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]))
        >>> unpool(pooled * 10, indices)
        tensor([[[[ 0.,  0.],
                  [40.,  0.]]]])
    """
    # Each output pixel asks whether it is the chosen one, where PyTorch's max_unpool2d scatters. As windows do not
    # overlap the values are the same, and in a captured graph so is the speed; but a comparison is allowed among
    # deterministic algorithms on a GPU, needs no check of the indices, and can be exported.
    B, C, h, w = features.shape
    pixel = torch.arange(4 * h * w, device=features.device).view(h, 2, w, 2)
    chosen = indices[:, :, :, None, :, None] == pixel
    return torch.where(chosen, features[:, :, :, None, :, None], 0).reshape(B, C, 2 * h, 2 * w)


def branch(reduce: nn.Module, spread: Sequence[nn.Module], inside: int, outside: int, dropout: float) -> nn.Sequential:
    """The three convolutions of a bottleneck: to few feature maps, over space, and back to many.

    Batch normalisation and a PReLU lie between them, and spatial dropout, of whole feature maps, comes last.
    """
    return nn.Sequential(
        reduce,
        BatchNorm(inside),
        nn.PReLU(inside),
        *spread,
        BatchNorm(inside),
        nn.PReLU(inside),
        nn.Conv2d(inside, outside, 1, bias=False),
        BatchNorm(outside),
        nn.Dropout2d(dropout),
    )


class Bottleneck(nn.Module):
    """A bottleneck that keeps size and number of feature maps.

    Over space it is a 3x3 convolution, `dilation` pixels wide between its taps; or, with `asymmetric`, a 5x1 and a 1x5
    convolution, which see 5x5 pixels at the price of ten weights.
    """

    def __init__(self, features: int, dropout: float, *, dilation: int = 1, asymmetric: bool = False) -> None:
        super().__init__()
        inside = features // 4
        if asymmetric:
            down = nn.Conv2d(inside, inside, (5, 1), padding=(2, 0), bias=False)
            spread = [down, nn.Conv2d(inside, inside, (1, 5), padding=(0, 2), bias=False)]
        else:
            spread = [nn.Conv2d(inside, inside, 3, padding=dilation, dilation=dilation, bias=False)]
        self.branch = branch(nn.Conv2d(features, inside, 1, bias=False), spread, inside, features, dropout)
        self.activation = nn.PReLU(features)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """Add the branch to its input."""
        out: Tensor = self.activation(x + self.branch(x))
        return out


class Downsampling(nn.Module):
    """A bottleneck that halves the image: max-pooled on the main path, by a 2x2 convolution of stride 2 on the branch.

    The main path gets empty feature maps to match the branch.
    """

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        inside = outputs // 4
        reduce = nn.Conv2d(inputs, inside, 2, stride=2, bias=False)
        spread = [nn.Conv2d(inside, inside, 3, padding=1, bias=False)]
        self.branch = branch(reduce, spread, inside, outputs, dropout)
        self.activation = nn.PReLU(outputs)
        self.missing = outputs - inputs

    def forward(self, x: Float[Tensor, "B C H W"]) -> tuple[Float[Tensor, "B D h w"], Int[Tensor, "B C h w"]]:
        """The smaller feature maps, and where the largest pixels were."""
        main, indices = pool(x)
        out: Tensor = self.activation(functional.pad(main, (0, 0, 0, 0, 0, self.missing)) + self.branch(x))
        return out, indices


class Upsampling(nn.Module):
    """A bottleneck that doubles the image: unpooled on the main path, by a transposed convolution on the branch."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        inside = outputs // 4
        self.main = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), BatchNorm(outputs))
        spread = [nn.ConvTranspose2d(inside, inside, 3, stride=2, padding=1, output_padding=1, bias=False)]
        self.branch = branch(nn.Conv2d(inputs, inside, 1, bias=False), spread, inside, outputs, dropout)
        self.activation = nn.PReLU(outputs)

    def forward(self, x: Float[Tensor, "B C h w"], indices: Int[Tensor, "B D h w"]) -> Float[Tensor, "B D H W"]:
        """The larger feature maps, each value of the main path where the encoder's largest pixel was."""
        out: Tensor = self.activation(unpool(self.main(x), indices) + self.branch(x))
        return out


def context(features: int, dropout: float) -> list[nn.Module]:
    """The eight bottlenecks that stages 2 and 3 share: they look ever further, up to 16 pixels between the taps."""
    blocks: list[nn.Module] = []
    for near, far in ((2, 4), (8, 16)):
        blocks += [Bottleneck(features, dropout), Bottleneck(features, dropout, dilation=near)]
        blocks += [Bottleneck(features, dropout, asymmetric=True), Bottleneck(features, dropout, dilation=far)]
    return blocks


class ENet(nn.Module):
    """From an image whose sides are multiples of 8 to one score per class and pixel.

    The initial block holds 13 filters beside the pooled image of 3 channels: 16 feature maps. For an image of fewer
    channels more filters make up the 16. Weights start as PyTorch initialises them; `torch.manual_seed` fixes them.

    Args:
        channels: Channels of the image.
        classes: Classes, the background included.
        dropout: Whether to drop feature maps while training: 1 % of them in stage 1, 10 % in the later stages.
    """

    multiple: ClassVar[int] = 8

    def __init__(self, channels: int, classes: int, *, dropout: bool = True) -> None:
        super().__init__()
        first = max(16, 13 + channels)
        if first > 64:
            raise ValueError(f"ENet takes images of at most 51 channels, not {channels}")
        rare, often = (0.01, 0.1) if dropout else (0.0, 0.0)
        self.filters = nn.Conv2d(channels, first - channels, 3, stride=2, padding=1, bias=False)
        self.initial = nn.Sequential(BatchNorm(first), nn.PReLU(first))
        self.down1 = Downsampling(first, 64, rare)
        self.stage1 = nn.Sequential(*[Bottleneck(64, rare) for _ in range(4)])
        self.down2 = Downsampling(64, 128, often)
        self.stage2 = nn.Sequential(*context(128, often))
        self.stage3 = nn.Sequential(*context(128, often))
        self.up4 = Upsampling(128, 64, often)
        self.stage4 = nn.Sequential(Bottleneck(64, often), Bottleneck(64, often))
        self.up5 = Upsampling(64, first, often)
        self.stage5 = Bottleneck(first, often)
        self.scores = nn.ConvTranspose2d(first, classes, 3, stride=2, padding=1, output_padding=1)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        """The scores of every class, before the softmax."""
        # The max-pooling of the image is spelt out: onnxruntime would merge a MaxPool with the zero-padding before it,
        # as if the padding were minus infinity.
        pooled = image.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
        x = self.initial(torch.cat([self.filters(image), pooled], dim=1))
        x, first = self.down1(x)
        x, second = self.down2(self.stage1(x))
        x = self.up4(self.stage3(self.stage2(x)), second)
        x = self.up5(self.stage4(x), first)
        scores: Tensor = self.scores(self.stage5(x))
        return scores
