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
def test_a_few_cases_of_each_campaign(tmp_path: Path) -> None:
    for campaign in ("kills", "inputs"):
        page = tmp_path / f"{campaign}.json"
        code, said = torture(campaign, "--count", 6, "--out", tmp_path, "--summary", page)
        assert code == 0, said
        assert json.loads(page.read_text())["campaigns"][campaign]["cases"] == 6


def test_numbers_of_cases() -> None:
    code, said = torture("kills", "--only", "3,x")
    assert code == 2
    assert "--only 3,x: give numbers of cases" in said
