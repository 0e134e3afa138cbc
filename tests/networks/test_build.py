from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from inbounds.errors import BadInput
from inbounds.networks import AnySize, ENet, build, networks

# Small enough for a laptop; what is tested does not depend on the width.
SMALL: dict[str, dict[str, Any]] = {"enet": {}, "residual_unet": {"width": 4}, "unet": {"width": 8, "levels": 4}}
UNET = {"spatial_dims": 2, "channels": (4, 8, 16), "strides": (2, 2)}

every = pytest.mark.parametrize("name", list(SMALL))
# MONAI scripts functions on import, which PyTorch calls deprecated.
monai = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::FutureWarning")


def test_every_network_is_tested() -> None:
    assert set(SMALL) == set(networks)


@every
@pytest.mark.parametrize(
    ("batch", "classes", "size"), [(1, 2, (256, 256)), (3, 4, (96, 96)), (3, 2, (97, 61)), (1, 4, (97, 61))]
)
def test_shapes(name: str, batch: int, classes: int, size: tuple[int, int]) -> None:
    network = build(name, 1, classes, **SMALL[name])
    with torch.no_grad():
        assert network(torch.rand(batch, 1, *size)).shape == (batch, classes, *size)


@every
def test_gradients_reach_every_parameter(name: str) -> None:
    network = build(name, 2, 3, **SMALL[name] | ({"dropout": False} if name == "enet" else {}))
    functional.cross_entropy(network(torch.rand(2, 2, 64, 64)), torch.randint(3, (2, 64, 64))).backward()
    for parameter, value in network.named_parameters():
        assert value.grad is not None, parameter
        assert value.grad.isfinite().all(), parameter
        assert value.grad.any(), parameter


@every
def test_evaluation_is_deterministic_and_leaves_the_statistics_alone(name: str) -> None:
    network = build(name, 1, 2, **SMALL[name]).eval()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    image = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(network(image), network(image), rtol=0, atol=0)
    torch.testing.assert_close(network(image)[:1], network(image[:1]))
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


@every
def test_normalisation_is_pytorch_s(name: str) -> None:
    ours = build(name, 1, 2, **SMALL[name])
    layers = [m for m in ours.modules() if isinstance(m, nn.BatchNorm2d)]
    features, momentum = torch.randn(3, layers[0].num_features, 4, 4) + 1, layers[0].momentum
    theirs = nn.BatchNorm2d(layers[0].num_features, momentum=momentum)
    torch.testing.assert_close(layers[0](features), theirs(features), rtol=0, atol=0)
    torch.testing.assert_close(layers[0].running_var, theirs.running_var, rtol=0, atol=0)
    torch.testing.assert_close(layers[0].eval()(features), theirs.eval()(features), rtol=0, atol=0)


@every
def test_a_seed_fixes_the_weights(name: str) -> None:
    def weights(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(build(name, 1, 2, **SMALL[name]).parameters())

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@every
def test_weights_survive_a_file(name: str, tmp_path: Path) -> None:
    first, second = (build(name, 1, 2, **SMALL[name]) for _ in range(2))
    first(torch.rand(2, 1, 32, 32))
    save_file(first.state_dict(), tmp_path / "weights.safetensors")
    second.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    image = torch.rand(1, 1, 40, 40)
    assert torch.equal(first.eval()(image), second.eval()(image))


@every
def test_learns_a_disc(name: str) -> None:
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    truth = ((rows - 12) ** 2 + (columns - 18) ** 2 < 49).long().unsqueeze(0)
    image = truth.unsqueeze(1) + 0.3 * torch.randn(1, 1, 32, 32)
    network = build(name, 1, 2, **SMALL[name])
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-3)
    losses = []
    for _ in range(12):
        optimiser.zero_grad()
        loss = functional.cross_entropy(network(image), truth)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.plain
@every
def test_compiles_as_one_graph(name: str) -> None:
    network = build(name, 1, 2, **SMALL[name]).eval()
    compiled = torch.compile(network, fullgraph=True, dynamic=False, backend="aot_eager")
    image = torch.rand(2, 1, 33, 21)  # padded and cropped inside the graph
    with torch.no_grad():
        torch.testing.assert_close(compiled(image), network(image))
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.plain
def test_compiled_training_step_has_the_same_gradients() -> None:
    network = build("enet", 1, 2, dropout=False)
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    image, truth = torch.rand(2, 1, 64, 64), torch.randint(2, (2, 64, 64))
    grads = []
    for model in (network, compiled):
        network.zero_grad()
        functional.cross_entropy(model(image), truth).backward()
        grads.append([parameter.grad.clone() for parameter in network.parameters()])
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-5)
    torch.compiler.reset()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every
def test_training_can_be_captured(name: str) -> None:
    network = build(name, 1, 2, **SMALL[name]).cuda()
    image, truth = torch.rand(2, 1, 65, 64, device="cuda"), torch.randint(2, (2, 65, 64), device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            functional.cross_entropy(network(image), truth).backward()
    torch.cuda.current_stream().wait_stream(side)
    network.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = functional.cross_entropy(network(image), truth)
        loss.backward()
    losses = []
    for _ in range(2):
        graph.replay()
        losses.append(loss.item())
    assert all(0 < value < 10 for value in losses)
    assert (losses[0] != losses[1]) == (name == "enet")  # random numbers advance from replay to replay
    assert all(parameter.grad.any() for parameter in network.parameters())


def test_padding_goes_to_the_bottom_and_the_right() -> None:
    class Seen(nn.Module):
        def forward(self, image: Tensor) -> Tensor:
            self.image = image
            return image

    seen = Seen()
    image = torch.rand(1, 1, 5, 3, 4) + 1
    torch.testing.assert_close(AnySize(seen, 4)(image), image, rtol=0, atol=0)
    assert seen.image.shape == (1, 1, 8, 4, 4)
    assert torch.equal(seen.image[..., :5, :3, :], image)
    assert seen.image.count_nonzero() == image.count_nonzero()
    with pytest.raises(ValueError, match="not of 0"):
        AnySize(seen, 0)


def test_an_own_network_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(networks, "mine", lambda inputs, outputs, reach=1: nn.Conv2d(inputs, outputs, reach))
    assert build("mine", 2, 3)(torch.rand(1, 2, 5, 7)).shape == (1, 3, 5, 7)
    with pytest.raises(ValueError, match=r"mine has no setting 'raech'; did you mean 'reach'\?"):
        build("mine", 2, 3, raech=5)


def test_errors_name_what_is_near() -> None:
    with pytest.raises(ValueError, match=r"no network is called 'Enett'; did you mean 'enet'\?.*monai:UNet"):
        build("Enett", 1, 2)
    with pytest.raises(ValueError, match=r"no network is called 'xyz'; there are: enet, residual_unet, unet"):
        build("xyz", 1, 2)
    with pytest.raises(ValueError, match=r"enet has no setting 'drop_out'; did you mean 'dropout'\?"):
        build("enet", 1, 2, drop_out=True)
    with pytest.raises(ValueError, match=r"residual_unet has no setting 'channels'; there are: width"):
        build("residual_unet", 1, 2, channels=3)
    with pytest.raises(ValueError, match="at least 1 channel and 1 class, not 0 and 2"):
        build("enet", 0, 2)


def test_an_output_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Sequential is no segmentation network.*gave shape \(1, 1, 4, 4\)"):
        AnySize(nn.Sequential(nn.MaxPool2d(2)), 1)(torch.rand(1, 1, 8, 8))
    with pytest.raises(ValueError, match="gave a tuple"):
        AnySize(nn.MaxPool2d(1, return_indices=True), 1)(torch.rand(1, 1, 8, 8))


@monai
def test_monai_by_name() -> None:
    from monai.networks import nets

    network = build("monai:UNet", 2, 3, **UNET)
    assert isinstance(network, AnySize)
    assert isinstance(network.network, nets.UNet)
    assert network.multiple == 4
    assert network(torch.rand(2, 2, 33, 21)).shape == (2, 3, 33, 21)
    assert build("monai:UNet", 1, 2, **UNET, multiple=16).multiple == 16
    solid = build("monai:UNet", 1, 2, **UNET | {"spatial_dims": 3})
    assert solid(torch.rand(1, 1, 9, 8, 7)).shape == (1, 2, 9, 8, 7)


@monai
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BasicUNet", {"spatial_dims": 2, "features": (4, 4, 4, 4, 4, 4)}),
        ("SegResNet", {"spatial_dims": 2, "init_filters": 8}),
        (
            "DynUNet",
            {"spatial_dims": 2, "kernel_size": [3, 3, 3], "strides": [1, [2, 2], 2], "upsample_kernel_size": [2, 2]},
        ),
    ],
)
def test_other_monai_networks(name: str, settings: dict[str, Any]) -> None:
    network = build(f"monai:{name}", 1, 2, **settings).eval()
    assert network(torch.rand(1, 1, 45, 37)).shape == (1, 2, 45, 37)


@monai
def test_monai_errors() -> None:
    with pytest.raises(ValueError, match=r"called 'UNnet'.*; did you mean 'U[Nn]et'"):
        build("monai:UNnet", 1, 2)
    with pytest.raises(ValueError, match=r"called 'Pooler', which takes the number of channels and of classes"):
        build("monai:Pooler", 1, 2)
    with pytest.raises(ValueError, match=r"has no setting 'stridez'; did you mean 'strides'"):
        build("monai:UNet", 1, 2, **UNET, stridez=(2, 2))
    with pytest.raises(ValueError, match="has no setting 'in_channels'"):
        build("monai:UNet", 1, 2, **UNET, in_channels=1)
    with pytest.raises(ValueError, match="needs these settings too: channels, strides"):
        build("monai:UNet", 1, 2, spatial_dims=2)
    with pytest.raises(ValueError, match=r"DenseNet121 is no segmentation network.*gave shape \(1, 2\)"):
        build("monai:DenseNet121", 1, 2, spatial_dims=2).eval()(torch.rand(1, 1, 32, 32))


def test_monai_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "monai", None)
    monkeypatch.setitem(sys.modules, "monai.networks", None)
    with pytest.raises(BadInput, match=r"monai:UNet needs MONAI .*: pip install .inbounds\[evaluate\]"):
        build("monai:UNet", 1, 2, **UNET)


def test_monai_is_not_imported_before_it_is_asked_for() -> None:
    code = "import sys, inbounds.networks as n; n.build('enet', 1, 2); sys.exit('monai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_dictionary_holds_plain_builders() -> None:
    assert isinstance(networks["enet"](1, 2), ENet)
