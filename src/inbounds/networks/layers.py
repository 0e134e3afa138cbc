"""What the networks have in common: batch normalisation, and a convolution with it."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that does not count its batches.

    The count only matters for a cumulative average (`momentum=None`), yet adding 1 to it costs one kernel launch per
    layer and step: more than eighty in ENet. The buffer stays, at 0, so that saved weights have the usual names.
    """

    def forward(self, input: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:  # noqa: A002
        """Normalise each feature map, by the batch while training and by the running statistics afterwards."""
        momentum = 0.1 if self.momentum is None else self.momentum
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, self.training, momentum, self.eps
        )


def convolution(inputs: int, outputs: int, *, stride: int = 1) -> nn.Sequential:
    """A 3x3 convolution, batch normalisation and a ReLU. The normalisation's shift makes a bias superfluous."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), BatchNorm(outputs), nn.ReLU(inplace=True)
    )
