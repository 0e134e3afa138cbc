"""Facts on the grid are what the statistics measure there, whatever the fit did to the slices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import inbounds
from cases import one_hot
from inbounds import Annotation, Constraint, Individual, Scans, Tags
from inbounds.batches.fact_tensors import to_tensors
from inbounds.errors import BadInput
from inbounds.regions import FactColumns, statistics
from inbounds.store.annotate import simulate
from inbounds.store.facts import Fact, Facts
from inbounds.store.grid import GridWindow
from inbounds.store.measure import Noise
from inbounds.store.store import Store
from making import CLASSES, SPACING, image_of, make_store, row, source, truth_like

FITS = {
    "pad": (GridWindow.pad, (40, 33)),
    "crop": (GridWindow.pad, (21, 17)),
    "enlarge": (GridWindow.resize, (41, 47)),
    "shrink": (GridWindow.resize, (19, 23)),
    "axial": (GridWindow.axial, (40, 40)),
    "zoom": (GridWindow.zoom, (256, 256)),
}


def one_scan(path: Path, slices: int = 3, fit=GridWindow.resize, shape=(60, 13), **settings) -> Store:
    return make_store(path, [source("a", truth_like(0, slices), **settings)], fit=fit, shape=shape)


def tensors(store: Store, *facts: Fact, classes=(1, 2)) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    return to_tensors(store, Facts(facts, store.classes), classes)


def measured(store: Store, classes=(1, 2)) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The same by the package's statistics, of the stored images and truth; no numbers where a region is absent."""
    truth = torch.from_numpy(store.truth[:].astype(np.int64))
    images = torch.from_numpy(store.images[:].astype(np.float64)) / (255 if store.dtype == np.uint8 else 1)
    probs = torch.stack([truth == k for k in (0, *classes)], dim=1).double()
    scans = Scans.of([record.name for record in store.records for _ in record.range])
    found = []
    for group in (None, scans):
        sizes = inbounds.size(probs, scans=group)
        table = {"present": (sizes > 0).double(), "size": sizes}
        table["centroid"] = inbounds.centroid(probs, scans=group)
        table["mean_intensity"] = inbounds.mean_intensity(probs, images[:, :1], scans=group)
        for name in ("centroid", "mean_intensity"):
            table[name] = torch.where(sizes > 0, table[name], torch.nan)
        for table_ in table.values():
            table_[:, 0] = torch.nan
        found.append(table)
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("name", FITS)
def test_simulated_facts_are_what_is_measured_on_the_grid(tmp_path, name, dtype) -> None:
    fit, shape = FITS[name]
    sources = [source("a", truth_like(0)), source("b", truth_like(1, 4, (26, 28)), spacing=(2.5, 0.7, 0.7))]
    store = make_store(tmp_path / "store", sources, fit=fit, shape=shape, dtype=dtype)
    simulate(store, "weak", "erosion", [1, 2])
    slices, scans = to_tensors(store, store.facts("weak"), [1, 2])
    per_slice, per_scan = measured(store)
    per_scan["centroid"][:] = torch.nan  # the position of a whole scan's region is not a column of the table
    for got, wanted in ((slices, per_slice), (scans, per_scan)):
        assert list(got) == [*wanted, "compactness", *(["cut"] if name == "crop" else [])]
        for fact in wanted:
            value = got[fact]
            torch.testing.assert_close(value, wanted[fact].float(), rtol=1e-3, atol=1e-3, equal_nan=True, msg=fact)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_regions_anywhere_keep_their_facts(tmp_path_factory, data) -> None:
    """Down to single pixels at the very edge of the slice."""
    sides = st.integers(3, 12)
    original, shape = data.draw(st.tuples(sides, sides)), data.draw(st.tuples(sides, sides))
    truth = np.zeros((1, *original), np.uint8)
    truth[0, data.draw(st.integers(0, original[0] - 1)), data.draw(st.integers(0, original[1] - 1))] = 1
    truth[0, data.draw(st.sampled_from([0, -1])), data.draw(st.sampled_from([0, -1]))] = 2
    fit = data.draw(st.sampled_from([GridWindow.pad, GridWindow.resize]))
    store = make_store(tmp_path_factory.mktemp("stores") / "a", [source("a", truth)], fit=fit, shape=shape)
    simulate(store, "weak", "centroid", [1, 2])
    slices, _ = to_tensors(store, store.facts("weak"), [1, 2])
    for fact, wanted in measured(store)[0].items():
        torch.testing.assert_close(slices[fact], wanted.float(), rtol=1e-3, atol=1e-3, equal_nan=True, msg=fact)


@pytest.mark.parametrize(("shape", "known"), [((30, 26), True), ((60, 52), True), ((60, 13), False)])
def test_compactness_is_measured_where_the_grid_keeps_shapes(tmp_path, shape, known) -> None:
    """A square of 10x10 has (4 * 9 + 4 * 0.707)^2 / 100 = 15.1, two slices of it twice that; one of 20x20 has 15.5."""
    truth = np.zeros((3, 30, 26), np.uint8)
    truth[:2, 5:15, 5:15] = 1
    store = make_store(tmp_path / "store", [source("a", truth)], fit=GridWindow.resize, shape=shape)
    simulate(store, "weak", "erosion", [1])
    rows = store.facts("weak").rows
    square = (4 * (9 if shape == (30, 26) else 19) + 4 * 0.5**0.5) ** 2 / (100 if shape == (30, 26) else 400)
    nan = torch.nan
    wanted = [square, square, nan, 2 * square] if known else [nan] * 4
    assert [fact.known.get("compactness", nan) for fact in rows] == pytest.approx(
        wanted, rel=5e-3, nan_ok=True
    )  # the border is smoothed
    slices, scans = to_tensors(store, store.facts("weak"), [1])
    expected = torch.tensor([square, square, nan] if known else [nan] * 3).float()
    torch.testing.assert_close(slices["compactness"][:, 1, 0], expected, equal_nan=True, rtol=5e-3, atol=0)
    assert scans["compactness"][0, 1].isnan() != known


def test_a_new_statistic_is_measured_with_nothing_else_to_do(tmp_path, monkeypatch) -> None:
    """The brightest pixel of a region, which people give in the brightness of the file; and one that has no value."""

    @inbounds.statistic(
        columns=FactColumns(
            ("brightest",),
            to_grid=lambda values, at: [(v - at.intensity[0]) / (at.intensity[1] - at.intensity[0]) for v in values],
            from_grid=lambda values, at: [at.intensity[0] + v * (at.intensity[1] - at.intensity[0]) for v in values],
        )
    )
    def brightest(probs, image, *, scans=None):
        return scans.total((probs * image[:, :1]).flatten(2).amax(dim=2, keepdim=True))

    @inbounds.statistic(columns=FactColumns(("nothing",), refused=lambda *_: "never"))
    def nothing(probs, *, scans=None):
        return inbounds.size(probs, scans=scans)

    for one in (brightest, nothing):
        monkeypatch.setitem(statistics, one.fact, one)
    store = one_scan(tmp_path / "store", fit=GridWindow.pad, shape=(30, 26), image=image_of(truth_like(0)))
    simulate(store, "weak", "erosion", [2])
    black, white = store.records[0].intensity
    peaks = [image[truth == 2].max() / 255 for image, truth in zip(store.images[:2, 0], store.truth[:2], strict=True)]
    facts = store.facts("weak").rows
    assert [fact.known.get("nothing") for fact in facts] == [None] * 4
    assert facts[2].known.keys() == {"size_px", "size_mm2"}
    for fact, peak in ((facts[0], peaks[0]), (facts[1], peaks[1]), (facts[3], sum(peaks))):
        assert fact.known["brightest"] == pytest.approx(black + peak * (white - black), rel=1e-5)
    slices, _ = to_tensors(store, store.facts("weak"), [2])
    assert slices["brightest"][:2, 1, 0].tolist() == pytest.approx(peaks, rel=1e-4)


def test_chosen_classes_become_columns_in_their_order(tmp_path) -> None:
    store = one_scan(tmp_path / "store")
    facts = (row("a", 0, 1, size_px=10), row("a", 0, 2, size_px=20))
    for classes in ((1, 2), (2, 1), (2,)):
        slices, scans = tensors(store, *facts, classes=classes)
        area = store.records[0].fit.area
        wanted = [torch.nan, *(10.0 * k * area for k in classes)]
        torch.testing.assert_close(slices["size"][0, :, 0], torch.tensor(wanted), equal_nan=True)
        assert {fact.shape[:2] for fact in slices.values()} == {(3, len(classes) + 1)}
        assert {fact.shape[:2] for fact in scans.values()} == {(1, len(classes) + 1)}


def test_units_of_a_row_agree_on_the_grid(tmp_path) -> None:
    store = one_scan(tmp_path / "store")
    depth, height, width = SPACING
    rows = [
        row("a", 0, 1, size_px=12),
        row("a", 1, 1, size_mm2=12 * height * width),
        row("a", 2, 1, volume_ml=12 * depth * height * width / 1000),
    ]
    slices, _ = tensors(store, *rows)
    torch.testing.assert_close(slices["size"][:, 1, 0], torch.full((3,), 12 * 60 * 13 / (30 * 26)))
    _, scans = tensors(store, row("a", None, 2, volume_ml=1.5))
    assert float(scans["size"][0, 2]) == pytest.approx(1500 / (depth * height * width) * store.records[0].fit.area)
    assert scans["present"][0, 2] == 1


def test_positions_and_brightness_by_hand(tmp_path) -> None:
    store = one_scan(tmp_path / "store", shape=(60, 13))  # rows twice, columns half
    black, white = store.records[0].intensity
    slices, _ = tensors(
        store, row("a", 1, 2, centroid_row=10, centroid_col=5, mean_intensity=black + 0.25 * (white - black))
    )
    assert slices["centroid"][1, 2].tolist() == [20.5, 2.25]
    assert float(slices["mean_intensity"][1, 2]) == pytest.approx(0.25)
    assert slices["present"][1, 2] == 1  # what has a centre is there
    assert slices["size"][1, 2].isnan()


def test_the_size_of_a_scan_is_the_sum_once_every_slice_is_known(tmp_path) -> None:
    store = one_scan(tmp_path / "store", fit=GridWindow.pad, shape=(32, 32))
    known = [row("a", 0, 1, size_px=10), row("a", 1, 1, size_px=20), row("a", 2, 1, present=False)]
    _, scans = tensors(store, *known)
    assert scans["size"][0, 1] == 30
    assert scans["present"][0, 1] == 1
    _, scans = tensors(store, *known[1:], row("a", 0, 1, present=True))
    assert scans["size"][0, 1].isnan()
    assert scans["present"][0, 1].isnan()
    _, scans = tensors(store, *known, row("a", None, 1, size_px=31))  # what was told of the whole comes first
    assert scans["size"][0, 1] == 31
    _, scans = tensors(store, *(row("a", n, 2, present=False) for n in range(3)))
    assert scans["size"][0, 2] == 0
    assert scans["present"][0, 2] == 0


def test_ranges_go_through_the_fit_as_facts_do(tmp_path) -> None:
    store = one_scan(tmp_path / "store", shape=(60, 13))  # rows twice, columns half
    black, white = store.records[0].intensity
    slices, scans = tensors(
        store,
        row("a", 0, 1, size_px_min=10, size_px_max=20, centroid_row_min=10, centroid_col_min=4, centroid_col_max=5),
        row("a", 1, 1, size_px=7, mean_intensity_max=(black + white) / 2),
        row("a", 2, 1, present=False, size_px_max=9),
        row("a", 2, 2, volume_ml_min=1.5),
    )
    nan = torch.nan
    for name, wanted in (
        ("size", [[nan], [7], [0]]),
        ("size_min", [[10], [nan], [nan]]),
        ("size_max", [[20], [nan], [nan]]),  # the last is absent, which says more
        ("centroid_min", [[20.5, 1.75], [nan, nan], [nan, nan]]),
        ("centroid_max", [[nan, 2.25], [nan, nan], [nan, nan]]),
        ("mean_intensity_max", [[nan], [0.5], [nan]]),
    ):
        torch.testing.assert_close(slices[name][:, 1], torch.tensor(wanted).float(), equal_nan=True)
    assert float(slices["size_min"][2, 2]) == pytest.approx(1500 / (SPACING[0] * SPACING[1] * SPACING[2]))
    assert slices["present"][:, 1, 0].tolist() == [1, 1, 0]
    assert (scans["size_min"][0, 1], scans["size_max"][0, 1]) == (17, 27)  # with what was measured in the others
    assert scans["size"][0, 1].isnan()
    assert not {"compactness_min", "compactness_max"} & slices.keys()  # nobody gave any
    _, scans = tensors(store, row("a", 0, 1, size_px_min=9), row("a", None, 1, size_px_max=30))
    assert scans["size_min"][0, 1].isnan()  # what is said of the whole comes first
    assert scans["size_max"][0, 1] == 30


def test_nothing_known_is_an_open_interval(tmp_path) -> None:
    store = one_scan(tmp_path / "store")
    slices, scans = to_tensors(store, None, [1, 2])
    assert all(fact.isnan().all() for table in (slices, scans) for fact in table.values())
    some, _ = tensors(store, row("a", 0, 1, size_px=10), row("a", 1, 1, present=True), row("a", 2, 1, present=False))
    area = store.records[0].fit.area
    annotation = Annotation(torch.full((3, 60, 13), 255), some)
    probs = torch.full((3, 3, 60, 13), 1 / 3)
    individual = Constraint(inbounds.size, Individual(relative=0.1)).interval(probs, None, annotation)
    torch.testing.assert_close(individual.lower[:, 0, 0], torch.tensor([9 * area, -torch.inf, 0]))
    torch.testing.assert_close(individual.upper[:, 0, 0], torch.tensor([11 * area, torch.inf, 0]))
    tags = Constraint(inbounds.size, Tags()).interval(probs, None, annotation)
    assert tags.lower[:, 0, 0].tolist() == [1, 1, 0]
    for interval in (individual, tags):  # nobody has said anything of class 2
        assert bool((interval.lower[:, 1] == -torch.inf).all())
        assert bool((interval.upper[:, 1] == torch.inf).all())
    where = Constraint(inbounds.centroid, Individual(absolute=1)).interval(probs, None, annotation)
    assert bool(where.lower.isinf().all() and where.upper.isinf().all())


def test_brightness_is_known_of_the_first_channel_only(tmp_path) -> None:
    truth = truth_like(0)
    image = np.concatenate([image_of(truth), 4000 - image_of(truth, seed=1)])
    store = make_store(tmp_path / "store", [source("a", truth, image=image)])
    simulate(store, "weak", "erosion", [1, 2])
    slices, _ = to_tensors(store, store.facts("weak"), [1, 2])
    label = torch.full((3, 32, 32), 255)
    stored = torch.from_numpy(store.images[:]).float() / 255
    probs = one_hot(torch.from_numpy(store.truth[:]), 3, torch.float32)
    exact = Constraint(inbounds.mean_intensity, Individual(absolute=0.01))
    assert float(exact.violation(probs, stored, Annotation(label, slices)).max()) <= 0
    assert float(exact.violation(probs.roll(3, dims=-1), stored, Annotation(label, slices)).max()) > 0


@pytest.mark.parametrize("noise", [Noise(size=0.5), Noise(position=30.0), Noise(size=3.0, position=200.0)])
def test_noisy_facts_can_be_read(tmp_path, noise) -> None:
    """However far off a person is, a size fits the image and a centre lies in it."""
    truth = np.zeros((2, 30, 26), np.uint8)
    truth[:, 1:29, 1:26] = 1
    truth[0, :5, :5] = 2
    store = make_store(tmp_path / "store", [source(name, truth) for name in "abcd"])
    simulate(store, "weak", "centroid", [1, 2], noise=noise)
    told, exact = to_tensors(store, store.facts("weak"), [1, 2])[0], measured(store)[0]
    fact = "size" if noise.size else "centroid"
    there = exact["present"] == 1
    assert bool((told[fact] != exact[fact].float())[there.expand_as(exact[fact])].any())
    assert bool((told["size"][there] > 0).all())


def test_sizes_are_off_by_what_was_given_at_most_and_by_anything_up_to_that() -> None:
    rng = np.random.default_rng(0)
    factors = [Noise(size=0.2).factor(rng) for _ in range(2000)]
    assert (min(factors), max(factors)) == pytest.approx((0.8, 1.2), abs=0.005)
    assert 0.8 <= min(factors) <= max(factors) <= 1.2
    assert np.histogram(factors, bins=4, range=(0.8, 1.2))[0] == pytest.approx(500, abs=80)  # four standard deviations
    assert min(Noise(size=5.0).factor(rng) for _ in range(200)) == 0.1
    assert Noise(position=9.0).factor(rng) == 1
    for wrong in ({"size": float("nan")}, {"size": -0.1}, {"position": float("inf")}):
        with pytest.raises(BadInput, match="sizes and centres are off by 0 or more"):
            Noise(**wrong)


def test_a_row_finds_its_slice_in_the_store(tmp_path) -> None:
    store = make_store(tmp_path / "store")
    slices, _ = tensors(store, row("b", 2, 1, size_px=7), classes=(1,))
    assert slices["size"][5, 1] == 7
    assert int((~slices["size"].isnan()).sum()) == 1


def test_what_a_crop_may_have_cut_off_opens_lower_bounds(tmp_path) -> None:
    """Nobody drew these regions: only a centre and a size can tell that they lie inside the grid, else what is seen."""
    nobody = [replace(source("a", truth_like(0, 3, (40, 40))), truth=False)]
    nobody = [replace(s, load=lambda load=s.load: replace(load(), truth=None)) for s in nobody]
    store = make_store(tmp_path / "store", nobody, fit=GridWindow.pad, shape=(24, 24))
    told = Facts(
        (
            row("a", 0, 1, size_px=20, centroid_row=20, centroid_col=20),
            row("a", 1, 1, size_px=20, centroid_row=9, centroid_col=20),
            row("a", 2, 1, size_px=20),
        ),
        store.classes,
    )
    slices, scans = to_tensors(store, told, [1])
    assert slices["cut"][:2, 1, 0].tolist() == [0, 1]
    assert slices["cut"][2, 1].isnan()
    assert scans["cut"][0, 1, 0] == 1
    annotation = inbounds.Annotation(torch.full((3, 24, 24), 255), facts=slices)
    constraint = inbounds.Constraint(inbounds.size, inbounds.Individual(relative=0.1))
    for probability, third in ((0.5, False), (0.6, True)):  # the second is seen at the rim
        interval = constraint.interval(torch.full((3, 2, 24, 24), probability), annotation=annotation)
        assert interval.lower[:, 0, 0].isinf().tolist() == [False, True, third]
        assert interval.upper[:, 0, 0].isinf().tolist() == [False, False, False]
    _, scans = to_tensors(store, Facts(told.rows[::2], store.classes), [1])
    assert scans["cut"][0, 1].isnan()
    _, scans = to_tensors(store, Facts((told.rows[0], *(row("a", n, 1, present=False) for n in (1, 2))), CLASSES), [1])
    assert scans["cut"][0, 1] == 0


def test_what_is_known_of_several_classes_and_of_relations_has_names_of_its_own(tmp_path) -> None:
    store = one_scan(tmp_path / "store", shape=(60, 52))  # twice as fine as the scan
    together = Fact("a", 1, 1, None, {"size_px": 50, "centroid_row": 10, "centroid_col": 10}, ((1, 2),))
    related = Fact(
        "a", None, 2, None, {"ratio": 0.5, "distance_px": 4, "offset_row": 1, "offset_col": -2}, ((2,), (1,))
    )
    slices, scans = to_tensors(store, Facts((), store.classes, (), (together, related)), [2, 1])
    assert {name for name in slices if "(" in name} == {"size(1+2)", "centroid(1+2)", "present(1+2)"}
    assert slices["size(1+2)"][:, 0, 0].tolist()[1] == 200
    assert slices["size(1+2)"].isnan().sum() == 2
    torch.testing.assert_close(slices["centroid(1+2)"][1], torch.tensor([[20.5, 20.5]]))
    assert {name: scans[name][0, 0].tolist() for name in ("ratio(1:2)", "distance(1:2)", "offset(1:2)")} == {
        "ratio(1:2)": [0.5],
        "distance(1:2)": [8],
        "offset(1:2)": [2, -4],
    }
    assert to_tensors(store, Facts((), store.classes, (), (together, related)), [2])[0].keys() == slices.keys() - {
        "size(1+2)",
        "centroid(1+2)",
        "present(1+2)",
    }
