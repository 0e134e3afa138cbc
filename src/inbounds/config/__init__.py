"""Settings, and the one way from them to a network and a supervision."""

from inbounds.config.build import known_recipe, network_of, supervision_of
from inbounds.config.read import read_settings
from inbounds.config.settings import Hybrid, Model, Network, Settings

__all__ = ["Hybrid", "Model", "Network", "Settings", "known_recipe", "network_of", "read_settings", "supervision_of"]
