"""Networks by name: our own, those you add to the dictionary, and any of MONAI's."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inbounds.errors import BadInput, nearest
from inbounds.networks.enet import ENet
from inbounds.networks.offline import REMEDY
from inbounds.networks.residual_unet import ResidualUNet
from inbounds.networks.unet import UNet

networks: dict[str, Callable[..., nn.Module]] = {"enet": ENet, "residual_unet": ResidualUNet, "unet": UNet}

# MONAI's names for the number of channels and of classes; the first that a network has is filled in.
_CHANNELS = ("in_channels", "num_channels")
_CLASSES = ("out_channels", "num_classes")
_FETCHING = re.compile("pretrained|weights|url|repo|download")
"""What MONAI calls the arguments by which networks fetch weights."""


class AnySize(nn.Module):
    """A network for images of any size, around one whose input's sides must be multiples of a number.

    Zeros are added at the bottom and on the right, as the convolutions themselves see them beyond the border, and the
    scores are cropped back. So a pixel keeps its place in the pooling grid, and an image that fits is left alone. The
    amounts follow from the shape alone: nothing is read from the device. There may be a number for each axis.
    """

    def __init__(self, network: nn.Module, multiple: int | Sequence[int]) -> None:
        super().__init__()
        if min([multiple] if isinstance(multiple, int) else multiple) < 1:
            raise ValueError(f"the sides of an image can be multiples of 1, 2, 3, ..., not of {multiple}")
        self.network = network
        self.multiple = multiple

    def forward(self, image: Float[Tensor, "B C *space"]) -> Float[Tensor, "B K *space"]:
        """The scores of every class, before the softmax, at the size of the image."""
        space = image.shape[2:]
        each = [self.multiple] * len(space) if isinstance(self.multiple, int) else self.multiple
        missing = [-side % multiple for side, multiple in zip(space, each, strict=True)]
        if any(missing):
            image = functional.pad(image, [amount for extra in reversed(missing) for amount in (0, extra)])
        scores = self.network(image)
        if not isinstance(scores, Tensor) or scores.shape[2:] != image.shape[2:]:
            output = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
            raise ValueError(
                f"{type(self.network).__name__} is no segmentation network: for an image of shape {tuple(image.shape)} "
                f"it gave {output}, not one score per class and pixel"
            )
        for axis, side in enumerate(space, start=2):
            scores = scores.narrow(axis, 0, side)
        return scores


def _check(name: str, builder: Callable[..., nn.Module], given: Iterable[str], settings: Mapping[str, Any]) -> None:
    """Refuse settings that the builder does not take, and name those it cannot do without."""
    parameters = inspect.signature(builder).parameters
    takes = {key: value for key, value in parameters.items() if key not in given}
    named = [key for key, value in takes.items() if value.kind not in (value.VAR_KEYWORD, value.VAR_POSITIONAL)]
    if len(named) == len(takes):
        for key in settings:
            if key not in named:
                raise ValueError(f"{name} has no setting {key!r}; {nearest(key, named)}")
    if needed := [key for key in named if takes[key].default is inspect.Parameter.empty and key not in settings]:
        raise ValueError(f"{name} needs these settings too: {', '.join(needed)}")


def _monai(name: str, channels: int, classes: int, settings: dict[str, Any]) -> AnySize:
    """A network of `monai.networks.nets`, with its channels and classes under whatever name it gives them.

    The sides are made multiples of the setting `multiple`, which is ours. By default it is the product of the network's
    `strides`, or 32 where it has none, which suits most.
    """
    try:
        from monai.networks import nets
    except ImportError as error:
        raise BadInput(f"monai:{name} needs MONAI ({error}): pip install 'inbounds[evaluate]'") from None
    known = {
        key: value
        for key, value in vars(nets).items()
        if inspect.isclass(value) and issubclass(value, nn.Module) and _slots(value)
    }
    if name not in known:
        raise ValueError(
            f"MONAI has no segmentation network called {name!r}, which takes the number of channels and of classes; "
            f"{nearest(name, known)}"
        )
    builder, filled = known[name], dict(zip(_slots(known[name]), (channels, classes), strict=True))
    own = _without_fetching(name, builder, {key: value for key, value in settings.items() if key != "multiple"})
    _check(f"monai:{name}", builder, filled, own)
    strides = own.get("strides", (32,))
    product = math.prod(max(s) if isinstance(s, (list, tuple)) else s for s in strides)
    return AnySize(builder(**filled, **own), settings.get("multiple", product))


def _without_fetching(name: str, builder: Callable[..., nn.Module], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a MONAI network by which it fetches nothing; those that ask for it are refused."""
    given = dict(settings)
    for key, parameter in inspect.signature(builder).parameters.items():
        if _FETCHING.search(key) and isinstance(parameter.default, bool):
            given.setdefault(key, False)  # some fetch weights unless they are told not to
        elif _FETCHING.search(key) and parameter.default:
            raise ValueError(f"monai:{name} cannot be built without fetching weights ({key}); take another network")
    for key, value in given.items():
        if _FETCHING.search(key) and value:
            raise ValueError(f"{key} = {value!r} would fetch weights from a server; {REMEDY}")
    return given


def _slots(builder: Callable[..., nn.Module]) -> tuple[str, ...]:
    """What a MONAI network calls its number of channels and of classes; empty if it lacks either."""
    parameters = inspect.signature(builder).parameters
    slots = [next((key for key in names if key in parameters), "") for names in (_CHANNELS, _CLASSES)]
    return tuple(slots) if all(slots) else ()


def build(name: str, channels: int, classes: int, /, **settings: Any) -> nn.Module:
    """The network called `name`, from images `(B, channels, *space)` of any size to scores `(B, classes, *space)`.

    Settings are the network's own keyword arguments. The first three arguments have no keywords, because MONAI's
    networks give the names other meanings: to its UNet, `channels` are the feature maps of each level.

    An entry of your own in `networks` is called with the channels, the classes and the settings; if it needs sides
    that are multiples of some number, it says so in an attribute `multiple`.

    Args:
        name: A key of `networks`, or `monai:` and the name of a class in `monai.networks.nets`.
        channels: Channels of the image.
        classes: Classes, the background included.
        **settings: Keyword arguments of the network. For MONAI's networks also `multiple`, the number that the sides of
            its input must be multiples of, where neither the product of its `strides` nor 32 is right.

    Example:
        >>> network = build("enet", 1, 2, dropout=False)
        >>> network(torch.zeros(1, 1, 97, 61)).shape
        torch.Size([1, 2, 97, 61])
    """
    if channels < 1 or classes < 1:
        raise ValueError(f"a network needs at least 1 channel and 1 class, not {channels} and {classes}")
    if name.startswith("monai:"):
        return _monai(name.removeprefix("monai:"), channels, classes, settings)
    if name not in networks:
        raise ValueError(
            f"no network is called {name!r}; {nearest(name, networks)} MONAI's are monai:NAME, such as monai:UNet"
        )
    return built(name, networks[name], channels, classes, settings)


def built(
    name: str, builder: Callable[..., nn.Module], channels: int, classes: int, settings: Mapping[str, Any]
) -> AnySize:
    """A network by its builder, which is called with the channels, the classes and the settings."""
    _check(name, builder, list(inspect.signature(builder).parameters)[:2], settings)
    network = builder(channels, classes, **settings)
    return AnySize(network, getattr(network, "multiple", 1))
