"""How large classes are in training scans: as the run was told, or as its network finds them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from inbounds.batches.samples import Samples, load
from inbounds.evaluation.evaluate import predict_slices
from inbounds.inference.volumes import volume_ranges
from inbounds.runs.model import build_network
from inbounds.runs.run import Run
from inbounds.store.store import Store
from predicting import keep
from training_runs import blind, start


def samples_of(run: Run) -> Samples:
    return load(run.opened_store(), run.annotation, facts=run.facts, classes=run.classes)


def true_volumes(store: Store, klass: str) -> list[float]:
    value = store.class_index(klass)
    training = [record for record in store.records if record.split == "train"]
    return [int((store.truth[r.first : r.range.stop] == value).sum()) * math.prod(r.spacing) / 1000 for r in training]


@pytest.mark.parametrize("recipe", ["full", "individual"])
def test_what_a_run_was_told(tmp_path: Path, hearts: Store, recipe: str) -> None:
    """Complete labels, or the sizes of all slices; nothing is predicted, for there is no network yet."""
    run = start(tmp_path / "run", hearts, recipe, classes=["RV", "LV"])
    ranges = volume_ranges(run, samples_of(run), "cpu")
    for name in ("RV", "LV"):
        volumes = true_volumes(hearts, name)
        assert ranges[name] == pytest.approx((min(volumes), max(volumes)), rel=1e-4)


def test_what_its_network_finds_where_it_was_told_nothing(tmp_path: Path, hearts: Store) -> None:
    """A run with tags knows no sizes, though they were written down beside its labels."""
    run = start(tmp_path / "run", hearts, "tags")
    keep(run, build_network(run))
    training = [record for record in hearts.records if record.split == "train"]
    masks = predict_slices(run, [n for record in training for n in record.range])
    volumes = [sum(int((masks[n] == 1).sum()) for n in r.range) * math.prod(r.spacing) / 1000 for r in training]
    assert volume_ranges(run, samples_of(run), "cpu")["LV"] == pytest.approx((min(volumes), max(volumes)))
    assert max(volumes) > 0


def test_ranges_that_people_gave(tmp_path: Path, hearts: Store) -> None:
    """Of one scan 90 to 120 ml, of another 80 ml: 80 to 120, whatever is unknown of the others."""
    store = blind(hearts, tmp_path / "blind", "train")
    one, two, *_ = [record.name for record in store.records if record.split == "train"]
    (tmp_path / "volumes.csv").write_text(f"case,class,volume_ml\n{one},LV,90-120\n{two},LV,80\n")
    store.import_facts(tmp_path / "volumes.csv", "volumes")
    run = start(tmp_path / "run", store, "known", facts="volumes")
    assert volume_ranges(run, samples_of(run), "cpu")["LV"] == pytest.approx((80, 120), rel=1e-4)


def test_a_run_remembers_them(tmp_path: Path, hearts: Store) -> None:
    run = start(tmp_path / "run", hearts, "tags")
    assert run.volumes == {}
    run.note_volumes({"LV": (1.5, 2.25)})
    assert Run.open(run.path).volumes == {"LV": (1.5, 2.25)}
