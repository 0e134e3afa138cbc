from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import Field

from inbounds.described import Described
from inbounds.errors import BadInput
from inbounds.jobs.manifest import MANIFEST, checked, line, read_manifest, write_manifest


def some(*numbers: int, where: str = "here") -> list:
    return [line("train", f"runs/{n}", {"seed": n, "store": where}, beside=["store"]) for n in numbers]


def test_a_line_is_known_by_what_decides_it() -> None:
    one, moved = some(1), some(1, where="there")
    assert one[0].hash == moved[0].hash
    assert len({each.hash for each in (*some(1, 2), line("predict", "runs/1", {"seed": 1}))}) == 3


def test_lines_are_added_and_keep_their_numbers(tmp_path: Path) -> None:
    assert write_manifest(tmp_path, some(1, 2)) == read_manifest(tmp_path) == some(1, 2)
    before = (tmp_path / MANIFEST).stat().st_mtime_ns
    write_manifest(tmp_path, some(2, 1))
    assert (tmp_path / MANIFEST).stat().st_mtime_ns == before
    assert [each.place for each in write_manifest(tmp_path, some(0, 2, 1))] == ["runs/1", "runs/2", "runs/0"]
    assert write_manifest(tmp_path, some(0, 1, 2, where="there"))[0].about["store"] == "there"


def test_what_was_begun_stays(tmp_path: Path) -> None:
    write_manifest(tmp_path, some(1, 2))
    other = line("train", "runs/2", {"seed": 3})
    for lines in (some(1), [*some(1), other]):
        with pytest.raises(BadInput, match=r"runs/2 changed, or no longer wanted.*choose another folder"):
            write_manifest(tmp_path, lines)
    with pytest.raises(BadInput, match="two of its runs would be called 'runs/1'"):
        write_manifest(tmp_path, some(1, 1, 2))
    assert read_manifest(tmp_path) == some(1, 2)


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"nothing was begun there \(no {MANIFEST}"):
        read_manifest(tmp_path)
    write_manifest(tmp_path, some(1, 2))
    file = tmp_path / MANIFEST
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{json.dumps(json.loads(second) | {'task': 'walk'})}\n")
    with pytest.raises(BadInput, match=r"line 1: damaged \(task is 'walk'"):
        read_manifest(tmp_path)

    class Seed(Described):
        seed: int = Field(ge=2)

    with pytest.raises(BadInput, match="runs/1: damaged"):
        checked(some(1)[0], Seed, tmp_path)
    assert checked(some(2)[0], Seed, tmp_path).seed == 2
