"""A supervision is a label loss plus constraints plus regularisers. A training loop needs to know nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from inbounds.annotations import Annotation
from inbounds.constraints import Constraint, Multipliers
from inbounds.losses import cross_entropy
from inbounds.regions.statistic import check_probs, may_look, some_pixels, wide
from inbounds.regularisers.regulariser import Regulariser


class Terms(NamedTuple):
    """A loss and what it is made of.

    Attributes:
        total: The sum of all terms, to call `backward` on.
        named: Each term by name, weight included, cut off from the graph: for curves and logs.
    """

    total: Float[Tensor, ""]
    named: dict[str, Float[Tensor, ""]]


@dataclass(frozen=True)
class Supervision:
    """How labels, constraints and regularisers combine: `H(S) + sum of weighted penalties` (Eq. "Cross-Entropy").

    Full, partial and hybrid supervision differ in the annotation alone: an image whose label is complete and whose
    facts are unknown is fully supervised, wherever in a batch it stands.

    Args:
        label_loss: A function of log-probabilities `(B, K, *space)` and labels `(B, *space)`, and, where images do not
            count alike, of `label_weight=`, what each of them counts; and of `part=`, where several processes share a
            batch.
        constraints: What else should hold, each with its own weight. One of weight 0 is no part of the loss, but
            whoever asks which constraints hold hears of it.
        proposals: Completes the labels before the label loss sees them: a function of log-probabilities and annotation,
            such as `Proposals`.
        regularisers: What a prediction should be whatever is known.

    Example:
        >>> supervise = Supervision(constraints=[Constraint(size, Fixed(60, 2000), weight=0.01)])
        >>> supervise(torch.zeros(1, 2, 8, 8), None, Annotation(torch.full((1, 8, 8), 255))).named
        {'labels': tensor(0.), 'size': tensor(0.1225)}
    """

    label_loss: Callable[..., Tensor] = cross_entropy
    constraints: Sequence[Constraint] = ()
    proposals: Callable[[Tensor, Annotation], Tensor] | None = None
    regularisers: Sequence[Regulariser] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.constraints, Sequence) or not all(isinstance(c, Constraint) for c in self.constraints):
            raise ValueError(f"constraints must be a list of Constraint, not {self.constraints!r}")
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "regularisers", tuple(self.regularisers))
        names = ["labels", *(term.name for term in self.terms)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two loss terms are called {twice[0]!r}: give one of them another `name`")

    @property
    def terms(self) -> list[Constraint | Regulariser]:
        """All that is added to the label loss."""
        return [*self.constraints, *self.regularisers]

    def remembering(
        self,
        images: int,
        scans: int,
        probs: Float[Tensor, "B K *space"],
        image: Float[Tensor, "B channels *space"] | None,
        annotation: Annotation,
    ) -> Supervision:
        """The same for so many images and scans, wherever it has multipliers for them.

        Args:
            images: How many there are.
            scans: Likewise.
            probs: Of some batch, from which shapes are known, and the device.
            image: Of that batch.
            annotation: Likewise.
        """
        constraints = list(self.constraints)
        for place, one in enumerate(constraints):
            if isinstance(one.penalty, Multipliers):
                _, regions, components = one.values(probs, image, annotation).shape
                count = images if one.scope == "image" else scans
                constraints[place] = replace(one, penalty=one.penalty.sized(count, regions, components, probs.device))
        return replace(self, constraints=constraints)

    @property
    def multipliers(self) -> dict[str, Tensor]:
        """All of them by the name of their term: with the network's weights, what going on needs."""
        penalties = {one.name: one.penalty for one in self.constraints}
        return {name: one.values for name, one in penalties.items() if isinstance(one, Multipliers)}

    def __call__(
        self,
        logits: Float[Tensor, "B K *space"],
        image: Float[Tensor, "B channels *space"] | None,
        annotation: Annotation,
    ) -> Terms:
        """The loss of a batch. `image` may be `None` where no constraint looks at intensities."""
        check_probs(logits)
        if not isinstance(annotation, Annotation):
            raise ValueError(f"annotation must be an Annotation, not {type(annotation).__name__}")
        if annotation.label.shape != (logits.shape[0], *logits.shape[2:]):
            raise ValueError(
                f"logits of shape {tuple(logits.shape)} and labels of shape {tuple(annotation.label.shape)} do not "
                "fit: they must be (B, K, *space) and (B, *space)"
            )
        if may_look(logits):
            look_at_logits(logits)
            annotation.check_labels(logits.shape[1])
        log_probs = logits.to(wide(logits.dtype)).log_softmax(dim=1)
        labels = self.labels(log_probs, annotation)
        return summed({"labels": labels} | (self.others(log_probs.exp(), image, annotation) if self.active else {}))

    @property
    def active(self) -> list[Constraint | Regulariser]:
        """The terms that add to the loss: those whose weight is not 0."""
        return [term for term in self.terms if isinstance(term.weight, Tensor) or term.weight != 0]

    def labels(self, log_probs: Float[Tensor, "B K *space"], annotation: Annotation) -> Float[Tensor, ""]:
        """What the labelled pixels say, or those of the proposals."""
        label = annotation.label if self.proposals is None else self.proposals(log_probs, annotation)
        given = {"label_weight": annotation.label_weight, "part": annotation.part}
        return self.label_loss(log_probs, label, **{name: one for name, one in given.items() if one is not None})

    def others(
        self, probs: Float[Tensor, "B K *space"], image: Tensor | None, annotation: Annotation
    ) -> dict[str, Float[Tensor, ""]]:
        """What constraints and regularisers add, by name, weight included."""
        for term in self.active:
            if isinstance(term.weight, Tensor) and term.weight.device != probs.device:
                raise ValueError(
                    f"the weight of {term.name} is on {term.weight.device}, the prediction on {probs.device}: a change "
                    "would not reach a captured step; make it there, or let `Loss(...).to(device)` move it"
                )
        if annotation.device != probs.device:
            raise ValueError(
                f"the annotation is on {annotation.device}, the prediction on {probs.device}: move it with "
                f'annotation.to("{probs.device}")'
            )
        return {term.name: term(probs, image, annotation) for term in self.active}


def summed(named: dict[str, Tensor]) -> Terms:
    """Terms and their sum."""
    total, *more = named.values()
    for term in more:
        total = total + term
    return Terms(total, {name: term.detach() for name, term in named.items()})


def look_at_logits(logits: Float[Tensor, "B K *space"]) -> None:
    """Warn of logits that look like probabilities, of which a softmax would be taken a second time."""
    few = some_pixels(logits).to(wide(logits.dtype))
    least, most = few.aminmax()
    sums = few.sum(dim=0)
    if 0 <= float(least) < float(most) <= 1 and bool(((sums - 1).abs() < 1e-3).all()):
        warnings.warn(
            "the logits look like probabilities: from 0 to 1, and 1 in all at each pixel; give the network's output as "
            "it is, without a softmax",
            stacklevel=3,
        )
