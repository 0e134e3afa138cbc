"""The examples and the demo run as a user would run them, and reach what the documentation says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(tmp_path: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / command[0]), *command[1:]],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "library"),
    [("plain_pytorch.py", "torch"), ("lightning_module.py", "lightning"), ("monai_trainer.py", "monai")],
)
def test_example_learns_discs_from_clicks_and_sizes(tmp_path: Path, script: str, library: str) -> None:
    pytest.importorskip(library)
    printed = run(tmp_path, script)
    found = re.search(r"Dice on new images: ([\d.]+)", printed)
    assert found, printed
    assert float(found[1]) > 0.88


def test_demo_shows_what_each_bound_adds(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    printed = run(tmp_path, "demo.py", "--out", "figures/demo.png")
    scores = [float(row) for row in re.findall(r"│ (0\.\d\d) │", printed)]
    partial, size, centre = scores
    assert partial < 0.3
    assert size > partial + 0.4
    assert centre > size + 0.08
    assert centre > 0.9
    assert (tmp_path / "figures" / "demo.png").read_bytes().startswith(b"\x89PNG")
