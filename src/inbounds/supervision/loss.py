"""A supervision as a module: for loops of other libraries, which call a loss with outputs and targets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inbounds.annotations import UNLABELLED, Annotation, Coarser
from inbounds.regions.statistic import check_probs, may_look, wide
from inbounds.supervision.supervision import Supervision, Terms, look_at_logits, summed

Target: TypeAlias = Tensor | Annotation | Coarser


class Loss(nn.Module):
    """`loss(output, target)` for any supervision.

    The output is logits `(B, K, *space)`, or a list of such from deep supervision, of which the finest is the
    prediction: constraints and regularisers act on it alone, while labels teach all. A coarser output is compared with
    the labels as they are, each of its pixels standing for those that it covers, so that no click is lost.

    The target is an `Annotation`; or labels `(B, *space)` or `(B, 1, *space)`, of integers or of whole numbers, with
    what is known beside them as keywords. A list of labels goes with a list of outputs; the one of the finest counts.

    | activation | outputs | labels | classes |
    |---|---|---|---|
    | `softmax` | K | numbers of classes | K, background among them |
    | `sigmoid` | 1 | 0 and 1 | 2: background and that of the output |
    | `sigmoid` | K | 0 and 1 for each, `(B, K, *space)` | K + 1, background first; they may overlap |

    Facts have a row for every class in the last column, background first.

    Its buffers are the tensors of the supervision (weights and what else a schedule changes), so they follow `to` and
    are part of the state dict; they stay the very tensors that were given, so that a schedule keeps its hold of them.

    Args:
        supervision: What labels, constraints and regularisers say.
        ignore_index: The label of a pixel of which nobody has said what it is: 255, -1, the highest class, ...
        activation: What makes probabilities of outputs.
        levels: How much labels count at each output, from the first on; 1, 1/2, 1/4, ... by default, their sum made 1.

    Example:
        >>> loss = Loss(Supervision(constraints=[Constraint(size, Individual(relative=0.1), weight=0.01)]))
        >>> label = torch.full((1, 1, 8, 8), 255)
        >>> loss(torch.zeros(1, 2, 8, 8), label, size=torch.tensor([[[torch.nan], [20.0]]]))  # 0.01 * (32 - 22)^2 / 64
        tensor(0.0156)
    """

    def __init__(
        self,
        supervision: Supervision,
        *,
        ignore_index: int = UNLABELLED,
        activation: Literal["softmax", "sigmoid"] = "softmax",
        levels: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(supervision, Supervision):
            raise ValueError(f"supervision must be a Supervision, such as recipes['known'](), not {supervision!r}")
        if activation not in ("softmax", "sigmoid"):
            raise ValueError(f"activation must be 'softmax' or 'sigmoid', not {activation!r}")
        if levels is not None and not (levels and min(levels) >= 0 < sum(levels)):
            raise ValueError(f"levels must be numbers of 0 or more, and one above 0, not {levels}")
        self.supervision, self.ignore_index, self.activation, self.levels = (
            supervision,
            ignore_index,
            activation,
            levels,
        )
        self._looked = False
        parts = {id(part): (name, part) for name, part in reversed(list(_parts(supervision)))}
        for name, part in reversed(parts.values()):
            if isinstance(part, nn.Module):
                self.add_module(name.replace(".", "_"), part)
            else:
                self.register_buffer(name.replace(".", "_"), part)

    def forward(
        self,
        input: Tensor | Sequence[Tensor],  # noqa: A002 (as losses of PyTorch and MONAI call it)
        target: Target | Sequence[Target],
        image: Tensor | None = None,
        **facts: Tensor,
    ) -> Float[Tensor, ""]:
        """The loss of a batch. `image` is needed where a constraint looks at intensities."""
        return self.terms(input, target, image, **facts).total

    def terms(
        self,
        input: Tensor | Sequence[Tensor],  # noqa: A002
        target: Target | Sequence[Target],
        image: Tensor | None = None,
        **facts: Tensor,
    ) -> Terms:
        """The loss and what it is made of."""
        outputs = [_plain(one) for one in ([input] if isinstance(input, Tensor) else input)]
        for output in outputs:
            check_probs(output)
        pixels = [output[0, 0].numel() for output in outputs]
        number = pixels.index(max(pixels))
        finest = outputs[number]
        aim = target if isinstance(target, Tensor | Annotation | Coarser) else target[number]
        coarser = isinstance(aim, Coarser)
        known = self._annotation(aim.annotation if isinstance(aim, Coarser) else aim, finest, facts)
        several = self.activation == "sigmoid" and finest.shape[1] > 1
        space = known.label.shape[2 if several else 1 :]
        if not coarser and finest.shape[2:] != space:
            raise ValueError(f"outputs of {tuple(finest.shape[2:])} and labels of {tuple(space)} pixels do not fit")
        self._look(finest, known, several)
        if several and self.supervision.proposals is not None:
            raise ValueError("proposals are of classes that exclude each other, which outputs of a sigmoid do not")
        taught = _apart(known) if several else known
        predictions = [self._log_probs(_enlarged(output, space), several) for output in outputs]
        prediction = predictions[number]
        labels = [
            weight * self.supervision.labels(log_probs, taught)
            for weight, log_probs in zip(self._weights(len(outputs)), predictions, strict=True)
            if weight
        ]
        named = {"labels": functools.reduce(torch.add, labels)}
        if self.supervision.active and not coarser:
            if several:
                nothing, one = prediction.unflatten(0, (-1, finest.shape[1])).unbind(dim=2)
                prediction, known = torch.cat([nothing.sum(dim=1, keepdim=True), one], dim=1), _unlabelled(known)
            plain = None if image is None else _plain(image)
            named |= self.supervision.others(prediction.exp(), plain, known)
        return summed(named)

    def _weights(self, count: int) -> list[float]:
        weights = [0.5**level for level in range(count)] if self.levels is None else list(self.levels)
        if len(weights) != count and count > 1:
            raise ValueError(f"there are {count} outputs, and levels for {len(weights)}")
        return [1.0] if count == 1 else [weight / sum(weights) for weight in weights]

    def _annotation(self, target: Tensor | Annotation, output: Tensor, facts: Mapping[str, Tensor]) -> Annotation:
        """What is known, its labels `(B, *space)` (of several outputs `(B, K, *space)`) and 255 where unknown."""
        if isinstance(target, Annotation) and facts:
            raise ValueError(f"facts belong into the annotation, not beside it: {', '.join(facts)}")
        if not isinstance(target, Tensor | Annotation):
            raise ValueError(f"the target must be a tensor of labels or an Annotation, not {type(target).__name__}")
        label = _plain(target) if isinstance(target, Tensor) else target.label
        rim = None if isinstance(target, Tensor) else target.rim
        if label.is_floating_point():
            if may_look(label) and bool((label != label.round()).any()):
                raise ValueError("labels must be whole numbers: resample them by nearest neighbours")
            label = label.long()
        several = self.activation == "sigmoid" and output.shape[1] > 1
        if not several and label.ndim == output.ndim and label.shape[1] == 1:
            label, rim = label[:, 0], None if rim is None else rim[:, 0]
        fitting = output.ndim if several else output.ndim - 1
        if label.ndim != fitting or (several and label.shape[1] != output.shape[1]) or len(label) != len(output):
            wanted = "(B, K, *space) of 0 and 1" if several else "(B, *space) or (B, 1, *space) of class numbers"
            raise ValueError(
                f"labels of shape {tuple(label.shape)} do not fit outputs of shape {tuple(output.shape)}: for "
                f"{self.activation} they must be {wanted}"
            )
        if self.ignore_index != UNLABELLED:
            label = label.long().masked_fill(label == self.ignore_index, UNLABELLED)
        if isinstance(target, Annotation):
            return replace(target, label=label, rim=rim)
        return Annotation(label, facts=facts)

    def _log_probs(self, output: Tensor, several: bool) -> Float[Tensor, "b k *space"]:
        """For each output of several two classes, by itself or not, as if there were more images."""
        output = output.to(wide(output.dtype))
        if self.activation == "softmax":
            return output.log_softmax(dim=1)
        if several:
            output = output.flatten(0, 1)[:, None]
        return torch.cat([functional.logsigmoid(-output), functional.logsigmoid(output)], dim=1)

    def _look(self, output: Tensor, known: Annotation, several: bool) -> None:
        """Look at the numbers: on a CPU always, on a device at the first batch alone, while a graph is made never."""
        if torch.compiler.is_compiling() or (self._looked and not may_look(output)):
            return
        if output.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        self._looked = True
        if self.activation == "softmax":
            look_at_logits(output)
        if several:
            known.check_labels(2)
            _unlabelled(known).checked(output.shape[1] + 1)
        else:
            known.checked(max(2, output.shape[1]))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Loss:  # what `to` and `cuda` call
        held = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, tensor in held.items():
            if tensor is not None:
                tensor.data = self._buffers[name]  # type: ignore[assignment]
                self._buffers[name] = tensor
        return self


def _parts(value: Any, name: str = "") -> Iterator[tuple[str, Tensor | nn.Module]]:
    """The tensors and modules that a supervision is made of, by where they are in it."""
    if isinstance(value, Tensor | nn.Module):
        yield name, value
        return
    inside: list[tuple[str, Any]] = []
    if isinstance(value, functools.partial):
        inside = list(value.keywords.items())
    elif isinstance(value, Mapping):
        inside = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        inside = [(str(getattr(one, "name", at)), one) for at, one in enumerate(value)]
    elif is_dataclass(value):
        inside = [(one.name, getattr(value, one.name)) for one in fields(value)]
    for key, one in inside:
        yield from _parts(one, f"{name}_{key}" if name else key)


def _plain(tensor: Tensor) -> Tensor:
    """Without what other libraries hang on to tensors, such as where an image was scanned."""
    return tensor if type(tensor) is Tensor else tensor.as_subclass(Tensor)


def _enlarged(output: Tensor, space: Sequence[int]) -> Tensor:
    """A coarser output at all pixels of the labels: each of its pixels stands for those it covers."""
    return output if output.shape[2:] == space else functional.interpolate(output, size=space, mode="nearest-exact")


def _apart(known: Annotation) -> Annotation:
    """Labels of several outputs as those of so many images."""
    weight, outputs = known.label_weight, known.label.shape[1]
    return Annotation(
        known.label.flatten(0, 1), label_weight=None if weight is None else weight.repeat_interleave(outputs)
    )


def _unlabelled(known: Annotation) -> Annotation:
    """What is known beside the labels, for images `(B, *space)`."""
    label = torch.full_like(known.label[:, 0], UNLABELLED, dtype=torch.long)
    return replace(known, label=label, rim=None if known.rim is None else known.rim[:, 0])
