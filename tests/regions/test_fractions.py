from __future__ import annotations

import pytest
import torch
from skimage.measure import regionprops

from cases import SPACES, one_hot, random, random_probs
from inbounds import Scans, centroid, fraction, mean_intensity, variance_intensity
from oracles import coordinates

ROW = torch.tensor([[[[1.0, 1.0, 0.0, 0.0]]]])
BRIGHTNESS = torch.tensor([[[[2.0, 4.0, 9.0, 9.0]]]])


def test_by_hand() -> None:
    assert fraction(ROW, BRIGHTNESS[0]).item() == 3
    assert mean_intensity(ROW, BRIGHTNESS).item() == 3
    assert variance_intensity(ROW, BRIGHTNESS).item() == 1
    half = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]]])
    image = torch.tensor([[[[0.0, 4.0], [3.0, 100.0]]]])
    assert mean_intensity(half, image).item() == 2.5  # (0 + 2 + 3) / 2
    assert variance_intensity(half, image).item() == 2.25  # (0.5 * 6.25 + 0.5 * 2.25 + 1 * 0.25) / 2


def test_a_region_below_one_pixel_by_hand() -> None:
    """0.25 of a pixel of brightness 2 and 0.75 of the whole image's mean 6 make 5."""
    faint = torch.tensor([[[[0.25, 0.0, 0.0, 0.0]]]])
    assert mean_intensity(faint, BRIGHTNESS).item() == 5
    assert variance_intensity(faint, BRIGHTNESS).item() == 0.25 * 9 + 0.75 * (9 + 1 + 16 + 16) / 4


@pytest.mark.parametrize("space", [(9, 11), (5, 6, 7)])
def test_agrees_with_regionprops(space: tuple[int, ...]) -> None:
    mask, image = torch.randint(0, 4, (1, *space)), random(1, 2, *space)
    mean = mean_intensity(one_hot(mask, 4), image)
    variance = variance_intensity(one_hot(mask, 4), image)
    regions = regionprops(mask[0].numpy(), intensity_image=image[0].movedim(0, -1).numpy())
    assert len(regions) == 3
    for region in regions:
        assert mean[0, region.label].tolist() == pytest.approx(region.intensity_mean)
        assert variance[0, region.label].sqrt().tolist() == pytest.approx(region.intensity_std)


@pytest.mark.parametrize("space", SPACES)
def test_the_centroid_is_a_fraction(space: tuple[int, ...]) -> None:
    probs = random_probs(2, 3, space)
    where = torch.from_numpy(coordinates(probs.numpy()).copy())
    torch.testing.assert_close(fraction(probs, where), centroid(probs))
    torch.testing.assert_close(fraction(probs, where[0]), centroid(probs))


@pytest.mark.parametrize("measure", [fraction, mean_intensity, variance_intensity])
def test_slices_of_a_scan_measure_as_one_long_image(measure) -> None:
    probs, image = random_probs(4, 2, (5, 6)), random(4, 2, 5, 6, seed=1)
    values = measure(probs, image, scans=Scans.of("abab"))
    assert values.shape == (2, 2, 2)
    for scan, slices in enumerate(([0, 2], [1, 3])):
        long = measure(*(torch.cat(list(x[slices]), dim=-1)[None] for x in (probs, image)))
        torch.testing.assert_close(values[scan], long[0])


def test_the_gradient_of_an_empty_region() -> None:
    """An empty region grows where the potential lies above its mean: the gradient is `f - mean(f)`."""
    probs, potential = torch.zeros(1, 1, 4, 4, dtype=torch.float64, requires_grad=True), random(1, 4, 4)
    fraction(probs, potential).sum().backward()
    torch.testing.assert_close(probs.grad[0], potential - potential.mean())


def test_scale_is_a_variance() -> None:
    probs, image = random_probs(3, 2, (4, 4)), random(3, 2, 4, 4)
    variance = image.flatten(2).var(dim=2, correction=0)[:, None]
    for statistic, expected in ((fraction, variance), (mean_intensity, variance), (variance_intensity, variance**2)):
        torch.testing.assert_close(statistic.scale(probs, image), expected)
    stack = image[[0, 2]].movedim(0, 1).flatten(1).var(dim=1, correction=0)
    torch.testing.assert_close(mean_intensity.scale(probs, image, scans=Scans.of("aba"))[0, 0], stack)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1.3, 1000.1])
@pytest.mark.parametrize("statistic", [mean_intensity, variance_intensity])
def test_scale_of_a_constant_image_is_one(statistic, value: float) -> None:
    probs, image = torch.full((1, 2, 7, 7), 0.5), torch.full((1, 1, 7, 7), value)
    assert statistic.scale(probs, image).item() == 1


def test_an_image_of_another_type_is_taken_along() -> None:
    probs = random_probs(1, 2, (4, 4))
    image = (16 * random(1, 1, 4, 4)).round()
    for dtype in (torch.float16, torch.float32):
        torch.testing.assert_close(mean_intensity(probs, image.to(dtype)), mean_intensity(probs, image))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("statistic", "shape"),
    [
        (fraction, (3, 1, 4, 4)),  # three images for two
        (fraction, (1, 4, 5)),
        (fraction, (4, 4)),
        (mean_intensity, (2, 1, 4, 5)),
        (variance_intensity, (3, 1, 4, 4)),
        (mean_intensity, (2, 4, 4)),  # an image without its channel axis must not pass for two channels
        (variance_intensity, (2, 4, 4)),
    ],
)
def test_refuses_what_does_not_fit(statistic, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit probabilities of shape"):
        statistic(torch.zeros(2, 2, 4, 4), torch.zeros(shape))
