"""Facts are open: a statistic that says how it is written down needs nothing else to be known everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import inbounds
from inbounds import Annotation, Constraint, Individual, Scans
from inbounds.batches.augment import Augment
from inbounds.batches.fact_tensors import to_tensors
from inbounds.batches.samples import Batch
from inbounds.config import read_settings, supervision_of
from inbounds.regions import FactColumns, Geometry, Motion, Statistic, statistics
from inbounds.regions.facts import range_of
from inbounds.store.facts import Facts
from inbounds.store.grid import GridWindow
from making import make_store, source, truth_like

NAN = torch.nan


def refuse(_: int, value: float, geometry: Geometry) -> str:
    return "" if 0 < value <= geometry.shape[1] else "a region has a width, and fits its slice"


@pytest.fixture
def width() -> Iterator[Statistic]:
    """A statistic that the package does not know, in the registry."""

    @inbounds.statistic(
        columns=FactColumns(
            ("width_px",),
            {"width_mm": lambda value, at: value / at.spacing[2]},
            to_grid=lambda values, at: [value * at.scale[1] for value in values],
            moved=lambda fact, motion: fact * motion.factor[:, None, None],
            refused=refuse,
        )
    )
    def width(probs, *, scans=None):
        return inbounds.spread(probs, scans=scans)[..., 1:].sqrt()

    statistics["width"] = width
    yield width
    del statistics["width"]


def table(folder: Path, *lines: str) -> Path:
    (folder / "mine.csv").write_text("\n".join(lines) + "\n")
    return folder / "mine.csv"


def test_a_new_statistic_is_read_fitted_moved_and_bounds(tmp_path, width) -> None:
    sources = [source("a", truth_like(0, 4, (20, 20)))]
    store = make_store(tmp_path / "store", sources, fit=GridWindow.resize, shape=(40, 40))
    store.empty_facts().write(tmp_path / "form.csv")
    assert (tmp_path / "form.csv").read_text().splitlines()[0].endswith(",width_px,width_mm")

    lines = (
        "case,slice,class,width_px,Width_mm_max,reader",
        "a,0,RV,4,,x",
        "a,1,RV,3-5,,",
        "a,2,RV,,7.5,",
        "a,3,RV,,,",
    )
    facts = store.import_facts(table(tmp_path, *lines), "mine")
    assert facts.ignored == ("reader",)
    slices, _ = to_tensors(store, store.facts("mine"), [1])
    for name, wanted in (
        ("width", [8, NAN, NAN, NAN]),
        ("width_min", [NAN, 6, NAN, NAN]),
        ("width_max", [NAN, 10, 10, NAN]),
    ):
        torch.testing.assert_close(slices[name][:, 1, 0], torch.tensor(wanted), equal_nan=True)
    assert slices["present"][:, 1, 0].tolist()[:3] == [1, 1, 1]

    label = torch.full((4, 40, 40), 255)
    batch, _ = Augment(zoom=1.5)(Batch(torch.rand(4, 1, 40, 40), Annotation(label, slices)))
    moved = batch.annotation.facts
    factor = moved["width_max"][1] / slices["width_max"][1]
    torch.testing.assert_close(moved["width_min"][1] / slices["width_min"][1], factor, equal_nan=True)
    kept = Augment(flip=True)(Batch(torch.rand(4, 1, 40, 40), Annotation(label, slices)))[0].annotation
    interval = Constraint(width, Individual(relative=0.25)).interval(torch.full((4, 2, 40, 40), 0.5), None, kept)
    assert interval.lower[:, 0, 0].tolist() == [6, 6, -torch.inf, -torch.inf]
    assert interval.upper[:, 0, 0].tolist() == [10, 10, 10, torch.inf]

    for line, message in (("a,0,RV,30", "width_px is 30; a region has a width"), ("a,0,RV,5-4", "goes from 5 to 4")):
        with pytest.raises(ValueError, match=f"mine.csv, line 2: .*{message}"):
            Facts.read(table(tmp_path, "case,slice,class,width_px", line), store.classes, store.cases)


def test_settings_know_a_new_statistic(tmp_path, width) -> None:
    file = tmp_path / "more.toml"
    file.write_text('[constraints.wide]\nstatistic = "width"\nbounds = {kind = "fixed", upper = 9}\n')
    supervision = supervision_of(read_settings("partial", file), make_store(tmp_path / "store"), ["RV"], None)
    assert [one.statistic for one in supervision.constraints] == [width]
    file.write_text('[constraints.wide]\nstatistic = "widht"\nbounds = "fixed"\n')
    with pytest.raises(ValueError, match=r"widht.*did you mean 'width'"):
        read_settings("partial", file)


def motion(degrees: float = 0.0, flip: tuple[int, int] = (1, 1), factor: float = 1.0, shift=(0.0, 0.0)) -> Motion:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[[cos, -sin], [sin, cos]]]) * torch.tensor(flip)
    one = torch.ones(1)
    return Motion((21, 21), turn, torch.tensor([shift]), factor * one, one, 0 * one)  # its middle is (10, 10)


@pytest.mark.parametrize(
    ("moved", "low", "high"),
    [
        (motion(), [2, 6], [4, 9]),
        (motion(flip=(-1, 1)), [16, 6], [18, 9]),
        (motion(flip=(-1, -1)), [16, 11], [18, 14]),
        (motion(90), [11, 2], [14, 4]),
        (motion(factor=2, shift=(1.0, 0.0)), [-5, 2], [-1, 8]),
    ],
)
def test_a_box_keeps_its_smaller_corner_first(moved, low, high) -> None:
    before = torch.tensor([[[2.0, 6.0]]]), torch.tensor([[[4.0, 9.0]]])
    for side, wanted in zip(moved.boxes(*before), (low, high), strict=True):
        torch.testing.assert_close(side[0, 0], torch.tensor(wanted).float())


@pytest.mark.parametrize("degrees", [0, 30, 45, 90, 200])
def test_a_turned_box_holds_what_was_in_it(degrees) -> None:
    moved = motion(degrees, (1, -1), 1.3, (2.0, -1.0))
    low, high = torch.tensor([[[2.0, 6.0]]]), torch.tensor([[[4.0, 9.0]]])
    points = moved.points(low + (high - low) * torch.rand(1, 500, 2))
    least, most = moved.boxes(low, high)
    assert ((points >= least - 1e-4) & (points <= most + 1e-4)).all()
    same = torch.tensor([[[3.0, 7.0]]])
    for side in moved.boxes(same, same):
        torch.testing.assert_close(side, moved.points(same))


def test_an_open_side_of_a_box_goes_with_it() -> None:
    low, high = torch.tensor([[[2.0, NAN]]]), torch.tensor([[[NAN, 9.0]]])
    for moved, least, most in (
        (motion(flip=(-1, -1)), [NAN, 11], [18, NAN]),
        (motion(90), [11, 2], [NAN, NAN]),
        (motion(45), [10 - 7 * math.sqrt(0.5), NAN], [NAN, NAN]),
    ):
        for side, wanted in zip(moved.boxes(low, high), (least, most), strict=True):
            torch.testing.assert_close(side[0, 0], torch.tensor(wanted).float(), equal_nan=True)


def test_ranges_follow_augmentation_as_facts_do() -> None:
    centres = 20 + 5 * torch.rand(12, 2, 2)
    facts = {"size": torch.full((12, 2, 1), 50.0), "centroid": centres, "mean_intensity": torch.full((12, 2, 1), 0.5)}
    wide = {"size": 10.0, "centroid": 2.0, "mean_intensity": 0.1}
    for name, by in wide.items():
        facts |= {end: facts[name] + sign * by for end, sign in zip(range_of(name), (-1, 1), strict=True)}
    scans = Scans.of("aabbccddeeff")
    batch = Batch(torch.rand(12, 1, 48, 48), Annotation(torch.full((12, 48, 48), 255), facts, scans=scans))
    for augment in (Augment(flip=True, quarter=True, contrast=1.5, brightness=0.2), Augment(rotate=40, zoom=1.2)):
        after = augment(batch)[0].annotation.facts
        for name in wide:
            low, high = (after[end] for end in range_of(name))
            there = ~after[name].isnan()
            assert there.any()
            assert ((low < after[name]) & (after[name] < high))[there].all()


def test_a_region_known_by_ranges_stays_inside_where_its_worst_does() -> None:
    """Two images: one region may lie at the rim, the other is well inside, whatever it is in its ranges."""
    ends = {
        "size_min": 10.0,
        "size_max": 20.0,
        "centroid_min": 20.0,
        "centroid_max": torch.tensor([[[60.0]], [[28.0]]]),
    }
    facts = {end: torch.ones(2, 2, 2 if "centroid" in end else 1) * value for end, value in ends.items()}
    facts |= {name: torch.full_like(facts[f"{name}_min"], NAN) for name in ("size", "centroid")}
    batch = Batch(torch.rand(2, 1, 48, 48), Annotation(torch.full((2, 48, 48), 255), facts))
    after = Augment(rotate=5, translate=0.05)(batch)[0].annotation.facts
    assert after["cut"][:, 1, 0].tolist() == [1, 0]
    assert after["centroid_min"][:, 1].isnan().all(dim=-1).tolist() == [True, False]
