"""Looks at whole scans between epochs: what is found there is known of the rest of each patch."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

import torch
from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor

from inbounds.nnunet.frames import Rest

SHARE = 0.15
"""Voxels that are looked at after an epoch, as a share of those that it trained on."""


class Looks:
    """The network looks at scans in turn, with nnU-Net's own sliding window.

    Args:
        trainer: Whose network it is.
        known: The scans of which something is known.
    """

    def __init__(self, trainer: Any, known: Container[str]) -> None:
        self.trainer = trainer
        self.keys: list[str] = [key for key in trainer.do_split()[0] if key in known]
        self.patch = trainer.configuration_manager.patch_size
        self.rest = Rest(self.patch)
        self.credit, self.due = 0.0, 0

    def after_an_epoch(self) -> None:
        """Look at the scans whose turn it is."""
        patches = self.trainer.num_iterations_per_epoch * self.trainer.batch_size
        self.credit += SHARE * patches * math.prod(self.patch)
        for _ in self.keys:
            if self.credit <= 0:
                break
            self.look([self.keys[self.due]])
            self.due = (self.due + 1) % len(self.keys)
        self.credit = min(self.credit, 0.0)

    def look(self, keys: Sequence[str]) -> None:
        """Look at these scans."""
        trainer = self.trainer
        network = trainer.network.module if trainer.is_ddp else trainer.network
        network = getattr(network, "_orig_mod", network)  # compiled once, for the shape of batches
        predictor = nnUNetPredictor(1.0, False, False, trainer.device.type == "cuda", trainer.device, allow_tqdm=False)
        about = trainer.plans_manager, trainer.configuration_manager, None, trainer.dataset_json, "", None
        predictor.manual_initialization(network, *about)
        data = trainer.dataset_class(trainer.preprocessed_dataset_folder, keys)
        trainer.set_deep_supervision_enabled(False)
        for key in keys:
            scan = torch.from_numpy(data.load_case(key)[0][:])
            self.rest.keep(key, predictor.predict_sliding_window_return_logits(scan).clone())
            sides = scan.shape[1 + 3 - len(self.patch) :]
            windows = [math.ceil(side / one) * one for side, one in zip(sides, self.patch, strict=True)]
            self.credit -= math.prod(windows) * (scan.shape[1] if len(windows) == 2 else 1)
        trainer.set_deep_supervision_enabled(trainer.enable_deep_supervision)
