"""The same in MONAI: a `SupervisedTrainer` with pairs of image and annotation, and MONAI's UNet."""

from __future__ import annotations

import torch
from discs import Discs, Pairs
from monai.data import DataLoader
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import MeanDice, ValidationHandler, from_engine
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose
from torch import Tensor

import inbounds as ib


def full_batch(batch: dict[str, Tensor], device: torch.device, *_: object, **__: object) -> tuple[Tensor, Tensor]:
    """Image and truth, for evaluation."""
    return batch["image"].to(device), batch["truth"][:, None].to(device)


def main(epochs: int = 25) -> float:
    """Train from clicks and sizes; return the Dice on new images."""
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(8, 16, 32), strides=(2, 2), num_res_units=1)
    net = net.to(device)
    evaluator = SupervisedEvaluator(
        device=device,
        val_data_loader=DataLoader(Discs(32, seed=1), batch_size=32),
        network=net,
        prepare_batch=full_batch,
        postprocessing=Compose(
            [
                lambda data: (
                    data
                    | {
                        "pred": AsDiscrete(argmax=True, to_onehot=2)(data["pred"]),
                        "label": AsDiscrete(to_onehot=2)(data["label"]),
                    }
                )
            ]
        ),
        key_val_metric={"dice": MeanDice(include_background=False, output_transform=from_engine(["pred", "label"]))},
    )
    trainer = SupervisedTrainer(
        device=device,
        max_epochs=epochs,
        train_data_loader=DataLoader(Pairs(64), batch_size=8, shuffle=True),
        network=net,
        optimizer=torch.optim.Adam(net.parameters(), lr=5e-3),
        loss_function=ib.Loss(ib.recipes["individual"]()),
        decollate=False,  # which is for images one by one, after training
        train_handlers=[ValidationHandler(interval=epochs, validator=evaluator)],
    )
    trainer.run()
    score = float(evaluator.state.metrics["dice"])
    print(f"Dice on new images: {score:.3f}")
    return score


if __name__ == "__main__":
    main()
