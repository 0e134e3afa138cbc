"""Masks by several processes: what one alone gives, byte by byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archives import command, nifti, noise, refused, snapshot
from inbounds.jobs.chunks import folder_of
from inbounds.store.store import Store
from sweeps import alone, plan

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, hearts: Store) -> Path:
    root = tmp_path_factory.mktemp("run")
    return alone(root / "sweep", plan(root / "plan.toml", hearts)) / "runs" / "tags" / "seed-0"


def test_masks_tables_and_what_is_told_are_the_same(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the scans cannot be read, which stops none of the others."""
    monkeypatch.chdir(tmp_path)
    for seed in range(4):
        nifti(Path("scans") / f"s{seed}.nii.gz", noise((3, 48, 60), seed))
    Path("scans/bad.nii.gz").write_bytes(b"nothing")
    words = ["predict", run, "scans", "--probabilities", "--json", "--out"]
    one = command(*words, "alone")
    many = command(*words, "many", "--on", "local", "--chunk", "3")
    assert (one.code, many.code) == (1, 1)
    assert json.loads(one.out.replace("alone", "")) == json.loads(many.out.replace("many", ""))
    assert json.loads(many.out)["failures"].keys() == {"bad"}
    assert snapshot(Path("alone")) == snapshot(Path("many"))
    assert not folder_of(Path("many")).exists()
    refused(*words, "many", "--on", "local", saying=["already exists", "--overwrite"], folder=tmp_path)
