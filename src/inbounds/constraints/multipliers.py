"""A penalty whose strength every image finds for itself: Lagrange multipliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from inbounds.ranks import Part


@dataclass(frozen=True, eq=False)
class Multipliers:
    """One multiplier `l >= 0` for each image, constrained region, component and side, in the place of a weight.

    A violation `z` costs `l z`, and by a step of gradient ascent `l <- max(0, l + step_size z)` once it was seen: who
    is outside pays more each time, who is inside less, down to nothing. With `damping` `c` it costs

        (max(0, l + c z)^2 - l^2) / 2c        (Rockafellar, 1973: the augmented Lagrangian of an inequality)

    with the gradient `max(0, l + c z)`: a quadratic penalty beside the multiplier, which keeps both from swinging
    (Platt and Barr, 1987, "Constrained differential optimization").

    The multipliers are a tensor that a forward pass changes in place, where gradients are taken: nothing is read back
    from the device. It needs to know which image is which: give `Annotation(index=...)`, and `scan_index` for bounds
    on scans. A violation is best measured by what is typical, `Constraint(scale="typical")`: one step then means the
    same for all classes.

    Args:
        step_size: Of the ascent.
        damping: `c`; 0 for the plain Lagrangian.
        images: How many images, or scans, there are. `inbounds train` counts them itself.
        regions: How many constrained regions, or relations.
        components: How many components the statistic has.
        values: The multipliers, `(images, 2, regions, components)`: of the lower side, then of the upper.

    Example:
        >>> one = Multipliers(step_size=0.5, damping=0, images=3)
        >>> violation = torch.tensor([-2.0, 4.0]).reshape(2, 1, 1, 1)  # inside the lower bound, 4 above the upper
        >>> index = torch.tensor([2])
        >>> one.price(violation, index).flatten()  # nothing yet
        tensor([-0., 0.])
        >>> one.price(violation, index).flatten()  # 0.5 * 4 * 4
        tensor([-0., 8.])
    """

    step_size: float = 0.1
    damping: float = 1.0
    images: int = 0
    regions: int = 1
    components: int = 1
    values: Float[Tensor, "images 2 regions components"] = field(default_factory=lambda: torch.zeros(0, 2, 1, 1))

    def __post_init__(self) -> None:
        for name, least in (("step_size", 1e-12), ("damping", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
                raise ValueError(f"{name} must be a number {'of 0 or more' if not least else 'above 0'}, not {value!r}")
        shape = (self.images, 2, self.regions, self.components)
        if tuple(self.values.shape) != shape:
            object.__setattr__(self, "values", torch.zeros(shape))

    def __call__(self, violation: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:  # noqa: ARG002
        """Refused: what a violation costs depends on whose it is."""
        raise ValueError("multipliers are of images: a constraint asks for their `price`, with the images' index")

    def sized(self, images: int, regions: int, components: int, device: torch.device | str) -> Multipliers:
        """The same for so many images, all multipliers 0."""
        values = torch.zeros(images, 2, regions, components, device=device)
        return replace(self, images=images, regions=regions, components=components, values=values)

    def price(
        self, violation: Float[Tensor, "2 N C M"], index: Integer[Tensor, " N"] | None, part: Part | None = None
    ) -> Float[Tensor, "2 N C M"]:
        """What violations cost, which are `-inf` at open sides; then one step of the multipliers.

        An image that is there several times takes the steps of all its copies together. Where several processes share
        a batch, all of them take the steps of all its images.
        """
        if index is None:
            raise ValueError("multipliers are of images: say which these are, with Annotation(index=...) or scan_index")
        if violation.shape[2:] != self.values.shape[2:]:
            raise ValueError(
                f"multipliers of {self.regions} regions and {self.components} components for violations of "
                f"{violation.shape[2]} and {violation.shape[3]}: Multipliers(images=..., regions=..., components=...)"
            )
        index = index.long()
        bounded = violation > -torch.inf
        z = torch.where(bounded, violation, 0)
        before = self.values[index]
        now = before.transpose(0, 1)
        if self.damping:
            cost = ((now + self.damping * z).relu().square() - now.square()) / (2 * self.damping)
        else:
            cost = now * z
        if torch.is_grad_enabled():
            self._step(z.detach().transpose(0, 1), index, part)
        return torch.where(bounded, cost, 0)

    @torch.no_grad()
    def _step(self, z: Float[Tensor, "N 2 C M"], index: Integer[Tensor, " N"], part: Part | None) -> None:
        if part is not None:
            here = part.own.stop - part.own.start  # images, of which each may have several slices
            z, index = (part.gathered(one.unflatten(0, (here, -1))).flatten(0, 1) for one in (z, index))
        before = self.values[index]
        copies = (index[:, None] == index)[..., None, None, None]
        after = (before + torch.where(copies, self.step_size * z, 0).sum(dim=1)).relu()
        self.values[index] = torch.where(after.isfinite(), after, before)
