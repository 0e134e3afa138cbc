"""What lies in a folder, so that two of them can be compared byte by byte."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

Tree = dict[str, str]
"""By path in the folder: the hash of a file, or what else it is."""


def tree(folder: Path, *, loose: Iterable[str] = ()) -> Tree:
    """All that lies in a folder, hidden files too. The folder's own path counts as the same wherever it is.

    Args:
        folder: Where to look.
        loose: Patterns of paths whose content and names hold times: that there are some is kept, no more.
    """
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if pattern := next((one for one in loose if fnmatch(inner.as_posix(), one)), None):
            found[pattern] = "there"
            continue
        found[inner.as_posix()] = _content(path, folder)
    return found


def _content(path: Path, folder: Path) -> str:
    kind = path.lstat().st_mode
    if stat.S_ISLNK(kind):
        return f"link to {path.readlink()}"
    if stat.S_ISDIR(kind):
        return "folder"
    if not stat.S_ISREG(kind):
        return "special file"
    content = path.read_bytes()
    for place in {str(folder.resolve()), str(folder)}:
        content = content.replace(place.encode(), b"@")
    return hashlib.sha256(content).hexdigest()


def differences(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """How one tree differs from another, in words; nothing where it does not."""
    missing = [f"missing: {name}" for name in sorted(expected.keys() - found.keys())]
    beside = [f"left behind: {name}" for name in sorted(found.keys() - expected.keys())]
    both = sorted(found.keys() & expected.keys())
    return missing + beside + [f"differs: {name}" for name in both if found[name] != expected[name]]
