"""From settings to a network."""

from __future__ import annotations

from torch import nn

from inbounds.config import Network
from inbounds.errors import BadInput
from inbounds.networks import Dilate, EdgeFilter, InitialShare, build


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
        made = build(settings.name, channels, classes, **settings.settings)
    except (ValueError, TypeError, ImportError) as error:
        raise BadInput(f"network.name={settings.name}: {error}") from None
    if settings.initial_share:
        try:
            made = InitialShare(made, settings.initial_share, classes)
        except ValueError as error:
            raise BadInput(f"network.initial_share={settings.initial_share}: {error}") from None
    if settings.edge_filter:
        made = EdgeFilter(made, settings.edge_filter)
    return Dilate(made, settings.dilate) if settings.dilate else made
