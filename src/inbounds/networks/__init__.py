"""From an image to one score per class and pixel: ENet, U-Nets, MONAI's networks by name; scores that follow edges."""

from inbounds.networks.build import AnySize, Grown, Merged, Prior, build, networks
from inbounds.networks.enet import ENet
from inbounds.networks.guided import Guided
from inbounds.networks.residual_unet import ResidualUNet
from inbounds.networks.unet import UNet

__all__ = ["AnySize", "ENet", "Grown", "Guided", "Merged", "Prior", "ResidualUNet", "UNet", "build", "networks"]
