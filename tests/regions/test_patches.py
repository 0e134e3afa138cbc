"""What is measured of patches is what would be measured of their scans."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from cases import random, random_probs
from inbounds import (
    Annotation,
    Constraint,
    Individual,
    Patches,
    Scans,
    centroid,
    compactness,
    hinge,
    mean_intensity,
    moment,
    size,
    spread,
)

SIDES, PATCH = (5, 7, 6), (3, 4, 3)
STATISTICS = [size, centroid, spread]
every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda one: one.fact)


def whole(count: int = 2, seed: int = 0) -> Tensor:
    return random_probs(count, 3, SIDES, seed)


def corners(*, overlap: bool) -> list[tuple[int, ...]]:
    """Where patches begin that cover a scan; without overlap, the last ones reach beyond it."""
    firsts = []
    for side, patch in zip(SIDES, PATCH, strict=True):
        starts = range(0, side, patch)
        firsts.append([*(min(at, side - patch) for at in starts), 0] if overlap else list(starts))
    return list(itertools.product(*firsts))


def cut(probs: Tensor, at: tuple[int, ...], patch: tuple[int, ...] = PATCH) -> Tensor:
    """A patch of a scan `(K, *SIDES)`; what lies beyond it is as likely of every class."""
    made = probs.new_full((probs.shape[0], *patch), 1 / probs.shape[0])
    source, target = [], []
    for first, length, side in zip(at, patch, probs.shape[1:], strict=True):
        low, high = max(first, 0), min(first + length, side)
        source.append(slice(low, high))
        target.append(slice(low - first, high - first))
    made[(slice(None), *target)] = probs[(slice(None), *source)]
    return made


def tiles(probs: Tensor, *, overlap: bool) -> tuple[Tensor, Patches]:
    """All scans, cut into patches in an order that mixes them."""
    every = [(scan, at) for at in corners(overlap=overlap) for scan in range(len(probs))]
    names, offsets = [scan for scan, _ in every], torch.tensor([at for _, at in every])
    return torch.stack([cut(probs[scan], at) for scan, at in every]), Patches.at(names, offsets, PATCH, SIDES)


@every_statistic
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("faint", [1, 1e-3], ids=["solid", "below one pixel"])
@pytest.mark.parametrize(
    "spacing",
    [None, (3.0, 0.5, 2.0), torch.tensor([[3.0, 0.5, 2.0], [1.0, 2.0, 0.7]], dtype=torch.float64)],
    ids=["pixels", "mm", "mm of each scan"],
)
def test_tiles_measure_what_their_scans_do(statistic, overlap, faint, spacing) -> None:
    probs = faint * whole()
    seen, patches = tiles(probs, overlap=overlap)
    torch.testing.assert_close(
        statistic(seen, spacing, scans=patches), statistic(probs, spacing), rtol=1e-12, atol=1e-12
    )
    scales = statistic.scale(seen, spacing, scans=patches), statistic.scale(probs, spacing)
    torch.testing.assert_close(*(torch.as_tensor(one).double().expand(2, 1, 1) for one in scales))


@every_statistic
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("scale", ["natural", "typical"])
def test_penalty_gradient_and_what_holds_are_those_of_the_scans(statistic, overlap, scale) -> None:
    if scale == "typical" and statistic is not size:
        pytest.skip("nothing is typical of it")
    probs = whole().requires_grad_()
    facts = {statistic.fact: statistic(whole(seed=9)), "present": torch.ones(2, 3, 1).double()}
    facts[statistic.fact][1] = statistic(probs)[1].detach()  # the second scan is as it should be
    bounds = Constraint(
        statistic, Individual(relative=0.01), scope="volume", scale=scale, typical=30 if scale == "typical" else None
    )
    scans = Annotation(torch.full((2, *SIDES), 255), scan_facts=facts, scans=Scans.of(range(2)))
    loss = bounds(probs, None, scans)
    seen, patches = tiles(probs, overlap=overlap)
    known = Annotation(torch.full((len(seen), *PATCH), 255), scan_facts=facts, scans=patches)
    same = bounds(seen, None, known)
    torch.testing.assert_close(same, loss, rtol=1e-12, atol=0)
    assert loss > 0
    gradients = [torch.autograd.grad(one, probs, retain_graph=True)[0] for one in (loss, same)]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-10, atol=1e-16)
    for hard in (False, True):
        held, there = bounds.satisfied(probs, None, scans, hard=hard), bounds.satisfied(seen, None, known, hard=hard)
        assert [one.tolist() for one in held] == [one.tolist() for one in there]
    assert bounds.satisfied(seen, None, known)[0].tolist() == [False, True]


@every_statistic
def test_a_perfect_patch_with_a_true_estimate_costs_nothing(statistic) -> None:
    truth = (whole() > 0.36).double()
    facts = {statistic.fact: statistic(truth), "present": torch.ones(2, 3, 1).double()}
    bounds = Constraint(statistic, Individual(relative=1e-9), scope="volume")
    for at in itertools.product((-2, 0, 3), (0, 5), (-1, 1)):
        seen = torch.stack([cut(scan, at) for scan in truth]).requires_grad_()
        patches = Patches.at("ab", torch.tensor([at, at]), PATCH, SIDES).estimated(truth)
        known = Annotation(torch.full((2, *PATCH), 255), scan_facts=facts, scans=patches)
        loss = bounds(seen, None, known)
        assert loss == 0, at
        assert not torch.autograd.grad(loss, seen)[0].any()
        assert (bounds.interval(seen, None, known).lower > -torch.inf).all()
        off = bounds(1 - seen, None, known)  # a wrong patch is found out
        assert off > 0


def test_the_estimate_gets_no_gradient_and_only_what_is_outside_of_it_counts() -> None:
    guess = whole().requires_grad_()
    seen = torch.ones(1, 3, *PATCH, dtype=torch.float64)
    patches = Patches.at(["a"], torch.tensor([[1, 2, 0]]), PATCH, SIDES).estimated(guess[:1])
    left = guess[0].flatten(1).sum(dim=1) - cut(guess[0], (1, 2, 0)).flatten(1).sum(dim=1)
    torch.testing.assert_close(size(seen, scans=patches)[0, :, 0], 36 + left.detach())
    assert not size(seen, scans=patches).requires_grad


def test_without_an_estimate_only_the_upper_side_acts() -> None:
    seen, offsets = whole()[:1, :, :3, :4, :3], torch.zeros(1, 3, dtype=torch.long)
    present = {"present": torch.ones(1, 3, 1).double()}
    for statistic in STATISTICS:
        facts = {statistic.fact: statistic(whole()[:1])}
        patches = Patches.at(["a"], offsets, PATCH, SIDES)
        known = Annotation(torch.full((1, *PATCH), 255), scan_facts=facts | present, scans=patches)
        interval = Constraint(statistic, Individual(relative=0.1), hinge, scope="volume").interval(seen, None, known)
        assert (interval.lower == -torch.inf).all()
        assert (interval.upper < torch.inf).all() == (statistic is size)
    too_many = Annotation(
        torch.full((1, *PATCH), 255), scan_facts={"size": torch.full((1, 3, 1), 2.0)} | present, scans=patches
    )
    assert Constraint(size, Individual(relative=0.1), scope="volume")(seen, None, too_many) > 0


def test_an_estimate_of_some_scans_or_classes_is_enough_for_these() -> None:
    patches = Patches.at("ab", torch.zeros(2, 3, dtype=torch.long), PATCH, SIDES).estimated(whole())
    outside = patches.outside.clone()
    outside[0, 1] = torch.nan
    partly = Patches(patches.index, 2, patches.places, patches.copies, patches.sides, outside)
    assert partly.complete()[..., 0].tolist() == [[True, False, True], [True, True, True]]
    seen = torch.stack([cut(scan, (0, 0, 0)) for scan in whole()])
    unknown = size(seen, scans=partly)
    assert unknown[0, 1] == seen[0, 1].sum()
    torch.testing.assert_close(unknown[1], size(whole())[1])


def test_an_estimate_that_breaks_the_bounds_is_brought_into_them_first() -> None:
    """Whoever finds everything everywhere, takes a patch for the share of the scan that it is."""
    everywhere = torch.full((1, 3, *SIDES), 0.9, dtype=torch.float64)
    patches = Patches.at("a", torch.tensor([[0, 0, 0]]), PATCH, SIDES).estimated(everywhere)
    facts = {"size": torch.full((1, 3, 1), 50.0), "present": torch.ones(1, 3, 1)}
    known = Annotation(torch.full((1, *PATCH), 255), scan_facts=facts, scans=patches)
    bounds = Constraint(size, Individual(relative=0.1), scope="volume")
    shown, share = torch.zeros(1, 3, *PATCH, dtype=torch.float64), 36 / 210
    torch.testing.assert_close(bounds.values(shown, None, known)[0, :, 0], torch.full((2,), 55 * (1 - share)).double())
    assert bounds(torch.full_like(shown, 50 / 210), None, known) == 0
    assert size(shown, scans=patches)[0, 1].item() == pytest.approx(0.9 * 174)  # which is measured as it is
    nothing = Patches.at("a", torch.tensor([[0, 0, 0]]), PATCH, SIDES).estimated(0 * everywhere)
    assert not nothing.complete().any()  # who found nothing cannot say where the rest is


def test_slices_that_were_cropped_are_measured_as_whole_slices() -> None:
    """Facts of images, where each image is a part of its own."""
    slices = random_probs(2, 2, (6, 8))
    patches = Patches.at(range(2), torch.tensor([[1, 2], [0, 0]]), (4, 5), (6, 8)).estimated(slices)
    seen = torch.stack([cut(slices[0], (1, 2), (4, 5)), cut(slices[1], (0, 0), (4, 5))])
    known = Annotation(
        torch.full((2, 4, 5), 255), {"size": size(slices), "present": torch.ones(2, 2, 1)}, patches=patches
    )
    bounds = Constraint(size, Individual(relative=1e-6))
    assert bounds(seen, None, known) == 0
    with pytest.raises(ValueError, match=r"fact 'size' is 23\.5.* which measures 20 as a whole"):
        bounds(seen, None, Annotation(known.label, known.facts))


def test_tiles_that_do_not_say_where_they_lie_are_refused() -> None:
    seen, _ = tiles(whole(1), overlap=False)
    for statistic in STATISTICS:
        with pytest.raises(ValueError, match=r"nothing says which parts, or whether there are more: give Patches\.at"):
            statistic(seen, scans=Scans.of(["a"] * len(seen)))
        with pytest.raises(ValueError, match=r"Patches\.at"):
            statistic(seen[:2], scans=Scans.of("aa"))
        assert statistic(seen[:1], scans=Scans.of("a")).shape[0] == 1


def test_two_of_eight_tiles_are_not_taken_for_all() -> None:
    _, patches = tiles(whole(1), overlap=False)
    assert patches.complete().all()
    some = Patches.at("aa", torch.tensor([[0, 0, 0], [3, 0, 0]]), PATCH, SIDES)
    assert not some.complete().any()


def test_other_statistics_refuse_patches() -> None:
    seen, patches = tiles(whole(), overlap=False)
    image = random(len(seen), 1, *PATCH)
    for measure in (
        lambda: moment(seen, 2, scans=patches),
        lambda: mean_intensity(seen, image, scans=patches),
        lambda: compactness(seen, scans=patches),
    ):
        with pytest.raises(ValueError, match="does not add up over patches"):
            measure()


@pytest.mark.parametrize(
    ("offset", "scan", "reason"),
    [
        (torch.zeros(2, 3), SIDES, "the offsets must be whole numbers"),
        (torch.zeros(2, 2, dtype=torch.long), SIDES, "patches of 3 axes"),
        (torch.zeros(2, 3, dtype=torch.long), SIDES[:2], "2 sides"),
    ],
)
def test_what_does_not_fit_is_refused(offset, scan, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        Patches.at("ab", offset, PATCH, scan)


def test_the_rim_is_that_of_the_scan() -> None:
    patches = Patches.at("ab", torch.tensor([[0, 0], [1, 1]]), (3, 3), (5, 5))
    assert patches.rim().int().sum(dim=(1, 2)).tolist() == [5, 0]


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_compiles() -> None:
    torch._dynamo.reset()
    probs = whole().float()
    seen = torch.stack([cut(scan, (1, 1, 1)) for scan in probs])
    patches = Patches.at("ab", torch.ones(2, 3, dtype=torch.long), PATCH, SIDES).estimated(probs)
    facts = {one.fact: one(whole(seed=3)).float() for one in STATISTICS} | {"present": torch.ones(2, 3, 1)}
    known = Annotation(torch.full((2, *PATCH), 255), scan_facts=facts, scans=patches)
    every = [Constraint(one, Individual(relative=0.1), scope="volume") for one in STATISTICS]

    def loss(values: Tensor) -> Tensor:
        return torch.stack([one(values, None, known) for one in every]).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(seen), loss(seen))
