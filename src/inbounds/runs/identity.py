"""What a run is trained on, down to the scan: written down when it begins, and compared whenever it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from inbounds.errors import BadInput, some
from inbounds.store.blocks import checksum
from inbounds.store.description import LABELS
from inbounds.store.facts import Facts
from inbounds.store.store import FULL, Store

SHORT = 16
"""Characters of a scan's checksum: it is there to name the scan, where that of the file is to be sure."""
DATASET = "dataset.json"


def identity(store: Store, annotation: str, facts: str | None) -> dict[str, Any]:
    """What `run.json` says of data, labels and facts: `files` beside the arrays, and `parts`, by file and scan."""
    files = _files(store, annotation, facts)
    return {"files": files, "parts": {name: _parts(store, annotation, name) for name in store.checksums | files}}


def differences(store: Store, annotation: str, facts: str | None, about: Mapping[str, Any]) -> str:
    """Which files are not those of a run, and whose scans in them, in words; nothing if all are."""
    before = about["data"]["checksums"] | about["identity"]["files"]
    now = store.checksums | _files(store, annotation, facts)
    words = []
    for name in before | now:
        if name not in now or name not in before:
            words.append(f"{name}, {'missing now' if name in before else 'not there then'}")
        elif before[name] != now[name]:
            then, parts = about["identity"]["parts"].get(name, {}), _parts(store, annotation, name)
            scans = [scan for scan in then | parts if then.get(scan) != parts.get(scan)]
            words.append(name + (f" ({some(scans)})" if scans else ""))
    return " and ".join(words)


def _files(store: Store, annotation: str, facts: str | None) -> dict[str, str]:
    """Checksums by file, of all but the arrays of images and truth."""
    described = [store.classes, store.channels, store.shape, store.dtype.name, *map(asdict, store.records)]
    files = {DATASET: _digest(described)}
    if annotation != FULL:
        about = store.about(annotation)
        folder = f"annotations/{annotation}"
        files[f"{folder}/{LABELS}"] = about.pop("checksums")[LABELS]
        files[f"{folder}/annotation.json"] = _digest({key: about[key] for key in about if key != "blocks"})
    tables = store.fact_tables(annotation, facts)
    return files | {file.relative_to(store.path).as_posix(): checksum(file) for file in tables}


def _parts(store: Store, annotation: str, name: str) -> dict[str, str]:
    """The beginnings of the checksums of what each scan has in a file, as far as there are any."""
    names, blocks = [record.name for record in store.records], store.blocks.get(name, ())
    parts: dict[str, str] = {}
    if name == DATASET:
        parts = {record.name: _digest(asdict(record)) for record in store.records}
    elif name.endswith(LABELS):
        blocks = store.about(annotation).get("blocks", {}).get(LABELS, ())
    elif name.endswith(".csv"):
        rows: dict[str, list[Any]] = {}
        with suppress(BadInput):  # a table that can be read no more
            for fact in Facts.read(store.path / name, store.classes, store.cases):
                rows.setdefault(fact.case, []).append(asdict(fact))
        parts = {scan: _digest(facts) for scan, facts in rows.items()}
    parts |= dict(zip(names, blocks, strict=False))
    return {scan: each[:SHORT] for scan, each in parts.items()}


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
