"""Batch normalisation by the images of several processes is that of all of them together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from inbounds.networks.layers import BatchNorm
from inbounds.ranks import Part
from together import begin, ended

IMAGES = 5


def measured(norm: nn.Module, part: Part | None = None) -> dict[str, torch.Tensor]:
    """Two steps in training mode, and a look in evaluation mode."""
    found = {}
    for step in range(2):
        x = torch.randn(IMAGES, 3, 4, 6, generator=torch.Generator().manual_seed(step), dtype=torch.float64) + step
        x = x.to(memory_format=torch.channels_last).requires_grad_()
        y = norm(x if part is None else part.take(x))
        whole = y if part is None else part.gathered(y)
        (whole.square() * torch.arange(whole.numel()).reshape(whole.shape)).mean().backward()
        found |= {f"{step} value": whole.detach().contiguous(), f"{step} gradient of image": x.grad.contiguous()}
    found |= {f"gradient of {name}": weight.grad for name, weight in norm.named_parameters()}
    norm.eval()
    return found | dict(norm.named_buffers()) | {"evaluated": norm(x.detach()).contiguous()}


def made(kind: str) -> nn.Module:
    norm = {"own": BatchNorm, "plain": nn.BatchNorm2d, "bare": lambda n: nn.BatchNorm2d(n, affine=False)}[kind](3)
    for number, weight in enumerate(norm.parameters()):
        nn.init.uniform_(weight, 0.5, 1.5, generator=torch.Generator().manual_seed(number))
    return norm.double()


SCRIPT = """
import sys, torch
from safetensors.torch import save_file
from inbounds.networks.shared_norm import synchronised
from inbounds.training.group import joined, part_ways
from test_shared_norm import IMAGES, made, measured
group = joined()
for kind in ("own", "plain", "bare"):
    norm = synchronised(torch.nn.Sequential(made(kind)), torch.device("cpu"))[0]
    save_file(measured(norm, group.part(IMAGES)), f"{sys.argv[1]}/{kind}-{group.rank}.safetensors")
part_ways()
"""


@pytest.mark.filterwarnings("ignore")
def test_two_processes_normalise_by_all_images(tmp_path: Path) -> None:
    ended(begin(2, ["-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}", tmp_path]))
    for kind in ("own", "plain", "bare"):
        parts = [load_file(tmp_path / f"{kind}-{rank}.safetensors") for rank in range(2)]
        for name, expected in measured(made(kind)).items():
            if name == "num_batches_tracked":
                continue
            values = [part[name] for part in parts]
            found = torch.stack(values).mean(dim=0) if "gradient" in name else values[0]
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10, msg=f"{kind}: {name}")
