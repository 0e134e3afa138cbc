"""Our trainer for nnU-Net, cut short, which writes down what it did: nnU-Net finds it in a folder of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from inbounds import size
from inbounds.nnunet.frames import Frames, Rest
from inbounds.nnunet.trainer import nnUNetTrainerInbounds


def inner(mask: torch.Tensor) -> torch.Tensor:
    """A mask without the pixels at its rim, slice by slice."""
    slices = functional.pad(mask.reshape(-1, 1, *mask.shape[-2:]).float(), (1, 1, 1, 1))
    return (-functional.max_pool2d(-slices, 3, stride=1)).reshape(mask.shape)


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
        """Draw some batches more, to compare what is told of their scans with what their labels show.

        Of the rest of a scan that is labelled in full, its labels say what is there.
        """
        super().on_train_start()
        if self.told is None:
            return
        whole = Rest(self.configuration_manager.patch_size)
        data = self.dataset_class(self.preprocessed_dataset_folder, self.do_split()[0])
        for key in data.identifiers:
            label = torch.from_numpy(data.load_case(key)[1][0].astype("int64"))
            if int(label.max()) < 2:
                whole.keep(key, 99 * functional.one_hot(label.clamp(min=0), 2).movedim(-1, 0).float())
        for _ in range(400 if len(self.configuration_manager.patch_size) == 2 else 60):
            batch = next(self.dataloader_train)
            known = self.known(batch)
            frames = Frames.of(batch["placed"], known.label.ndim - 1, self.device)
            disc = known.label == 1
            patches = whole.behind(frames, known.patches, batch["keys"])
            found = size(torch.stack([~disc, disc], dim=1).float(), scans=patches)[:, 1, 0]
            shown = size(torch.stack([~disc, disc], dim=1).float(), scans=known.patches)[:, 1, 0]
            for number in [number for number, key in enumerate(batch["keys"]) if key in whole.found]:
                fact = {name: float(one[number, 1]) for name, one in known.facts.items()}
                self.note(
                    size=fact["size"] if fact["present"] else 0.0,
                    found=float(found[number]),
                    shown=float(shown[number]),
                    matrix=frames.matrix[number].tolist(),
                    rim=int(disc[number].sum() - inner(disc[number]).sum()),
                )

    def on_train_epoch_end(self, train_outputs: list[dict[str, Any]]) -> None:
        """What was found in the scans that were looked at, and what the network finds in their slices by itself."""
        before = {} if self.told is None else dict(self.looks.rest.found)
        super().on_train_epoch_end(train_outputs)
        if self.told is None:
            return
        sides = tuple(self.configuration_manager.patch_size)
        data = self.dataset_class(self.preprocessed_dataset_folder, self.do_split()[0])
        self.network.eval()
        for key in [key for key, found in self.looks.rest.found.items() if found is not before.get(key)]:
            scan = torch.from_numpy(data.load_case(key)[0][:])
            if len(sides) == 3 or scan.shape[2:] != sides:
                continue
            for at in range(scan.shape[1]):
                with torch.no_grad():
                    alone = self.network(scan[None, :, at])[0].softmax(dim=1)[0, 1].sum()
                rows = torch.stack([*torch.eye(3), torch.tensor([at, *((side - 1) / 2 for side in sides)])])
                rows = torch.stack([*rows, torch.zeros(3), *(torch.tensor(scan.shape[1:]).float(),) * 2])
                frames = Frames.of(rows[None].float(), 2, self.device)
                patches = self.looks.rest.behind(frames, frames.patches(sides), [key])
                self.note(looked=key, alone=float(alone), whole=float(patches.found[0, 1]))
        for _ in range(40):
            batch = next(self.dataloader_train)
            for key, complete in zip(batch["keys"], self.known(batch).patches.complete()[:, -1, 0], strict=True):
                self.note(of=str(key), seen=key in self.looks.rest.found, complete=bool(complete))

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
