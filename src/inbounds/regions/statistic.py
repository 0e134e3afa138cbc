"""A statistic measures a soft region: probabilities `(B, K, *space)` to values `(B, K, M)`."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, overload, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int64, Integer
from torch import Tensor

from inbounds.regions.facts import FactColumns
from inbounds.regions.patches import Patches
from inbounds.regions.scans import Scans

P = ParamSpec("P")
Number = Tensor | float
Probs: TypeAlias = Float[Tensor, "B K *space"]
Values: TypeAlias = Float[Tensor, "N K M"]


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type to reduce in: float32, or wider if the input is. Half precision overflows at 65,504."""
    return torch.promote_types(dtype, torch.float32)


def most_probable(probs: Probs) -> Int64[Tensor, "B *space"]:
    """The class of each pixel, the first of several that are equal. On a CPU `argmax` takes ten times as long."""
    return probs.max(dim=1).indices


def one_hot(label: Integer[Tensor, "B *space"], classes: int) -> Bool[Tensor, "B K *space"]:
    """Where each class is: of each pixel, whether it has it."""
    order = torch.arange(classes, device=label.device).reshape(-1, *(1,) * (label.ndim - 1))
    return label[:, None] == order


def check_probs(probs: Tensor) -> None:
    """Refuse what cannot be probabilities `(B, K, *space)`; looks at shape and type only."""
    if not isinstance(probs, Tensor) or not probs.is_floating_point():
        kind = probs.dtype if isinstance(probs, Tensor) else type(probs).__name__
        raise ValueError(f"probabilities must be a floating-point tensor (B, K, *space), not {kind}")
    if probs.ndim < 3:
        raise ValueError(f"probabilities must be (B, K, *space), but their shape is {tuple(probs.shape)}")
    if 0 in probs.shape:
        raise ValueError(f"an empty batch or image cannot be measured: the shape is {tuple(probs.shape)}")


def may_look(x: Tensor) -> bool:
    """Whether numbers can be looked at for nothing: on a device it would cost a round trip, in a graph the graph."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def some_pixels(x: Tensor) -> Tensor:
    """A few rows of the first image, `(K, ...)`, enough to tell probabilities from what a network puts out."""
    return x.detach()[0, :, :: max(1, x.shape[2] // 8)]


def _look(probs: Tensor) -> None:
    """Refuse numbers that no probabilities can be."""
    least, most = (float(one) for one in some_pixels(probs).aminmax())
    if least < -1e-3 or most > 1 + 1e-3:
        raise ValueError(
            f"probabilities must be from 0 to 1, but there are {least:.4g} to {most:.4g}: a network's output becomes "
            "probabilities with .softmax(dim=1)"
        )


def _check_stacked(probs: Tensor, scans: object) -> None:
    """Refuse parts of volumes that do not say where they lie; slices of a scan need not."""
    if probs.ndim > 4 and isinstance(scans, Scans) and not isinstance(scans, Patches) and scans.count < len(probs):
        raise ValueError(
            f"{len(probs)} volumes are parts of {scans.count} scans, and nothing says which parts, or whether there "
            "are more: give Patches.at(names, offset, patch, scan) in the place of Scans"
        )


@dataclass(frozen=True)
class Statistic(Generic[P]):
    """A function of probabilities, together with what a constraint must know about it.

    Calling it calls the function. Make your own with the `statistic` decorator.

    Attributes:
        function: From probabilities `(B, K, *space)` to values `(B, K, M)`, or `(S, K, M)` when `scans` is given.
        scale: The statistic's natural scale, by which a penalty is divided. It takes the function's arguments.
        presence: What presence alone says: the smallest and largest value of a region that is there. `None` where
            presence says nothing. With it, an absent region measures exactly 0; without it, an absent region
            has no value and its bounds are open.
        fact: The name under which an annotation gives this quantity.
        needs_image: Whether the function has a parameter `image`.
        columns: How people write it down, and what becomes of that when images are fitted or augmented. `None` where
            tables have no column for it.
        relates: How many regions a value is of: 1, or 2 for a relation between each region and the next, whose values
            are `(B, K - 1, M)`.
    """

    function: Callable[Concatenate[Tensor, P], Tensor]
    scale: Callable[Concatenate[Tensor, P], Number]
    presence: Callable[Concatenate[Tensor, P], tuple[Number, Number]] | None
    fact: str
    needs_image: bool
    columns: FactColumns | None = None
    relates: int = 1

    def __call__(self, probs: Tensor, *args: P.args, **kwargs: P.kwargs) -> Values:
        """Measure every class of every image."""
        check_probs(probs)
        if may_look(probs):
            _look(probs)
        _check_stacked(probs, kwargs.get("scans"))
        if probs.shape[1] < self.relates:
            raise ValueError(f"{self.fact} is of {self.relates} regions, one after the other, not of {probs.shape[1]}")
        return self.function(probs, *args, **kwargs)

    def using(self, **settings: Any) -> Statistic[...]:
        """The same statistic with some of its arguments fixed, such as `size.using(spacing=(1.25, 1.25))`."""
        known = inspect.signature(self.function).parameters
        if unknown := sorted(set(settings) - set(known)):
            raise ValueError(f"{self.fact} has no argument {unknown[0]!r}; it takes {', '.join(list(known)[1:])}")
        return replace(
            self,
            function=functools.partial(self.function, **settings),
            scale=functools.partial(self.scale, **settings),
            presence=self.presence and functools.partial(self.presence, **settings),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name, like the function that it stands for; with its settings, if it has any."""
        function: Any = self.function
        settings = function.keywords if isinstance(function, functools.partial) else {}
        plain = getattr(function, "func", function)
        return _named, (plain.__module__, plain.__qualname__, settings)

    def inputs(self, image: Tensor | None, scans: Scans | None) -> dict[str, Any]:
        """The arguments beside the probabilities, for callers that treat all statistics alike."""
        if self.needs_image and image is None:
            raise ValueError(f"{self.fact} is measured on the image: pass it too")
        return {"scans": scans} | ({"image": image} if self.needs_image else {})


def _named(module: str, name: str, settings: dict[str, Any]) -> Statistic[...]:
    plain: Statistic[...] = getattr(importlib.import_module(module), name)
    return plain.using(**settings) if settings else plain


@runtime_checkable
class _Wrap(Protocol):
    """What `statistic` gives where nothing it was given says which arguments the function has."""

    def __call__(self, function: Callable[Concatenate[Tensor, P], Tensor], /) -> Statistic[P]: ...


@overload
def statistic(*, fact: str | None = None, columns: FactColumns | None = None) -> _Wrap: ...


@overload
def statistic(
    *,
    scale: Callable[Concatenate[Tensor, P], Number] = ...,
    presence: Callable[Concatenate[Tensor, P], tuple[Number, Number]] | None = None,
    fact: str | None = None,
    columns: FactColumns | None = None,
    relates: int = 1,
) -> Callable[[Callable[Concatenate[Tensor, P], Tensor]], Statistic[P]]: ...


def statistic(
    *,
    scale: Callable[..., Number] = lambda *_, **__: 1.0,
    presence: Callable[..., tuple[Number, Number]] | None = None,
    fact: str | None = None,
    columns: FactColumns | None = None,
    relates: int = 1,
) -> Callable[..., Statistic[...]]:
    """Turn a function of probabilities into a `Statistic` that a constraint can use.

    The function takes `probs` first, `image` if it needs the image, and a keyword `scans`, which it hands on to
    the statistics it is built from. `scale`, `presence`, `fact`, `columns` and `relates` are described at `Statistic`;
    by default the scale is 1 and the fact has the function's name. Put into `inbounds.regions.statistics`, it is known
    to settings, and to tables of facts if it has columns.

    Example:
        >>> @statistic(fact="height")
        ... def height(probs, *, scans=None):
        ...     return spread(probs, scans=scans)[..., :1].sqrt()
    """

    def wrap(function: Callable[..., Tensor]) -> Statistic[...]:
        parameters = inspect.signature(function).parameters
        if "scans" not in parameters:
            raise ValueError(f"{function.__name__} must take a keyword argument `scans`")
        made = Statistic(function, scale, presence, fact or function.__name__, "image" in parameters, columns, relates)
        for name in ("__doc__", "__name__", "__qualname__", "__module__"):
            object.__setattr__(made, name, getattr(function, name))
        object.__setattr__(made, "__wrapped__", function)
        return made

    return wrap
