"""A bundle gives the masks that its run gives, in a process that knows nothing of the run; nothing in it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from archives import done, nifti, noise, refused, snapshot
from inbounds.config import read_settings
from inbounds.inference import Predictor
from inbounds.inference.bundle import network
from inbounds.runs.bundle import CARD, INFERENCE, METADATA, WEIGHTS
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.scans.scan import read_labels
from predicting import keep, tiny_store

UNET = ["network.name=unet", "network.settings={width=4,levels=3}"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = Run.create(
        tmp_path / "run", read_settings("full", None, UNET), tiny_store(tmp_path / "store", "pad", (32, 32))
    )
    torch.manual_seed(0)
    return keep(made, build_network(made)).path


def scan(tmp_path: Path) -> Path:
    return nifti(tmp_path / "scans" / "a.nii.gz", noise((4, 40, 36)))


def test_the_same_mask_in_a_fresh_process(tmp_path: Path, run: Path) -> None:
    """The run and its store are gone; the network is that of its own process."""
    done("predict", run, scan(tmp_path), "--out", tmp_path / "wanted", "--probabilities")
    done("export", run, "--bundle", tmp_path / "bundle")
    for gone in ("run", "store"):
        shutil.rmtree(tmp_path / gone)
    (tmp_path / "bundle").rename(tmp_path / "elsewhere")
    words = ["predict", "elsewhere", "scans", "--out", "out", "--probabilities"]
    source = str(Path(__file__).parents[2] / "src")
    subprocess.run(
        [sys.executable, "-m", "inbounds", *words], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": source}
    )
    for name in ("a.nii.gz", "a_probabilities.npz", "predictions.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "wanted" / name).read_bytes(), name


def test_what_travels(tmp_path: Path, run: Path) -> None:
    done("evaluate", run, "--split", "train", "--no-surfaces", "--model", "best")
    done("export", run, "--bundle", tmp_path / "bundle")
    content = snapshot(tmp_path / "bundle")
    assert sorted(content) == sorted([CARD, INFERENCE, METADATA, WEIGHTS])
    opened = Run.open(run)
    for name, text in content.items():
        for secret in (
            str(tmp_path),
            *(record.name for record in opened.opened_store().records if len(record.name) > 2),
        ):
            assert secret.encode() not in text, (name, secret)
    card = content[CARD].decode()
    for title in ("Not a medical device", "Data", "Knowledge used", "Results", "Input", "Output", "Limits"):
        assert f"## {title}\n" in card
    assert "- every pixel" in card
    assert "- train, dsc_volume, " in card
    about = json.loads(content[METADATA])
    classes = about["network_data_format"]["outputs"]["pred"]["channel_def"]
    assert list(classes.values()) == ["background", *opened.classes]
    refused("export", run, "--bundle", tmp_path / "bundle", saying=["bundle: already exists"], folder=tmp_path)
    refused("export", run, saying=["give either --bundle or --onnx"], folder=tmp_path)
    refused("predict", tmp_path / "bundle", scan(tmp_path), "--model", "last", "--out", tmp_path / "out",
            saying=["holds the model 'best' alone"])  # fmt: skip


def test_monai_reads_it(tmp_path: Path, run: Path) -> None:
    bundles = pytest.importorskip("monai.bundle", reason="MONAI is not installed")
    done("export", run, "--bundle", tmp_path / "bundle")
    given, mask = scan(tmp_path), tmp_path / "mask.nii.gz"
    parser = bundles.ConfigParser()
    parser.read_config(str(tmp_path / "bundle" / INFERENCE))
    parser.read_meta(str(tmp_path / "bundle" / METADATA))
    parser.update({"bundle_root": str(tmp_path / "bundle"), "scan": str(given), "mask": str(mask)})
    image = torch.rand(2, 1, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            parser.get_parsed_content("network_def")(image), network(str(tmp_path / "bundle"))(image)
        )
    parser.get_parsed_content("run")
    np.testing.assert_array_equal(read_labels(mask).array, Predictor(run).predict(given).mask)


def test_nothing_in_it_is_believed(tmp_path: Path, run: Path) -> None:
    done("export", run, "--bundle", tmp_path / "bundle")
    given, file = scan(tmp_path), tmp_path / "bundle" / METADATA
    whole = json.loads(file.read_text(encoding="utf-8"))

    def no(saying: list[str], **changed: object) -> None:
        kept = {**whole["inbounds"], **changed}
        file.write_text(json.dumps({**whole, "inbounds": kept}), encoding="utf-8")
        refused("predict", tmp_path / "bundle", given, "--out", tmp_path / "out", saying=saying)

    (tmp_path / "harm.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w').close()\ndef net(*a, **k): ...\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        no(["harm:net", "--import"], network={**whole["inbounds"]["network"], "name": "harm:net"})
    (tmp_path / "bundle" / INFERENCE).write_text('{"run": ["$__import__(\'harm\')"]}')
    assert not (tmp_path / "done").exists()
    no(["schema 7", "export it again"], schema=7)
    no(["preparation"], preparation={"fit": "pad"})
    no(["does not fit the network"], classes=["one more", *whole["inbounds"]["classes"]])
    no(["classes"], classes=[])
    file.write_text(json.dumps(whole), encoding="utf-8")
    (tmp_path / "bundle" / WEIGHTS).write_bytes(b"\x80\x04cos\nsystem\n(S'touch done'\ntR.")
    refused("predict", tmp_path / "bundle", given, "--out", tmp_path / "out", saying=["model.safetensors"])
