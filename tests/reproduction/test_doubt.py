"""How doubt goes with the DSC of masks, on a run that takes a second."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from archives import done, refused
from inbounds.evaluation.evaluate import evaluate
from inbounds.inference import Predictor
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from reproduction.doubt import correlation, measure
from training_runs import blind, start

PROGRAM = "reproduction.doubt"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, hearts: Store) -> Run:
    path = tmp_path_factory.mktemp("doubt") / "run"
    made = start(path, hearts, "full", "training.epochs=6", "training.lr=0.02", classes=["LV", "RV"])
    Trainer(made).fit()
    return made


def test_the_dsc_is_that_of_the_masks(run: Run, hearts: Store) -> None:
    """The grid of these scans is their own, so that evaluation gives the same."""
    measured = measure(Predictor(run), hearts, "train")
    rows = evaluate(run, split="train", surfaces=False).rows
    for name in run.classes:
        wanted = [row.value for row in rows if (row.metric, row.klass) == ("dsc_volume", name)]
        assert measured[name][:, 0] == pytest.approx(wanted, abs=1e-6, nan_ok=True)
    low, high = run.volumes["LV"]
    assert 0 < low < high
    assert np.isfinite(measured["LV"][:, 2]).all()  # the range, which training noted


def test_correlation_by_hand() -> None:
    """Ranks of DSC 1, 2, 3, 4; of the doubt 4, 3, 1, 2: 1 - 6 (9 + 1 + 4 + 4) / (4 * 15) = -0.8."""
    measured = np.array([[0.1, 0.9, 0.5], [0.2, 0.8, 0.5], [0.5, 0.1, 0.5], [0.6, 0.2, 0.5], [math.nan, 0, 0]])
    assert correlation(measured, 1) == pytest.approx(-0.8)
    assert math.isnan(correlation(measured, 2))  # all alike
    assert math.isnan(correlation(measured[-1:], 1))


def test_the_command(run: Run, hearts: Store, tmp_path: Path) -> None:
    out = done(run.path, hearts.path, program=PROGRAM).out
    names = [line.split()[0] for line in out.splitlines()]
    assert names == ["class", "LV", "RV", "all"]
    unknown = blind(hearts, tmp_path / "blind")
    refused(run.path, unknown.path, saying=["no scan with a truth", "'validation'"], program=PROGRAM)
