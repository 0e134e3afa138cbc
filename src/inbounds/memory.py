"""What this machine can still give, memory and room on a disk, and what a command needs: compared before it begins."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from inbounds.errors import BadInput

SMALL = 1 << 26
"""Bytes that are there wherever this runs: nobody is asked for them."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def require(needed: int, what: str, remedy: str, free: int | None = None) -> None:
    """Refuse what cannot fit into memory, before any is asked for.

    Args:
        needed: Bytes.
        what: What needs them, as the beginning of a sentence.
        remedy: What a person can do, as its end.
        free: What there is, if not this machine's memory.
    """
    if needed <= SMALL:
        return
    free = available() if free is None else free
    if free is not None and needed > free:
        raise BadInput(f"{what} needs {amount(needed)} of memory, and {amount(free)} are free here; {remedy}")


def require_disk(needed: int, place: Path, what: str) -> None:
    """Refuse what a disk has no room for, before anything is written."""
    if needed <= SMALL:
        return
    there = next((folder for folder in (place, *place.absolute().parents) if folder.is_dir()), None)
    free = needed if there is None else shutil.disk_usage(there).free
    if needed > free:
        raise BadInput(
            f"{place}: {what} needs {amount(needed)} on the disk, and {amount(free)} are free; make room, or choose "
            "another place"
        )


def amount(count: float) -> str:
    """Bytes as people read them.

    Example:
        >>> amount(1_539_316_278_886), amount(2**20), amount(5)
        ('1.4 TiB', '1 MiB', '5 bytes')
    """
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.{1 if count < 99.95 else 0}f}".removesuffix(".0") + f" {_UNITS[power]}"


def available() -> int | None:
    """The bytes that a process may still take: of the machine, of its container, and as its limits say."""
    known = [free for free in (_machine(), _limit(), *_groups()) if free is not None]
    return max(0, min(known)) if known else None


def _machine() -> int | None:
    """What the system has: on Linux and Windows what is free, elsewhere all of it, where that is known."""
    if sys.platform == "win32":
        return _windows()
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024 * sum(int(lines[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _windows() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("counts", ctypes.c_uint64 * 7)]

    status = Status()
    status.length = ctypes.sizeof(status)
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 (which type checkers know on Windows alone)
    return int(status.counts[3]) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def _limit() -> int | None:
    """What `ulimit -v` leaves."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return limit - pages * resource.getpagesize()
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return None


def _groups(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[int | None]:
    """What each control group that this process is in leaves, as containers have them; cached files do not count."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for _, kinds, name in (line for line in lines if len(line) == 3):
        if kinds and "memory" not in kinds.split(","):
            continue
        base, most, now, cached = (
            (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_{}_file")
            if kinds
            else (root, "memory.max", "memory.current", "{}_file")
        )
        inside = base / name.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(base):
                yield _left(folder, most, now, [cached.format(kind) for kind in ("active", "inactive")])


def _left(folder: Path, most: str, now: str, cached: list[str]) -> int | None:
    """What one group leaves; `None` where it has no limit, or does not say."""
    try:
        limit = int((folder / most).read_text())  # which `max` is not
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return limit - int((folder / now).read_text()) + sum(int(stat.get(name, 0)) for name in cached)
    except (OSError, ValueError):
        return None
