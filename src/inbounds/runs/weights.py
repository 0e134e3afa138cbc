"""Weights that somebody trained before, from a file: read without running anything, and taken where they fit."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from inbounds.errors import BadInput, reason, some
from inbounds.reading import regular

SAFE, PICKLED = ".safetensors", (".pt", ".pth")
_WRAPPED = re.compile(r"^((network|module|model)\.)+")
"""What is put before the names of weights where a network is part of something else."""


def fit_weights(file: Path, network: nn.Module) -> str:
    """Put into a network what of a file has the names and the shapes of its weights; the rest stays as it is.

    Names count without the `network.`, `module.` or `model.` that they begin with.

    Returns:
        A sentence on what was taken and what was not.

    Raises:
        BadInput: The file cannot be read, nothing in it fits, or what fits is not finite.
    """
    found = {_WRAPPED.sub("", name): tensor for name, tensor in _read(file).items()}
    own = network.state_dict()
    bare = {name: _WRAPPED.sub("", name) for name in own}
    fitting = {name: found[key] for name, key in bare.items() if key in found and found[key].shape == own[name].shape}
    if not fitting.keys() & dict(network.named_parameters()).keys():
        raise BadInput(
            f"{file}: none of its {len(found)} weights, such as {some(list(found))}, has name and shape of one of "
            f"the network's, such as {some(list(bare.values()))}; take a file of this network, or set another one"
        )
    refuse_not_finite(file, fitting, network)
    network.load_state_dict({**own, **fitting})
    other = [key for name, key in bare.items() if key in found and name not in fitting]
    rest = {
        "of another shape": other,
        "not in it": [key for key in bare.values() if key not in found],
        "of no use": [key for key in found if key not in bare.values()],
    }
    said = "".join(f"; {what}: {some(names)}" for what, names in rest.items() if names)
    return f"weights: {len(fitting)} of {len(own)} from {file}{said}"


def refuse_not_finite(file: Path, weights: Mapping[str, Tensor], network: nn.Module) -> None:
    """Refuse weights that are NaN or infinite where those of a new network are not: what they find is nothing."""
    own = network.state_dict()
    bad = [name for name, tensor in weights.items() if not tensor.isfinite().all() and own[name].isfinite().all()]
    if bad:
        raise BadInput(
            f"{file}: {len(bad)} of {len(weights)} weights are NaN or infinite, such as {bad[0]}; the network is "
            "broken: take another one, or train again"
        )


def _read(file: Path) -> dict[str, Tensor]:
    """The tensors of a file by name. Nothing else that a pickle may hold is made."""
    try:
        if file.suffix == SAFE:
            return load_file(regular(file))
        if file.suffix not in PICKLED:
            raise BadInput(f"{file}: weights are read from {SAFE}, {' or '.join(PICKLED)}; convert them")
        with warnings.catch_warnings(action="ignore"):  # of what torch could not read either
            found = _tensors(torch.load(regular(file), map_location="cpu", weights_only=True))
    except pickle.UnpicklingError:
        raise BadInput(
            f"{file}: holds more than weights, which is not read as it could run code; save the network's state_dict "
            f"alone, best as {SAFE}"
        ) from None
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error}); check the name") from None
    except BadInput:
        raise
    except Exception as error:  # whatever a reader meets in a damaged file
        raise BadInput(f"{file}: damaged, or no weights ({reason(error)}); save it again") from None
    if not found:
        raise BadInput(f"{file}: there are no weights in it; save the network's state_dict alone, best as {SAFE}")
    return found


def _tensors(content: Any) -> dict[str, Tensor]:
    """The largest group of named tensors: a file may keep a network beside other things, under any name."""
    if not isinstance(content, dict):
        return {}
    here = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    return max([here, *(_tensors(value) for value in content.values() if isinstance(value, dict))], key=len)
