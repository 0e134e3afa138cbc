"""What the networks have in common: normalisation, and a convolution with it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation, of slices and volumes alike, that does not count its batches.

    The count only matters for a cumulative average (`momentum=None`), yet adding 1 to it costs one kernel launch per
    layer and step: more than eighty in ENet. The buffer stays, at 0, so that saved weights have the usual names.
    """

    def forward(self, input: Float[Tensor, "B C *space"]) -> Float[Tensor, "B C *space"]:  # noqa: A002
        """Normalise each feature map, by the batch while training and by the running statistics afterwards."""
        momentum = 0.1 if self.momentum is None else self.momentum
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, self.training, momentum, self.eps
        )


class InstanceNorm(nn.Module):
    """Normalisation of each image by itself, while training and afterwards alike.

    A batch of one or two patches says little of what is usual, and a running mean of what few steps saw is late: a
    network that is averaged over steps would find something else than the one that is trained (D. Ulyanov et al.,
    2016, arXiv:1607.08022; F. Isensee et al., *nnU-Net*, 2021, has it for volumes).

    Args:
        features: Feature maps, each with a weight and a shift of its own.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B C *space"]:
        """Normalise each feature map of each image. On a CPU this takes half the time of PyTorch's own."""
        alone = [
            functional.batch_norm(one, None, None, self.weight, self.bias, training=True) for one in image.split(1)
        ]
        return alone[0] if len(alone) == 1 else torch.cat(alone)


norms: dict[str, Callable[[int], nn.Module]] = {"batch": BatchNorm, "instance": InstanceNorm}
"""By name: over a batch, for which running statistics stand in afterwards, or each image by itself."""


def convolution(
    inputs: int,
    outputs: int,
    *,
    stride: int | tuple[int, ...] = 1,
    kernel: tuple[int, ...] = (3, 3),
    norm: str = "batch",
) -> nn.Sequential:
    """A convolution, 3x3 or as its kernel says, normalisation and a ReLU.

    The normalisation's shift makes a bias superfluous.
    """
    layer: type[nn.Conv2d | nn.Conv3d] = nn.Conv2d if len(kernel) == 2 else nn.Conv3d
    padding = tuple(side // 2 for side in kernel)
    made = layer(inputs, outputs, kernel, stride=stride, padding=padding, bias=False)  # type: ignore[arg-type]
    return nn.Sequential(made, norms[norm](outputs), nn.ReLU(inplace=True))
