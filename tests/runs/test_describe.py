"""What a run knows, as reports and results say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.store.store import Store
from training_runs import start


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


@pytest.mark.parametrize(
    ("recipe", "changes", "expected"),
    [
        ("individual", [], ("size within 10 % of each image's own",)),
        (
            "known",
            [],
            (
                "size as far as each image's is known, numbers within 15 %",
                "size as far as each scan's is known, numbers within 15 %",
            ),
        ),
        (
            "tags",
            ["constraints.bright={statistic='mean_intensity', bounds={kind='common', lower=0.2}}"],
            ("whether the region is there", "mean intensity at least 0.2 where it is there, the same for every image"),
        ),
    ],
)
def test_each_constraint_is_a_phrase(
    tmp_path: Path, store: Store, recipe: str, changes: list[str], expected: tuple[str, ...]
) -> None:
    run = start(tmp_path / "run", store, recipe, *changes)
    assert run.about["known"] == ["disc labels", *expected]


@pytest.mark.parametrize(("weak", "expected"), [("1", ""), ("0.1", " (counting 0.1)")])
def test_hybrid_labels_are_a_phrase(tmp_path: Path, store: Store, weak: str, expected: str) -> None:
    run = start(tmp_path / "run", store, "tags", "hybrid.full_scans=1", f"hybrid.weak_label_weight={weak}")
    assert run.about["known"][0] == f"1 scan in full, disc labels in the others{expected}"
