from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.lock import CLUSTER, LOCK, ROOT, TORCH, locked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = [*PROJECT["dependencies"], *(one for some in PROJECT["optional-dependencies"].values() for one in some)]


@pytest.mark.parametrize("written", sorted({one for one in DECLARED if not one.startswith("inbounds[")}))
def test_each_declared_dependency_is_locked_within_its_range(written: str) -> None:
    one, pins = Requirement(written), locked(LOCK) | locked(TORCH) | locked(CLUSTER)
    name = canonicalize_name(one.name)
    assert name in pins, "run `make lock`"
    assert one.specifier.contains(pins[name].version), f"{pins[name].version} is locked: run `make lock`"


def test_all_but_torch_has_hashes_of_its_files() -> None:
    assert list(locked(TORCH)) == ["torch"]
    assert "torch" not in locked(LOCK)
    for name, one in (*locked(LOCK).items(), *locked(CLUSTER).items()):
        assert one.hashes, name
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in one.hashes), name


def test_what_both_have_is_the_same() -> None:
    """What clusters need is installed into the same environment."""
    both = locked(LOCK).keys() & locked(CLUSTER).keys()
    assert both
    assert all(locked(LOCK)[name] == locked(CLUSTER)[name] for name in both)


@pytest.mark.parametrize("file", [LOCK, CLUSTER], ids=lambda file: file.name)
def test_a_lock_file_names_no_place(file: Path) -> None:
    """Where files come from is for each machine to say: their hashes are the same everywhere."""
    for line in file.read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"#.*|[a-z0-9-]+==\S+( ; [^;/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_of_several_versions_that_of_this_python(tmp_path) -> None:
    file = tmp_path / "some.lock"
    ours, other = f"--hash=sha256:{'1' * 64}", f"--hash=sha256:{'2' * 64}"
    file.write_text(
        f"# made by hand\nA_b==1 ; python_version < '3.11' \\\n    {other}\nA_b==2 ; python_version >= '3.11' \\\n"
        f"    {ours} \\\n    {other}\n",
        encoding="utf-8",
    )
    assert locked(file)["a-b"].version == "2"
    assert locked(file)["a-b"].hashes == ("1" * 64, "2" * 64)
