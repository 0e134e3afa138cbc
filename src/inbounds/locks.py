"""One process at a time: who makes a store, trains a run or writes a file holds its lock; others are told who that is.

A lock is the operating system's, on a hidden file, and ends with the process that holds it, however that ends. The file
goes with the lock. One that a killed process left is harmless: the next process takes it over, and removes it.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inbounds.errors import BadInput
from inbounds.stopping import shielded

if TYPE_CHECKING:
    from filelock import FileLock

PATIENCE = 1.0
"""Seconds that a second process waits: some locks are held for a moment only."""
HOST = re.sub(r"\W+", "-", socket.gethostname().partition(".")[0])[:20]
NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}
"""What a file system answers that knows no locks, as some in clusters: there everybody is let in."""
_held: dict[Path, FileLock] = {}


class InUse(BadInput):
    """Another process holds a path."""


@contextmanager
def locked(path: Path, *, inside: bool = False) -> Iterator[None]:
    """Hold a path for this process, which may hold it already.

    Args:
        path: What is to be made, replaced or added to.
        inside: It is a folder to write in, and its lock lies there; it is made if need be, and removed again if nothing
            is in it at the end. Else the lock lies beside it.

    Raises:
        BadInput: Another process holds it, and the message says which; or nothing can be written there.
    """
    place = path.resolve()
    file = lock_file(place, inside=inside)
    new = [folder for folder in (file.parent, *file.parent.parents) if not folder.exists()]
    lock: FileLock | None = None
    try:
        with shielded():
            lock = _take(place, file, path)
        yield
    finally:
        with shielded():
            if lock is not None and _held.get(place) is lock:  # else it was let go
                if lock.lock_counter > 1:
                    lock.release()
                else:
                    _drop(place, file)
            for folder in new:
                with suppress(OSError):  # it is in use
                    folder.rmdir()


def lock_file(path: Path, *, inside: bool = False) -> Path:
    """Where the lock of a path lies."""
    return path / ".lock" if inside else path.with_name(f".{path.name}.lock")


def held(path: Path) -> bool:
    """Whether this process holds a path, or a folder that it lies in."""
    place = path.resolve()
    return any(each in _held for each in (place, *place.parents))


def check_free(path: Path) -> None:
    """Refuse a path that another process holds, if its lock lies beside it."""
    if lock_file(path.resolve()).exists():  # no process holds what has no lock
        with locked(path):
            pass


def holder(path: Path, *, inside: bool = False) -> str:
    """What the process that holds a path says of itself, such as this one; nothing where nobody does."""
    from filelock import FileLock, Timeout

    place = path.resolve()
    file = lock_file(place, inside=inside)
    if place in _held:
        return _holder(file)
    if file.exists():
        try:
            with FileLock(file, timeout=0, thread_local=False, fallback_to_soft=False):
                pass
        except Timeout:
            return _holder(file)
        except OSError:  # gone meanwhile, nothing that we may open, or no locks here
            pass
    return ""


def let_go(path: Path) -> None:
    """Give the lock of a folder up before its time, so that another process of ours can take it."""
    place = path.resolve()
    if place in _held:
        _drop(place, lock_file(place, inside=True))


def _take(place: Path, file: Path, path: Path) -> FileLock | None:
    """Take a lock, or say who has it; nothing where there are no locks."""
    from filelock import FileLock, Timeout

    lock = _held.get(place) or FileLock(
        file, timeout=PATIENCE, thread_local=False, fallback_to_soft=False, on_acquired=_sign
    )
    while True:
        try:
            lock.acquire()
        except Timeout:
            raise InUse(
                f"{path}: in use by {_holder(file)}; wait until that has ended, or choose another name"
            ) from None
        except FileNotFoundError:
            continue  # whoever had made the folder has just removed it
        except OSError as error:
            if error.errno not in NO_LOCKS:
                why = "Not a directory" if isinstance(error, FileExistsError) else error.strerror or error
                raise BadInput(
                    f"{path}: could not be written ({why}), and nothing was; choose another place"
                ) from error
            file.unlink(missing_ok=True)
            return None
        _held[place] = lock
        return lock


def _sign(descriptor: int) -> None:
    """Write into a lock whose it is; not into its first byte, which on Windows nobody else can read."""
    now = datetime.now().astimezone()
    words = f"process {os.getpid()} on {HOST} since {now:%Y-%m-%d %H:%M:%S %Z}\n".encode()
    with suppress(OSError):  # a full disk
        os.lseek(descriptor, 1, os.SEEK_SET)
        os.ftruncate(descriptor, 1 + os.write(descriptor, words))


def _holder(file: Path) -> str:
    """What the holder of a lock says of itself."""
    words = ""
    with suppress(OSError), file.open("rb", buffering=0) as stream:
        stream.seek(1)
        words = stream.read(200).decode("utf-8", "replace").partition("\n")[0]
    return words if words and words.isprintable() else "another process"


def _drop(place: Path, file: Path) -> None:
    lock = _held.pop(place)
    if os.name != "nt":  # there nothing that is open can be removed, and the lock does it afterwards
        # While it is held: who has opened it meanwhile sees that it is gone, and begins again.
        with suppress(OSError):
            file.unlink()
    lock.release(force=True)
