"""The list of what the package brings along when it is installed, in the format of CycloneDX 1.6.

It names what `pyproject.toml` declares for users and what that needs in turn, each with the version of the lock file,
the hashes of that version's files, and the licence that the package gives itself. Made twice, it is the same.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.lock import LOCK, ROOT, TORCH, Locked, locked

NOT_SHIPPED = {"dev", "docs", "ray", "slurm"}
"""Extras for those who work on the package, and those whose versions a cluster decides."""


def bill(version: str, made: int | None = None) -> str:
    """The list as JSON.

    Args:
        version: Of this package.
        made: When, in seconds since 1970; left out if it is not known.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name, some in project["optional-dependencies"].items() if name not in NOT_SHIPPED for one in some]
    pins = locked(LOCK) | locked(TORCH)
    required = _brought(project["dependencies"], pins)
    needed = required | _brought(extras, pins)
    declared: set[str] = {canonicalize_name(Requirement(one).name) for one in [*project["dependencies"], *extras]}
    itself: dict[str, Any] = {
        **_named(project["name"], version),
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
    }
    components = [
        {
            **_named(name, pins[name].version),
            "scope": "required" if name in required else "optional",
            "licenses": _licences(name),
            "hashes": [{"alg": "SHA-256", "content": one} for one in pins[name].hashes],
        }
        for name in sorted(needed)
    ]
    content: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "authors": project["authors"],
            "component": itself,
            "properties": [{"name": "inbounds:hashes", "value": "of all files of a version; a machine installs one"}],
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": [_purl(one, pins[one].version) for one in sorted(needs)]}
            for ref, needs in {
                itself["bom-ref"]: declared,
                **{_purl(name, pins[name].version): needed[name] for name in sorted(needed)},
            }.items()
        ],
    }
    if made is not None:
        content["metadata"]["timestamp"] = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    content["serialNumber"] = uuid5(NAMESPACE_URL, json.dumps(content, sort_keys=True)).urn
    return json.dumps(content, indent=1) + "\n"


def _brought(first: Iterable[str], pins: dict[str, Locked]) -> dict[str, set[str]]:
    """These packages and all that they bring, each with the names of what it needs itself."""
    needed: dict[str, set[str]] = {}
    waiting, seen = [Requirement(one) for one in first], set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, *sorted(one.extras)) in seen:
            continue
        seen.add((name, *sorted(one.extras)))
        if name not in pins:
            raise SystemExit(f"{name} is not in {LOCK.name}: run `make lock`")
        installed = metadata.version(name).partition("+")[0]
        if installed != pins[name].version:
            raise SystemExit(f"{name} {installed} is installed, but {pins[name].version} is locked: run `make setup`")
        needs = list(_needs(name, one.extras, pins))
        needed.setdefault(name, set()).update(canonicalize_name(other.name) for other in needs)
        waiting += needs
    return needed


def _needs(name: str, extras: Iterable[str], pins: dict[str, Locked]) -> Iterator[Requirement]:
    """What an installed package says that it needs on this machine; of torch, what every build of it needs."""
    for written in metadata.requires(name) or []:
        one = Requirement(written)
        applies = one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in [*extras, ""])
        if applies and (name != "torch" or canonicalize_name(one.name) in pins):
            yield one


def _licences(name: str) -> list[dict[str, Any]]:
    """What an installed package says of its licence: an SPDX expression if it is one, else in its own words."""
    told = metadata.metadata(name).json
    written = str(told.get("license_expression") or told.get("license") or "")
    try:
        expression = canonicalize_license_expression(written)
    except InvalidLicenseExpression:
        classified = [one for one in told.get("classifier", []) if one.startswith("License ::")]
        names = [one.rpartition(" :: ")[2] for one in classified] or written.splitlines()[:1]
        return [{"license": {"name": one}} for one in names]
    return [{"expression": expression}] if " " in expression else [{"license": {"id": expression}}]


def _named(name: str, version: str) -> dict[str, str]:
    return {
        "type": "library",
        "bom-ref": _purl(name, version),
        "name": name,
        "version": version,
        "purl": _purl(name, version),
    }


def _purl(name: str, version: str) -> str:
    """The address of a package, whichever index it comes from."""
    return f"pkg:pypi/{name}@{version}"
