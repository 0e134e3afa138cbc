from __future__ import annotations

import doctest
import importlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.errors import BadInput
from inbounds.evaluation import Row, read_rows, summarise, write_rows

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
ROWS = st.lists(
    st.builds(
        Row,
        run=TEXT,
        epoch=st.integers(0, 999),
        case=TEXT,
        slice=st.just("") | st.integers(0, 999),
        klass=TEXT,
        metric=TEXT,
        value=st.floats(allow_nan=False),
    ),
    max_size=5,
)


def rows(*values: float, metric: str = "dice", klass: str = "LV") -> list[Row]:
    return [Row("run", 3, f"case{n}", "", klass, metric, value) for n, value in enumerate(values)]


def test_the_table_by_hand(tmp_path) -> None:
    table = [Row("full", 199, "patient1_ED", 4, "LV", "dice", 0.5), Row("full", 199, "a,b", "", "RV", "hd95", math.nan)]
    write_rows(tmp_path / "results.csv", table)
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == (
        'run,epoch,case,slice,class,metric,value\nfull,199,patient1_ED,4,LV,dice,0.5\nfull,199,"a,b",,RV,hd95,nan\n'
    )
    back = read_rows(tmp_path / "results.csv")
    assert back[0] == table[0]
    assert math.isnan(back[1].value)


@given(ROWS)
def test_what_was_written_is_read_back(tmp_path_factory, table) -> None:
    path = tmp_path_factory.mktemp("table") / "results.csv"
    write_rows(path, iter(table))
    assert read_rows(path) == table


def test_a_failed_write_leaves_the_old_table(tmp_path) -> None:
    path = tmp_path / "deep" / "results.csv"
    write_rows(path, rows(1.0))

    def broken():
        yield from rows(2.0)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_rows(path, broken())
    assert read_rows(path) == rows(1.0)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its columns are none"),
        (b"case,dice\n", "its columns are case, dice, not run"),
        (b"run,epoch,case,slice,class,metric,value\nr,1,a,,LV,dice,high\n", "line 2: .*'high'"),
        (b"run,epoch,case,slice,class,metric,value\nr,1,a,,LV,dice,1\nr,x,a,,LV,dice,1\n", "line 3: .*'x'"),
        (b"run,epoch,case,slice,class,metric,value\nr,1,a\n", "line 2: 3 cells instead of 7"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
    ],
    ids=["empty", "other table", "value", "epoch", "cut off", "binary"],
)
def test_says_what_is_wrong_with_a_file(tmp_path, content, message) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message) as told:
        read_rows(path)
    assert str(told.value).startswith(str(path))


def test_says_that_there_is_no_file(tmp_path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_rows(tmp_path / "results.csv")


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


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Row("other", 3, "case0", "", "LV", "dice", 1.0), "several runs or epochs"),
        (Row("run", 4, "case0", "", "LV", "dice", 1.0), "several runs or epochs"),
        (Row("run", 3, "case0", 0, "LV", "dice", 1.0), "dice of LV is given for slices and for volumes"),
        (Row("run", 3, "case0", "", "LV", "dice", 1.0), "dice of LV is given twice"),
    ],
    ids=["run", "epoch", "slice", "twice"],
)
def test_refuses_to_average_what_does_not_belong_together(other, message) -> None:
    with pytest.raises(ValueError, match=message):
        summarise([*rows(1.0), other])


def test_docstring_examples() -> None:
    module, report = importlib.import_module("inbounds.evaluation.table"), []
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, out=report.append)
    assert runner.tries == 2
    assert not report, "".join(report)
