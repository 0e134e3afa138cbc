"""From settings to a network."""

from __future__ import annotations

from torch import nn

from inbounds.config import Network
from inbounds.errors import BadInput
from inbounds.networks import Grown, Guided, Merged, Prior, build


def network_of(settings: Network, channels: int, classes: int) -> nn.Module:
    """The network that the settings describe, untrained.

    Args:
        settings: Of the network.
        channels: Channels of the image.
        classes: Classes, the background included.

    Raises:
        BadInput: There is no such network, or it does not take these settings.
    """
    try:
        made = build(settings.name, channels, classes + settings.spare, **settings.settings)
    except (ValueError, TypeError, ImportError) as error:
        raise BadInput(f"network.name={settings.name}: {error}") from None
    if settings.spare:
        made = Merged(made, settings.spare)
    if settings.prior:
        try:
            made = Prior(made, settings.prior, classes)
        except ValueError as error:
            raise BadInput(f"network.prior={settings.prior}: {error}") from None
    if settings.guided:
        made = Guided(made, settings.guided)
    return Grown(made, settings.grown) if settings.grown else made
