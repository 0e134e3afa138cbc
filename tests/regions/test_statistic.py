"""What holds for every statistic, and the decorator that makes one."""

from __future__ import annotations

import pytest
import torch

import inbounds
import oracles
from cases import INDEX, PLANE, SPACES, STATISTICS, measure, potential, random, random_probs, scans_of, statistic
from inbounds import Constraint, Fixed, Scans, mean_intensity, moment, size, spread
from inbounds.regions.shape import exponents

every_statistic = pytest.mark.parametrize("name", STATISTICS)
every_space = pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
with_and_without_scans = pytest.mark.parametrize("of", [lambda _: None, scans_of], ids=["image", "scan"])


def oracle(name: str, probs: torch.Tensor, image: torch.Tensor, scans: Scans | None) -> torch.Tensor:
    space, p = tuple(probs.shape[2:]), probs.numpy()
    index = None if scans is None else scans.index.tolist()
    everywhere = potential(space).expand(len(p), 2, *space).numpy()
    slow = {
        "size": lambda: oracles.size(p, index),
        "size_mm": lambda: oracles.size(p, index) * {2: 1.0, 3: 3.0}[len(space)],
        "fraction": lambda: oracles.fraction(p, everywhere, index),
        "centroid": lambda: oracles.centroid(p, index),
        "spread": lambda: oracles.spread(p, index),
        "moment": lambda: oracles.moment(p, exponents(2, len(space)), index),
        "mean_intensity": lambda: oracles.fraction(p, image.numpy(), index),
        "variance_intensity": lambda: oracles.variance(p, image.numpy(), index),
        "compactness": lambda: oracles.compactness(p, index),
    }
    return torch.from_numpy(slow[name]())


@every_statistic
@every_space
@with_and_without_scans
@pytest.mark.parametrize("faint", [1, 1e-2], ids=["solid", "below one pixel"])
def test_agrees_with_a_slow_oracle(name, space, of, faint) -> None:
    scans = of(space)
    probs, image = faint * random_probs(4, 3, space), random(4, 2, *space, seed=1)
    torch.testing.assert_close(measure(name, probs, image, scans), oracle(name, probs, image, scans))


@every_statistic
@every_space
@with_and_without_scans
@pytest.mark.parametrize("faint", [1, 1e-2], ids=["solid", "below one pixel"])
def test_gradcheck(name, space, of, faint) -> None:
    scans = of(space)
    space = tuple(side - 1 for side in space)
    probs = (faint * random_probs(4, 2, space)).requires_grad_()
    image = random(4, 2, *space, seed=1)
    assert torch.autograd.gradcheck(lambda p: measure(name, p, image, scans), probs, fast_mode=True)


@every_statistic
@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_reduces_in_float32_or_wider(name, dtype, wide) -> None:
    probs, image = random_probs(4, 2, PLANE).to(dtype), random(4, 2, *PLANE).to(dtype)
    values = measure(name, probs, image)
    assert values.dtype == wide
    torch.testing.assert_close(values.double(), measure(name, probs.double(), image.double()), rtol=1e-5, atol=1e-6)


def whole_image(name: str, space: tuple[int, ...], image: torch.Tensor) -> torch.Tensor:
    """What is documented for an empty region: nothing, or the value of the whole image."""
    sides = torch.tensor(space, dtype=torch.float64)
    documented = {
        "size": torch.zeros(1),
        "size_mm": torch.zeros(1),
        "fraction": potential(space).flatten(1).mean(dim=1),
        "centroid": (sides - 1) / 2,
        "spread": (sides**2 - 1) / 12,
        "moment": torch.zeros(len(exponents(2, len(space)))),
        "mean_intensity": image.flatten(1).mean(dim=1),
        "variance_intensity": image.flatten(1).var(dim=1, correction=0),
        "compactness": torch.zeros(1),
    }
    return documented[name]


@every_statistic
@every_space
@pytest.mark.parametrize("nothing", [0.0, 1e-30])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_an_empty_region(name, space, nothing, dtype) -> None:
    image = random(1, 2, *space, seed=1)
    probs = torch.full((1, 2, *space), nothing, dtype=dtype, requires_grad=True)
    values = measure(name, probs, image)
    expected = whole_image(name, space, image[0]).to(values.dtype)
    torch.testing.assert_close(values[0, 1], expected, rtol=1e-5, atol=1e-6)
    values.sum().backward()
    assert probs.grad.isfinite().all()
    assert probs.grad.abs().max() < 100


@every_statistic
def test_an_empty_scan_and_an_empty_slice(name) -> None:
    """Slices of an empty scan get finite gradients, and an empty slice leaves the rest of its scan as it is."""
    image, scans = random(4, 2, *PLANE, seed=1), Scans(torch.tensor(INDEX), 2)
    probs = random_probs(4, 2, PLANE)
    probs[[0, 2]], probs[1] = 0, 0
    probs.requires_grad_()
    values = measure(name, probs, image, scans)
    torch.testing.assert_close(values[1], measure(name, probs[3:], image[3:])[0])
    values.sum().backward()
    assert probs.grad.isfinite().all()


@every_statistic
@every_space
def test_values_of_scans_have_a_row_each(name, space) -> None:
    probs, image = random_probs(4, 3, space), random(4, 2, *space)
    apart, together = measure(name, probs, image), measure(name, probs, image, scans_of(space))
    assert together.shape == (scans_of(space).count, 3, apart.shape[2])
    alone = measure(name, probs, image, Scans.of(range(4)))
    torch.testing.assert_close(alone, apart)


def test_using_fixes_arguments_and_keeps_the_fact() -> None:
    mm = size.using(spacing=(2, 2))
    assert mm(torch.ones(1, 1, 2, 2)).item() == 16
    assert (mm.fact, mm.needs_image, size(torch.ones(1, 1, 2, 2)).item()) == ("size", False, 4)
    lower, upper = mm.presence(torch.ones(1, 1, 2, 2))
    assert (lower, upper.item()) == (4, 16)


def test_a_statistic_of_ones_own() -> None:
    @inbounds.statistic(fact="width")
    def extent(probs, *, scans=None):
        """How wide."""
        return spread(probs, scans=scans)[..., 1:].sqrt()

    probs = torch.tensor([[[[1.0, 0.0, 1.0]]]])
    assert extent(probs).item() == 1
    assert (extent.__doc__, extent.__name__, extent.fact, extent.presence) == ("How wide.", "extent", "width", None)
    loss = Constraint(extent, Fixed(2, 3), classes=[0], weight=0.5)
    assert loss.name == "width"
    assert loss(probs).item() == 0.5  # one too narrow, scale 1


def test_a_statistic_must_know_scans() -> None:
    with pytest.raises(ValueError, match="measure must take a keyword argument `scans`"):

        @inbounds.statistic()
        def measure(probs):
            return probs


def test_refuses_unknown_settings_and_a_missing_image() -> None:
    with pytest.raises(ValueError, match="size has no argument 'spacings'; it takes spacing, scans"):
        size.using(spacings=(1, 1))
    with pytest.raises(ValueError, match="moment has no argument 'power'"):
        moment.using(power=2)
    with pytest.raises(ValueError, match="mean_intensity is measured on the image"):
        mean_intensity.inputs(None, None)


@pytest.mark.plain
@every_statistic
@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (torch.zeros(1, 2, 4, 4, dtype=torch.int64), "floating-point tensor.*not torch.int64"),
        ([[[[1.0]]]], "floating-point tensor.*not list"),
        (torch.zeros(2, 2), r"must be \(B, K, \*space\), but their shape is \(2, 2\)"),
        (torch.zeros(0, 2, 4, 4), r"empty batch or image.*\(0, 2, 4, 4\)"),
        (torch.zeros(1, 2, 0, 4), r"empty batch or image.*\(1, 2, 0, 4\)"),
    ],
    ids=["integers", "list", "no space", "empty batch", "empty image"],
)
def test_refuses_what_are_no_probabilities(name, probs, message) -> None:
    measured = statistic(name, PLANE)
    with pytest.raises(ValueError, match=message):
        measured(probs, **measured.inputs(torch.zeros(1, 1, 4, 4), None))
