"""From an image to one score per class and pixel: ENet, U-Nets, MONAI's networks by name; scores that follow edges."""

from inbounds.networks.build import AnySize, build, networks
from inbounds.networks.edge_filter import EdgeFilter
from inbounds.networks.enet import ENet
from inbounds.networks.heads import Dilate, InitialShare, heads
from inbounds.networks.residual_unet import ResidualUNet
from inbounds.networks.unet import UNet
from inbounds.networks.volumetric import Volumetric, sees_volumes

__all__ = [
    "AnySize",
    "Dilate",
    "ENet",
    "EdgeFilter",
    "InitialShare",
    "ResidualUNet",
    "UNet",
    "Volumetric",
    "build",
    "heads",
    "networks",
    "sees_volumes",
]
