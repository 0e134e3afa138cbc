"""Networks of volumes: patches while they train, windows over whole scans afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inbounds import memory
from inbounds.config import Network, network_of
from inbounds.errors import BadInput
from inbounds.networks import UNet, Volumetric, build, sees_volumes
from inbounds.networks.volumetric import BUFFERS, as_slices, as_volumes

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Bright(nn.Module):
    """Scores by a voxel's own brightness, and by how bright the window is where `context` asks for it."""

    def __init__(self, context: float = 0.0) -> None:
        super().__init__()
        self.context, self.seen = context, []

    def forward(self, image: Tensor) -> Tensor:
        self.seen.append(tuple(image.shape))
        score = image[:, :1] + self.context * image.mean()
        return torch.cat([torch.zeros_like(score), score], dim=1)


def test_slices_and_volumes() -> None:
    volumes = torch.rand(2, 3, 4, 5, 6)
    slices = as_slices(volumes)
    assert slices.shape == (8, 3, 5, 6)
    torch.testing.assert_close(slices[5], volumes[1, :, 1])
    torch.testing.assert_close(as_volumes(slices, 4), volumes)
    with pytest.raises(ValueError, match="8 slices are no patches of 3"):
        as_volumes(slices, 3)


def test_while_it_trains_a_batch_is_patches() -> None:
    inner = Bright()
    network = Volumetric(inner, (4, 5, 6), 2).train()
    image = torch.rand(8, 1, 5, 6)
    assert network(image).shape == (8, 2, 5, 6)
    assert inner.seen == [(2, 1, 4, 5, 6)]


@pytest.mark.parametrize("shape", [(7, 13, 11), (2, 9, 9), (4, 5, 6), (1, 3, 30)])
def test_windows_cover_a_scan_of_any_size(shape: tuple[int, int, int]) -> None:
    inner = Bright()
    network = Volumetric(inner, (4, 5, 6), 2).eval()
    image = 6 * torch.rand(shape[0], 1, *shape[1:])
    expected = inner(image).softmax(dim=1)
    inner.seen.clear()
    torch.testing.assert_close(network(image).softmax(dim=1), expected, atol=1e-5, rtol=1e-4)
    assert set(inner.seen) == {(1, 1, 4, 5, 6)}
    several = len(inner.seen)
    inner.seen.clear()
    network.probabilities(image, overlap=0.0)
    assert len(inner.seen) <= several


@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.7])
@pytest.mark.parametrize("depth", [3, 8, 13, 30])
def test_slab_by_slab_it_is_the_same(depth: int, overlap: float) -> None:
    """Every window by itself, with Gaussian weights along all axes; and no slice is read before its window's turn."""
    patch = deep, height, width = (8, 9, 10)
    inner = Bright(context=30.0)
    network = Volumetric(inner, patch, 2).eval()
    image = torch.rand(depth, 1, 14, 10)
    read: list[int] = []
    given = []

    def slices(some: slice) -> Tensor:
        read.append(min(some.stop, depth))
        return image[some]

    for slab in network.slabs(slices, depth, overlap):
        given.append(slab)
        assert read[-1] <= sum(map(len, given)) + deep
    found = torch.cat(given)

    def near(side: int) -> Tensor:
        return torch.exp(-(((torch.arange(side) - (side - 1) / 2) / (side / 8)) ** 2) / 2)

    weight = near(deep)[:, None, None] * near(height)[:, None] * near(width)
    sums = [torch.zeros(depth, 2, 14, 10), torch.zeros(depth, 1, 14, 10)]
    starts = [
        sorted({min(at, max(0, side - window)) for at in range(0, side, max(1, int(window * (1 - overlap))))})
        for side, window in zip((depth, 14, 10), patch, strict=True)
    ]
    for z in starts[0]:
        for y in starts[1]:
            here = slice(z, z + deep), slice(None), slice(y, y + height)
            window = image[here]
            if (missing := deep - len(window)) > 0:  # as many black slices before a short scan as behind it
                window = torch.nn.functional.pad(window, (0,) * 6 + (missing // 2, missing - missing // 2))
            probs = inner(window.transpose(0, 1)[None]).softmax(dim=1)[0].transpose(0, 1)
            some = slice(max(0, missing) // 2, max(0, missing) // 2 + len(image[here]))
            sums[0][here] += probs[some] * weight[some, None]
            sums[1][here] += weight[some, None]
    torch.testing.assert_close(found, sums[0] / sums[1], atol=2e-3, rtol=0)  # MONAI's weights are 0.001 at least
    torch.testing.assert_close(network.probabilities(image, overlap), found, rtol=0, atol=0)


def test_the_middle_of_a_window_counts_most() -> None:
    """Two windows that find different things: between them their weights change slowly, from one to the other."""
    network = Volumetric(Bright(context=50.0), (1, 1, 8), 2).eval()
    image = torch.cat([torch.zeros(1, 1, 1, 8), torch.ones(1, 1, 1, 4)], dim=3)
    found = network.probabilities(image)[0, 1, 0]
    assert (found.diff() >= -1e-6).all()
    assert 0.5 < found[5] < found[6] <= found[7] <= 1  # windows at 0 and 4: of both
    assert found[0] == pytest.approx(0.5)


@pytest.mark.parametrize("flat", [0, 2, 3])
def test_a_unet_of_volumes(flat: int) -> None:
    network = UNet(1, 3, width=4, levels=3, dimensions=3, flat=flat)
    deep = 2 ** max(0, 2 - flat)
    assert network.multiple == (deep, 4, 4)
    image = torch.rand(1, 1, 2 * deep, 8, 12)
    assert network(image).shape == (1, 3, *image.shape[2:])
    kernels = [tuple(level[0][0].kernel_size) for level in network.down]
    assert kernels == [(1, 3, 3) if n < flat else (3, 3, 3) for n in range(3)]
    network.eval()
    changed = image.clone()
    changed[:, :, 0] += 1
    differs = (network(changed) != network(image)).flatten(3).any(dim=3)[0].any(dim=0)
    assert differs[0]
    assert differs[1:].any() == (flat < 3)  # slices that see nothing of each other


def test_scans_of_any_depth_go_through_a_unet_that_halves_it() -> None:
    network = build("unet", 1, 2, width=4, levels=3, dimensions=3, flat=1)
    assert network(torch.rand(1, 1, 5, 9, 10)).shape == (1, 2, 5, 9, 10)


@pytest.mark.parametrize("settings", [{"dimensions": 4}, {"flat": 1}, {"dimensions": 3, "flat": 9}])
def test_refuses(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="2 or 3 dimensions"):
        UNet(1, 2, width=4, levels=3, **settings)


def test_a_coarse_one_keeps_its_slices() -> None:
    network = UNet(1, 2, width=4, levels=3, dimensions=3, flat=2, coarse=2)
    assert network.multiple == (1, 8, 8)
    assert network(torch.rand(1, 1, 3, 16, 8)).shape == (1, 2, 3, 16, 8)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("unet", {"width": 4, "levels": 2}), ("monai:UNet", {"channels": [4, 8], "strides": [2]})],
)
def test_settings_ask_for_it(name: str, settings: dict) -> None:
    network = network_of(Network(name=name, settings=settings, dimensions=3, initial_share=0.1), 1, 3, (4, 8, 8))
    assert sees_volumes(network)
    assert network.train()(torch.rand(8, 1, 8, 8)).shape == (8, 3, 8, 8)
    assert network.eval()(torch.rand(5, 1, 11, 9)).shape == (5, 3, 11, 9)
    assert not sees_volumes(network_of(Network(name="unet", settings={"width": 4, "levels": 2}), 1, 3))


def test_what_cannot_see_volumes_is_refused() -> None:
    with pytest.raises(BadInput, match="enet sees slices"):
        network_of(Network(name="enet", dimensions=3), 1, 2, (4, 8, 8))
    with pytest.raises(BadInput, match=r"set training\.patch"):
        network_of(Network(name="unet", dimensions=3), 1, 2)


def test_a_scan_that_does_not_fit_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Volumetric(Bright(), (4, 5, 6), 2).eval()
    assert network.bytes_of((10, 3, 20, 2)) == 4 * 10 * 20 * 6 * (3 + BUFFERS * 2)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr("inbounds.networks.volumetric.available", lambda: 1000)
    image = torch.rand(10, 1, 20, 30)
    with pytest.raises(BadInput, match="of 10 slices of 20 x 30 pixels needs 258 KiB of memory, and 1 KiB are free"):
        network(image)
    with pytest.raises(BadInput, match="20 x 30 pixels, 4 at a time, needs 103 KiB of memory, and 1 KiB are free"):
        next(network.slabs(image.__getitem__, 10))
    monkeypatch.setattr("inbounds.networks.volumetric.available", lambda: 200_000)
    with pytest.raises(BadInput, match="needs 258 KiB of memory"):
        network(image)
    assert sum(map(len, network.slabs(image.__getitem__, 10))) == 10  # a few slices at a time they fit
