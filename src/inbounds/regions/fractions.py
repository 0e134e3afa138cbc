"""Averages over a region: the paper's general form, and the intensity statistics that are cases of it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.facts import FactColumns
from inbounds.regions.scans import Scans, each, total
from inbounds.regions.size import size
from inbounds.regions.statistic import Probs, Values, statistic, wide


def share(numerator: Values, mass: Float[Tensor, "N K 1"], whole: Float[Tensor, "N #K M"]) -> Values:
    """Divide, taking a region of less than one pixel as completed to one pixel by the `whole` image.

    So the value is exact from one pixel of probability on, an empty region takes the value of the whole image, and
    the gradient never exceeds that of a region of one pixel.
    """
    missing = (1 - mass).clamp(min=0)
    return (numerator + missing * whole) / (mass + missing)


def fit_to(probs: Tensor, potential: Tensor, *, shared: bool = False) -> Float[Tensor, "B M *space"]:
    """The potential of each image; `shared` allows one without a batch axis, the same for all."""
    batch, space = probs.shape[0], probs.shape[2:]
    if shared and potential.ndim == probs.ndim - 1:
        potential = potential.unsqueeze(0).expand(batch, *potential.shape)
    given = tuple(potential.shape)
    if len(given) != probs.ndim or (given[0], *given[2:]) != (batch, *space) or not given[1]:
        raise ValueError(
            f"an image or potential of shape {given} does not fit probabilities of shape "
            f"{tuple(probs.shape)}: it must be {'(M, *space) or ' if shared else ''}(B, M, *space) with B={batch} and "
            f"space={tuple(space)}"
        )
    return potential.to(wide(probs.dtype))


def _whole(
    potential: Float[Tensor, "B M *space"], scans: Scans | None
) -> tuple[Float[Tensor, "N 1 M"], Float[Tensor, "N 1 M"]]:
    """Mean and variance over all pixels of an image, or of the slices of a scan."""
    flat = potential.flatten(2)
    pixels = total(flat.new_full((flat.shape[0], 1), flat.shape[2]), scans).clamp(min=1)
    mean = total(flat.sum(dim=2), scans) / pixels
    deviation = flat - each(mean, scans).unsqueeze(-1)
    variance = total(deviation.square().sum(dim=2), scans) / pixels
    return mean.unsqueeze(1), variance.unsqueeze(1)


def _sums(probs: Probs, potential: Float[Tensor, "B #K M *space"], scans: Scans | None) -> Values:
    """`sum_p f_p S_p`, one component at a time so that no `(B, K, M, *space)` is ever held."""
    space = tuple(range(2, probs.ndim))
    parts = [(probs * potential[:, :, m]).sum(dim=space) for m in range(potential.shape[2])]
    return total(torch.stack(parts, dim=-1), scans)


def _scale(potential: Float[Tensor, "B M *space"], scans: Scans | None) -> Float[Tensor, "N 1 M"]:
    """The variance over the image, or 1 where it is nothing but rounding."""
    mean, variance = _whole(potential, scans)
    rounding = 16 * torch.finfo(potential.dtype).eps * mean
    return torch.where(variance > rounding.square(), variance, 1)


@statistic(scale=lambda probs, potential, *, scans=None: _scale(fit_to(probs, potential, shared=True), scans))
def fraction(probs: Probs, potential: Float[Tensor, "*batch M *space"], *, scans: Scans | None = None) -> Values:
    """The average of a potential over each soft region, `F_S = sum_p f_p S_p / sum_p S_p`.

    This is the paper's Eq. "general-fractional-term". The potential is `(M, *space)`, the same for all images, or
    `(B, M, *space)`. With `scans`, numerators and denominators are summed over a scan's slices, then divided.

    A region of less than one pixel of probability is completed to one pixel spread evenly over the image: an empty
    region therefore takes the mean of the potential over the image, and its gradient is `f_p - mean(f)`.

    Natural scale: the variance of the potential over the image (1 where it is constant).

    Example:
        >>> fraction(torch.tensor([[[[1.0, 1.0, 0.0]]]]), torch.tensor([[[2.0, 4.0, 9.0]]]))
        tensor([[[3.]]])
    """
    return _average(probs, fit_to(probs, potential, shared=True), scans)


def _average(probs: Probs, potential: Float[Tensor, "B M *space"], scans: Scans | None) -> Values:
    mean, _ = _whole(potential, scans)
    return share(_sums(probs, potential.unsqueeze(1), scans), size(probs, scans=scans), mean)


_COLUMNS = FactColumns(
    ("mean_intensity",),
    to_grid=lambda values, at: [(value - at.intensity[0]) / (at.intensity[1] - at.intensity[0]) for value in values],
    moved=lambda fact, motion: fact * motion.gain[:, None, None] + motion.offset[:, None, None],
    channels=True,
)


@statistic(scale=lambda probs, image, *, scans=None: _scale(fit_to(probs, image), scans), columns=_COLUMNS)
def mean_intensity(probs: Probs, image: Float[Tensor, "B M *space"], *, scans: Scans | None = None) -> Values:
    """The mean brightness of each soft region, one component per image channel: `fraction` with `f = image`.

    Empty region: the mean of the whole image. Natural scale: the variance of the image's intensity.

    Example:
        >>> mean_intensity(torch.tensor([[[[1.0, 1.0, 0.0]]]]), torch.tensor([[[[2.0, 4.0, 9.0]]]]))
        tensor([[[3.]]])
    """
    return _average(probs, fit_to(probs, image), scans)


@statistic(scale=lambda probs, image, *, scans=None: _scale(fit_to(probs, image), scans).square())
def variance_intensity(probs: Probs, image: Float[Tensor, "B M *space"], *, scans: Scans | None = None) -> Values:
    """How much the brightness varies inside each soft region, `sum_p (I_p - mean)^2 S_p / sum_p S_p`.

    Empty region: the variance of the whole image. Natural scale: the squared variance of the image's intensity.

    Example:
        >>> variance_intensity(torch.tensor([[[[1.0, 1.0, 0.0]]]]), torch.tensor([[[[2.0, 4.0, 9.0]]]]))
        tensor([[[1.]]])
    """
    potential = fit_to(probs, image)
    mean, variance = _whole(potential, scans)
    inside = mean_intensity(probs, image, scans=scans)
    centre = each(inside, scans).reshape(*probs.shape[:2], -1, *(1,) * (probs.ndim - 2))
    sums = _sums(probs, (potential.unsqueeze(1) - centre).square(), scans)
    return share(sums, size(probs, scans=scans), variance + (mean - inside).square())
