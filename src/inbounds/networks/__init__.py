"""From an image to one score per class and pixel: ENet, U-Nets, and MONAI's networks by name."""

from inbounds.networks.build import AnySize, build, networks
from inbounds.networks.enet import ENet
from inbounds.networks.initial_share import InitialShare
from inbounds.networks.residual_unet import ResidualUNet
from inbounds.networks.unet import UNet
from inbounds.networks.volumetric import Volumetric, sees_volumes

__all__ = [
    "AnySize",
    "ENet",
    "InitialShare",
    "ResidualUNet",
    "UNet",
    "Volumetric",
    "build",
    "networks",
    "sees_volumes",
]
