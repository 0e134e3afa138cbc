"""nnU-Net's predictor with a network of ours, timed: runs where nnU-Net is installed, called by `predict.py`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from inbounds.runs.model import load_network
from inbounds.runs.run import Run


def main(run: str, plans: str, about: str, scans: str, out: str) -> None:
    """Segment a folder of scans and print the seconds, reading and writing included."""
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

    opened, manager = Run.open(Path(run)), PlansManager(json.loads(Path(plans).read_text(encoding="utf-8")))
    network = load_network(opened, opened.default_model, torch.device("cpu"))
    predictor = nnUNetPredictor(
        use_mirroring=False, perform_everything_on_device=False, device=torch.device("cpu"), allow_tqdm=False
    )
    configuration = manager.get_configuration("2d")
    described = json.loads(Path(about).read_text(encoding="utf-8"))
    predictor.manual_initialization(network, manager, configuration, [network.state_dict()], described, "ours", None)
    begun = time.perf_counter()
    predictor.predict_from_files(
        scans, out, overwrite=True, num_processes_preprocessing=1, num_processes_segmentation_export=1
    )
    seconds = time.perf_counter() - begun
    found = len(list(Path(out).glob("*.nii.gz")))
    print(json.dumps({"seconds": seconds, "masks": found, "patch": [*configuration.patch_size]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
