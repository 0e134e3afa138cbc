from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torture.commands import COMMANDS
from torture.kills import deck

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaigns fork")


def torture(*words: object) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "torture", *map(str, words)], capture_output=True, encoding="utf-8", timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def test_each_command_has_its_cases() -> None:
    assert sorted(deck()) == sorted(name for name, command in COMMANDS.items() for _ in range(command.share))


@pytest.mark.slow
def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    code, said = torture("kills", "--count", 4, "--out", tmp_path)
    lines = (tmp_path / "kills.jsonl").read_text().splitlines()
    assert code in (0, 1), said
    assert [json.loads(line)["number"] for line in sorted(lines[1:])] == [0, 1, 2, 3]
    (tmp_path / "kills.jsonl").write_text("\n".join(lines[:-1]) + '\n{"number": 3, "comm')
    assert torture("kills", "--count", 4, "--out", tmp_path)[0] == code
    assert sorted((tmp_path / "kills.jsonl").read_text().splitlines()) == sorted(lines)


@pytest.mark.slow
def test_results_of_another_seed_are_not_mixed(tmp_path: Path) -> None:
    assert torture("kills", "--count", 1, "--out", tmp_path)[0] in (0, 1)
    code, said = torture("kills", "--count", 1, "--seed", 1, "--out", tmp_path)
    assert code == 2
    assert "another seed" in said
