"""Masks beside what is known: by hand, and of a run whose scans nobody has drawn."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from archives import done
from inbounds import UNLABELLED, Annotation, Scans
from inbounds.evaluation.agreement import agreement
from inbounds.evaluation.evaluate import evaluate, predict_slices
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from training_runs import blind, start

U, NAN = UNLABELLED, math.nan
LABEL = torch.tensor([[[0, 1, 1], [U, U, U]], [[U, U, U], [1, 1, U]]])
MASK = torch.tensor([[[0, 1, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 1]]])


def test_labels_sizes_and_volume_by_hand() -> None:
    """Class 1 has 3 of its 4 labelled pixels; 3 pixels in each slice, known 4 and unknown; 6 in all, known 8."""
    sizes = torch.tensor([[[NAN], [4.0], [0.0]], [[NAN], [NAN], [NAN]]])
    whole = torch.tensor([[[NAN], [8.0], [NAN]]])
    known = Annotation(LABEL, {"size": sizes}, {"size": whole}, Scans.of("aa"))
    found = agreement(MASK, known, 3)
    assert found.labels.tolist() == pytest.approx([1, 0.75, NAN], nan_ok=True)
    assert found.sizes.tolist() == [pytest.approx(row, nan_ok=True) for row in ([NAN, 0.25, NAN], [NAN] * 3)]
    assert found.volume.tolist() == pytest.approx([NAN, 0.25, NAN], nan_ok=True)
    nothing = agreement(MASK, Annotation(torch.full_like(LABEL, U)), 2)
    assert all(bool(part.isnan().all()) for part in (nothing.labels, nothing.sizes, nothing.volume))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, hearts: Store) -> Run:
    folder = tmp_path_factory.mktemp("agreement")
    made = start(folder / "run", blind(hearts, folder / "blind"), "known", "training.epochs=1", classes=["RV", "LV"])
    Trainer(made).fit()
    return made


def test_a_run_without_truth_is_measured_by_what_is_known(run: Run, hearts: Store) -> None:
    """The facts are those of the truth, which the run's own store no longer has."""
    evaluation = evaluate(run)
    rows = read_rows(evaluation.folder / "cases.csv")
    assert not {"dsc_volume", "hd95_mm"} & {row.metric for row in rows}
    record = next(record for record in hearts.records if record.split == "validation")
    masks = predict_slices(run, list(record.range))
    mine = [row for row in rows if row.case == record.name]
    for k, name in enumerate(run.classes, start=1):
        value = hearts.class_index(name)
        pixels = [(int((masks[n] == k).sum()), int((hearts.truth[n] == value).sum())) for n in record.range]
        wanted = {n: abs(has - true) / true for n, (has, true) in enumerate(pixels) if true}
        sizes = {row.slice: row.value for row in mine if (row.metric, row.klass) == ("size_error", name)}
        assert sizes == pytest.approx(wanted, rel=1e-4)
        has, true = map(sum, zip(*pixels, strict=True))
        (volume,) = (row.value for row in mine if (row.metric, row.klass) == ("volume_error", name))
        assert volume == pytest.approx(abs(has - true) / true, rel=1e-4)
        (size,) = (row.value for row in mine if (row.metric, row.klass) == ("volume_ml", name))
        assert size == pytest.approx(has * math.prod(record.spacing) / 1000)
        labels = run.opened_store().label("disc")[record.first : record.range.stop]
        right = [masks[n][at] == k for n, at in places(labels, value, record.first)]
        (share,) = (row.value for row in mine if (row.metric, row.klass) == ("label_agreement", name))
        assert share == pytest.approx(sum(right) / len(right))
    assert {row.metric for row in rows if row.klass == "background"} <= {"label_agreement"}


def places(labels: np.ndarray, value: int, first: int) -> list[tuple[int, tuple[int, int]]]:
    """Which pixels have a label: the position of the slice in the store, row and column."""
    return [(first + n, (row, col)) for n, row, col in zip(*(labels == value).nonzero(), strict=True)]


def test_the_command_prints_a_table(run: Run) -> None:
    out = done("evaluate", run.path).out
    for metric in ("label_agreement", "size_error", "volume_error", "satisfied_hard_size", "satisfied_hard_volume"):
        assert metric in out
    summary = json.loads(done("evaluate", run.path, "--json").out)
    assert summary["metrics"]["size_error"]["LV"]["n"] > summary["metrics"]["volume_error"]["LV"]["n"] == 2


def test_where_nothing_is_known_volumes_remain(run: Run, hearts: Store, tmp_path: Path) -> None:
    bare = blind(hearts, tmp_path / "bare", "validation")
    other = start(tmp_path / "run", bare, "tags", "training.epochs=1")
    Trainer(other).fit()
    metrics = evaluate(other).summary["metrics"]
    assert metrics["volume_ml"]["LV"]["n"] == 2
    assert "size_error" not in metrics
    assert "volume_error" not in metrics
