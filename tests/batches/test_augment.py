"""What happens to an image happens to what is known of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import inbounds
from cases import one_hot
from inbounds import UNLABELLED, Annotation, Common, Constraint, Individual, Known, Scans, Tags
from inbounds.batches.augment import Augment
from inbounds.batches.samples import Batch, load
from inbounds.config.plan import AUGMENT
from inbounds.store.annotate import import_points
from inbounds.store.facts import Facts
from making import disc, image_of, make_store, row, source, truth_like

EXACT = {
    "neutral": Augment(),
    "flip": Augment(flip=True),
    "left-right": Augment(flip="columns"),
    "quarter": Augment(quarter=True),
    "both": Augment(flip=True, quarter=True),
    "light": Augment(contrast=1.5, brightness=0.2),
}
MOVED = {
    "rotate": Augment(rotate=180),
    "zoom": Augment(zoom=1.4),
    "translate": Augment(translate=0.1),
    "all": Augment(flip=True, quarter=True, rotate=20, translate=0.1, zoom=1.2, contrast=1.3, brightness=0.1),
}
FAR = {
    "translate": Augment(translate=0.6),
    "zoom": Augment(zoom=2.5, translate=0.25),
    "all": Augment(flip=True, rotate=180, translate=0.5, zoom=2.0),
}
SIDE = 96


def masks(count: int, side: int = SIDE, seed: int = 0, spread: float = 0.2) -> Tensor:
    """Two discs an image, of classes 1 and 2, apart from each other; a few images lack the second."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((count, side, side), np.uint8)
    for number, mask in enumerate(truth):
        for klass in (1, 2) if number % 5 else (1,):
            centre = side * (np.array([0.3 * klass + 0.05, 0.5]) + rng.uniform(-spread / 2, spread / 2, 2) * (0.3, 1))
            mask[disc((side, side), tuple(centre), rng.uniform(0.07, 0.11) * side)] = klass
    return torch.from_numpy(truth)


def picture(truth: Tensor) -> Tensor:
    """Smooth, so that interpolation changes little, and different everywhere."""
    side = truth.shape[-1]
    rows, columns = torch.meshgrid(*[torch.linspace(0, 1, side)] * 2, indexing="ij")
    return (0.3 + 0.3 * rows + 0.2 * torch.sin(4 * columns)).expand(len(truth), 1, side, side).clone()


def measured(truth: Tensor, image: Tensor, scans: Scans | None = None) -> dict[str, Tensor]:
    probs = one_hot(truth, 3, torch.float32)
    size = inbounds.size(probs, scans=scans)
    facts = {
        "present": (size > 0).float(),
        "size": size,
        "centroid": inbounds.centroid(probs, scans=scans),
        "mean_intensity": inbounds.mean_intensity(probs, image, scans=scans),
    }
    return {
        name: torch.where(size > 0, fact, 0.0 if name in ("present", "size") else torch.nan)
        for name, fact in facts.items()
    }


def known(truth: Tensor, scans: Scans | None = None) -> Batch:
    """A batch of which all is known, with half of the pixels labelled."""
    image = picture(truth)
    chosen = torch.rand(truth.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    label = torch.where(chosen, truth, UNLABELLED)
    scan_facts = measured(truth, image, scans) if scans is not None else {}
    return Batch(image, Annotation(label, measured(truth, image), scan_facts, scans))


def changed(augment: Augment, truth: Tensor, seed: int = 0, scans: Scans | None = None) -> tuple[Batch, Batch, Tensor]:
    batch = known(truth, scans)
    after, moved = augment(batch, truth, torch.Generator().manual_seed(seed))
    return batch, after, moved


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EXACT)
def test_flips_turns_and_light_carry_the_facts_exactly(name, seed) -> None:
    _, after, truth = changed(EXACT[name], masks(12, seed=seed), seed)
    wanted = measured(truth, after.image)
    assert after.annotation.facts.keys() == wanted.keys()  # nothing can leave the frame
    for fact, value in after.annotation.facts.items():
        torch.testing.assert_close(value[:, 1:], wanted[fact][:, 1:], rtol=1e-4, atol=1e-4, equal_nan=True, msg=fact)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MOVED)
def test_free_motion_carries_the_facts_nearly(name, seed) -> None:
    _, after, truth = changed(MOVED[name], masks(20, seed=seed), seed)
    facts, wanted = after.annotation.facts, measured(truth, after.image)
    there = (facts["cut"] == 0) & (facts["present"] == 1)
    assert int(there[:, 1:].sum()) >= 20  # most regions lie well inside
    there[:, 0] = False
    within = {
        "size": {"rtol": 0.12, "atol": 0},
        "centroid": {"rtol": 0, "atol": 0.5},
        "mean_intensity": {"rtol": 0, "atol": 0.02},
    }
    for fact, tolerance in within.items():
        where = there.expand_as(facts[fact])
        torch.testing.assert_close(
            facts[fact][where], wanted[fact][where], **tolerance, msg=lambda m, f=fact: f"{f}: {m}"
        )
    mean = (facts["size"] / wanted["size"])[there].mean()
    assert float(mean) == pytest.approx(1, abs=0.02)


def test_every_flip_and_quarter_turn_occurs() -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4).expand(200, 1, 4, 4) / 16
    batch = Batch(image, Annotation((image[:, 0] * 16).to(torch.uint8)))
    for augment, count in ((EXACT["flip"], 4), (EXACT["quarter"], 4), (EXACT["both"], 8)):
        after, _ = augment(batch, None, torch.Generator().manual_seed(0))
        seen = {tuple(one.flatten().tolist()) for one in after.annotation.label}
        square = torch.arange(16).reshape(4, 4)
        turns = [torch.rot90(one, k) for k in range(4) for one in (square, square.flip(0))]
        assert seen <= {tuple(one.flatten().tolist()) for one in turns}
        assert len(seen) == count
        torch.testing.assert_close(after.image[:, 0] * 16, after.annotation.label.float(), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("flip", "axis"), [("rows", 0), ("columns", 1)])
def test_a_flip_of_rows_or_columns_alone(flip, axis) -> None:
    square = torch.arange(16).reshape(4, 4)
    image = square[None, None].expand(50, 1, 4, 4) / 16
    after, _ = Augment(flip=flip)(Batch(image, Annotation((image[:, 0] * 16).to(torch.uint8))))
    seen = {tuple(one.flatten().tolist()) for one in after.annotation.label}
    assert seen == {tuple(one.flatten().tolist()) for one in (square, square.flip(axis))}
    with pytest.raises((TypeError, ValueError), match="sideways"):  # by its type, where types are checked
        Augment(flip="sideways")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("augment", [*EXACT.values(), *MOVED.values(), *FAR.values()], ids=str)
def test_labels_stay_inside_the_moved_truth_and_new_ground_is_unlabelled(augment, seed) -> None:
    before, after, truth = changed(augment, masks(8, seed=seed), seed)
    label = after.annotation.label
    marked = label != UNLABELLED
    assert label.dtype == before.annotation.label.dtype
    assert torch.equal(label[marked], truth[marked])
    ones = torch.ones_like(truth)
    complete, whole = augment(Batch(before.image, Annotation(ones)), ones, torch.Generator().manual_seed(seed))
    assert torch.equal(complete.annotation.label, torch.where(whole == 1, whole, UNLABELLED))
    assert bool((label[whole == 0] == UNLABELLED).all())
    assert bool((truth[whole == 0] == 0).all())
    assert bool((whole == 0).any()) != augment.stays_on_grid


def test_new_ground_is_black() -> None:
    batch = Batch(torch.ones(6, 1, 16, 16), Annotation(torch.zeros(6, 16, 16, dtype=torch.uint8)))
    after, _ = Augment(translate=0.5)(batch, None, torch.Generator().manual_seed(0))
    outside = after.annotation.label == UNLABELLED
    assert bool(outside.any())
    assert float(after.image[:, 0][outside].max()) <= 0.5 + 1e-5  # at most half a pixel of what was there


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", FAR)
def test_where_a_region_may_leave_only_the_lower_bound_opens(name, seed) -> None:
    _, after, truth = changed(FAR[name], masks(24, seed=seed), seed)
    facts, left = after.annotation.facts, measured(truth, after.image)
    lost = left["size"] < 0.85 * facts["size"]
    assert int(lost[:, 1:].sum()) > 3
    assert bool((facts["cut"][lost] == 1).all())
    cut = (facts["cut"] == 1)[:, 1:]
    for fact in ("centroid", "mean_intensity"):
        assert bool(facts[fact][:, 1:][cut.expand(-1, -1, facts[fact].shape[2])].isnan().all())
    probs = one_hot(truth, 3, torch.float32)
    interval = Constraint(inbounds.size, Individual(relative=0.1)).interval(probs, None, after.annotation)
    assert bool((interval.lower[cut] == -torch.inf).all())
    there = facts["present"][:, 1:] == 1
    torch.testing.assert_close(interval.upper[there], 1.1 * facts["size"][:, 1:][there])
    absent = facts["present"][:, 1:] == 0
    assert bool((interval.upper[absent] == 0).all())
    assert not bool(cut.all())  # some stay, and keep both bounds
    kept = there & ~cut
    torch.testing.assert_close(interval.lower[kept], 0.9 * facts["size"][:, 1:][kept])


CONSTRAINTS = {
    "tags": Constraint(inbounds.size, Tags()),
    "common": Constraint(inbounds.size, Common(1, SIDE**2)),
    "individual": Constraint(inbounds.size, Individual(relative=0.2)),
    "individual_upper": Constraint(inbounds.size, Individual(relative=0.2, tight="upper")),
    "volume": Constraint(inbounds.size, Individual(relative=0.1), scope="volume"),
    "centroid": Constraint(inbounds.centroid, Individual(absolute=0.75)),
    "intensity": Constraint(inbounds.mean_intensity, Individual(absolute=0.03)),
}


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
@pytest.mark.parametrize("augment", [*EXACT.values(), *MOVED.values(), *FAR.values()], ids=str)
def test_the_moved_truth_never_violates_what_is_known_of_it(augment, constraint) -> None:
    scans = Scans(torch.arange(24) // 4, 6)
    for seed in range(2):
        _, after, truth = changed(augment, masks(24, seed=seed, spread=0.5), seed, scans)
        worst = constraint.violation(one_hot(truth, 3, torch.float32), after.image, after.annotation)
        assert float(worst.max()) <= 0


def spread_by_one(mask: Tensor) -> Tensor:
    return torch.nn.functional.max_pool2d(mask.float()[:, None], 3, 1, 1)[:, 0] > 0


@pytest.mark.parametrize("augment", [*MOVED.values(), *FAR.values()], ids=str)
def test_the_rim_of_the_frame_moves_with_it(augment) -> None:
    """Wherever the frame ends now, and at the edge of the image; within two pixels of these, and nowhere else."""
    _, after, _ = changed(augment, masks(16))
    ones = torch.ones_like(after.annotation.label)
    blank = torch.rand(16, 1, SIDE, SIDE)
    _, frame = augment(Batch(blank, Annotation(ones)), ones, torch.Generator().manual_seed(0))
    ring = torch.ones(SIDE, SIDE, dtype=torch.bool)
    ring[1:-1, 1:-1] = False
    outside = torch.nn.functional.pad(frame == 0, (1, 1, 1, 1))
    beside = outside[:, 2:, 1:-1] | outside[:, :-2, 1:-1] | outside[:, 1:-1, 2:] | outside[:, 1:-1, :-2]
    ends = (frame == 1) & beside
    rim = after.annotation.rim
    assert bool((ends & ~ring).any())
    assert bool(rim[ends | ring].all())
    assert not bool((rim & ~spread_by_one(spread_by_one(ends)) & ~ring).any())


def test_a_rim_that_was_given_moves_and_flips_need_none() -> None:
    rim = torch.zeros(8, 16, 16, dtype=torch.bool)
    rim[:, 3, 8] = True
    batch = Batch(torch.rand(8, 1, 16, 16), Annotation(torch.zeros(8, 16, 16, dtype=torch.uint8), rim=rim))
    after, _ = EXACT["flip"](batch)
    assert {tuple(one.nonzero()[0].tolist()) for one in after.annotation.rim} <= {(3, 8), (12, 8), (3, 7), (12, 7)}
    assert bool((after.annotation.rim.sum(dim=(1, 2)) == 1).all())
    moved, _ = Augment(translate=0.1)(batch)
    assert bool((moved.annotation.rim[:, 1:-1, 1:-1].sum(dim=(1, 2)) >= 1).all())
    assert EXACT["both"](replace(batch, annotation=replace(batch.annotation, rim=None)))[0].annotation.rim is None


TYPICAL = {"as planned": Augment(**AUGMENT), "shifted": Augment(rotate=15, zoom=1.1, translate=0.05)}


@pytest.mark.parametrize("scope", ["image", "volume"])
@pytest.mark.parametrize("augment", TYPICAL.values(), ids=TYPICAL.keys())
def test_with_sizes_alone_lower_bounds_act(tmp_path, augment, scope) -> None:
    """As people type them: no centres, no truth, a cropped grid. An empty mask then violates nearly all of them."""
    truth = [truth_like(seed, 6, (64, 64)) for seed in range(4)]
    scans = [source(name, None, image=image_of(one)) for name, one in zip("abcd", truth, strict=True)]
    store = make_store(tmp_path / "store", scans, shape=(48, 48))
    clicks, sizes = [], []
    for name, one in zip("abcd", truth, strict=True):
        for klass in (1, 2):
            sizes.append(row(name, None, klass, size_px=float((one == klass).sum())))
            for number in range(5):
                row_, column = np.argwhere(one[number] == klass).mean(axis=0)
                clicks.append(f"{name},{number},{row_:.0f},{column:.0f},{klass}")
                sizes.append(row(name, number, klass, size_px=float((one[number] == klass).sum())))
    (tmp_path / "clicks.csv").write_text("\n".join(["case,slice,row,column,class", *clicks]))
    Facts(tuple(sizes), store.classes).write(tmp_path / "sizes.csv")
    import_points(store, tmp_path / "clicks.csv", "clicks", radius=1.0)
    store.import_facts(tmp_path / "sizes.csv", "sizes")
    samples = load(store, "clicks", facts="sizes")
    assert samples.facts["cut"][:5, 1:].isnan().all()
    constraint = Constraint(inbounds.size, Known(), scope=scope)
    acting = []
    for seed in range(20):
        after, _ = augment(samples.scan_batch(range(4)), None, torch.Generator().manual_seed(seed))
        empty = torch.zeros(24, 3, 48, 48)
        below = constraint.interval(empty, None, after.annotation).lower
        told = (after.annotation.scan_facts if scope == "volume" else after.annotation.facts)["size"][:, 1:] > 0
        acting.append((below > 0)[told])
    share = float(torch.cat(acting).float().mean())
    assert share >= 0.95
    # Once a region is seen at the rim, or clicked there, its lower bound opens, and no other.
    seen = empty.clone()
    seen[0, 1, 0, 10] = 1
    opened = constraint.interval(seen, None, after.annotation).lower != below
    assert opened[..., 0].nonzero().tolist() == [[0, 0]]
    label = after.annotation.label.clone()
    label[0][after.annotation.rim[0]] = 2
    opened = constraint.interval(empty, None, replace(after.annotation, label=label)).lower != below
    assert opened[..., 0].nonzero().tolist() == [[0, 1]]


def test_a_scan_moves_as_a_whole() -> None:
    scans = Scans(torch.tensor([0, 1, 0, 1, 2]), 3)
    truth = masks(5)[[1, 1, 1, 1, 1]]  # five times the same slice
    for augment in (EXACT["both"], EXACT["light"], MOVED["all"], FAR["all"]):
        _, after, moved = changed(augment, truth, 5, scans)
        for x in (after.image, after.annotation.label, moved, *after.annotation.facts.values()):
            x = x.nan_to_num(-1) if x.is_floating_point() else x
            if x is after.annotation.label:
                continue  # each slice has its own marks
            torch.testing.assert_close(x[0], x[2])
            torch.testing.assert_close(x[1], x[3])
        assert not torch.equal(after.image[0], after.image[1])
        assert not torch.equal(after.image[0], after.image[4])
        _, alone, _ = changed(augment, truth, 5)
        assert not torch.equal(alone.image[0], alone.image[2])


def test_facts_of_a_scan_move_like_those_of_its_slices() -> None:
    scans = Scans(torch.arange(12) // 3, 4)
    for augment in (EXACT["both"], EXACT["light"], Augment(zoom=1.2)):
        _, after, truth = changed(augment, masks(12), 2, scans)
        told, wanted = after.annotation.scan_facts, measured(truth, after.image, scans)
        shrunk = told.get("cut", torch.zeros_like(told["size"])) == 0
        for fact, within in (("size", 0.05), ("mean_intensity", 0.03)):
            torch.testing.assert_close(
                told[fact][:, 1:][shrunk[:, 1:]], wanted[fact][:, 1:][shrunk[:, 1:]], rtol=within, atol=0
            )
    slices = inbounds.regions.scans.total(after.annotation.facts["size"], scans)
    torch.testing.assert_close(told["size"][:, 1:], slices[:, 1:])


@pytest.mark.parametrize("augment", [*EXACT.values(), *MOVED.values()], ids=str)
def test_the_generator_decides(augment) -> None:
    truth = masks(6)
    _, one, first = changed(augment, truth, 3)
    _, two, second = changed(augment, truth, 3)
    _, three, _ = changed(augment, truth, 4)
    assert torch.equal(one.image, two.image)
    assert torch.equal(first, second)
    assert torch.equal(one.annotation.label, two.annotation.label)
    for name, fact in one.annotation.facts.items():
        torch.testing.assert_close(fact, two.annotation.facts[name], equal_nan=True, rtol=0, atol=0)
    assert torch.equal(one.image, three.image) == (augment == Augment())


def test_neutral_settings_change_nothing() -> None:
    before, after, truth = changed(Augment(), masks(5))
    torch.testing.assert_close(after.image, before.image, atol=1e-5, rtol=0)
    assert torch.equal(after.annotation.label, before.annotation.label)
    assert torch.equal(truth, masks(5))
    assert after.annotation.facts.keys() == before.annotation.facts.keys()
    for name, fact in after.annotation.facts.items():
        torch.testing.assert_close(fact, before.annotation.facts[name], equal_nan=True)


def test_the_batch_given_is_left_alone() -> None:
    truth = masks(4)
    batch = known(truth)
    image, size = batch.image.clone(), batch.annotation.facts["size"].clone()
    MOVED["all"](batch, truth)
    assert torch.equal(batch.image, image)
    assert torch.equal(batch.annotation.facts["size"], size)
    assert "cut" not in batch.annotation.facts


def test_light_by_hand() -> None:
    batch = Batch(torch.full((50, 1, 4, 4), 0.5), Annotation(torch.zeros(50, 4, 4, dtype=torch.uint8)))
    after, _ = Augment(contrast=1.6, brightness=0.1)(batch, None, torch.Generator().manual_seed(0))
    value = after.image[:, 0, 0, 0]
    assert float(value.min()) >= 0.5 / 1.6 - 0.1
    assert float(value.max()) <= 0.5 * 1.6 + 0.1
    assert float(value.max() - value.min()) > 0.3


def test_every_channel_and_its_brightness() -> None:
    batch = Batch(
        torch.rand(4, 2, 8, 8),
        Annotation(torch.zeros(4, 8, 8, dtype=torch.uint8), {"mean_intensity": torch.full((4, 2, 2), 0.5)}),
    )
    after, _ = EXACT["light"](batch, None, torch.Generator().manual_seed(0))
    factor = (after.image - after.image.mean((1, 2, 3), keepdim=True)).std((1, 2, 3)) / batch.image.std((1, 2, 3))
    assert after.annotation.facts["mean_intensity"].shape == (4, 2, 2)
    assert len(set(factor.tolist())) == 4


def test_an_image_of_which_nothing_is_known_can_be_moved() -> None:
    truth = masks(3)
    unknown = {name: torch.full_like(fact, torch.nan) for name, fact in known(truth).annotation.facts.items()}
    for facts in ({}, unknown):
        after, moved = MOVED["all"](Batch(picture(truth), Annotation(truth, facts)), None)
        assert moved is None
        assert all(after.annotation.facts[name].isnan().all() for name in facts)


def test_quarter_turns_need_a_square_and_other_motions_do_not() -> None:
    batch = Batch(torch.rand(2, 1, 8, 12), Annotation(torch.zeros(2, 8, 12, dtype=torch.uint8)))
    with pytest.raises(ValueError, match="quarter turns need square images, not 8x12"):
        Augment(quarter=True)(batch)
    after, _ = Augment(flip=True, rotate=10, zoom=1.1, translate=0.1)(batch)
    assert after.image.shape == (2, 1, 8, 12)


def test_an_oblong_flips_and_turns_about_its_middle() -> None:
    truth = torch.zeros(16, 40, 60, dtype=torch.uint8)
    truth[:, 12:20, 30:40] = 1
    probs = one_hot(truth, 3, torch.float32)
    facts = {"size": inbounds.size(probs), "centroid": inbounds.centroid(probs), "present": torch.ones(16, 3, 1)}
    batch = Batch(torch.rand(16, 1, 40, 60), Annotation(truth, facts))
    after, moved = Augment(flip=True, rotate=90)(batch, truth, torch.Generator().manual_seed(0))
    there = (after.annotation.facts["cut"] == 0)[:, 1, 0]
    assert int(there.sum()) > 8
    centre = inbounds.centroid(one_hot(moved, 3, torch.float32))[:, 1]
    torch.testing.assert_close(after.annotation.facts["centroid"][:, 1][there], centre[there], atol=0.5, rtol=0)


@pytest.mark.parametrize(
    "settings", [{"zoom": 0.9}, {"contrast": 0.5}, {"rotate": -1.0}, {"translate": -0.1}, {"brightness": -1.0}]
)
def test_impossible_settings_are_refused(settings) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Augment(**settings)
