from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archives import full_disk
from inbounds.errors import BadInput
from inbounds.runs.table import COLUMNS, Log, Row, read_rows, write_rows

HEAD = b"run,epoch,split,case,slice,class,metric,value\n"
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
ROWS = st.lists(
    st.builds(
        Row,
        run=TEXT,
        epoch=st.integers(0, 999),
        split=TEXT,
        case=TEXT,
        slice=st.just("") | st.integers(0, 999),
        klass=TEXT,
        metric=TEXT,
        value=st.floats(allow_nan=False),
    ),
    max_size=5,
)


def rows(*values: float, epoch: int = 3) -> list[Row]:
    return [Row(epoch=epoch, split="train", metric=f"metric{n}", value=value) for n, value in enumerate(values)]


def test_the_table_by_hand(tmp_path) -> None:
    of_run = {"run": "full", "epoch": 199, "split": "test"}
    table = [
        Row(**of_run, case="patient1_ED", slice=4, klass="LV", metric="dice", value=0.5),
        Row(**of_run, case="a,b", klass="RV", metric="hd95", value=math.nan),
        Row(**of_run, metric="loss", value=0.1 + 0.2),
    ]
    write_rows(tmp_path / "results.csv", table)
    assert (tmp_path / "results.csv").read_bytes() == HEAD + (
        b"full,199,test,patient1_ED,4,LV,dice,0.5\n"
        b'full,199,test,"a,b",,RV,hd95,nan\n'
        b"full,199,test,,,,loss,0.30000000000000004\n"
    )
    back = read_rows(tmp_path / "results.csv")
    assert [back[0], back[2]] == [table[0], table[2]]
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


@pytest.mark.parametrize("growing", [False, True], ids=["evaluation", "run"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n", "its columns are none"),
        (b"case,dice\n", "its columns are case, dice, not run"),
        (HEAD + b"r,1,test,a,,LV,dice,high\n", "line 2: .*'high'"),
        (HEAD + b"r,1,test,a,,LV,dice,1\nr,x,test,a,,LV,dice,1\n", "line 3: .*'x'"),
        (HEAD + b"r,1,test,a\n", f"line 2: damaged .4 cells instead of {len(COLUMNS)}"),
        (b"\xff\xfe\x00\n", "not a text file in UTF-8"),
    ],
    ids=["empty", "other table", "value", "epoch", "cut off", "binary"],
)
def test_says_what_is_wrong_with_a_file(tmp_path, content, message, growing) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message) as refusal:
        read_rows(path, growing=growing)
    assert str(refusal.value).startswith(str(path))
    assert str(refusal.value).endswith("start the run again" if growing else "; evaluate again")


def test_says_that_there_is_no_file(tmp_path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_rows(tmp_path / "results.csv")


def test_a_run_may_have_measured_nothing_yet(tmp_path) -> None:
    file = tmp_path / "metrics.csv"
    assert read_rows(file, growing=True) == []
    for cut in ("", "run,epo"):
        file.write_text(cut)
        assert read_rows(file, growing=True) == []
        with pytest.raises(BadInput, match="its columns are"):
            read_rows(file)


@pytest.mark.parametrize("cut", ["run,3,train,,,,ra", "run,3,train,,,,rate,0.1", 'run,3,train,,,"L'])
def test_a_last_line_cut_short_is_forgotten_where_a_run_writes(tmp_path, cut) -> None:
    log = Log(tmp_path, 0)
    log.write([*rows(0.5, epoch=1), *rows(0.25, epoch=2)])
    log.close()
    file = tmp_path / "metrics.csv"
    with file.open("a", encoding="utf-8") as stream:
        stream.write(cut)
    kept = read_rows(file, growing=True)
    assert [(row.run, row.epoch, row.value) for row in kept] == [(str(tmp_path), 1, 0.5), (str(tmp_path), 2, 0.25)]
    if not cut.endswith("0.1"):  # which is a whole line but for its end
        with pytest.raises(BadInput, match=r"line 4: .* cells"):
            read_rows(file)
    Log(tmp_path, 1).close()
    assert [row.value for row in read_rows(file)] == [0.5]


def test_a_run_that_moved_has_one_name(tmp_path) -> None:
    Log(tmp_path / "old", 0).write(rows(0.5, epoch=1))
    (tmp_path / "old").rename(tmp_path / "new")
    Log(tmp_path / "new", 1).write(rows(0.25, epoch=2))
    assert {row.run for row in read_rows(tmp_path / "new" / "metrics.csv")} == {str(tmp_path / "new")}


def test_a_full_disk_leaves_whole_lines(tmp_path) -> None:
    log = Log(tmp_path, 0)
    log.close()  # or the thread that writes curves would meet the limit too, at any later moment
    log.board = None
    log.write(rows(0.5))
    before = (tmp_path / "metrics.csv").read_bytes()
    with full_disk(len(before) + 10), pytest.raises(BadInput, match=r"metrics.csv: could not be written"):
        log.write(rows(0.25))
    assert (tmp_path / "metrics.csv").read_bytes() == before
