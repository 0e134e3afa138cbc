"""How files go wrong: cut short, flipped, overwritten, of another kind; and values that nobody expects."""

from __future__ import annotations

import copy
import json
import math
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.bad import LONG, WORDS

NUMBERS = [0, -1, 1, 2, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53 + 1, 2**63, 10**30, 0.5, -0.0]
NUMBERS += [1e-320, 1e308, -1e308, math.nan, math.inf]
THINGS: list[Any] = [None, True, [], {}, [[]], [None], {"": None}, [0] * 5, *NUMBERS, *WORDS["json"], *LONG]
"""What may stand in a JSON file."""
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


def bytes_of(rng: random.Random, content: bytes, region: int = 0) -> tuple[bytes, str]:
    """Content gone wrong somewhere, at its beginning if a region is given, and what was done to it."""
    if not content:
        return b"\0", "one byte where there was none"
    end = min(region or len(content), len(content))
    at = rng.randrange(end)
    count = rng.choice((1, 2, 8, 64, 4096))
    noise = rng.randbytes(count)
    ways: list[tuple[bytes, str]] = [
        (content[:at], f"cut at byte {at}"),
        (content[:at] + content[at + count :], f"{count} bytes left out at {at}"),
        (content[:at] + noise + content[at:], f"{count} bytes put in at {at}"),
        (content[:at] + noise + content[at + count :], f"{count} bytes replaced at {at}"),
        (content[:at] + bytes(min(count, len(content) - at)) + content[at + count :], f"{count} zeros at {at}"),
        (content[:at] + content[:count] + content[at:], f"its first {count} bytes again at {at}"),
        (content + noise, f"{count} bytes more"),
        (content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :], f"a bit flipped at {at}"),
    ]
    width, order = rng.choice((2, 4, 8)), rng.choice("<>")
    number = rng.choice([0, 1, 2**15 - 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1) - 1, 2 ** (8 * width - 1)])
    packed = struct.pack(order + {2: "H", 4: "I", 8: "Q"}[width], number % 2 ** (8 * width))
    at -= at % width
    ways += [(content[:at] + packed + content[at + width :], f"{number} in {width} bytes at {at}")] * 3
    return rng.choice(ways)


def file_of(rng: random.Random, path: Path, region: int = 0) -> str:
    """A file that goes wrong in its bytes."""
    content, what = bytes_of(rng, path.read_bytes(), region)
    path.write_bytes(content)
    return f"{path.name}: {what}"


def kind_of(rng: random.Random, path: Path) -> str:
    """A file in whose place lies something else."""
    content = path.read_bytes()
    path.unlink()
    ways: dict[str, Callable[[], object]] = {
        "empty": path.touch,
        "missing": lambda: None,
        "a folder": path.mkdir,
        "a folder with something in it": lambda: (_folder(path) / path.name).write_bytes(content),
        "a pipe": lambda: os.mkfifo(path),
        "a link to nowhere": lambda: path.symlink_to("nowhere"),
        "a link to itself": lambda: path.symlink_to(path.name),
        "a link to zeros without end": lambda: path.symlink_to("/dev/zero"),
        "a link to its folder": lambda: path.symlink_to("."),
        "a web page": lambda: path.write_bytes(PAGE),
        "noise": lambda: path.write_bytes(rng.randbytes(5000)),
        "text": lambda: path.write_text("not what it is called\n" * 20),
    }
    what = rng.choice(list(ways))
    ways[what]()
    return f"{path.name}: {what}"


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def json_of(rng: random.Random, path: Path) -> str:
    """A JSON file with a value that is another, is gone, or is there twice; its text stays JSON."""
    content = json.loads(path.read_text(encoding="utf-8"))
    places = list(_places(content))
    if not places:
        path.write_text(json.dumps(rng.choice(THINGS)))
        return f"{path.name}: something else"
    inside, key = rng.choice(places)
    way, thing = rng.randrange(8), rng.choice(THINGS)
    if way == 0:
        del inside[key]
        what = "gone"
    elif way == 1 and isinstance(inside, dict):
        inside[str(rng.choice(WORDS["json"]))] = inside.pop(key)
        what = "under another name"
    elif way == 2:
        other, name = rng.choice(places)
        thing = copy.deepcopy(other[name])
        inside[key], what = thing, f"{json.dumps(thing)[:80]}, from elsewhere"
    elif way == 3:
        inside[key], what = [inside[key]] * rng.choice((0, 2, 1000)), "in a list"
    else:
        inside[key], what = thing, json.dumps(thing)[:80]
    text = json.dumps(content)
    if rng.randrange(20) == 0:
        text, what = "[" * 100_000, "nested without end"
    path.write_text(text, encoding="utf-8")
    return f"{path.name}: {key} is {what}"


def _places(content: Any) -> Any:
    """Every key of every dictionary and list."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(entries):
        yield content, key
        yield from _places(value)
