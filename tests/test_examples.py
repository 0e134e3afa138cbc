"""The examples and the demo run as a user would run them, and reach what the documentation says."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from making import train_here
from pages import LINK

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


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
    [
        ("plain_pytorch.py", "torch"),
        ("lightning_module.py", "lightning"),
        ("monai_trainer.py", "monai"),
        ("monai_deep_supervision.py", "monai"),
        ("monai_bundle.py", "monai"),
    ],
)
def test_example_learns_discs_from_clicks_and_sizes(tmp_path: Path, script: str, library: str) -> None:
    pytest.importorskip(library)
    printed = run(tmp_path, script)
    found = re.search(r"Dice on new images: ([\d.]+)", printed)
    assert found, printed
    assert float(found[1]) > 0.88


NOTEBOOK = EXAMPLES / "clicks_to_masks.ipynb"
SHORT = 'PATIENTS, SIDE, LENGTH = 4, 48, "--set training.epochs=2 --set training.threads=1"\n'
"""In the place of the cell that is marked as parameters."""


def test_notebook_from_clicks_to_masks(tmp_path: Path) -> None:
    """Its cells in order, as one program: what a notebook adds to that is how figures are shown."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), "clear all outputs before you save"
    (first,) = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
    first["source"] = [SHORT]
    lines = ["import matplotlib\n", "matplotlib.use('Agg')\n"]
    for cell in cells:
        lines += [*cell["source"], "\n"]
    look = "assert sorted(dsc) == sorted(names) and all(0 <= one <= 1 for one in dsc.values())\n"
    counted = "print('masks', len(list(masks.glob('*.nii.gz'))))\n"
    (tmp_path / "notebook.py").write_text("".join([*lines, look, counted]), encoding="utf-8")
    printed = run(tmp_path, str(tmp_path / "notebook.py"))
    assert "masks 2" in printed
    assert " doubt " in printed


def test_links_in_the_notebook_lead_somewhere() -> None:
    found = LINK.findall(NOTEBOOK.read_text(encoding="utf-8"))
    assert found
    for target, _ in found:
        assert (EXAMPLES / target).is_file(), target


def table_of(file: Path) -> list[list[str]]:
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_demo_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr("inbounds.training.train_many.train_many", train_here)
    demo = importlib.import_module("demo")
    out = tmp_path / "demo"
    short = ["--out", str(out), "--epochs", "1", "--patients", "8"]
    demo.main(short)
    assert "$ inbounds train partial,known" in capsys.readouterr().out
    table = table_of(out / "demo.csv")
    assert [row[0] for row in table[1:]] == ["clicks alone", "clicks and rough sizes"]
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "known" in (out / "index.html").read_text(encoding="utf-8")

    begun = (out / "runs" / "known" / "seed-0" / "run.json").stat().st_mtime_ns
    demo.main(short)
    assert "prepare" not in capsys.readouterr().out, "what was finished is done again"
    assert (out / "runs" / "known" / "seed-0" / "run.json").stat().st_mtime_ns == begun
    assert table_of(out / "demo.csv") == table

    demo.start_over_if_changed(out, {"patients": 5})
    assert sorted(path.name for path in out.iterdir()) == ["demo.csv", "demo.json", "demo.png", "index.html"]


def test_readme_shows_the_table_of_the_demo() -> None:
    """The file beside the picture was written by the same demo; here it keeps what the README promises."""
    columns, *rows = table_of(ROOT / "docs" / "demo.csv")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in (columns, *rows):
        assert f"| {' | '.join(row)} |" in readme
    clicks, sizes = (float(row[1]) for row in rows)
    assert sizes > 0.7
    assert sizes > clicks + 0.05
