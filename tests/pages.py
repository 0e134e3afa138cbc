"""The pages of the documentation, and what is written on them: blocks, commands, links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "reproduction" / "README.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a language; those of commands have none."""
    return [block for name, block in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path, *programs: str) -> list[list[str]]:
    """The words of every command on a page that calls one of these programs, comments left out."""
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith(tuple(f"{name} " for name in programs))]
    assert lines, f"{page.name} has no commands"
    return [shlex.split(line, comments=True) for line in lines]


def anchors(page: Path) -> set[str]:
    """What links may name on a page: its headings, in small letters, with hyphens for spaces and nothing else."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
