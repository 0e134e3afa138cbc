"""A regulariser prices a prediction by its pixels and those of the image."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.annotations import Annotation
from inbounds.constraints.constraint import check_weight, constrained
from inbounds.ranks import mean
from inbounds.regions.region import select


@dataclass(frozen=True)
class Regulariser:
    """`weight * mean(term)` over images and classes: part of the loss, and nothing that holds or is violated.

    Args:
        term: A function of probabilities `(B, K, *space)` and the image, to one value an image, `(B,)`, such as
            `pairwise`, or one for each class, `(B, K)`, such as `border`.
        weight: A number, or a 0-d tensor.
        schedule: `constant`; or `lr`: `inbounds train` lets the weight fall as its learning rate falls, since what
            guides a network early may bias it late. In a loop of your own, give a tensor and change it there.
        where: `everywhere`, or where a class is known to be `present` as a whole, for terms with a value a class.
        classes: Which classes, for terms with a value for each; all but background (0) if not given.
        name: What the loss term is called; the function's name if not given.

    Example:
        >>> Regulariser(lambda probs, image: probs.flatten(2).mean(dim=2), weight=4, name="mean")(
        ...     torch.full((1, 2, 4, 4), 0.5), None
        ... )
        tensor(2.)
    """

    term: Callable[..., Tensor]
    weight: float | Tensor = 1.0
    schedule: Literal["constant", "lr"] = "constant"
    where: Literal["everywhere", "present"] = "everywhere"
    classes: Sequence[int] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.schedule not in ("constant", "lr") or self.where not in ("everywhere", "present"):
            raise ValueError(f"no regulariser with schedule {self.schedule!r} acts {self.where!r}")
        check_weight(self.weight)
        if not self.name:
            plain: Any = self.term.func if isinstance(self.term, functools.partial) else self.term
            object.__setattr__(self, "name", plain.__name__)

    def __call__(
        self, probs: Float[Tensor, "B K *space"], image: Tensor | None, annotation: Annotation | None = None
    ) -> Float[Tensor, ""]:
        """The weighted mean; `annotation` tells which classes are present."""
        values = self.term(probs, image)
        part = None if annotation is None else annotation.part
        if values.ndim == 1:
            if self.classes is not None or self.where != "everywhere":
                raise ValueError(f"{self.name} is of all classes together: it takes no `classes`, and acts everywhere")
            return self.weight * mean(values, part)
        classes = constrained(self.classes, probs.shape[1])
        values = select(values, classes)
        if self.where == "present":
            facts = {} if annotation is None else annotation.facts
            if "present" not in facts:
                raise ValueError(f"{self.name} acts where a class is present, which the annotation does not tell")
            there = select(facts["present"], classes)[..., 0] == 1
            if "cut" in facts:
                there = there & (select(facts["cut"], classes)[..., 0] != 1)
            values = torch.where(there, values, 0)
        return self.weight * mean(values, part)
