"""Labels and facts that rows need, and what a plan makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from inbounds.errors import BadInput
from inbounds.store.store import FULL, Store
from making import make_store, source
from reproduction.experiment import Brought, Experiment, Row, Seeds, experiment, settings_of
from reproduction.knowledge import brought_facts, facts_of, labels_of, planned


@pytest.fixture
def store(hearts: Store, tmp_path: Path) -> Store:
    return Store(shutil.copytree(hearts.path, tmp_path / "hearts"))


def quiet(_text: str) -> None:
    pass


def table(**row: object) -> Experiment:
    seeds = Seeds(name="points", strategy="centroid")
    about = Row(cells=(), recipe="known", **row)  # type: ignore[arg-type]
    return Experiment(title="ours", classes=("LV",), columns=(), seeds=seeds, rows={"it": about})


def test_tables_say_only_what_people_write(tmp_path: Path) -> None:
    """A table of sizes has presence and sizes of slices, one of volumes nothing but volumes."""
    truth = np.zeros((4, 30, 26), np.uint8)
    truth[1:, 10:20, 5:15] = 1  # 100 pixels; a voxel has 8 x 1.25 x 1.5 mm
    store = make_store(tmp_path / "store", [source("a", truth, spacing=(8.0, 1.25, 1.5))], classes=("background", "LV"))
    sizes, tags, volumes = (
        [
            (fact.slice, fact.present, dict(fact.known))
            for fact in brought_facts(store, Brought(name="x", what=what), [1])
        ]
        for what in ("sizes", "tags", "volumes")
    )
    assert sizes == [(0, False, {"size_px": 0}), *((n, True, {"size_px": 100}) for n in (1, 2, 3))]
    assert tags == [(0, False, {}), *((n, True, {}) for n in (1, 2, 3))]
    assert volumes == [(None, None, {"volume_ml": pytest.approx(3 * 100 * 8 * 1.25 * 1.5 / 1000)})]
    third = brought_facts(store, Brought(name="x", what="sizes", every=3), [1])
    assert [fact.slice for fact in third] == [1]  # as labels of every third slice have it


def test_sizes_are_off_evenly_by_up_to_the_error_and_always_the_same(store: Store) -> None:
    def sizes(error: float, of: Store = store) -> np.ndarray:
        facts = brought_facts(of, Brought(name="x", what="sizes", error=error), [1, 2, 3])
        return np.array([fact.known["size_px"] for fact in facts if fact.present])

    off = sizes(0.2) / sizes(0.0) - 1
    assert abs(off).max() <= 0.2
    assert off.min() < -0.12
    assert off.max() > 0.12
    np.testing.assert_array_equal(sizes(0.2), sizes(0.2, Store(store.path)))
    np.testing.assert_allclose(sizes(0.1) / sizes(0.0) - 1, off / 2, atol=1e-9)


def test_centres_and_brightness_are_off_by_so_much_at_most(store: Store) -> None:
    def known(brought: Brought) -> list[dict[str, float]]:
        return [dict(fact.known) for fact in brought_facts(store, brought, [3]) if fact.present]

    both = "centres and intensities"
    true, rough = known(Brought(name="x", what=both)), known(Brought(name="x", what=both, error=0.1, pixels=5))
    assert {name for fact in rough for name in fact} == {"centroid_row", "centroid_col", "mean_intensity"}
    off = {name: np.array([one[name] - of[name] for one, of in zip(rough, true, strict=True)]) for name in true[0]}
    scale = {record.fit.scale for record in store.records}
    assert scale == {(1.0, 1.0)}
    for name in ("centroid_row", "centroid_col"):
        assert 3.5 < abs(off[name]).max() <= 5
    share = off["mean_intensity"] / np.array([fact["mean_intensity"] for fact in true])
    assert 0.05 < abs(share).max() <= 0.11  # of the brightness above black
    assert known(Brought(name="x", what="centres", pixels=5)) == [
        {name: value for name, value in fact.items() if name != "mean_intensity"} for fact in rough
    ]
    assert known(Brought(name="x", what="tags")) == [{}] * len(true)


def test_facts_are_made_once_and_others_of_that_name_are_refused(store: Store) -> None:
    about = table(facts=Brought(name="rough", what="sizes", error=0.2), margin=0.2)
    assert facts_of(store, table(), "it", quiet) is None
    assert facts_of(store, about, "it", quiet) == "rough"
    file = store.path / "facts" / "rough.csv"
    before = file.stat().st_mtime_ns
    assert facts_of(Store(store.path), about, "it", quiet) == "rough"
    assert (file.stat().st_mtime_ns, store.facts_brought) == (before, ["rough"])
    for brought in (Brought(name="rough", what="tags"), Brought(name="disc", what="tags")):
        with pytest.raises(BadInput, match=f"other facts called '{brought.name}'; rename or remove them"):
            facts_of(store, table(facts=brought), "it", quiet)


def test_labels_are_those_of_the_store_or_made_like_the_row_wants_them(store: Store) -> None:
    assert labels_of(store, table(labels="disc"), "it", quiet) == "disc"
    assert labels_of(store, experiment("heart"), "full", quiet) == FULL
    each = [labels_of(store, experiment("heart"), row, quiet) for row in ("discs", "discs_third", "discs", "boxes")]
    assert each == ["discs", "discs-third", "discs", "boxes"]
    said = [store.about(name) for name in each]
    assert [about.get("every", 1) for about in said] == [1, 3, 1, 1]
    assert [about["background"] for about in said] == [True, True, True, False]
    assert (store.label("discs")[1] == 0).any()


def test_epochs_follow_from_the_number_of_slices(store: Store) -> None:
    """60 slices are gone through 84 times for at least 5000 in an epoch: 3600 batches of 15 are 11 such epochs."""
    assert sum(record.slices for record in store.records if record.split == "train") == 60
    about = experiment("left-ventricle")
    chosen = planned(about, "full", "default", store, FULL, None, [])
    training = chosen.settings["training"]
    assert (training["repeats"], training["batch"], training["epochs"]) == (84, 15, 11)
    assert chosen.words[-1] == "epochs: 11 of 5040 slices, about 3600 steps in all"
    few = planned(about, "full", "default", store, FULL, None, ["training.slices=10", "training.batch=5"])
    assert few.settings["training"]["epochs"] == 1800  # 3600 batches of 5 slices, 10 in an epoch
    five = planned(experiment("hybrid"), "full_5", "default", store, FULL, None, [])
    assert five.settings["training"]["repeats"] == 100  # of six scans, which have ten slices each in the mean


def test_a_plan_takes_the_place_of_the_papers_method_and_of_nothing_that_is_known(store: Store) -> None:
    heart = experiment("heart")
    facts = facts_of(store, heart, "discs_sizes", quiet)
    labels = labels_of(store, heart, "discs_sizes", quiet)
    chosen = planned(heart, "discs_sizes", "default", store, labels, facts, [])
    settings = settings_of(heart, "discs_sizes", "default", store, [], chosen.settings)
    (size,) = settings.constraints.values()
    assert size.bounds == {"kind": "known", "relative": 0.2}
    assert (size.weight, size.scale, settings.network.name) == (3.0, "typical", "unet")
    assert set(settings.regularisers) == {"pairwise"}
    assert chosen.words[0].startswith("known: sizes of ")
    about = experiment("left-ventricle")
    labels = labels_of(store, about, "individual", quiet)
    each = (("individual", 3.0, {"relative": 0.1}), ("common", 0.3, {"patient": store.records[0].patient}))
    for row, weight, bounds in each:
        layer = planned(about, row, "default", store, labels, None, []).settings
        had = settings_of(about, row, "default", store, ["constraints.size.penalty=quadratic"], layer)
        assert (had.constraints["size"].weight, had.constraints["size"].penalty) == (weight, {"name": "quadratic"})
        assert had.constraints["size"].bounds == {"kind": row, **bounds}
        assert (had.training.batch, had.regularisers["border"].weight) == (layer["training"]["batch"], 100)


def test_a_margin_counts_without_a_plan_too(store: Store) -> None:
    settings = settings_of(experiment("heart"), "scribbles_sizes", "paper", store)
    assert {one.bounds["relative"] for one in settings.constraints.values()} == {0.2}
