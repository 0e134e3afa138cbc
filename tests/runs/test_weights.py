"""Weights from a file that a person names: what fits is taken, what does not is said, and nothing in it is run."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from archives import done, refused
from inbounds.errors import BadInput
from inbounds.networks import build
from inbounds.runs.begin import Wanted, begin
from inbounds.runs.checkpoint import load_weights
from inbounds.runs.run import Run
from inbounds.runs.weights import fit_weights
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from training_runs import SMALL, kept

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
UNET = {"width": 2, "levels": 2}


def state(classes: int = 2) -> dict[str, Tensor]:
    """Of a network as whoever trained it has it, without what it is wrapped in here."""
    return {name: tensor.clone() for name, tensor in build("unet", 1, classes, **UNET).network.state_dict().items()}


@pytest.mark.parametrize(
    "write",
    [
        lambda file: save_file(state(), file.with_suffix(".safetensors")),
        lambda file: torch.save(state(), file.with_suffix(".pt")),
        lambda file: torch.save({"epoch": 3, "state_dict": state()}, file.with_suffix(".pth")),
        lambda file: torch.save({"model": {f"module.{k}": v for k, v in state().items()}}, file.with_suffix(".pt")),
    ],
    ids=["safetensors", "plain", "beside others", "wrapped"],
)
def test_files_as_people_have_them(tmp_path: Path, write: Callable[[Path], None]) -> None:
    torch.manual_seed(1)
    write(tmp_path / "weights")
    (file,) = tmp_path.iterdir()
    network = build("unet", 1, 2, **UNET)
    count = len(network.state_dict())
    assert fit_weights(file, network) == f"weights: {count} of {count} from {file}"
    torch.manual_seed(1)
    assert all(torch.equal(tensor, network.state_dict()[f"network.{name}"]) for name, tensor in state().items())


def test_what_does_not_fit_is_said_and_left_as_it_was(tmp_path: Path) -> None:
    content = state(classes=5)
    last = [name for name, tensor in content.items() if tensor.shape and tensor.shape[0] == 5]
    first = next(iter(content))
    content["head.weight"] = content.pop(first)
    save_file(content, tmp_path / "a.safetensors")
    network = build("unet", 1, 2, **UNET)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    said = fit_weights(tmp_path / "a.safetensors", network)
    assert said.endswith(f"; of another shape: {', '.join(last)}; not in it: {first}; of no use: head.weight")
    for name in (*last, first):
        assert torch.equal(network.state_dict()[f"network.{name}"], before[f"network.{name}"])


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise SystemExit('run')",)


def damaged(file: Path) -> None:
    save_file(state(), file)
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize(
    ("name", "write", "saying"),
    [
        (
            "a.pt",
            lambda file: torch.save({"a": Evil()}, file),
            "holds more than weights, which is not read as it could",
        ),
        ("a.pth", lambda file: file.write_bytes(pickle.dumps(Evil())), "holds more than weights"),
        ("a.pt", lambda file: torch.save(nn.Conv2d(1, 1, 1), file), "holds more than weights"),
        ("a.pt", lambda file: torch.save({"epoch": 1}, file), "there are no weights in it"),
        ("a.pt", lambda file: file.write_bytes(b""), "a.pt: "),
        ("a.safetensors", damaged, "damaged, or no weights"),
        ("a.safetensors", lambda file: None, "cannot be read|no weights"),
        ("a.ckpt", lambda file: file.write_text("x"), "weights are read from .safetensors, .pt or .pth; convert"),
        ("a.safetensors", lambda file: save_file({"x": torch.ones(3)}, file), "none of its 1 weights, such as x, has"),
        ("a.pt", lambda file: torch.save({k: v / 0 for k, v in state().items()}, file), "weights are NaN or infinite"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, write: Callable[[Path], None], saying: str) -> None:
    write(tmp_path / name)
    with pytest.raises(BadInput, match=rf"{name}: .*({saying})|{saying}"):
        fit_weights(tmp_path / name, build("unet", 1, 2, **UNET))


def test_a_run_begins_with_them_and_needs_the_file_no_more(tmp_path: Path, hearts: Store) -> None:
    """The rest is drawn by the seed; a run that goes on, or was handed over, has its own copy."""
    file = tmp_path / "pretrained.safetensors"
    changes = [*SMALL, "training.epochs=1"]
    wanted = Wanted(["tags"], annotation="disc", classes=["LV"], changes=changes)
    (plain,) = begin(tmp_path / "plain", hearts, wanted)
    fresh = {name: tensor.clone() for name, tensor in Trainer(plain).network.state_dict().items()}
    some = dict(list(fresh.items())[:2])
    save_file({name: torch.full_like(tensor, 0.25) for name, tensor in some.items()}, file)
    told = [
        "train",
        "tags",
        "--store",
        hearts.path,
        "--annotation",
        "disc",
        "--classes",
        "LV",
        "--run",
        tmp_path / "run",
    ]
    told += [word for change in [*changes, f"network.weights={file}"] for word in ("--set", change)]
    begun = done(*told)
    assert f"weights: 2 of {len(fresh)} from {file}; not in it: " in begun.err
    run = Run.open(tmp_path / "run")
    file.unlink()
    network = Trainer(run).network.state_dict()
    for name, tensor in fresh.items():
        assert torch.equal(network[name], torch.full_like(tensor, 0.25) if name in some else tensor), name
    before = kept(run)
    done(*told, "--resume")
    assert kept(run) == before
    done("evaluate", run.path, "--no-surfaces")
    (second,) = begin(tmp_path / "second", hearts, Wanted(**{**vars(wanted), "start": run.path}))
    assert second.settings.network.weights == ""


def test_a_run_that_was_handed_over_has_no_file_read(tmp_path: Path, hearts: Store) -> None:
    wanted = Wanted(["tags"], annotation="disc", classes=["LV"], changes=[*SMALL, "training.epochs=1"])
    (run,) = begin(tmp_path / "run", hearts, wanted)
    Trainer(run).fit()
    secret = tmp_path / "secret.safetensors"
    save_file({"x": torch.ones(1)}, secret)
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    about["settings"]["network"]["weights"] = str(secret)
    (run.path / "run.json").write_text(json.dumps(about))
    handed = Run.open(run.path)
    Trainer(handed)
    (second,) = begin(tmp_path / "second", hearts, Wanted(**{**vars(wanted), "start": run.path}))
    assert second.settings.network.weights == ""
    both = [*wanted.changes, f"network.weights={secret}"]
    with pytest.raises(BadInput, match=r"run: network.weights names other weights to begin with"):
        list(begin(tmp_path / "third", hearts, Wanted(**{**vars(wanted), "start": run.path, "changes": both})))
    assert not (tmp_path / "third").exists()


def test_a_network_whose_weights_are_not_finite_is_refused_by_every_command(tmp_path: Path, hearts: Store) -> None:
    wanted = Wanted(["tags"], annotation="disc", classes=["LV"], changes=[*SMALL, "training.epochs=1"])
    (run,) = begin(tmp_path / "run", hearts, wanted)
    Trainer(run).fit()
    file = run.weights("best")
    weights = load_file(file)
    name = next(name for name in weights if name.endswith("weight"))
    weights[name].view(-1)[0] = torch.inf
    save_file(weights, file)
    saying = [f"{file}: 1 of {len(weights)} weights are NaN or infinite, such as {name}", "take another one, or train"]
    refused("evaluate", run.path, saying=saying)
    refused("report", run.path, "--out", tmp_path / "report", saying=saying)
    refused("predict", run.path, tmp_path, "--out", tmp_path / "masks", saying=saying)
    refused("export", run.path, "--onnx", tmp_path / "a.onnx", saying=saying)
    with pytest.raises(BadInput, match="NaN or infinite"):
        list(begin(tmp_path / "second", hearts, Wanted(**{**vars(wanted), "start": run.path})))
    shutil.copy(run.weights("last"), file)
    done("evaluate", run.path, "--no-surfaces")


def test_what_is_infinite_by_design_stays(tmp_path: Path) -> None:
    """Such as a mask of what must not be looked at."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))

    save_file(Masked().state_dict(), tmp_path / "a.safetensors")
    load_weights(tmp_path / "a.safetensors", Masked())
