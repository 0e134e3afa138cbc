"""One reader for all tables; what clicks and facts make of it is tested with them."""

from __future__ import annotations

import pytest

from inbounds.errors import BadInput
from inbounds.store.table_reader import read_table

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
