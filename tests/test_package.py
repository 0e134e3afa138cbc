from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest
import torch

import inbounds

STABLE = [
    "size",
    "fraction",
    "border",
    "normalised_cut",
    "pairwise",
    "centroid",
    "compactness",
    "spread",
    "moment",
    "mean_intensity",
    "variance_intensity",
    "Interval",
    "Tags",
    "Common",
    "Individual",
    "Fixed",
    "quadratic",
    "hinge",
    "log_barrier",
    "Constraint",
    "cross_entropy",
    "Supervision",
    "recipes",
]
BESIDE = [
    "UNLABELLED",
    "Annotation",
    "Ascent",
    "Bounds",
    "Exact",
    "Knowledge",
    "Known",
    "Loss",
    "Multipliers",
    "Patches",
    "Proposals",
    "Regulariser",
    "Scans",
    "Terms",
    "distance",
    "inclusion",
    "offset",
    "ratio",
    "statistic",
    "typical_values",
]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names() -> None:
    assert sorted(inbounds.__all__) == sorted(STABLE + BESIDE)
    assert set(inbounds.__all__) <= set(dir(inbounds))
    for name in inbounds.__all__:
        assert getattr(inbounds, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'sizes'"):
        _ = inbounds.sizes


def test_rooms_are_there_after_one_import() -> None:
    """In a process that has not yet imported them."""
    rooms = "annotations", "constraints", "losses", "regions", "regularisers", "supervision"
    printed = python(f"import inbounds as ib; print(*(getattr(ib, room).__name__ for room in {rooms}))")
    assert printed.split() == [f"inbounds.{room}" for room in rooms]


def test_every_public_name_says_what_it_is() -> None:
    for name in set(inbounds.__all__) - {"UNLABELLED", "recipes"}:
        assert (getattr(inbounds, name).__doc__ or "").strip(), name


def test_import_is_quick_once_torch_is_there() -> None:
    code = "import torch, time; t = time.process_time(); from inbounds import *; print(time.process_time() - t)"
    assert float(python(code)) < 1.5


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_command_line_answers_without_torch(argument) -> None:
    code = f"""
import sys
from inbounds.cli import app
sys.argv = ["inbounds", "{argument}"]
try:
    app()
except SystemExit as stop:
    assert not stop.code, stop.code
assert not {{"torch", "numpy", "jaxtyping"}} & set(sys.modules), "heavy imports"
"""
    printed = python(code)
    assert {"--help": "few clicks and a rough size", "--version": inbounds.__version__}[argument] in printed


def test_the_command_line_lists_recipes() -> None:
    printed = python("import sys; from inbounds.cli import app; sys.argv = ['inbounds', 'recipes']; app()")
    for name in inbounds.recipes:
        assert name in printed


# The rooms of the core: examples of those that need files, data or networks are tested beside them.
MODULES = [
    module.name
    for room in ("regions", "annotations", "constraints", "regularisers", "losses", "supervision")
    for module in pkgutil.walk_packages(importlib.import_module(f"inbounds.{room}").__path__, f"inbounds.{room}.")
    if module.name != "inbounds.losses.ascent_triton"  # a kernel for GPUs, which has no examples: it needs Triton
]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module) -> None:
    names = {name: getattr(inbounds, name) for name in inbounds.__all__} | {"torch": torch}
    runner, report = doctest.DocTestRunner(verbose=False), []
    for example in doctest.DocTestFinder().find(importlib.import_module(module), extraglobs=names):
        runner.run(example, out=report.append)
    assert not report, "".join(report)


def test_docstring_examples_are_found() -> None:
    """Every public example is among those that run: the finder overlooks what is neither function nor class."""
    found = {
        test.name.rpartition(".")[2]
        for module in MODULES
        for test in doctest.DocTestFinder().find(importlib.import_module(module))
        if test.examples
    }
    shown = {
        name
        for name in set(inbounds.__all__) - {"UNLABELLED", "recipes"}
        if ">>>" in (getattr(inbounds, name).__doc__ or "")
    }
    assert {"size", "centroid", "Constraint", "Interval"} <= shown
    assert shown <= found
