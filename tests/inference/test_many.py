"""Many scans at once become what each would become by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from archives import full_disk, nifti, noise
from inbounds.errors import BadInput
from inbounds.inference import Predictor, predict_files
from inbounds.inference.many import Asked, Found, segmented
from inbounds.networks.build import networks
from inbounds.scans.scan import read_labels
from predicting import NAME, by_brightness, made_run, scan_of


@pytest.fixture
def predictor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    monkeypatch.setitem(networks, NAME, by_brightness)
    return Predictor(made_run(tmp_path / "run"), device="cpu")


@pytest.fixture
def asked(tmp_path: Path) -> list[Asked]:
    """Twelve scans of one to twelve slices."""
    masks = (np.random.default_rng(n).integers(0, 3, (n, 20, 24)) for n in range(1, 13))
    files = [nifti(tmp_path / "in" / f"{len(mask):02d}.nii.gz", scan_of(mask)) for mask in masks]
    return [Asked(f.name[:2], [f], tmp_path / f.name, tmp_path / f"{f.name[:2]}.npz") for f in files]


class Batches(torch.nn.Module):
    """A network that notes how many slices it is given, and may fail."""

    def __init__(self, network: torch.nn.Module, most: int = 10**6) -> None:
        super().__init__()
        self.network, self.most = network, most
        self.seen: list[int] = []

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(image))
        if len(image) > self.most:
            raise RuntimeError("out of memory")
        return self.network(image)


def run_all(predictor: Predictor, asked: Sequence[Asked]) -> list[Found]:
    found: list[Found] = []
    with segmented(predictor, asked, None, found) as coming:
        assert list(coming) == found
    return found


def test_masks_are_those_of_each_by_itself_and_batches_are_full(predictor: Predictor, asked: list[Asked]) -> None:
    network = Batches(predictor.networks[0])
    predictor.networks = [network]
    found = run_all(predictor, asked)
    together = list(network.seen)
    assert [one.name for one in found] == [one.name for one in asked]
    assert sum(together) == 3 * sum(range(1, 13))  # as it is, and mirrored twice
    assert len(together) == 3 * 3  # 78 slices, 32 at most at once
    for one, told in zip(asked, found, strict=True):
        alone = predictor.predict(one.files, probabilities=True)
        np.testing.assert_array_equal(read_labels(one.target).array, alone.mask)
        np.testing.assert_array_equal(np.load(str(one.extra))["probabilities"], alone.probabilities)
        assert [each.voxels for each in told.regions] == [each.voxels for each in alone.regions]
        assert [each.doubt for each in told.regions] == [each.doubt and each.doubt.total for each in alone.regions]
    assert any(region.voxels for one in found for region in one.regions)


def test_large_scans_are_read_in_their_turn(
    predictor: Predictor, asked: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = [predictor.predict(one.files).mask for one in asked]
    needed = predictor.look(asked[5].files, probabilities=True).needed
    monkeypatch.setattr("inbounds.inference.on_grid.SMALL", needed)
    network = Batches(predictor.networks[0])
    predictor.networks, predictor.doubt = [network], False
    run_all(predictor, asked)
    assert network.seen == [15, *range(6, 13)]  # what needs less than the sixth is put together
    for one, mask in zip(asked, masks, strict=True):
        np.testing.assert_array_equal(read_labels(one.target).array, mask)


def test_one_that_fails_fails_alone(predictor: Predictor, asked: list[Asked]) -> None:
    predictor.networks = [Batches(predictor.networks[0], most=9)]
    asked[3].files[0].write_text("no scan")  # type: ignore[index]
    found = run_all(predictor, asked)
    assert [bool(one.failure) for one in found] == [False] * 3 + [True] + [False] * 5 + [True] * 3
    assert "04.nii.gz" in found[3].failure
    assert all("out of memory" in one.failure for one in found[-3:])
    assert [one.target.exists() for one in asked] == [not one.failure for one in found]


def test_a_full_disk_stops_and_what_is_done_is_told(predictor: Predictor, asked: list[Asked]) -> None:
    found: list[Found] = []
    with (
        full_disk(3000),
        pytest.raises(BadInput, match=r"could not be written"),
        segmented(predictor, asked, None, found) as coming,
    ):
        list(coming)
    assert len(found) < len(asked)
    assert all(one.target.exists() for one in asked if one.name in {each.name for each in found})


def test_options_reach_the_threads_that_read(predictor: Predictor, tmp_path: Path) -> None:
    """`--follow` is set for the command, not for a thread."""
    from inbounds.scans.data_file import FOLLOW

    (tmp_path / "data").mkdir()
    noise((2, 20, 24)).astype("<i2").tofile(tmp_path / "data" / "a.raw")
    (tmp_path / "in").mkdir()
    head = "NDims = 3\nDimSize = 24 20 2\nElementType = MET_SHORT\nElementSpacing = 1 1 5\n"
    (tmp_path / "in" / "a.mhd").write_text(f"ObjectType = Image\n{head}ElementDataFile = ../data/a.raw\n")
    refused = predict_files(predictor, [tmp_path / "in" / "a.mhd"], tmp_path / "one")
    assert "--follow" in refused.failures["a"]
    before = FOLLOW.set(True)
    try:
        assert not predict_files(predictor, [tmp_path / "in" / "a.mhd"], tmp_path / "two").failures
    finally:
        FOLLOW.reset(before)
