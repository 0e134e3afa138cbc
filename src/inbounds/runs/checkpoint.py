"""Where a run stands after an epoch: written aside and renamed when complete, so that a kill loses nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from inbounds.described import read_json, written
from inbounds.errors import BadInput, reason
from inbounds.reading import regular
from inbounds.runs.description import AGAIN, Standing
from inbounds.runs.weights import refuse_not_finite
from inbounds.writing import aside, remove, write_json

RAW = "raw."
"""Before the names of the weights whose running mean the kept networks are."""
KEPT = ("generator.", "scan_sizes", "estimate.", "multipliers.")
"""With these begin the names of what a state keeps as tensors."""


@dataclass
class State(Standing):
    """What a run remembers between epochs.

    Attributes:
        tensors: What is remembered beside networks and optimiser: random generators, sizes of scans, multipliers.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """All that a checkpoint holds, in memory: training may go on while it is written.

    Attributes:
        numbers: The state, but for tensors.
        weights: Of the network that becomes `last`.
        rest: What going on needs besides: the optimiser, and what else is remembered.
    """

    numbers: dict[str, Any]
    weights: dict[str, Tensor]
    rest: dict[str, Tensor]


def take(
    state: State, network: nn.Module, optimiser: torch.optim.Optimizer | None, raw: nn.Module | None = None
) -> Taken:
    """Copy where a run stands after an epoch.

    Args:
        state: Where it stands.
        network: Becomes `last`.
        optimiser: Its state is kept, for going on; `None` leaves it out.
        raw: Where `network` is a running mean, the network whose mean it is.
    """
    further = {} if optimiser is None else _flat(optimiser)
    if raw is not None:
        further |= {f"{RAW}{name}": tensor for name, tensor in raw.state_dict().items()}
    weights, rest = _fetched(network.state_dict(), further)
    numbers = {each.name: getattr(state, each.name) for each in fields(Standing)}
    return Taken(numbers, weights, rest | state.tensors)


def write(root: Path, taken: Taken, *, best: bool) -> None:
    """Write the checkpoint of a finished epoch and remove the one before.

    Args:
        root: The run's folder.
        taken: What it holds.
        best: Whether this epoch's network takes the place of the best one kept so far.
    """
    folder = root / "checkpoints"
    before = finished(root)
    try:
        with aside(folder / f"{taken.numbers['epoch']:04d}") as new:
            save_file(taken.weights, new / "last.safetensors")
            source = new / "last.safetensors" if best else before[-1] / "best.safetensors" if before else None
            if source is not None and source.is_file():
                os.link(source, new / "best.safetensors")
            save_file(taken.rest, new / "optimiser.safetensors")
            write_json(new / "state.json", written(taken.numbers, Standing, str(folder), "a lower training.lr helps"))
    except SafetensorError as error:
        raise BadInput(f"{folder}: could not be written ({error}); the checkpoint before is intact") from None
    tidy(root)


def finished(root: Path) -> list[Path]:
    """The complete checkpoints of a run, the newest last."""
    folders = [
        folder for folder in (root / "checkpoints").glob("[0-9]*") if folder.name.isdecimal() and folder.is_dir()
    ]
    return sorted(folders, key=lambda folder: int(folder.name))


def tidy(root: Path) -> Path | None:
    """The newest checkpoint of a run, which is locked, when what a killed process left beside it is gone."""
    found = finished(root)
    for old in found[:-1]:
        remove(old)
    return found[-1] if found else None


def load(folder: Path, network: nn.Module, optimiser: torch.optim.Optimizer, raw: nn.Module | None = None) -> State:
    """Put a network, its optimiser and the state back to where a checkpoint stands.

    A checkpoint without an optimiser leaves the one given as it is: the run goes on, with fresh moments.
    """
    numbers = vars(standing(folder))
    with reading(folder):
        network.load_state_dict(load_file(regular(folder / "last.safetensors")))
        tensors = load_file(regular(folder / "optimiser.safetensors"))
        kept = {name: tensors.pop(name) for name in list(tensors) if name.startswith(KEPT)}
        weights = {name.removeprefix(RAW): tensors.pop(name) for name in list(tensors) if name.startswith(RAW)}
        if raw is not None:
            raw.load_state_dict(weights)
        if tensors:
            _restore(optimiser, tensors)
        return State(**numbers, tensors=kept)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Refuse a checkpoint whose tensors are not what they should be."""
    try:
        yield
    except BadInput:
        raise
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"{folder}: a damaged checkpoint ({reason(error)}); start the run again") from None


def kept_epochs(folder: Path | None) -> dict[str, int]:
    """The epoch of each network that a checkpoint keeps; nothing before the first epoch is finished."""
    if folder is None:
        return {}
    state = standing(folder)
    epochs = {"last": state.epoch} | ({"best": state.best[1]} if state.best else {})
    return {model: epoch for model, epoch in epochs.items() if (folder / f"{model}.safetensors").is_file()}


def standing(folder: Path) -> Standing:
    """Where the run stood when it wrote a checkpoint."""
    file = folder / "state.json"
    state = read_json(file, Standing, AGAIN, most=100_000)
    if state.epoch != int(folder.name):
        raise BadInput(f"{file}: damaged (epoch is {state.epoch}, and the folder is of {int(folder.name)}); {AGAIN}")
    return state


def load_weights(file: Path, network: nn.Module) -> None:
    """Put a kept network's weights into a network of the same make; what is not finite is refused."""
    try:
        weights = load_file(regular(file))
        refuse_not_finite(file, {name: weights[name] for name in network.state_dict() if name in weights}, network)
        network.load_state_dict(weights)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"{file}: does not fit the network that the run describes ({reason(error)})") from None


def _flat(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by the number of their parameter."""
    state: dict[int, dict[str, Any]] = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": tensor
        for number, entry in state.items()
        for name, tensor in entry.items()
        if isinstance(tensor, Tensor)
    }


def _fetched(*groups: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Copies on the CPU; tensors of one type travel together."""
    kinds = {tensor.dtype for group in groups for tensor in group.values()}
    arrived: dict[torch.dtype, Iterator[Tensor]] = {}
    for kind in kinds:
        of_kind = [tensor.detach() for group in groups for tensor in group.values() if tensor.dtype == kind]
        flat = torch.cat([tensor.reshape(-1) for tensor in of_kind]).cpu()
        parts = flat.split([tensor.numel() for tensor in of_kind])
        arrived[kind] = iter([part.view(like.shape) for part, like in zip(parts, of_kind, strict=True)])
    return [{name: next(arrived[tensor.dtype]) for name, tensor in group.items()} for group in groups]


def _restore(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for weight, entry in optimiser.state.items():
        # Laid out as their weights, which a fused step takes for granted.
        entry |= {key: torch.empty_like(weight).copy_(t) for key, t in entry.items() if t.shape == weight.shape}
