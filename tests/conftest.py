"""Shape checks at run time, and one vocabulary of fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from hypothesis import settings

if TYPE_CHECKING:
    from inbounds.store.store import Store

CHECKED = os.environ.get("INBOUNDS_TYPECHECK", "1") != "0"

if CHECKED:
    from jaxtyping import install_import_hook

    install_import_hook("inbounds", "typechecker.checked")

settings.register_profile("inbounds", deadline=None, max_examples=40, derandomize=True, database=None)
settings.load_profile("inbounds")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `plain` is skipped while shapes are checked, and says where it runs instead."""
    if not CHECKED:
        return
    for item in items:
        if item.get_closest_marker("plain"):
            item.add_marker(pytest.mark.skip(reason="runs without shape checks: INBOUNDS_TYPECHECK=0 pytest -m plain"))


@pytest.fixture(autouse=True)
def _seed() -> None:
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session")
def hearts(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Four generated patients with weak labels: one store for all tests and workers. Whoever changes it copies it."""
    from inbounds.store.store import Store
    from training_runs import hearts_store

    base = tmp_path_factory.getbasetemp()
    shared: Path = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = shared / "hearts"
    with FileLock(shared / "hearts.lock"):
        if not path.exists():
            hearts_store(path)
    return Store(path)
