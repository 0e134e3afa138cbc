"""The folder that `nnUNet_extTrainer` names: nnU-Net imports every file in it."""

from inbounds.nnunet.trainer import nnUNetTrainerInbounds

__all__ = ["nnUNetTrainerInbounds"]
