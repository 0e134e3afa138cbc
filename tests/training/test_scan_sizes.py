"""Bounds on whole scans in batches of any slices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inbounds.batches.samples import Batch, Samples, load
from inbounds.constraints import Constraint, Individual
from inbounds.regions import size
from inbounds.store.facts import Facts
from inbounds.store.store import Store
from inbounds.training.scan_sizes import ScanSizes
from making import make_store, row, source, truth_like

GOOD, BROKEN = torch.zeros(()), torch.ones(())


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """Two scans, a of 3 slices and b of 4, with a volume for each class."""
    sources = [source("a", truth_like(0)), source("b", truth_like(1, slices=4))]
    store: Store = make_store(tmp_path / "store", sources)
    facts = Facts(tuple(row(case, None, k, size_px=50.0 * k) for case in "ab" for k in (1, 2)), store.classes)
    facts.write(store.path / "facts" / "volumes.csv")
    return load(store, "full", facts="volumes")


def logits_of(samples: Samples, index: list[int], seed: int = 0) -> torch.Tensor:
    drawn = torch.randn(len(samples), 3, 32, 32, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.float()[index]


def remember(sizes: ScanSizes, samples: Samples, index: list[int], *, broken: torch.Tensor = GOOD, **told) -> Batch:
    where = torch.tensor(index)
    batch = sizes.annotated(replace(samples.batch(where), **told), where)
    sizes.remember(batch, where, logits_of(samples, index), broken)
    return batch


VOLUME = Constraint(size, Individual(relative=0.1), weight=0.3, scope="volume", scale="typical", typical=[50.0, 100.0])


def test_a_batch_of_one_whole_scan_is_exact(samples: Samples) -> None:
    index = list(samples.slices_of(1))
    probs = logits_of(samples, index).softmax(1).requires_grad_()
    whole = VOLUME(probs, None, samples.scan_batch([1]).annotation)
    (expected,) = torch.autograd.grad(whole, probs)
    annotation = ScanSizes(samples).annotated(samples.batch(torch.tensor(index)), torch.tensor(index)).annotation
    estimated = VOLUME(probs, None, annotation)
    (gradient,) = torch.autograd.grad(estimated, probs)
    assert estimated.item() == pytest.approx(whole.item(), rel=1e-6)
    torch.testing.assert_close(gradient, expected)


def test_some_slices_and_what_is_remembered_make_a_scan(samples: Samples) -> None:
    sizes = ScanSizes(samples)
    remember(sizes, samples, list(range(len(samples))))
    index = [4, 1, 5]  # two slices of b around one of a
    annotation = sizes.annotated(samples.batch(torch.tensor(index)), torch.tensor(index)).annotation
    probs = logits_of(samples, index, seed=1).softmax(1)
    before = size(logits_of(samples, list(range(7))).softmax(1))
    now = size(probs)
    values = VOLUME.values(probs, None, annotation)
    torch.testing.assert_close(values[0], (before[3] + now[0] + now[2] + before[6])[1:])
    torch.testing.assert_close(values[1], (before[0] + now[1] + before[2])[1:])
    inside, known = VOLUME.satisfied(probs, None, annotation)
    assert known.tolist() == [True, True, False]  # the third place has no scan
    assert not inside[:2].any()


def test_until_all_was_seen_only_the_upper_side_acts(samples: Samples) -> None:
    sizes, index = ScanSizes(samples), torch.tensor([0])
    nothing = torch.zeros(1, 3, 32, 32)
    nothing[:, 0] = 30
    annotation = sizes.annotated(samples.batch(index), index).annotation
    assert float(VOLUME(nothing.softmax(1), None, annotation)) == 0
    assert float(VOLUME((-nothing).softmax(1), None, annotation)) > 1
    sizes.sizes[:3] = 0.0
    annotation = sizes.annotated(samples.batch(index), index).annotation
    assert float(VOLUME(nothing.softmax(1), None, annotation)) == pytest.approx(0.3 * 0.9**2)


def test_sizes_are_those_before_a_zoom(samples: Samples) -> None:
    sizes = ScanSizes(samples)
    remember(sizes, samples, [0, 3], zoom=torch.tensor([2.0, 1.0]))
    measured = size(logits_of(samples, [0, 3]).softmax(1))
    torch.testing.assert_close(sizes.sizes[[0, 3]], measured / torch.tensor([4.0, 1.0])[:, None, None])
    assert sizes.sizes[[1, 2, 4, 5, 6]].isnan().all()


def test_nothing_is_written_of_a_slice_that_is_cut_nor_after_a_loss_that_is_not_finite(samples: Samples) -> None:
    sizes, index = ScanSizes(samples), torch.tensor([0, 1])
    batch = samples.batch(index)
    cut = torch.zeros(2, 3, 1)
    cut[0, 1] = 1
    facts = {**batch.annotation.facts, "cut": cut}
    batch = sizes.annotated(Batch(batch.image, replace(batch.annotation, facts=facts)), index)
    sizes.remember(batch, index, logits_of(samples, [0, 1]), BROKEN)
    assert sizes.sizes.isnan().all()
    sizes.remember(batch, index, logits_of(samples, [0, 1]), GOOD)
    assert sizes.sizes[:2, :, 0].isnan().tolist() == [[False, True, False], [False, False, False]]


def test_a_slice_that_is_there_twice_is_written_as_its_mean(samples: Samples) -> None:
    sizes, index = ScanSizes(samples), torch.tensor([2, 2])
    batch = sizes.annotated(samples.batch(index), index)
    logits = logits_of(samples, [0, 1])
    sizes.remember(batch, index, logits, GOOD)
    torch.testing.assert_close(sizes.sizes[2], size(logits.softmax(1)).mean(dim=0))
