"""Writing a network as a MONAI bundle: a folder of weights, data and words, which `predict` takes like a run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

import inbounds
from inbounds.described import written
from inbounds.inference.card import card, plan_of, postprocessing, preprocessing
from inbounds.runs.bundle import CARD, INFERENCE, METADATA, SCHEMA, WEIGHTS, Bundle, Metadata
from inbounds.runs.model import load_network
from inbounds.runs.run import Run
from inbounds.writing import ESCAPED, aside, write_json

_SCHEMA = "https://github.com/Project-MONAI/MONAI-extra-test-data/releases/download/0.8.1/meta_schema_20240725.json"
"""What MONAI compares metadata with; named here, never fetched."""


def export_bundle(run: Run, folder: Path, model: str | None = None) -> None:
    """Write one of a run's networks as a bundle: it names no scan, no person and no place.

    Raises:
        BadInput: There is something at this path, or the run keeps no such network.
    """
    model = model or run.default_model
    network = load_network(run, model)
    about = _metadata(run, model)
    with aside(folder) as new:
        for name in (METADATA, WEIGHTS, CARD):
            (new / name).parent.mkdir(exist_ok=True)
        weights = {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}
        save_file(weights, new / WEIGHTS)
        write_json(new / METADATA, written(about, Metadata, str(folder), "train again"))
        write_json(new / INFERENCE, _INFERENCE)
        (new / CARD).write_text(card(run, model), encoding="utf-8", errors=ESCAPED)


def network(bundle: str) -> nn.Module:
    """The network of a bundle, from brightness on the grid to logits, for programs that build their own inference."""
    opened = Bundle.open(Path(bundle))
    return load_network(opened, opened.default_model)


def segment(bundle: str, scan: str, mask: str, device: str = "cpu") -> None:
    """Segment one scan, as `inbounds predict` does; for MONAI's runner."""
    from inbounds.inference.predictor import Predictor

    Predictor(bundle, device=device, doubt=False).predict(scan).write(Path(mask))


_INFERENCE = {
    "bundle_root": ".",
    "scan": "scan.nii.gz",
    "mask": "mask.nii.gz",
    "device": "cpu",
    "network_def": {"_target_": "inbounds.inference.bundle.network", "bundle": "@bundle_root"},
    "segment": {
        "_target_": "inbounds.inference.bundle.segment",
        "_mode_": "callable",
        "bundle": "@bundle_root",
        "scan": "@scan",
        "mask": "@mask",
        "device": "@device",
    },
    "run": ["$@segment()"],
}
"""`python -m monai.bundle run --config_file configs/inference.json --scan ... --mask ...`, within the bundle."""


def _metadata(run: Run, model: str) -> dict[str, Any]:
    plan = plan_of(run)
    settings = run.settings.network
    values = ["background", *run.classes]
    kept = {
        "schema": SCHEMA,
        "network": settings.model_copy(update={"weights": ""}).model_dump(mode="json"),
        "patch": None if run.settings.training.patch is None else [*run.settings.training.patch],
        "classes": [*run.classes],
        "channels": run.channels,
        "preparation": run.about["preparation"],
        "volumes": {name: [*ends] for name, ends in run.volumes.items()},
        "model": model,
        "preprocessing": preprocessing(plan),
        "postprocessing": postprocessing(plan),
    }
    shape = [1, *plan.shape] if settings.dimensions == 3 else [*plan.shape]
    plain: dict[str, Any] = {"is_patch_data": False, "dtype": "float32", "value_range": [0, 1], "spatial_shape": shape}
    channels = {str(number): f"channel {number}" for number in range(run.channels)}
    classes = {str(value): name for value, name in enumerate(values)}
    image = {"type": "image", "format": "magnitude", "modality": "n/a", "num_channels": run.channels}
    found = {"type": "image", "format": "segmentation", "num_channels": len(values)}
    return {
        "schema": _SCHEMA,
        "version": "0.1.0",
        "changelog": {"0.1.0": "as it was trained"},
        "monai_version": _version("monai"),
        "pytorch_version": torch.__version__.partition("+")[0],
        "numpy_version": np.__version__,
        "required_packages_version": {"inbounds": inbounds.__version__, "safetensors": _version("safetensors")},
        "task": f"Segmentation of {', '.join(run.classes)}",
        "description": f"A network trained with inbounds on {run.about['data']['name']}. Not a medical device.",
        "authors": "those who trained it",
        "copyright": "of those who trained it",
        "intended_use": "Research only: no diagnosis or treatment may rest on it.",
        "network_data_format": {
            "inputs": {"image": {**image, **plain, "channel_def": channels}},
            "outputs": {"pred": {**found, **plain, "channel_def": classes}},
        },
        "inbounds": kept,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
