"""One reader for all tables; what clicks and facts make of it is tested with them."""

from __future__ import annotations

import csv
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import within
from inbounds.errors import BadInput
from inbounds.store.table_reader import read_table
from inbounds.writing import as_meant, harmless, write_table

COLUMNS = ("case", "class", "size_px", "size_px_min", "size_px_max")


def read(tmp_path, text: str):
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    return read_table(tmp_path / "table.csv", COLUMNS, ("case",))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_cells_by_column(tmp_path, separator) -> None:
    lines = ("\ufeffNotes,CASE,size_px", "good,a,3", "", ' ,"b" ')
    rows, ignored = read(tmp_path, "\r\n".join(lines).replace(",", separator))
    assert ignored == ("notes",)
    assert [row.cells["case"] for row in rows] == ["a", "b"]
    assert [row.where.rpartition(" ")[2] for row in rows] == ["2", "4"]
    assert [row.number("size_px") for row in rows] == [3, None]
    assert rows[0].cells["class"] == ""


def test_a_line_is_named_where_a_cell_before_it_goes_over_several(tmp_path) -> None:
    rows, _ = read(tmp_path, 'case,comment\na,"one\ntwo"\nb,\n')
    assert rows[1].where.endswith("line 4")


@pytest.mark.parametrize("known", COLUMNS)
def test_what_is_nearly_a_known_column_is_refused(tmp_path, known) -> None:
    for written in (known[:-1], known + "s", known[:2] + known[3:]):
        if written not in COLUMNS and len(written) > 3:
            with pytest.raises(BadInput, match=rf"table\.csv: unknown column '{written}'; did you mean"):
                read(tmp_path, f"case,{written}\n")


@pytest.mark.parametrize("name", ["reader", "date", "side", "phase", "name", "remarks", "patient"])
def test_what_is_not_is_ignored(tmp_path, name) -> None:
    assert read(tmp_path, f"case,{name}\na,b\n")[1] == (name,)


@pytest.mark.parametrize(
    ("content", "saying"),
    [
        (b"case,size_px\na,\x001\n", "not a text file in UTF-8; save the sheet as 'CSV UTF-8'"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': ", "not a text file in UTF-8"),
        ("case,size_px\na,1\n".encode("utf-16"), "not a text file in UTF-8"),
        (b"case," * 1_000_000 + b"\n", "1000001 columns, and 1000 are read at most"),
        (b"case\n" + b"a" * 1_000_000 + b"\n", "line 2: field larger than field limit.*save the sheet as CSV again"),
        (b'case,size_px\n"a,1\nb,2\n', "a quotation mark is not closed"),
        (b"c" * 100_000 + b"\n", "there is no column 'case'"),
    ],
    ids=["zero", "binary", "utf-16", "columns", "line", "quotation mark", "name"],
)
def test_files_that_are_not_what_they_seem(tmp_path, content: bytes, saying: str) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with within(20), pytest.raises(BadInput, match=rf"table\.csv.*{saying}"):
        read_table(tmp_path / "table.csv", COLUMNS, ("case",))


def test_a_file_that_is_far_too_large_is_not_read(tmp_path) -> None:
    with (tmp_path / "table.csv").open("wb") as stream:
        stream.truncate(3 << 30)
    with within(5), pytest.raises(BadInput, match=r"table\.csv: larger than 256 MiB"):
        read_table(tmp_path / "table.csv", COLUMNS, ("case",))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+A1", "'+A1"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("'=1", "''=1"),
        ("a;=1", "a;'=1"),
        ("it's", "it's"),
        ("'", "'"),
        ("-1.5", "-1.5"),
        ("+1e-3", "+1e-3"),
        ("-", "'-"),
        ("LV", "LV"),
    ],
)
def test_no_cell_that_is_written_is_a_formula(tmp_path, name: str, written: str) -> None:
    write_table(tmp_path / "table.csv", COLUMNS, [(name, name, -1.5, -2, "")])
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream))[1] == [written, written, "-1.5", "-2", ""]
    (row,), _ = read_table(tmp_path / "table.csv", COLUMNS, ("case",))
    assert (row.cells["case"], row.cells["class"]) == (name, name)
    assert row.number("size_px") == -1.5


@given(st.text(alphabet="'=+-@;,\t\ra1. \uff1d", max_size=8))
def test_what_is_written_is_read_as_it_was(text: str) -> None:
    cell = harmless(text)
    assert as_meant(cell) == text
    if not re.fullmatch(r"[+-]?[\d.]+", cell):
        assert not any(part.startswith(("=", "+", "-", "@", "\uff1d")) for part in re.split(r"[;,\t\r]", cell))


def test_no_name_of_a_column_commands_a_terminal(tmp_path) -> None:
    assert read(tmp_path, "case,\x1b[31mRed\nb,1\n")[1] == ("?[31mred",)
