from __future__ import annotations

import json
import tomllib
from importlib import metadata

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release import bill as made
from release.bill import bill
from release.lock import LOCK, ROOT, Locked, locked


@pytest.fixture(scope="module")
def listed() -> dict:
    return json.loads(bill("1.2.3"))


def test_is_cyclonedx() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill("1.2.3", made=1_700_000_000)) is None


def test_names_what_users_install_and_what_that_needs(listed) -> None:
    component = {one["name"]: one for one in listed["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"torch", "numpy", "typer", "nibabel", "simpleitk", "onnx", "sympy"} <= set(component)
    assert not {"inbounds", "pytest", "mypy", "ruff", "sphinx", "hypothesis"} & set(component)
    assert any(one.startswith("numpy>=") for one in project["dependencies"])
    assert component["numpy"]["scope"] == "required"
    assert component["nibabel"]["scope"] == "optional"
    depends = {one["ref"]: one["dependsOn"] for one in listed["dependencies"]}
    assert component["numpy"]["purl"] in depends["pkg:pypi/inbounds@1.2.3"]
    assert component["numpy"]["purl"] in depends[component["scipy"]["purl"]]
    assert set(depends) == {"pkg:pypi/inbounds@1.2.3", *(one["bom-ref"] for one in listed["components"])}


def test_each_has_its_version_its_hashes_and_its_licence(listed) -> None:
    pins = locked(LOCK)
    for one in listed["components"]:
        assert one["version"] == metadata.version(one["name"]).partition("+")[0]
        assert one["licenses"], one["name"]
        if one["name"] != "torch":
            assert tuple(digest["content"] for digest in one["hashes"]) == pins[one["name"]].hashes


def test_is_the_same_whenever_and_wherever_it_is_made(monkeypatch, tmp_path) -> None:
    first = bill("1.2.3", made=0)
    monkeypatch.chdir(tmp_path)
    assert bill("1.2.3", made=0) == first
    assert json.loads(first)["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert json.loads(bill("1.2.4", made=0))["serialNumber"] != json.loads(first)["serialNumber"]
    for place in (str(ROOT), "file:", "/simple/", "://pypi", "+cpu"):
        assert place not in first


def test_another_version_than_the_locked_one_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(made, "locked", lambda file: locked(file) | {"numpy": Locked("1.0", ())})
    with pytest.raises(SystemExit, match=r"numpy .* is installed, but 1.0 is locked: run `make setup`"):
        bill("1.2.3")
    monkeypatch.setattr(made, "locked", lambda file: {})
    with pytest.raises(SystemExit, match=r"is not in requirements.lock: run `make lock`"):
        bill("1.2.3")
