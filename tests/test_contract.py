"""One contract for every statistic, bounds, penalty, scope and recipe, in 2-D and 3-D, with two classes and four."""

from __future__ import annotations

import pytest
import torch

from cases import BOUNDS, PENALTIES, PLANE, SPACES, STATISTICS, VOLUME, batch, constraint, statistic
from inbounds import recipes

every_space = pytest.mark.parametrize("space", SPACES, ids=["2d", "3d"])
every_count = pytest.mark.parametrize("K", [2, 4])


def components(name: str, space: tuple[int, ...]) -> int:
    d = len(space)
    one = dict.fromkeys(("size", "size_mm", "compactness"), 1)
    return (one | {"centroid": d, "spread": d, "moment": d * (d + 1) // 2}).get(name, 2)


@pytest.mark.parametrize(("space", "K"), [(PLANE, 4), (VOLUME, 2)], ids=["2d", "3d"])
@pytest.mark.parametrize("scope", ["image", "volume"])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", STATISTICS)
def test_constraint(name, bounds, scope, K, space) -> None:
    logits, image, annotation = batch(K, space)
    logits.requires_grad_()
    probs = logits.softmax(dim=1)
    shape = (4 if scope == "image" else annotation.scans.count, K - 1, components(name, space))
    wanted = constraint(name, space, BOUNDS[bounds], scope=scope)
    assert wanted.values(probs, image, annotation).shape == shape
    interval = wanted.interval(probs, image, annotation)
    assert (interval.lower <= interval.upper).all()
    soft, hard = (wanted.violation(probs, image, annotation, hard=hard) for hard in (False, True))
    assert soft.shape == hard.shape == shape
    assert not (soft.isnan() | hard.isnan()).any()
    for penalty in PENALTIES:
        priced = constraint(name, space, BOUNDS[bounds], PENALTIES[penalty], scope=scope, weight=0.01)
        loss = priced(probs, image, annotation)
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        assert loss.shape == ()
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert gradient.isfinite().all()
        if penalty == "log_barrier":
            assert gradient.any() == (soft > -torch.inf).any()
        else:
            assert (loss > 0) == gradient.any() == (soft > 0).any()


@every_space
@every_count
@pytest.mark.parametrize("name", STATISTICS)
def test_scale_and_presence(name, K, space) -> None:
    """A positive scale that divides the values; where presence says something, it says `0 < least <= most`."""
    logits, image, annotation = batch(K, space)
    measured = statistic(name, space)
    for scans, N in ((None, 4), (annotation.scans, annotation.scans.count)):
        given = measured.inputs(image, scans)
        scale = torch.as_tensor(measured.scale(logits.softmax(1), **given))
        assert (scale > 0).all()
        assert torch.broadcast_shapes(scale.shape, (N, K, components(name, space))) == (N, K, components(name, space))
        if measured.presence is not None:
            least, most = measured.presence(logits.softmax(1), **given)
            assert 0 < least <= most.min()
            assert most.shape == (N, 1, 1)


@every_space
@every_count
@pytest.mark.parametrize("name", recipes)
def test_recipe(name, K, space) -> None:
    logits, image, annotation = batch(K, space)
    logits.requires_grad_()
    total, named = recipes[name]()(logits, image, annotation.checked(K))
    assert total.shape == ()
    assert total.isfinite()
    assert list(named) == ["labels", *(wanted.name for wanted in recipes[name]().constraints if wanted.weight)]
    torch.testing.assert_close(total.detach(), sum(named.values()))
    total.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad.any()
    without_image = recipes[name]()(logits, None, annotation).total
    assert without_image == total
