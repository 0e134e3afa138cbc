"""Imports between rooms go one way: a room may use those before it, never those after."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "inbounds"
ORDER = [
    "errors",
    "writing",
    "progress",
    "regions",
    "annotations",
    "constraints",
    "losses",
    "supervision",
    "config",
    "datasets",
    "networks",
    "runs",
    "evaluation",
    "training",
    "inference",
    "reports",
    "experiments",
    "cli",
    "__main__",
]


def rooms_used(file: Path) -> set[str]:
    """The rooms that a file imports from when it runs; what only type checkers see does not count."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("inbounds.")}


def test_imports_go_one_way() -> None:
    against = []
    for file in SOURCE.rglob("*.py"):
        room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        assert room in ORDER, f"{room} is a new room: give it its place"
        later = [used for used in rooms_used(file) if ORDER.index(used) > ORDER.index(room)]
        against += [f"{file.relative_to(SOURCE)} uses {used}" for used in later]
    assert against == []
