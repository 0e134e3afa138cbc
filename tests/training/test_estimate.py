"""What is remembered of whole scans, and what is left of it outside of patches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inbounds.batches.augment import Augment
from inbounds.batches.patches import PatchSamples
from inbounds.batches.samples import Samples, load
from inbounds.networks import Volumetric
from inbounds.regions import centroid, size, spread
from inbounds.training.estimate import SHARE, ScanEstimate
from making import make_store, source, truth_like

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Seen(nn.Module):
    """Scores that follow the image, as if it showed the classes."""

    def forward(self, image: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(image), 12 * image - 4, 9 * image - 6], dim=1)


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """Two scans, of 3 slices and of 4."""
    store = make_store(tmp_path / "store", [source("a", truth_like(0)), source("b", truth_like(1, slices=4))])
    return load(store, "full")


def estimate_of(samples: Samples) -> ScanEstimate:
    return ScanEstimate(samples, Volumetric(Seen(), (2, 16, 16), 3))


def found(samples: Samples, scan: int) -> Tensor:
    """What the network finds in a scan, as a volume."""
    image = samples.scan_batch([scan]).image.transpose(0, 1)[None]
    return Seen()(image).softmax(dim=1)


def test_some_scans_are_looked_at_in_turn(samples: Samples) -> None:
    estimate = estimate_of(samples)
    voxels = 32 * 32
    assert not estimate.complete
    assert estimate.refresh(int(3.1 * voxels / SHARE)) == 0  # for three slices, there are windows of four
    assert estimate.refresh(int(voxels / SHARE)) == 1
    assert estimate.scans[:, 1, 0].isnan().tolist() == [False, True]
    assert estimate.refresh(int(4 * voxels / SHARE)) == 1
    assert estimate.complete
    assert estimate.refresh(100 * voxels) == 2  # each at most once
    assert estimate.network.training


def test_what_is_kept_is_what_was_found(samples: Samples) -> None:
    estimate = estimate_of(samples)
    estimate.refresh(10**9)
    for scan in range(2):
        probs = found(samples, scan)
        torch.testing.assert_close(estimate.scans[scan, 1:, :1], size(probs)[0, 1:], rtol=0.01, atol=0.5)
        slices = size(probs[0].transpose(0, 1))
        here = samples.slices_of(scan)
        torch.testing.assert_close(estimate.slices[here.start : here.stop, 1:, :1], slices[:, 1:], rtol=0.01, atol=0.5)


@pytest.mark.parametrize("augment", [Augment(), Augment(flip=True, rotate=40, zoom=1.4)])
def test_a_patch_that_finds_the_same_changes_nothing(samples: Samples, augment: Augment) -> None:
    torch.manual_seed(0)
    estimate = estimate_of(samples)
    estimate.refresh(10**9)
    made = PatchSamples(samples, (2, 12, 14), augment, of_slices=True, estimate=estimate)
    index = made.draw(12, torch.Generator().manual_seed(1))
    numbers = torch.arange(estimate.roots[:, 0].numel()).reshape(len(samples), 32, 32)
    labels, samples.labels = samples.labels, numbers  # the voxel that each shows, by the way that labels go
    known = made.batch(index).annotation
    samples.labels = labels
    kept = (estimate.roots.float() / 255).square().movedim(1, 0).flatten(1)[:, known.label.clamp(max=numbers.max())]
    seen = torch.cat([torch.zeros_like(kept[:1]), kept]).movedim(0, 1)
    owners = samples.scans.index[index // 1024]
    whole = (estimate.roots.float() / 255).square()
    volumes = [whole[samples.slices_of(n).start : samples.slices_of(n).stop].transpose(0, 1)[None] for n in range(2)]
    for statistic in (size, centroid, spread):
        expected = torch.stack([statistic(volume)[0] for volume in volumes])[owners]
        torch.testing.assert_close(statistic(seen, scans=known.scans)[:, 1:], expected, rtol=1e-3, atol=2e-2)
    rows = (known.scans.places[:, 0, 0, 0] + (made.depths[owners].repeat_interleave(2) - 1) / 2).long()
    places = rows + made.firsts[owners].repeat_interleave(2)
    torch.testing.assert_close(size(seen, scans=known.patches)[:, 1:], size(whole)[places], rtol=1e-3, atol=2e-2)


def test_a_checkpoint_holds_all_of_it_and_no_more(samples: Samples) -> None:
    estimate, other = estimate_of(samples), estimate_of(samples)
    estimate.refresh(int(5 * 1024 / SHARE))
    state = estimate.state()
    assert state["estimate.roots"].numel() < estimate.roots.numel()
    other.restore(state)
    for name in ("roots", "scans", "slices"):
        torch.testing.assert_close(getattr(other, name), getattr(estimate, name), equal_nan=True, rtol=0, atol=0)
    assert (other.due, other.credit) == (estimate.due, estimate.credit)
    longer = estimate_of(samples)
    longer.roots = torch.zeros(9, 2, 32, 32, dtype=torch.uint8)
    with pytest.raises(ValueError, match="voxels"):
        longer.restore(state)
