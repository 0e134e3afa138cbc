"""A trained network for programs that know nothing of PyTorch."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path

import torch
from torch import nn

from inbounds.described import understood
from inbounds.errors import BadInput
from inbounds.inference.card import plan_of, postprocessing, preprocessing
from inbounds.locks import locked
from inbounds.runs.model import load_network
from inbounds.runs.run import Run
from inbounds.store.description import Grid
from inbounds.writing import file_aside


def export_onnx(run: Run, file: Path, model: str | None = None) -> None:
    """Write one of a run's networks as ONNX: `image` in, `probabilities` out, any number of slices.

    Images are `(slices, channels, H, W)` on the run's grid, float32, from 0 (black) to 1 (white). The file's metadata
    hold the class names, and how scans become images and probabilities masks.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401  (what torch exports with)
    except ImportError as error:
        raise BadInput(f"exporting needs more packages ({error}): pip install 'inbounds[export]'") from None
    if run.settings.network.dimensions == 3:
        raise BadInput(f"{run.path}: its network sees volumes, and those of slices alone are exported")
    if file.suffix != ".onnx":
        raise BadInput(f"{file}: the name of an ONNX file ends in .onnx")
    with locked(file):
        if file.exists():
            raise BadInput(f"{file}: already exists; remove it or choose another name")
        _export(run, file, model)


def _export(run: Run, file: Path, model: str | None) -> None:
    import onnx

    network = nn.Sequential(load_network(run, model or run.default_model), nn.Softmax(dim=1)).eval()
    where, made = str(run.path / "run.json"), json.dumps(run.about.get("preparation", {}))
    grid = understood(made, Grid, f"{where}: its preparation is damaged", "train again", where)
    example = torch.zeros(2, run.channels, *grid.shape)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages that nothing here needs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about itself
        program = torch.onnx.export(
            network,
            (example,),
            input_names=["image"],
            output_names=["probabilities"],
            dynamic_shapes=({0: torch.export.Dim("slices", min=1)},),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise BadInput(f"{run.path}: this network cannot be exported")
    proto = program.model_proto
    properties = {
        "classes": json.dumps(["background", *run.classes]),
        "preparation": json.dumps(run.about["preparation"]),
        "preprocessing": json.dumps(preprocessing(plan_of(run))),
        "postprocessing": json.dumps(postprocessing(plan_of(run))),
        "recipe": run.settings.recipe,
    }
    onnx.helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto)
    with file_aside(file) as part:
        part.write_bytes(proto.SerializeToString())
