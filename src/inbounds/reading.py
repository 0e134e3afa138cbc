"""Opening what people hand over: files, and nothing that only looks like one.

Opening a named pipe waits until somebody writes to it, which may be for ever, and a device has no end.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

from inbounds.errors import BadInput

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def regular(path: Path) -> Path:
    """The path itself, unless what lies there is neither a file nor a folder; there may be nothing.

    For libraries that open a file by its name; what is opened here is opened by `open_file`.
    """
    try:
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return path  # who opens it says why that is impossible
    if kind is not None:
        raise BadInput(f"{path}: this is {kind}, not a file; give the file itself, or remove it")
    return path


def open_file(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes."""
    return open(regular(path), "rb", opener=_at_once)


def read_written(path: Path, most: int, remedy: str) -> str:
    """All that a person wrote in an editor or a spreadsheet, in UTF-8 with its mark or without; ends of lines stay.

    Args:
        path: The file.
        most: As many bytes, at most.
        remedy: How to save it, for a refusal.

    Raises:
        BadInput: It cannot be read, is too large, or no text in UTF-8.
    """
    try:
        with open_file(path) as stream:
            content = stream.read(most + 1) if os.fstat(stream.fileno()).st_size <= most else None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}); check the name") from None
    if content is None or len(content) > most:
        raise BadInput(f"{path}: larger than {most >> 20} MiB, and no more is read; check the name, or cut it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # as in UTF-16, and in most files that are no text
        raise BadInput(f"{path}: not a text file in UTF-8; {remedy}")
    return text


def _at_once(name: str, flags: int) -> int:
    """Without waiting, should a pipe have taken the file's place since it was looked at."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
