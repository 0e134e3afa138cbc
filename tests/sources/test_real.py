"""The published data sets, where a copy of them lies beside the project: the counts that everybody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from archives import done
from inbounds.store.store import Store
from inbounds.store.verify import labelled, summary, verify

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the real data sets are not in ../shared/data"),
]


def prepared(name: str, factory: pytest.TempPathFactory) -> Store:
    if not (DATA / name).is_dir():
        pytest.skip(f"there is no {name} in ../shared/data")
    store = factory.mktemp("real") / name
    done("prepare", name, DATA / name, store)
    return Store(store)


@pytest.fixture(scope="module")
def acdc(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return prepared("acdc", tmp_path_factory)


@pytest.fixture(scope="module")
def spine(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return prepared("spine", tmp_path_factory)


@pytest.fixture(scope="module")
def promise12(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return prepared("promise12", tmp_path_factory)


class TestACDC:
    def test_counts(self, acdc: Store) -> None:
        content = summary(acdc)
        assert (content["patients"], content["scans"], content["slices"]) == (100, 200, 1902)
        assert content["split"]["train"] == {"patients": 75, "scans": 150, "slices": 1446}
        assert content["split"]["validation"] == {"patients": 25, "scans": 50, "slices": 456}
        assert content["sizes"]["LV"]["slices"] == 1808

    def test_size_on_disk(self, acdc: Store) -> None:
        assert sum(file.stat().st_size for file in acdc.path.rglob("*") if file.is_file()) <= 270e6

    def test_erosion(self, acdc: Store) -> None:
        done("annotate", acdc.path, "--name", "erosion", "--strategy", "erosion", "--classes", "LV")
        shares = labelled(acdc, "erosion")
        assert set(shares) == {"LV"}
        assert 100 * shares["LV"] == pytest.approx(0.087, abs=0.005)
        assert verify(acdc.path).problems == ()

    def test_the_experts_disagree_in_116_pixels(self, acdc: Store) -> None:
        assert verify(acdc.path).disagreements == {"scribble": 116}


class TestSpine:
    def test_counts_and_sizes(self, spine: Store) -> None:
        content = summary(spine)
        assert content["scans"] == 17
        assert {name: split["scans"] for name, split in content["split"].items()} == {"train": 12, "validation": 5}
        sizes = content["sizes"]["vertebra"]
        assert sizes["p5"] == pytest.approx(80, rel=0.1)
        assert sizes["p99"] == pytest.approx(1120, rel=0.1)

    def test_discs(self, spine: Store) -> None:
        done("annotate", spine.path, "--name", "disc", "--strategy", "disc")
        assert 100 * sum(labelled(spine, "disc").values()) == pytest.approx(0.02, abs=0.01)
        assert verify(spine.path).problems == ()


def test_promise12(promise12: Store) -> None:
    content = summary(promise12)
    assert content["scans"] == 50
    assert {name: split["scans"] for name, split in content["split"].items()} == {"train": 40, "validation": 10}
    assert verify(promise12.path).problems == ()
