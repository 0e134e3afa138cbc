"""JSON is read within limits, and what is refused is named: the file, the key, the value, the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, ConfigDict, Field

from inbounds.described import Described, Digest, Name, check_names, read_json, written
from inbounds.errors import BadInput


@dataclass
class Point:
    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)

    row: int
    column: float = 0.0


def _one(version: int) -> int:
    if version != 1:
        raise BadInput(f"version {version}; use another program")
    return version


class Sheet(Described):
    version: Annotated[int, AfterValidator(_one)] = Field(alias="schema", default=1)
    name: Name = "x"
    points: tuple[Point, ...] = ()
    sum: Digest | None = None
    open: dict[str, Any] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", r"damaged \(Expecting value: line 1 column 1"),
        ("[1]", r"damaged \(\[1\]: it should be an object\)"),
        ('{"schema": 2, "name": 3}', "sheet.json: version 2; use another program$"),
        ('{"points": [{"row": 1}, {"row": "1"}]}', r"points\[1\].row is '1': it should be a valid integer"),
        ('{"points": [{"column": 1}]}', r"there is no points\[0\].row"),
        ('{"points": [{"row": 1, "column": NaN}]}', "NaN is no number"),
        ('{"points": [{"row": 1, "column": -Infinity}]}', r"points\[0\].column is -inf: .*finite"),
        ('{"points": [{"row": 1, "column": 1e999}]}', "'1e999' is too large a number"),
        ('{"points": [{"row": 99999999999999999999}]}', "is too large a number"),
        (f'{{"points": [{{"row": {"9" * 5000}}}]}}', "is too large a number"),
        ('{"name": "a", "name": "b"}', "'name' is there twice"),
        ('{"name": "a/b"}', "name is 'a/b': a name is without /"),
        ('{"name": ".."}', "name is '..'"),
        ('{"name": "a\\u0007"}', r"name is 'a\\x07'"),
        ('{"name": "\\ud800"}', "name"),
        (f'{{"name": "{"x" * 5000}"}}', r"name is 'x+\.\.\.x+': .*at most 255"),
        (f'{{"sum": "{"g" * 64}"}}', "sum is 'gg"),
        ("[" * 100_000, "too deep"),
        ('{"later":' + "[" * 300 + "]" * 300 + "}", "recursion limit"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, saying: str) -> None:
    file = tmp_path / "sheet.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=saying) as caught:
        read_json(file, Sheet, "draw it again")
    assert str(caught.value).startswith(str(file))
    assert len(str(caught.value)) < len(str(file)) + 400


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sheet.json"
    file.write_bytes(b"\xff\xff")
    with pytest.raises(BadInput, match=r"damaged \(.*utf-8.*\); draw it again"):
        read_json(file, Sheet, "draw it again")
    with pytest.raises(BadInput, match=r"damaged \(cannot be read: .*irectory"):
        read_json(tmp_path, Sheet, "draw it again")
    with pytest.raises(BadInput, match=r"damaged \(cannot be read: No such file"):
        read_json(tmp_path / "none", Sheet, "draw it again")
    file.write_text(" " * 101)
    with pytest.raises(BadInput, match=r"damaged \(more than 100 bytes long\)"):
        read_json(file, Sheet, "draw it again", most=100)


def test_what_is_right_is_taken_with_what_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "sheet.json"
    file.write_text(
        '\ufeff{"schema": 1, "points": [{"row": 1, "column": 2}], "later": [1], "open": {"upper": Infinity}}',
        encoding="utf-8",
    )
    sheet = read_json(file, Sheet, "draw it again")
    assert sheet.open == {"upper": float("inf")}
    assert sheet.points == (Point(1, 2.0),)
    assert sheet.model_dump(exclude_unset=True)["later"] == [1]


def test_what_is_written_can_be_read() -> None:
    content = {"points": [{"row": 1}]}
    assert written(content, Sheet, "sheet", "draw it again") is content
    with pytest.raises(BadInput, match=r"sheet: cannot be written \(NaN is no number\); draw it again"):
        written({"points": [{"row": 1, "column": float("nan")}]}, Sheet, "sheet", "draw it again")


def test_names_are_looked_at() -> None:
    check_names(["left ventricle", "Réader-2", "a b"], "the class")
    with pytest.raises(BadInput, match=r"the class 'prostate/uterus': a name is without .*; rename it"):
        check_names(["LV", "prostate/uterus"], "the class")
