"""Zips from anywhere: unpacked where nothing of the user's lies, and not trusted."""

from __future__ import annotations

import stat
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import acdc, done, refused, zipped
from inbounds.scans import archive
from inbounds.scans.archive import unpacked

LINK = zipfile.ZipInfo("training/patient001/patient001_frame01.nii.gz")
LINK.external_attr = (stat.S_IFLNK | 0o777) << 16
SCAN = "patient001_frame01.nii.gz"


def temporary() -> set[str]:
    return {entry.name for entry in Path(tempfile.gettempdir()).iterdir()}


def test_unpacked_for_a_while_only(tmp_path: Path) -> None:
    """Beside what is made of it, and nowhere else."""
    acdc(tmp_path / "training", (1,))
    file = zipped(tmp_path / "training", tmp_path / "a.zip")
    before, elsewhere = sorted(tmp_path.iterdir()), temporary()
    with unpacked(file, lambda name: name == "Info.cfg", tmp_path / "new" / "store") as root:
        found = [path for path in root.rglob("*") if path.is_file()]
        assert [path.name for path in found] == ["Info.cfg"]
        assert root.parent == tmp_path / "new"
        assert root.name.startswith(".store.")
        assert temporary() == elsewhere
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(RuntimeError), unpacked(file, lambda name: True, tmp_path / "store"):
        raise RuntimeError
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_with_scans_and_their_zips_is_read_as_a_folder(tmp_path: Path) -> None:
    acdc(tmp_path / "both", (1,))
    (tmp_path / "both" / "training.zip").write_bytes(b"not looked at")
    done("prepare", "acdc", tmp_path / "both", tmp_path / "store", "--side", 16)


@pytest.mark.parametrize(
    ("member", "saying"),
    [
        (f"../{SCAN}", ["would be written outside", "do not trust"]),
        (f"training/../../{SCAN}", ["would be written outside", "do not trust"]),
        (f"/tmp/{SCAN}", ["would be written outside", "do not trust"]),
        (f"C:\\{SCAN}", ["would be written outside", "do not trust"]),
        (f"..\\{SCAN}", ["would be written outside", "do not trust"]),
        (LINK, ["is a link", "do not trust"]),
    ],
)
def test_harmful_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str | zipfile.ZipInfo, saying: list[str]
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(member, b"/etc/passwd")
    name = member if isinstance(member, str) else member.filename
    words = ("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store")
    refused(*words, saying=[tmp_path / "a.zip", repr(name), *saying], folder=tmp_path)


def test_a_bomb(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(SCAN, bytes(archive.SMALL + 1))
    assert (tmp_path / "a.zip").stat().st_size < 2**20
    words = ("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store")
    refused(*words, saying=[tmp_path / "a.zip", "would become", "packed that tightly"], folder=tmp_path)


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acdc(tmp_path / "training", (1,))
    zipped(tmp_path / "training", tmp_path / "a.zip")
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    words = ("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store")
    refused(*words, saying=[tmp_path / "a.zip", "10 are free", "make room"], folder=tmp_path)


def test_a_member_that_is_larger_than_it_says(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(SCAN, bytes(1000))
    content = (tmp_path / "a.zip").read_bytes()
    thousand, ten = (number.to_bytes(4, "little") for number in (1000, 10))
    (tmp_path / "a.zip").write_bytes(content.replace(thousand * 2, thousand + ten))
    refused("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store", saying=[tmp_path / "a.zip"], folder=tmp_path)


@pytest.mark.parametrize(
    ("source", "saying"),
    [
        ("missing", ["missing: there is no such file or folder", "check the name"]),
        ("empty", ["empty: the folder is empty", "give the one that holds the scans"]),
        ("page.zip", ["page.zip: neither a folder nor a zip archive", "download it again"]),
        ("cut.zip", ["cut.zip", "download it again"]),
        ("broken.zip", ["broken.zip: a broken archive", "download it again"]),
        ("zips", ["zips/broken.zip: a broken archive", "download it again"]),
    ],
)
def test_no_archives(tmp_path: Path, source: str, saying: list[str]) -> None:
    acdc(tmp_path / "training", (1,))
    good = zipped(tmp_path / "training", tmp_path / "good.zip").read_bytes()
    (tmp_path / "empty").mkdir()
    (tmp_path / "zips").mkdir()
    (tmp_path / "page.zip").write_text("<html>Log in</html>")
    (tmp_path / "cut.zip").write_bytes(good[: len(good) // 2])
    broken = bytearray(good)
    broken[200:260] = bytes(60)  # inside the first packed member
    for name in ("broken.zip", "zips/broken.zip"):
        (tmp_path / name).write_bytes(broken)
    refused("prepare", "acdc", tmp_path / source, tmp_path / "store", saying=saying, folder=tmp_path)


@settings(max_examples=60)
@example([(0.25, 128), (0.0390625, 8)])  # a name that says it is UTF-8, and is not
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_zip_never_gives_a_traceback(damage: list[tuple[float, int]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(SCAN, np.arange(50, dtype=np.uint8).tobytes())
        content = bytearray(path.read_bytes())
        for at, value in damage:
            content[int(at * len(content))] = value
        path.write_bytes(content)
        refused("prepare", "acdc", path, Path(name) / "store", saying=[], folder=Path(name))
