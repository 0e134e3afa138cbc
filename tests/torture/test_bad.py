"""Spoilt inputs: another one each time, the same for the same number, and always something to type."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from torture import mutate
from torture.inputs import KINDS


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_are_spoilt_differ(seed: int) -> None:
    content = bytes(range(256)) * 4
    first, what = mutate.bytes_of(random.Random(seed), content)
    assert (first, what) == mutate.bytes_of(random.Random(seed), content)
    assert first != content
    assert what


def test_only_the_beginning_is_spoilt_if_so_asked() -> None:
    content = bytes(5000)
    for seed in range(60):
        made, what = mutate.bytes_of(random.Random(seed), content, region=8)
        if "more" not in what and len(made) == len(content):
            assert made[8 + 4096 :] == content[8 + 4096 :]


def test_json_stays_json(tmp_path: Path) -> None:
    file = tmp_path / "about.json"
    for seed in range(60):
        file.write_text(json.dumps({"a": [1, {"b": "c"}], "d": None}))
        what = mutate.json_of(random.Random(seed), file)
        if "nested" not in what:
            json.loads(file.read_text())


def test_every_kind_says_what_it_needs() -> None:
    assert all(kind.share > 0 and kind.needs for kind in KINDS.values())
