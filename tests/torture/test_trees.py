from __future__ import annotations

import os
from pathlib import Path

import pytest

from torture.trees import differences, tree


def test_the_same_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "about.json").write_text(f'"{tmp_path / name}/inner"')
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_what_differs_is_named(tmp_path: Path) -> None:
    for name, content in (("one", "1"), ("two", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "number").write_text(content)
    (tmp_path / "one" / ".hidden").mkdir()
    (tmp_path / "two" / "more").touch()
    found = differences(tree(tmp_path / "one"), tree(tmp_path / "two"))
    assert found == ["missing: more", "left behind: .hidden", "differs: number"]


def test_loose_files_count_as_there(tmp_path: Path) -> None:
    (tmp_path / "run" / "tensorboard").mkdir(parents=True)
    (tmp_path / "run" / "tensorboard" / "events.17").touch()
    found = tree(tmp_path, loose=["*/tensorboard/*"])
    assert found == {"run": "folder", "run/tensorboard": "folder", "*/tensorboard/*": "there"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    assert tree(tmp_path) == {"link": "link to nowhere", "pipe": "special file"}
