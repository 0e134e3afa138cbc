"""The same in a Lightning module: a `Loss` of any supervision, and its named terms for the log."""

from __future__ import annotations

import lightning as L  # noqa: N812 (the name Lightning users know)
import torch
from discs import Discs, Pairs, dice, network
from torch import Tensor
from torch.utils.data import DataLoader

import inbounds as ib


class Weakly(L.LightningModule):
    """A network trained by any supervision."""

    def __init__(self, supervision: ib.Supervision) -> None:
        super().__init__()
        self.network = network()
        self.loss = ib.Loss(supervision)

    def training_step(self, batch: tuple[Tensor, ib.Annotation], _: int) -> Tensor:
        """The loss of one batch, its terms logged by name. Lightning has moved the annotation too."""
        image, known = batch
        total, named = self.loss.terms(self.network(image), known, image)
        self.log_dict(named, on_step=False, on_epoch=True, prog_bar=True)
        return total

    def validation_step(self, batch: dict[str, Tensor], _: int) -> None:
        """Evaluation, and only evaluation, sees the truth."""
        self.log("dice", dice(self.network(batch["image"]), batch["truth"]), prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as everywhere here."""
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def main(epochs: int = 25) -> float:
    """Train from clicks and sizes; return the Dice on new images."""
    L.seed_everything(0)
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="auto",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        Weakly(ib.recipes["individual"]()),
        DataLoader(Pairs(64), batch_size=8, shuffle=True),
        DataLoader(Discs(32, seed=1), batch_size=32),
    )
    score = float(trainer.callback_metrics["dice"])
    print(f"Dice on new images: {score:.3f}")
    return score


if __name__ == "__main__":
    main()
