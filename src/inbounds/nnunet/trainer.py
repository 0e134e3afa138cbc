"""nnU-Net v2's trainer with partial labels and bounds: `nnUNetv2_train ID 2d 0 -tr nnUNetTrainerInbounds`.

Everything else is nnU-Net's: network, augmentation, deep supervision, checkpoints, prediction. What `inbounds nnunet`
wrote beside the preprocessed data becomes bounds on the finest output; without it, labelled pixels alone teach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from nnunetv2.training.nnUNetTrainer import nnUNetTrainer as stock  # noqa: N813
from torch import Tensor

from inbounds.annotations import UNLABELLED, Annotation
from inbounds.constraints import Constraint, Known, hinge, typical_values
from inbounds.errors import BadInput
from inbounds.nnunet.facts import FILE, Told, read_facts
from inbounds.nnunet.frames import Frames
from inbounds.nnunet.loader import PlacedLoader
from inbounds.nnunet.looks import Looks
from inbounds.regions import size
from inbounds.supervision import Loss, Supervision


class nnUNetTrainerInbounds(stock.nnUNetTrainer):  # noqa: N801 (as nnU-Net calls trainers)
    """Cross-entropy on labelled pixels, and bounds on the size of each region in its slice or scan.

    A patch's voxels count as what they are in the scan, and what lies outside as the network found it when it last
    looked at the scan: after each epoch it looks at some. Where a patch shows a part of what nobody has looked at, and
    in cascades, upper bounds alone act. Bounds begin to act after a while, as labels teach first what they bound.

    Attributes:
        weight: Of the bounds, once they act in full.
        wait: Between these shares of the epochs they begin to.
    """

    weight = 3.0
    wait = (0.05, 0.3)

    def __init__(
        self,
        plans: dict[str, Any],
        configuration: str,
        fold: int,
        dataset_json: dict[str, Any],
        device: torch.device = torch.device("cuda"),  # noqa: B008 (nnU-Net reads this signature)
    ) -> None:
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.told: Told | None = None
        self.acting = torch.zeros((), device=self.device)
        self.looks: Looks
        self._firsts: dict[str, int] = {}

    def _build_loss(self) -> Loss:
        if self.label_manager.has_regions:
            raise BadInput("labels that are regions are not supported; give each class a value of its own")
        file = Path(self.preprocessed_dataset_folder_base) / FILE
        if file.is_file():
            self.told = read_facts(file)
        bounds = [] if self.told is None else self._bounds(self.told)
        self.print_to_log_file(f"bounds: {bounds[0].bounds} of {file}" if bounds else "no facts: labels alone teach")
        ignored = self.label_manager.ignore_label
        return Loss(
            Supervision(constraints=bounds),
            ignore_index=UNLABELLED if ignored is None else ignored,
            levels=self._levels(),
        )

    def _bounds(self, told: Told) -> list[Constraint]:
        heads = self.label_manager.num_segmentation_heads
        if len(told.classes) != heads:
            raise BadInput(f"{FILE} is of {len(told.classes)} classes, the data set of {heads}: write it again")
        cases = told.configurations.get(self.configuration_name, {})
        flat = len(self.configuration_manager.patch_size) == 2
        rows = [row for case in cases.values() for row in (case.slices.values() if flat else [case.scan])]
        if not rows:
            return []
        pixels = math.prod(self.configuration_manager.patch_size)
        typical = typical_values(told.tensors(rows), pixels=pixels)
        known = Known(relative=told.margin)
        return [Constraint(size, known, hinge, weight=self.acting, scale="typical", typical=typical)]

    def _levels(self) -> list[float] | None:
        """How much labels count at each output: as nnU-Net has it, the coarsest not at all."""
        if not self.enable_deep_supervision:
            return None
        outputs = len(self._get_deep_supervision_scales())
        last = 1e-6 if self.is_ddp and not self._do_i_compile() else 0.0  # each output must have a gradient there
        return [0.5**level for level in range(outputs - 1)] + [last if outputs > 1 else 1.0]

    def get_dataloaders(self) -> Any:
        """Those of nnU-Net, made of a loader that says where patches lie."""
        plain, stock.nnUNetDataLoader = stock.nnUNetDataLoader, PlacedLoader
        try:
            return super().get_dataloaders()
        finally:
            stock.nnUNetDataLoader = plain

    def on_train_start(self) -> None:
        """Who goes on looks at all scans first: what was found in them is no part of nnU-Net's checkpoints."""
        super().on_train_start()
        known = {} if self.told is None or self.is_cascaded else self.told.configurations
        self.looks = Looks(self, known.get(self.configuration_name, {}))
        if self.current_epoch:
            self.looks.look(self.looks.keys)

    def on_train_epoch_end(self, train_outputs: list[dict[str, Any]]) -> None:
        """After an epoch it is the turn of some scans."""
        super().on_train_epoch_end(train_outputs)
        self.looks.after_an_epoch()

    def on_train_epoch_start(self) -> None:
        """The weight of bounds follows the epochs; the tensor is the loss's own."""
        super().on_train_epoch_start()
        first, last = (share * self.num_epochs for share in self.wait)
        self.acting.fill_(self.weight * min(1.0, max(0.0, (self.current_epoch - first) / (last - first))))

    def train_step(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A step of nnU-Net with what is known in the place of the labels."""
        step: dict[str, Any] = super().train_step(batch | {"target": self.known(batch)})
        return step

    def known(self, batch: dict[str, Any]) -> Annotation:
        """What is known of the patches of a batch."""
        target = batch["target"]
        label: Tensor = (target[0] if isinstance(target, list) else target)[:, 0]
        label = label.to(self.device, non_blocking=True).long()
        if self.told is None:
            return Annotation(label)
        frames = Frames.of(batch["placed"], label.ndim - 1, self.device)
        slices: Sequence[int | None] = frames.slices or [None] * len(label)
        rows = [
            self.told.rows(self.configuration_name, key, None if at is None else at + self._first(key))
            for key, at in zip(batch["keys"], slices, strict=True)
        ]
        facts = {name: fact.to(self.device) for name, fact in self.told.tensors(rows).items()}
        patches = self.looks.rest.behind(frames, frames.patches(label.shape[1:]), batch["keys"])
        return Annotation(label, facts, patches=patches)

    def _first(self, key: str) -> int:
        """The slice of the original at which what was preprocessed begins: nnU-Net cuts off what is empty."""
        if key not in self._firsts:
            data = self.dataset_class(self.preprocessed_dataset_folder, [key])
            self._firsts[key] = int(data.load_case(key)[-1]["bbox_used_for_cropping"][0][0])
        return self._firsts[key]
