"""A supervision is a label loss plus constraints plus regularisers. A training loop needs to know nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from inbounds.annotations import Annotation
from inbounds.constraints import Constraint, Multipliers
from inbounds.losses import cross_entropy
from inbounds.regions.statistic import check_probs, wide
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
        log_probs = logits.to(wide(logits.dtype)).log_softmax(dim=1)
        label = annotation.label if self.proposals is None else self.proposals(log_probs, annotation)
        given = {"label_weight": annotation.label_weight, "part": annotation.part}
        total = self.label_loss(log_probs, label, **{name: one for name, one in given.items() if one is not None})
        named = {"labels": total.detach()}
        active = [term for term in self.terms if isinstance(term.weight, Tensor) or term.weight != 0]
        if active:
            probs = log_probs.exp()
            for term in active:
                value = term(probs, image, annotation)
                named[term.name] = value.detach()
                total = total + value
        return Terms(total, named)
