"""Cases in processes of their own: what they find is written down at once, and not done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaigns fork")

PROGRAM = """
import json, os, sys
from pathlib import Path
from torture.campaign import Campaign, Result

out, seed, numbers, keep = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])

def work(number, place):
    with (out / "done").open("a") as stream:
        stream.write(f"{number}\\n")
    if number == 3:
        raise KeyError("of the case itself")
    if number == 4:
        os._exit(9)
    return Result(number, "train", "kind", problems=["wrong"] if number == 1 else [])

results = Campaign("some", out, seed, 2).go(numbers, work, keep=keep)
print(json.dumps({result.number: result.problems for result in results}))
"""


def go(out: Path, numbers: list[int], *, seed: int = 0, keep: bool = True) -> dict[int, list[str]]:
    words = [sys.executable, "-c", PROGRAM, str(out), str(seed), json.dumps(numbers), json.dumps(keep)]
    ended = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, list[str]] = json.loads(ended.stdout)
    return {int(number): problems for number, problems in found.items()}


def test_each_case_is_done_once_and_a_line_cut_short_again(tmp_path: Path) -> None:
    assert go(tmp_path, [0, 1]) == {0: [], 1: ["wrong"]}
    with (tmp_path / "some.jsonl").open("a") as stream:
        stream.write('{"number": 2, "comma')
    assert go(tmp_path, [0, 1, 2]) == {0: [], 1: ["wrong"], 2: []}
    assert sorted((tmp_path / "done").read_text().split()) == ["0", "1", "2"]
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["some-1"]  # what was wrong can be looked at


def test_a_case_by_its_number_is_done_anew(tmp_path: Path) -> None:
    go(tmp_path, [0, 1])
    lines = (tmp_path / "some.jsonl").read_text()
    assert go(tmp_path, [1], keep=False) == {1: ["wrong"]}
    assert (tmp_path / "some.jsonl").read_text() == lines


def test_a_case_that_breaks_off_is_a_failure(tmp_path: Path) -> None:
    found = go(tmp_path, [3, 4, 5])
    assert "of the case itself" in found[3][0]
    assert "broke off" in found[4][0]
    assert found[5] == []


def test_another_seed_is_another_campaign(tmp_path: Path) -> None:
    go(tmp_path, [0])
    with pytest.raises(AssertionError, match="of another seed or version"):
        go(tmp_path, [0], seed=1)
