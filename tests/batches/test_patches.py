"""Patches show what lies in their scans, and what is known of these stays true of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from inbounds.batches.augment import Augment
from inbounds.batches.patches import PatchSamples, in_space, whole_volume
from inbounds.batches.samples import Samples
from inbounds.regions import centroid, size, spread
from inbounds.store.grid import GridWindow
from inbounds.store.record import Record

SIDES = (10, 12)
DEPTHS = (6, 3, 1)
STRONG = Augment(flip=True, rotate=40, zoom=1.4, contrast=1.3, brightness=0.1)


def samples(depths: tuple[int, ...] = DEPTHS, *, full: bool = False) -> Samples:
    """Scans whose brightness says where a voxel is: slice, row and column in three channels."""
    records, first = [], 0
    for number, depth in enumerate(depths):
        fit = GridWindow.pad(SIDES, SIDES)
        records.append(Record(f"s{number}", f"s{number}", "train", first, depth, fit, (2.0, 1.0, 1.0), (0.0, 1.0)))
        first += depth
    grids = [torch.stack(torch.meshgrid(*map(torch.arange, (depth, *SIDES)), indexing="ij"), 1) for depth in depths]
    labels = torch.full((first, *SIDES), 0 if full else 255, dtype=torch.uint8)
    labels[1, 4, 5], labels[first - 1, 2, 2] = 1, 2
    sizes = torch.arange(first * 3, dtype=torch.float32).reshape(first, 3, 1)
    facts = {"present": torch.ones(first, 3, 1), "size": sizes, "centroid": torch.zeros(first, 3, 2)}
    count = len(depths)
    scan_facts = {
        "present": torch.ones(count, 3, 1),
        "size": torch.ones(count, 3, 1),
        "centroid": torch.ones(count, 3, 2),
    }
    return Samples(
        torch.cat([grid.movedim(1, 1) for grid in grids]).to(torch.uint8), labels, facts, scan_facts, records
    )


def voxels(of: PatchSamples, index: Tensor) -> Tensor:
    """Scan, slice, row and column of voxels."""
    height, width = of.shape
    row = index // (height * width)
    scan = of.samples.scans.index[row]
    return torch.stack([scan, row - of.firsts[scan], index // width % height, index % width], dim=1)


@pytest.mark.parametrize("patch", [(3, 4, 5), (6, 10, 12), (1, 4, 4), (9, 8, 12)])
def test_without_augmentation_a_patch_is_a_part_of_its_scan(patch: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    made = PatchSamples(samples(), patch, Augment())
    index = torch.arange(made.voxels)[:: made.voxels // 60]
    batch = made.batch(index)
    image = (batch.image * 255).unflatten(0, (-1, patch[0]))
    places = batch.annotation.scans.places.unflatten(0, (-1, patch[0]))
    for number, (scan, *voxel) in enumerate(voxels(made, index).tolist()):
        sides = torch.tensor([DEPTHS[scan], *SIDES])
        inside = (places[number].abs() <= ((sides - 1) / 2)[:, None, None]).all(dim=1)
        at = (places[number] + ((sides - 1) / 2)[:, None, None])[:, :, :, :]
        torch.testing.assert_close(image[number].movedim(1, 0)[:, inside], at.movedim(1, 0)[:, inside])
        assert (image[number].movedim(1, 0)[:, ~inside] == 0).all()
        held = (at.movedim(1, -1)[inside] == torch.tensor(voxel, dtype=torch.float32)).all(dim=-1)
        assert held.sum() == 1  # the voxel it was drawn for, once
        assert int(inside.sum()) == min(patch[0], DEPTHS[scan]) * patch[1] * patch[2]
    labels = batch.annotation.label.unflatten(0, (-1, patch[0]))
    assert set(labels.unique().tolist()) <= {1, 2, 255}


def test_what_is_beyond_a_scan_is_unlabelled_and_counts_nothing() -> None:
    made = PatchSamples(samples((2,), full=True), (8, 4, 4), Augment())
    batch = made.batch(torch.tensor([0, 50]))
    beyond = batch.annotation.scans.copies.isinf()
    assert beyond.sum() == 2 * 6 * 16
    assert (batch.annotation.label[beyond] == 255).all()
    assert (batch.annotation.label[~beyond] != 255).all()
    whole = torch.ones(16, 3, 4, 4)
    assert size(whole, scans=batch.annotation.scans)[:, 0, 0].tolist() == [32, 32]


def test_labelled_voxels_are_drawn_as_often_as_asked() -> None:
    generator = torch.Generator().manual_seed(0)
    made = PatchSamples(samples(), (2, 4, 4), Augment(), around_labels=0.5)
    drawn = made.draw(400, generator)
    labels = made.samples.labels.flatten()[drawn]
    assert 200 <= (labels != 255).sum() <= 206
    assert 70 < (labels == 1).sum() < 130  # each class as often
    assert (PatchSamples(samples(), (2, 4, 4), Augment(), around_labels=0.0).draw(50, generator) >= 0).all()
    every = PatchSamples(samples(), (2, 4, 4), Augment(), around_labels=1.0).draw(50, generator)
    assert (made.samples.labels.flatten()[every] != 255).all()
    full = PatchSamples(samples(full=True), (2, 4, 4), Augment(), around_labels=1.0).draw(50, generator)
    assert (made.samples.labels.flatten()[full] != 0).all()  # of complete labels, those of regions


@pytest.mark.parametrize("of_slices", [False, True])
@pytest.mark.parametrize("thick", [1.0, 3.0])
def test_augmented_voxels_look_as_the_scan_does_where_they_lie(of_slices: bool, thick: float) -> None:
    torch.manual_seed(0)
    still = replace(STRONG, contrast=1, brightness=0)
    made = PatchSamples(samples((6,)), (4, 5, 5), still, thick=thick, of_slices=of_slices)
    assert made.cubic == (not of_slices and thick == 1)
    batch = made.batch(torch.arange(0, made.voxels, 7))
    sides = torch.tensor([6, *SIDES])
    places = batch.annotation.scans.places + ((sides - 1) / 2)[:, None, None]
    inside = ((places >= 0) & (places <= (sides - 1)[:, None, None])).all(dim=1)
    seen = batch.image.movedim(1, -1)[inside] * 255
    torch.testing.assert_close(seen, places.movedim(1, -1)[inside], atol=2e-3, rtol=0)
    if not made.cubic:
        assert (places[:, 0] == places[:, 0].round()).all()  # it keeps to slices
        rows = places[:, 0, 0, 0].long()
        known = batch.annotation.facts["size"]
        here = (rows >= 0) & (rows < 6) & ~batch.annotation.patches.copies.isinf().flatten(1).all(dim=1)
        if of_slices:
            torch.testing.assert_close(known[here], made.samples.facts["size"][rows[here]])
        else:
            assert known.isnan().all()


def test_brightness_changes_but_for_what_lies_outside_the_scan() -> None:
    torch.manual_seed(0)
    made = PatchSamples(samples((6,)), (4, 5, 5), Augment(contrast=1.3, brightness=0.1))
    index = torch.tensor([300])
    image = made.batch(index).image * 255
    assert not torch.allclose(image, image.round(), atol=1e-4, rtol=0)  # as stored it is of whole numbers
    unchanged = PatchSamples(samples((6,)), (4, 5, 5), Augment()).batch(index).image * 255
    torch.testing.assert_close(unchanged, unchanged.round(), atol=1e-4, rtol=0)


class Truth:
    """An estimate that is the truth: probabilities of one class in each voxel."""

    def __init__(self, made: PatchSamples, truth: Tensor) -> None:
        self.made, self.truth = made, truth

    def outside(self, shown: object) -> tuple[Tensor, Tensor]:
        whole = self._whole(3)
        rest = self._less(shown, shown.copies[0], shown.centred, whole, (-3, -2, -1))
        return rest, whole[shown.scan][:, None, :1]

    def outside_of_slices(self, shown: object) -> tuple[Tensor, Tensor]:
        rows = shown.rows[0][:, :, 0, 0]
        each = torch.stack([self._sums(one[None], 2) for one in self.truth.double()])[rows]
        seen = self._sums_of(shown, shown.copies[1], shown.centred[:, 1:], (-2, -1))
        return (each - seen).flatten(0, 1)[:, None], each.flatten(0, 1)[:, None, :1]

    def _whole(self, _axes: int) -> Tensor:
        firsts = [*self.made.firsts.tolist(), len(self.truth)]
        return torch.stack([self._sums(self.truth[a:b].double(), 3) for a, b in itertools.pairwise(firsts)])

    def _sums(self, probs: Tensor, axes: int) -> Tensor:
        at = torch.stack(torch.meshgrid(*(torch.arange(s) - (s - 1) / 2 for s in probs.shape[-axes:]), indexing="ij"))
        probs = probs if axes == 3 else probs[0]
        return torch.stack([probs.sum(), *((probs * one).sum() for one in at), *((probs * one**2).sum() for one in at)])

    def _sums_of(self, shown: object, copies: Tensor, centred: Tensor, over: tuple[int, ...]) -> Tensor:
        seen = (self.truth[shown.rows] / copies).double()
        return torch.stack(
            [
                (seen * one).sum(dim=over)
                for one in (torch.ones_like(seen), *centred.unbind(1), *centred.square().unbind(1))
            ],
            dim=-1,
        )

    def _less(self, shown: object, copies: Tensor, centred: Tensor, whole: Tensor, over: tuple[int, ...]) -> Tensor:
        return (whole[shown.scan] - self._sums_of(shown, copies, centred, over))[:, None]


@pytest.mark.parametrize("of_slices", [False, True])
@pytest.mark.parametrize("thick", [1.0, 3.0])
def test_a_right_patch_measures_the_whole_scan_however_it_is_turned(of_slices: bool, thick: float) -> None:
    torch.manual_seed(0)
    made = PatchSamples(samples(), (4, 6, 7), STRONG, thick=thick, of_slices=of_slices)
    truth = torch.rand(sum(DEPTHS), *SIDES).square()
    made.estimate = Truth(made, truth)
    # What the network sees is the truth at the nearest voxel, found through the labels' own way.
    made.samples.labels = torch.arange(truth.numel(), dtype=torch.int64).reshape(truth.shape)
    batch = made.batch(torch.arange(0, made.voxels, 11))
    known = batch.annotation
    seen = torch.where(known.scans.copies.isinf(), 0, truth.flatten()[known.label.clamp(max=truth.numel() - 1)])
    seen = seen.double()[:, None]
    scans = voxels(made, torch.arange(0, made.voxels, 11))[:, 0]
    for statistic in (size, centroid, spread):
        firsts = [*made.firsts.tolist(), len(truth)]
        volumes = [truth[a:b].double()[None, None] for a, b in itertools.pairwise(firsts)]
        expected = torch.stack([statistic(one)[0] for one in volumes])[scans]
        torch.testing.assert_close(statistic(seen, scans=known.scans), expected, rtol=1e-4, atol=1e-3)
        if of_slices:
            rows = (known.scans.places[:, 0, 0, 0] + (made.depths[scans].repeat_interleave(4) - 1) / 2).long()
            first = made.firsts[scans].repeat_interleave(4)
            inside = (rows >= 0) & (rows < made.depths[scans].repeat_interleave(4))
            found = statistic(seen, scans=known.patches)[inside]
            wanted = statistic(truth.double()[:, None])[(rows + first)[inside]]
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


def test_patches_of_a_batch_that_overlap_count_no_voxel_twice() -> None:
    """Each answers for its scan by itself: what it shows, and what was found outside of it, whatever others show."""
    made = PatchSamples(samples((6,)), (4, 6, 7), Augment())
    together = made.batch(torch.tensor([300, 300, 301])).annotation
    assert together.scans.count == 3
    shown = torch.ones(12, 1, 6, 7, dtype=torch.float64)
    assert size(shown, scans=together.scans).flatten().tolist() == [4 * 6 * 7] * 3
    made.estimate = Truth(made, torch.ones(6, *SIDES))
    together = made.batch(torch.tensor([300, 300, 301])).annotation
    assert size(shown, scans=together.scans).flatten().tolist() == pytest.approx([6 * 10 * 12] * 3)


def test_positions_of_volumes_have_rows_and_columns_alone() -> None:
    facts = in_space({"size": torch.ones(1, 2, 1), "centroid": torch.ones(1, 2, 2)})
    assert facts["centroid"][0, 1].isnan().tolist() == [True, False, False]
    assert facts["size"].shape == (1, 2, 1)


def test_a_whole_volume_is_all_there_is() -> None:
    whole, alone = whole_volume(torch.zeros(3, 4, 5, dtype=torch.uint8))
    assert whole.complete().all()
    assert alone.complete().all()
    probs = torch.rand(3, 2, 4, 5, dtype=torch.float64)
    volume = probs.transpose(0, 1)[None]
    torch.testing.assert_close(centroid(probs, scans=whole), centroid(volume))
    torch.testing.assert_close(size(probs, scans=alone), size(probs))


def test_the_rim_is_that_of_slices() -> None:
    made = PatchSamples(samples((2,)), (2, *SIDES), Augment())
    rim = made.batch(torch.tensor([5])).annotation.rim
    assert rim[0].sum() == 2 * 12 + 2 * 8
    assert not rim[0, 1:-1, 1:-1].any()
