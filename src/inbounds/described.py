"""Reading JSON that anybody may have edited: within limits, by a model of the file, refused in one sentence.

A model is the one place that says what a file holds: what writes the file goes through it as well. Types are strict, so
that "3" is no number. Keys that a model does not know are left alone where a later version may write more.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Hashable, Iterable
from functools import cache
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from inbounds.errors import BadInput
from inbounds.reading import open_file

Kind = TypeVar("Kind")
MOST = 64 * 2**20
"""Bytes of a JSON file: some 80,000 scans."""
LARGEST = 2**63
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxdict = _SHORT.maxlist = 6


class Described(BaseModel):
    """A file of JSON. What a later version may have added is kept."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)


def _safe(name: str) -> str:
    """A name that a file can have on every system, and that says itself what it is."""
    if name in (".", "..") or any(c in "/\\" or unicodedata.category(c).startswith("C") for c in name):
        raise ValueError("a name is without / and \\, .. and characters that cannot be seen")
    return name


Name = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(_safe)]
"""Of a scan, a class, an annotation: files may be called by it."""
Line = Annotated[str, StringConstraints(max_length=10_000)]
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=LARGEST)]


def shortened(value: Any) -> str:
    """A value as a sentence can have it."""
    return _SHORT.repr(value)


def check_names(names: Iterable[str], what: str) -> None:
    """Refuse names that no file could have, before any work is done."""
    for name in names:
        try:
            _adapter(Name).validate_python(name)
        except ValidationError as error:
            raise BadInput(f"{what} {shortened(name)}: {_reason(error)}; rename it") from None


def read_json(file: Path, kind: type[Kind], remedy: str, *, most: int = MOST) -> Kind:
    """What a file says.

    Args:
        file: In UTF-8.
        kind: A model, or a dataclass.
        remedy: What a person can do if it is damaged.
        most: Bytes that are read.

    Raises:
        BadInput: Naming the file, the key, the value and the remedy.
    """
    try:
        with open_file(file) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise BadInput(f"{file}: damaged (more than {most:,} bytes long); {remedy}")
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{file}: damaged (cannot be read: {error.strerror or error}); {remedy}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: damaged ({error}); {remedy}") from None
    return understood(text, kind, f"{file}: damaged", remedy, str(file))


def written(content: Any, kind: type[Kind], where: str, remedy: str) -> Any:
    """What is to be written, once the model that will read it finds nothing wrong."""
    understood(json.dumps(content), kind, f"{where}: cannot be written", remedy, where)
    return content


def understood(text: str, kind: type[Kind], what: str, remedy: str, file: str) -> Kind:
    """A text as a model has it; `what` begins the sentence that refuses it."""
    try:
        json.loads(text, object_pairs_hook=_once, parse_constant=_no_nan, parse_float=_finite, parse_int=_not_too_large)
        found: Kind = _adapter(cast(Hashable, kind)).validate_json(text)
        return found
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if isinstance(own := first.get("ctx", {}).get("error"), BadInput):
            raise BadInput(f"{file}: {own}") from None
        raise BadInput(f"{what} ({_reason(error)}); {remedy}") from None
    except RecursionError:
        raise BadInput(f"{what} (its lists and objects lie too deep in each other); {remedy}") from None
    except ValueError as error:
        raise BadInput(f"{what} ({error}); {remedy}") from None


def _reason(error: ValidationError) -> str:
    """What the first thing that does not fit is."""
    first = error.errors(include_url=False)[0]
    key = _key(first["loc"])
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    if first["type"] == "missing":
        return f"there is no {key}"
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"there is nothing called {key}"
    if first["type"] == "json_invalid" or (first["type"] == "value_error" and not key):
        return message
    given = shortened(first["input"])
    return f"{key} is {given}: {message}" if key else f"{given}: {message}"


def _key(parts: Iterable[int | str]) -> str:
    """Such as `scans[3].fit.top`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_part(part)}" for part in parts)
    return text.removeprefix(".")


def _part(part: str) -> str:
    return part if len(part) <= 60 and part.isprintable() else shortened(part)


@cache
def _adapter(kind: Any) -> Any:
    return TypeAdapter(kind)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{shortened(next(key for key in keys if keys.count(key) > 1))} is there twice")
    return found


def _no_nan(text: str) -> float:
    """Settings may be infinite, as a bound that is open; what else may be, its model says."""
    if text == "NaN":
        raise ValueError(f"{text} is no number")
    return float(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{shortened(text)} is too large a number")
    return number


def _not_too_large(text: str) -> int:
    if len(text) > 20 or not -LARGEST <= int(text) < LARGEST:
        raise ValueError(f"{shortened(text)} is too large a number")
    return int(text)
