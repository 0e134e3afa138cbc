"""Edits of JSON such as people and accidents make, drawn from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3.5, -0.5, 10**12, -(10**12), 2**63, 10**400, 1e300),
    *(float("nan"), float("inf"), -float("inf")),
    *("", "x", "3", "..", "../../etc/passwd", "/etc/passwd", "a\\b", "a\0b", "\u202e", "\ud800", "x" * 100_000),
    *([], {}, [[]], [1], ["x"], [1, 2, 3], {"x": 1}, {"": {}}, [None] * 1000),
)
TEXTS: tuple[bytes, ...] = (
    *(b"", b" ", b"{", b"[]", b"null", b"3", b'"x"', b"NaN", b"{}", b"\xff\xfe{}", b"\x00" * 100),
    *(b"[" * 100_000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"9" * 100_000, b'{"schema": 1, "schema": 1}'),
)


def places(content: Any) -> list[tuple[Any, Any]]:
    """Every list or object in some JSON, with each of its indices or keys."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [found for key, value in list(items) for found in [(content, key), *places(value)]]


def edits(text: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """A file as it may become: cut off, changed bytes, keys dropped, added and doubled, values of other kinds."""
    draw, content = random.Random(seed), json.loads(text)
    yield from TEXTS
    yield b"\xef\xbb\xbf" + text
    for number in range(count):
        kind, changed = number % 8, deepcopy(content)
        holder, key = draw.choice(places(changed))
        if kind == 0:
            yield text[: draw.randrange(len(text))]
            continue
        if kind == 1:
            at = draw.randrange(len(text))
            yield text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
            continue
        if kind == 2:
            del holder[key]
        elif kind == 3 and isinstance(holder, dict):
            holder["added"] = draw.choice(STRANGE)
        elif kind == 4 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        else:
            holder[key] = draw.choice(STRANGE)
        yield json.dumps(changed, ensure_ascii=False).encode("utf-8", "surrogatepass")


def survives(file: Path, use: Callable[[], object], count: int) -> tuple[int, int]:
    """How often a file was taken and refused once edited; anything but a refusal in one sentence is raised."""
    whole, said = file.read_bytes(), []
    for text in edits(whole, count):
        file.write_bytes(text)
        try:
            use()
            said.append("")
        except BadInput as error:
            said.append(str(error))
        except Exception as error:
            raise AssertionError(f"{file.name} as {text[:3000]!r}") from error
    file.unlink()
    file.mkdir()
    with suppress(BadInput):
        use()
    file.rmdir()
    file.write_bytes(whole)
    use()
    assert [words[:3000] for words in said if len(words) > 2000 or "\n" in words] == []
    return said.count(""), len(said) - said.count("")
