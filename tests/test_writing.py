"""Writing aside: whole or not at all, under names of one's own, and what dead processes left goes."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.writing import aside, clear, file_aside, mend, put, workspace

DEAD = ".store.elsewhere-1-0123abcd.partial"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_there_when_all_went_well(tmp_path: Path) -> None:
    with aside(tmp_path / "new" / "store") as folder:
        (folder / "x").write_text("1")
        assert not (tmp_path / "new" / "store").exists()
    assert (tmp_path / "new" / "store" / "x").read_text(encoding="utf-8") == "1"
    assert names(tmp_path / "new") == ["store"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, BadInput])
def test_gone_otherwise(tmp_path: Path, error: type[BaseException]) -> None:
    def broken_off(place: AbstractContextManager[Path], name: str) -> None:
        with place as part:
            (part / name).write_text("1")
            raise error

    for place, name in (
        (aside(tmp_path / "new" / "store"), "x"),
        (file_aside(tmp_path / "file"), ""),
        (workspace(tmp_path / "file"), "x"),
    ):
        with pytest.raises(error):
            broken_off(place, name)
    assert names(tmp_path) == []


def test_a_temporary_name_says_whose_it_is(tmp_path: Path) -> None:
    with file_aside(tmp_path / "table.csv") as part:
        assert part.parent == tmp_path
        assert part.name.startswith(".table.csv.")
        assert f"-{os.getpid()}-" in part.name
        part.write_text("1")
    assert names(tmp_path) == ["table.csv"]


def test_what_dead_processes_left_goes_and_nothing_else(tmp_path: Path) -> None:
    """Not what others have on their way to other names, nor what this process has."""
    others = [".store.v2.node-1-0123abcd.partial", ".store.partial", ".a.node-1-0123abcd.partial", ".note"]
    for name in [DEAD, *others]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "scan").write_text("half")
    with workspace(tmp_path / "store") as space, aside(tmp_path / "store") as folder:
        assert space.exists()
        assert names(tmp_path) == sorted([*others, space.name, folder.name, ".store.lock"])
        (tmp_path / DEAD).write_text("a file")
        with file_aside(tmp_path / "store") as part:
            part.write_text("1")
        assert not (tmp_path / DEAD).exists()
        (tmp_path / "store").unlink()
    assert names(tmp_path) == sorted([*others, "store"])


def test_a_folder_that_is_replaced_is_there_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "old").write_text("1")
    with pytest.raises(RuntimeError), aside(tmp_path / "store", replace=True):
        raise RuntimeError
    assert names(tmp_path / "store") == ["old"]
    with aside(tmp_path / "store", replace=True) as folder:
        (folder / "new").write_text("1")
        assert names(tmp_path / "store") == ["old"]
    assert names(tmp_path / "store") == ["new"]
    assert names(tmp_path) == ["store"]


def test_a_replacement_killed_between_its_renamings_is_mended(tmp_path: Path) -> None:
    """What was there is brought back for who reads; when the new folder is there, the old one goes."""
    (tmp_path / ".store.before").mkdir()
    (tmp_path / ".store.before" / "x").write_text("1")
    mend(tmp_path / "store")
    assert names(tmp_path / "store") == ["x"]
    (tmp_path / ".store.before").mkdir()
    with locked(tmp_path / "store"):
        clear(tmp_path / "store")
    assert names(tmp_path) == ["store"]


SWAPPED = """
import sys, time
from pathlib import Path
from inbounds.locks import locked
path = Path(sys.argv[1])
with locked(path):
    path.rename(path.with_name(".store.before"))
    print("away", flush=True)
    time.sleep(0.5)
    path.mkdir()
"""


def test_who_reads_does_not_meddle_with_a_replacement_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    command = [sys.executable, "-c", SWAPPED, str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "away\n"
        mend(tmp_path / "store")
        assert names(tmp_path) == [".store.before", "store"]
    assert process.returncode == 0


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    for name in ("new", "old", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "x").write_text("1")
    put(tmp_path / "new", tmp_path / "old")
    assert names(tmp_path / "old") == []
    put(tmp_path / "old", tmp_path / "empty")
    assert names(tmp_path) == ["empty"]
