"""What the networks have in common: batch normalisation, and a convolution with it."""

from __future__ import annotations

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


def convolution(
    inputs: int, outputs: int, *, stride: int | tuple[int, ...] = 1, kernel: tuple[int, ...] = (3, 3)
) -> nn.Sequential:
    """A convolution, 3x3 or as its kernel says, batch normalisation and a ReLU.

    The normalisation's shift makes a bias superfluous.
    """
    layer: type[nn.Conv2d | nn.Conv3d] = nn.Conv2d if len(kernel) == 2 else nn.Conv3d
    padding = tuple(side // 2 for side in kernel)
    made = layer(inputs, outputs, kernel, stride=stride, padding=padding, bias=False)  # type: ignore[arg-type]
    return nn.Sequential(made, BatchNorm(outputs), nn.ReLU(inplace=True))
