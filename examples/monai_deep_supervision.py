"""MONAI's DynUNet with deep supervision: bounds on the finest output, labels on all, in MONAI's own wrapper."""

from __future__ import annotations

import torch
from discs import Discs, Pairs, dice
from monai.losses import DeepSupervisionLoss
from monai.networks.nets import DynUNet
from torch.utils.data import DataLoader

import inbounds as ib


def main(epochs: int = 20) -> float:
    """Train from clicks and sizes; return the Dice on new images."""
    torch.manual_seed(0)
    net = DynUNet(
        spatial_dims=2,
        in_channels=1,
        out_channels=2,
        kernel_size=[3, 3, 3],
        strides=[1, 2, 2],
        upsample_kernel_size=[2, 2],
        filters=[8, 16, 32],
        deep_supervision=True,
        deep_supr_num=1,
    )
    adam = torch.optim.Adam(net.parameters(), lr=5e-3)
    # ib.Loss takes such lists by itself too; with its weights, their sum is made 1.
    loss = DeepSupervisionLoss(ib.Loss(ib.recipes["individual"]()))
    for _ in range(epochs):
        for image, known in DataLoader(Pairs(64), batch_size=8, shuffle=True):
            adam.zero_grad()
            loss(list(net(image).unbind(dim=1)), known).backward()
            adam.step()

    held_out = next(iter(DataLoader(Discs(32, seed=1), batch_size=32)))
    with torch.no_grad():
        score = dice(net.eval()(held_out["image"]), held_out["truth"])
    print(f"Dice on new images: {score:.3f}")
    return score


if __name__ == "__main__":
    main()
