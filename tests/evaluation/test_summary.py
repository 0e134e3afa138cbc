from __future__ import annotations

import doctest
import importlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.evaluation.summary import summarise
from inbounds.runs.table import Row


def rows(*values: float, metric: str = "dice", klass: str = "LV", **more: object) -> list[Row]:
    about = {"run": "run", "epoch": 3, "split": "test", "klass": klass, "metric": metric, **more}
    return [Row(**{"case": f"case{n}", **about}, value=value) for n, value in enumerate(values)]


def test_summary_by_hand() -> None:
    found = summarise([*rows(1.0, 2.0, 6.0), *rows(0.5, klass="RV"), *rows(4.0, 6.0, metric="hd95")])
    assert found == {
        "dice": {
            "LV": {"mean": 3.0, "std": pytest.approx(math.sqrt(7)), "median": 2.0, "n": 3, "n_nan": 0},
            "RV": {"mean": 0.5, "std": None, "median": 0.5, "n": 1, "n_nan": 0},
        },
        "hd95": {"LV": {"mean": 5.0, "std": pytest.approx(math.sqrt(2)), "median": 5.0, "n": 2, "n_nan": 0}},
    }


def test_what_does_not_exist_is_counted_and_left_out() -> None:
    found = summarise([*rows(math.nan, 0.5, 1.0, math.nan), *rows(math.nan, klass="RV")])["dice"]
    assert found["LV"] == {**summarise(rows(0.5, 1.0))["dice"]["LV"], "n_nan": 2}
    assert found["RV"] == {"mean": None, "std": None, "median": None, "n": 0, "n_nan": 1}


def test_no_rows_no_summary() -> None:
    assert summarise([]) == {}


@given(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan) | st.just(math.inf), min_size=1, max_size=8))
def test_the_summary_is_strict_json_and_agrees_with_numpy(values) -> None:
    found = summarise(rows(*values))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    line, kept = found["dice"]["LV"], [value for value in values if not math.isnan(value)]
    assert (line["n"], line["n_nan"]) == (len(kept), len(values) - len(kept))
    if kept and math.inf not in kept:
        assert line["mean"] == pytest.approx(np.mean(kept))
        assert line["median"] == pytest.approx(np.median(kept))
    if math.inf in kept:
        assert line["mean"] is line["std"] is None


def test_docstring_examples() -> None:
    module, report = importlib.import_module("inbounds.evaluation.summary"), []
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, out=report.append)
    assert runner.tries == 3
    assert not report, "".join(report)
