"""From an image to one score per class and pixel: ENet, a residual U-Net, and MONAI's networks by name."""

from inbounds.networks.build import AnySize, build, networks
from inbounds.networks.enet import ENet
from inbounds.networks.residual_unet import ResidualUNet

__all__ = ["AnySize", "ENet", "ResidualUNet", "build", "networks"]
