from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import inbounds
from release.lock import ROOT


def built(folder: Path) -> dict[str, Path]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "release", folder]
    said = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, encoding="utf-8").stdout
    assert sorted(map(Path, said.split())) == sorted(folder.iterdir())
    return {file.suffix: file for file in folder.iterdir()}


def test_wheel_source_archive_and_list_are_built_alike_twice(tmp_path) -> None:
    first, again = built(tmp_path / "first"), built(tmp_path / "again")
    assert sorted(first) == [".gz", ".json", ".whl"]
    for kind, file in first.items():
        assert file.read_bytes() == again[kind].read_bytes(), file.name
    stem = f"inbounds-{inbounds.__version__}"
    with zipfile.ZipFile(first[".whl"]) as wheel:
        inside = wheel.read(f"{stem}.dist-info/sboms/{stem}.cdx.json")
        assert {name.split("/")[0] for name in wheel.namelist()} == {"inbounds", f"{stem}.dist-info"}
    assert inside == first[".json"].read_bytes()
    with tarfile.open(first[".gz"]) as sources:
        names = set(sources.getnames())
    assert {f"{stem}/{name}" for name in ("requirements.lock", "torch.txt", "SECURITY.md", "release/bill.py")} <= names
