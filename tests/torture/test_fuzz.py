from __future__ import annotations

import os
from pathlib import Path

import pytest

from inbounds.store.table_reader import read_table
from torture.fuzz import Coverage, Trial
from torture.parsers import PARSERS, Parser

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaigns fork")


def trial(tmp_path: Path, read: object) -> Trial:
    (tmp_path / "seed").write_bytes(b"a,b\n1,2\n")
    return Trial(Parser("table.csv", ("seed",), lambda _: read), tmp_path, tmp_path)  # type: ignore[arg-type, return-value]


def test_what_a_parser_may_not_do_is_kept_once(tmp_path: Path) -> None:
    def read(file: Path) -> None:
        if file.read_bytes() != b"a,b\n1,2\n":
            raise KeyError("a cell")

    tried = trial(tmp_path, read)
    for content in (b"a,b\n1,2\n", b"worse", b"worse still"):
        tried(content)
    assert [file.read_bytes() for file in tried.found.values()] == [b"worse"]
    assert next(iter(tried.found)).startswith("KeyError at elsewhere: ")


def test_a_refusal_is_what_it_should_do(tmp_path: Path) -> None:
    tried = trial(tmp_path, lambda file: read_table(file, ["a"], ["a", "c"]))
    tried(b"nothing\n")
    assert tried.found == {}


def test_lines_that_run_for_the_first_time_are_seen(tmp_path: Path) -> None:
    tried, coverage = trial(tmp_path, lambda file: read_table(file, ["a"], ["a"])), Coverage()
    counts = []
    for content in (b"a,b\n1,2\n", b"a,b\n1,2\n", b"a,b\n1,2,3\n"):
        coverage.new = 0
        tried(content, coverage)
        counts.append(coverage.new)
    assert counts[0] > counts[2] > counts[1] == 0


def test_each_parser_has_something_good_to_begin_with() -> None:
    assert all(parser.seeds for parser in PARSERS.values())
