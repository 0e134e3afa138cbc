"""Batch normalisation by the batch of all processes that train together, where PyTorch has none: on CPUs."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


def synchronised(network: nn.Module, device: torch.device) -> nn.Module:
    """The same network and weights, whose batch normalisation sees the batches of all processes."""
    if device.type == "cuda":
        made: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(network)
        return made
    for name, child in network.named_children():
        setattr(network, name, synchronised(child, device))
    return SharedNorm(network) if isinstance(network, _BatchNorm) else network


class SharedNorm(_BatchNorm):
    """What normalises a feature map by the mean and variance of all processes' images."""

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        self.weight, self.bias, self.training = norm.weight, norm.bias, norm.training
        for name, buffer in norm.named_buffers():
            setattr(self, name, buffer)

    def _check_input_dim(self, input: Tensor) -> None:  # noqa: A002
        pass

    def forward(self, input: Float[Tensor, "B C *space"]) -> Float[Tensor, "B C *space"]:  # noqa: A002
        """Normalise each feature map, by the batch while training and by the running statistics afterwards."""
        weight, bias = self.weight, self.bias
        if not self.training and self.running_mean is not None:
            return functional.batch_norm(input, self.running_mean, self.running_var, weight, bias, False, 0.0, self.eps)
        found = _Shared.apply(input, weight, bias, self.eps)  # type: ignore[no-untyped-call]
        made, mean, variance, count = found
        if self.training and self.running_mean is not None and self.running_var is not None:
            momentum = 0.1 if self.momentum is None else self.momentum
            with torch.no_grad():
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)
        normalised: Tensor = made
        return normalised


class _Shared(torch.autograd.Function):
    """`y = (x - mean) w / sqrt(variance + eps) + b`; returns mean, variance and the count behind them too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
        wide = torch.promote_types(x.dtype, torch.float32)
        scratch = [torch.zeros(x.shape[1], dtype=wide, device=x.device) for _ in range(2)]
        mean, variance = torch.ops.aten.batch_norm_update_stats(x, *scratch, 0.1)
        count = torch.full_like(mean, x.numel() / x.shape[1])
        ranks = distributed.get_world_size()
        table = mean.new_zeros((ranks, 3, len(mean)))
        table[distributed.get_rank()] = torch.stack([mean, variance, count])
        distributed.all_reduce(table)
        means, variances, counts = table.unbind(1)
        total = counts.sum(dim=0)
        mean = (means * counts).sum(dim=0) / total
        variance = ((variances + (means - mean).square()) * counts).sum(dim=0) / total
        ctx.save_for_backward(x, weight, mean, variance, total)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, variance, total)
        return functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps), mean, variance, total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance, total = ctx.saved_tensors
        _, along, plain = torch.ops.aten.native_batch_norm_backward(
            gradient, x, weight, mean, variance, None, None, False, ctx.eps, [False, True, True]
        )
        sums = torch.stack([along, plain]).to(mean.dtype)  # of gradient times what was normalised, and of gradient
        distributed.all_reduce(sums)
        slope = torch.rsqrt(variance + ctx.eps)
        scale = slope if weight is None else slope * weight
        by_x = -scale * slope * sums[0] / total
        rest = -scale * sums[1] / total - by_x * mean
        columns = [one.reshape(-1, *(1,) * (x.ndim - 2)) for one in (scale, by_x, rest)]
        back = torch.addcmul(columns[2], gradient.to(mean.dtype), columns[0]).addcmul_(x.to(mean.dtype), columns[1])
        return back.to(x.dtype), None if weight is None else along, None if weight is None else plain, None
