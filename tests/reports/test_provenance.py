"""What a run knew, as reports and results say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.reports.provenance import known
from inbounds.runs.supervise import supervision_of
from inbounds.store.store import Store
from training_runs import hearts_store, start


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return hearts_store(tmp_path_factory.mktemp("data") / "hearts")


@pytest.mark.parametrize(
    ("recipe", "changes", "expected"),
    [
        ("individual", [], ("size within 10 % of each image's own",)),
        ("individual", ["tighten=0.1"], ("size within 10 % of each image's own (aiming inside by 10 %)",)),
        (
            "tags",
            ["constraints=[{statistic='border', bounds='common', upper=0, wish=true, fades=true}]"],
            (
                "whether the region is there",
                "border at most 0 where it is there, the same for every image (a wish, fading)",
            ),
        ),
    ],
)
def test_each_constraint_is_a_phrase(
    tmp_path: Path, store: Store, recipe: str, changes: list[str], expected: tuple[str, ...]
) -> None:
    run = start(tmp_path / "run", store, recipe, *changes)
    constraints = supervision_of(run.settings, store, run.classes, run.facts).constraints
    assert known(run, constraints) == ("disc labels", *expected)


@pytest.mark.parametrize(("weak", "expected"), [("1", ""), ("0.1", " (counting 0.1)")])
def test_hybrid_labels_are_a_phrase(tmp_path: Path, store: Store, weak: str, expected: str) -> None:
    run = start(tmp_path / "run", store, "tags", "hybrid.full_scans=1", f"hybrid.weak_label_weight={weak}")
    assert known(run, []) == (f"1 scan in full, disc labels in the others{expected}",)
