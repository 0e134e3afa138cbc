"""Our trainer for nnU-Net, cut short, which writes down what it did: nnU-Net finds it in a folder of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from inbounds.nnunet.trainer import nnUNetTrainerInbounds


class Brief(nnUNetTrainerInbounds):
    """Two epochs of three steps, without the validation at the end."""

    def __init__(
        self,
        plans: dict[str, Any],
        configuration: str,
        fold: int,
        dataset_json: dict[str, Any],
        device: torch.device = torch.device("cuda"),  # noqa: B008
    ) -> None:
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.num_epochs, self.num_iterations_per_epoch, self.num_val_iterations_per_epoch = 2, 3, 1

    def on_train_start(self) -> None:
        """Draw some batches more, to compare what is told of patches with what their labels show."""
        super().on_train_start()
        for _ in range(40):
            batch = next(self.dataloader_train)
            known, target = self.known(batch), batch["target"]
            assert known.label.shape == (target[0] if isinstance(target, list) else target)[:, 0].shape
            disc = known.label == 1
            inner = (slice(None), *(slice(1, -1),) * (disc.ndim - 1))
            for number, key in enumerate(batch["keys"]):
                self.note(
                    case=str(key),
                    placed=batch["placed"][number].tolist(),
                    shown=int(disc[number].sum()),
                    rim=bool(disc[number].sum() > disc[inner][number].sum()),
                    unlabelled=bool((known.label[number] == 2).any()),
                    facts={name: float(fact[number, 1]) for name, fact in known.facts.items()},
                )

    def train_step(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A step, and of what its loss consisted."""
        step = super().train_step(batch)
        terms = self.loss.terms(self.network(batch["data"]), self.known(batch)).named
        self.note(epoch=self.current_epoch, terms={name: float(term) for name, term in terms.items()})
        return step

    def perform_actual_validation(self, save_probabilities: bool = False) -> None:
        """Left out: it takes as long as all the rest."""

    def note(self, **said: Any) -> None:
        """One more line of the diary."""
        with (Path(self.output_folder) / "diary.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(said) + "\n")
