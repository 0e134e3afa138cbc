"""Locks: one process at a time, the second is told of the first, and the dead hold nothing."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import UnixFileLock

from inbounds import locks
from inbounds.errors import BadInput
from inbounds.locks import InUse, check_free, held, holder, let_go, lock_file, locked
from processes import another


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)


@pytest.mark.parametrize("how", [(), ("inside",)], ids=["beside", "inside"])
def test_the_second_is_told_who_is_there_until_the_first_has_ended(tmp_path: Path, how: tuple[str, ...]) -> None:
    path = tmp_path / "new" / "store"
    with another(path, *how) as process:
        host = re.escape(socket.gethostname().partition(".")[0][:20])
        says = (
            rf"store: in use by process {process.pid} on {host} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d .*; wait until"
        )
        for _ in range(2):  # the first to be refused does not take the words away
            with pytest.raises(BadInput, match=says), locked(path, inside=bool(how)):
                pass
        assert not held(path)
    with locked(path, inside=bool(how)):
        assert held(path)
        assert held(path / "a" / "b") or not how
    assert list(tmp_path.iterdir()) == []


def test_the_dead_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with another(path) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert [file.name for file in tmp_path.iterdir()] == [".store.lock"]
    check_free(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [(), ("inside",)], ids=["beside", "inside"])
def test_who_holds_a_path_can_be_asked_without_taking_it(tmp_path: Path, how: tuple[str, ...]) -> None:
    path, inside = tmp_path / "store", bool(how)
    assert holder(path, inside=inside) == ""
    with another(path, *how) as process:
        assert holder(path, inside=inside).startswith(f"process {process.pid} on ")
        with pytest.raises(InUse), locked(path, inside=inside):
            pass
        os.kill(process.pid, signal.SIGKILL)
    assert holder(path, inside=inside) == ""
    with locked(path, inside=inside):
        assert holder(path, inside=inside).startswith(f"process {os.getpid()} on ")


def test_a_path_that_nobody_holds_is_free_and_no_lock_is_made(tmp_path: Path) -> None:
    check_free(tmp_path / "nowhere" / "store")
    assert list(tmp_path.iterdir()) == []
    with another(tmp_path / "store"), pytest.raises(BadInput, match="in use by"):
        check_free(tmp_path / "store")


def test_one_process_may_hold_a_path_several_times(tmp_path: Path) -> None:
    """By whatever name; and the first to end does not let others in."""
    (tmp_path / "link").symlink_to(tmp_path)
    first, second = locked(tmp_path / "store"), locked(tmp_path / "link" / "store")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert held(tmp_path / "store")
    assert lock_file(tmp_path / "store").exists()
    second.__exit__(None, None, None)
    assert not held(tmp_path / "store")
    assert not lock_file(tmp_path / "store").exists()


def test_a_folder_that_was_there_stays_and_one_that_was_not_goes_if_nothing_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("there", "new/deep"):
        with pytest.raises(RuntimeError), locked(tmp_path / name, inside=True):
            raise RuntimeError
    with locked(tmp_path / "filled", inside=True):
        (tmp_path / "filled" / "x").write_text("1")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["filled", "there"]
    assert not any((tmp_path / "there").iterdir())


def test_what_is_let_go_another_process_can_have(tmp_path: Path) -> None:
    with locked(tmp_path / "run", inside=True):
        let_go(tmp_path / "run")
        with another(tmp_path / "run", "inside"):
            assert not held(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_and_each_is_alone(tmp_path: Path) -> None:
    """A lock whose file is removed by the one while another waits for it still lets in one at a time."""
    code = """
import sys
from pathlib import Path
from inbounds import locks
locks.PATIENCE = 30
path = Path(sys.argv[1])
for _ in range(40):
    with locks.locked(path):
        (path.parent / "alone").mkdir()
        (path.parent / "alone").rmdir()
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "store")]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_everybody_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(UnixFileLock, "_acquire", none_here)
    with locked(tmp_path / "store"):
        assert not held(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for path, inside in ((tmp_path / "file" / "store", False), (tmp_path / "file", True)):
        with pytest.raises(BadInput, match=r"could not be written \(Not a directory\)"), locked(path, inside=inside):
            pass
