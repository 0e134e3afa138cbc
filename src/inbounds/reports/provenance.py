"""How a run was set up and where its figures come from, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inbounds.config import read_settings
from inbounds.runs.run import Run


def settings_of(run: Run) -> Iterator[tuple[str, str, bool]]:
    """Every setting, its value, and whether it is other than by default."""
    usual = dict(_flat(read_settings(run.settings.recipe).model_dump()))
    for key, value in _flat(run.settings.model_dump()):
        yield key, _text(value), usual.get(key) != value


def _flat(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_text(each)}" for key, each in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def provenance_of(run: Run) -> Iterator[tuple[str, str]]:
    """Where a run's figures come from: data, labels, seed, source, versions."""
    about = run.about
    yield "data", about["data"]["name"]
    yield from ((f"SHA-256 of {file}", value) for file, value in about["data"]["checksums"].items())
    yield from ((f"data {key}", _text(value)) for key, value in about["data"].get("source", {}).items())
    for key, value in about["annotation"].items():
        if key != "checksums":
            yield ("labels" if key == "name" else f"labels: {key}"), _text(value)
    for file, value in about["annotation"].get("checksums", {}).items():
        yield f"SHA-256 of {file}", value
    yield "facts", run.facts or "none"
    yield "classes", ", ".join(run.classes)
    yield "seed", str(run.seed)
    yield "commit", about.get("commit") or "not known"
    yield from about.get("versions", {}).items()
    yield from about.get("machine", {}).items()
