"""Where a package of an extra is missing, every command says in one line what to install."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from archives import flat_folder, heart, made
from inbounds.cli import EXTRAS, remedy

ROOT = Path(__file__).parents[1]
OPTIONAL = {"triton", "nnunetv2", "batchgeneratorsv2", "lightning"}
"""What is used where it is there; nnU-Net itself imports what needs it."""
BLOCKED = """
import sys
blocked = sys.argv[1].split(",")
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from inbounds.cli import run
sys.argv = ["inbounds", *sys.argv[2:]]
run()
"""


def imported() -> set[str]:
    """The packages that the sources import, wherever in a file."""
    found = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"inbounds"}


def wanted(text: str) -> str:
    """The name of a requirement."""
    return text.partition(">")[0].partition("[")[0].strip().lower().replace("_", "-")


def test_every_package_belongs_to_an_extra_or_is_always_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = {wanted(one) for one in project["dependencies"]}
    known, of = set().union(*EXTRAS.values()), packages_distributions()
    for name in imported() - known - OPTIONAL:
        assert {one.lower() for one in of[name]} & always, f"{name} belongs to no extra"
    for extra in EXTRAS:
        assert extra in project["optional-dependencies"]
        needed = {wanted(one) for one in project["optional-dependencies"][extra]}
        brought = {one.lower().replace("_", "-") for module in known for one in of.get(module, [])}
        assert needed - always <= brought, f"{extra} has packages of which no module is named"


def test_an_import_that_failed_otherwise_is_no_extra() -> None:
    assert remedy(ImportError("cannot import name 'x'", name="inbounds.store")) == ""
    assert remedy(ImportError("something")) == ""
    assert "inbounds[figures]" in remedy(ImportError(name="matplotlib.pyplot"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extras")
    made(folder / "store", {"a": heart(), "b": heart()})
    flat_folder(folder / "scans")
    return folder


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("data", ["example", "new"]),
        ("data", ["prepare", "folder", "scans", "new"]),
        ("figures", ["preview", "store", "--out", "new.png"]),
        ("train", ["train", "--store", "store", "--run", "new", "--annotation", "given"]),
        ("studio", ["studio", "scans"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_the_line_to_install(place: Path, extra: str, words: list[str]) -> None:
    missing = ",".join(EXTRAS[extra] | ({"lightning"} if extra == "train" else set()))
    program = [sys.executable, "-c", BLOCKED, missing]
    done = subprocess.run(
        [*program, *words], cwd=place, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert f"pip install 'inbounds[{extra}]'" in line
    assert "Traceback" not in done.stderr
