"""README and docs/ are short, their code runs, their links lead somewhere, and the settings are those there are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from inbounds.config import read_settings
from pages import LINK, MANUAL, OTHERS, ROOT, anchors, blocks

DOCS = [page for page in MANUAL if page.parent.name == "docs"]
HAS_A_PLAN = "cluster.md"
"""A page whose TOML is a plan of runs: `test_commands.py` trains them."""
FILLED_IN = re.compile(r"<!-- (?:bench|results):[^>]*-->.*?<!-- end -->", re.DOTALL)
NEEDS_A_RUN = ["predicting.md"]
"""Pages whose Python needs what the commands beside it make: `test_commands.py` runs both."""


def words(page: Path) -> int:
    """Those that people wrote: tables that `make results` fills in do not count."""
    return len(FILLED_IN.sub("", page.read_text(encoding="utf-8")).split())


@pytest.mark.parametrize("page", [page for page in MANUAL if page.name not in NEEDS_A_RUN], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, each page in one namespace."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page, "python"), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("page", [page for page in MANUAL if page.name != HAS_A_PLAN], ids=lambda page: page.name)
def test_settings_on_pages_can_be_read(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        (tmp_path / "settings.toml").write_text(block, encoding="utf-8")
        read_settings("tags", tmp_path / "settings.toml")


@pytest.mark.parametrize("page", [*MANUAL, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


def test_index_names_every_page() -> None:
    named = {target for target, _ in LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))}
    assert named == {page.name for page in DOCS} - {"index.md"}


def test_manual_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000
    assert sum(map(words, DOCS)) <= 15_000


def test_own_constraint_takes_at_most_thirty_lines() -> None:
    page = ROOT / "docs" / "own-constraint.md"
    lines = [line for block in blocks(page, "python") for line in block.splitlines() if line.strip()]
    assert 5 < len(lines) <= 30


def test_settings_page_is_that_of_the_models() -> None:
    script = ROOT / "docs" / "settings_page.py"
    made = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", check=True).stdout
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == made, "run `python docs/settings_page.py > docs/settings.md`"
