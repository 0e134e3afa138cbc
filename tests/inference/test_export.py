"""A network in ONNX gives the masks that it gives here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from archives import done, refused
from inbounds.config import read_settings
from inbounds.runs.model import build_network, load_network
from inbounds.runs.run import Run
from making import make_store
from predicting import keep

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(params=["plain", "rare"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    store = make_store(tmp_path / "store")
    rare = ["network.name=unet", "network.settings={width=4,levels=3}", "network.initial_share=0.05"]
    settings = read_settings("full", None, rare if request.param == "rare" else [])
    made = Run.create(tmp_path / "run", settings, store, annotation="full")
    torch.manual_seed(0)
    network = build_network(made)
    for module in network.modules():  # as if trained: statistics that differ from those of a new network
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
    return keep(made, network)


def test_gives_the_same_mask_under_onnxruntime(tmp_path: Path, run: Run) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    file = tmp_path / "network.onnx"
    done("export", run.path, "--onnx", file)
    session = runtime.InferenceSession(str(file))
    height, width = run.about["preparation"]["shape"]
    network = load_network(run, "best")
    for slices in (1, 3):
        image = np.random.default_rng(slices).random((slices, 1, height, width), dtype=np.float32)
        (found,) = session.run(["probabilities"], {"image": image})
        with torch.no_grad():
            wanted = network(torch.from_numpy(image)).softmax(dim=1).numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        np.testing.assert_array_equal(found.argmax(axis=1), wanted.argmax(axis=1))
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == ["background", *run.classes]
    refused("export", run.path, "--onnx", file, saying=["already exists"])
    refused("export", run.path, "--onnx", tmp_path / "network.pt", saying=["ends in .onnx"])
