"""Zips from anywhere: unpacked where nothing of the user's lies, and not trusted."""

from __future__ import annotations

import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import acdc, done, refused, zipped
from hostile import member, one_for_many, small, zip_of
from inbounds.scans import archive
from inbounds.scans.archive import unpacked
from inbounds.sources.acdc import wanted

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


DEEP = "/".join(["x"] * 900) + f"/{SCAN}"
UMLAUTS = "\u00e4" * 128  # two bytes each
ELSE = f"a/{SCAN}"


@pytest.mark.parametrize(
    ("members", "saying"),
    [
        ([member(SCAN, stat.S_IFIFO)], "is no plain file; do not trust"),
        ([member(SCAN, stat.S_IFCHR)], "is no plain file; do not trust"),
        ([member("notes", stat.S_IFLNK)], "is a link; do not trust"),  # even where it is not needed
        ([SCAN, SCAN], "would be written to the same place"),
        ([SCAN, SCAN.upper().replace("NII.GZ", "nii.gz")], "would be written to the same place"),
        ([f"a\u0308/{SCAN}", f"\u00e4/{SCAN}"], "would be written to the same place"),
        ([f"a/./{SCAN}", f"a//{SCAN}"], "would be written to the same place"),
        ([f"a\\{SCAN}", f"a/{SCAN}"], "would be written to the same place"),
        ([ELSE, f"{ELSE}/{SCAN}"], "would be written to the same place"),
        ([f"{ELSE}/{SCAN}", ELSE], "would be written to the same place"),
        ([f"con/{SCAN}"], "that not every system can write"),
        ([f"a/nul.txt/{SCAN}"], "that not every system can write"),
        ([f"a/CoM1/{SCAN}"], "that not every system can write"),
        ([f"a:b/{SCAN}"], "would be written outside"),
        ([f"b/a:b/{SCAN}"], "that not every system can write"),
        ([f"a\n/{SCAN}"], "that not every system can write"),
        ([f"a./{SCAN}"], "that not every system can write"),
        ([f"a /{SCAN}"], "that not every system can write"),
        ([f"{'x' * 256}/{SCAN}"], "that not every system can write"),
        ([f"{UMLAUTS}/{SCAN}"], "that not every system can write"),
        ([DEEP], "that not every system can write"),
        ([f"//server/share/{SCAN}"], "would be written outside"),
        ([f"\\\\server\\share\\{SCAN}"], "would be written outside"),
    ],
)
def test_names_that_lead_elsewhere(tmp_path: Path, members: list[str | zipfile.ZipInfo], saying: str) -> None:
    zip_of(tmp_path / "a.zip", *((name, b"x") for name in members))
    words = ("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store")
    refused(*words, saying=[f"{tmp_path / 'a.zip'}: ", saying], folder=tmp_path)


def test_a_member_without_a_name(tmp_path: Path) -> None:
    zip_of(tmp_path / "a.zip", ("Q", b"x"), (SCAN, b"x"))
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(b"Q", b"\0"))  # a name ends at its first zero
    words = ("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store")
    refused(*words, saying=[tmp_path / "a.zip"], folder=tmp_path)


def test_names_of_what_is_not_needed_do_no_harm(tmp_path: Path) -> None:
    acdc(tmp_path / "training", (1,))
    zipped(tmp_path / "training", tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as file:
        for name in ("con", "a/b: c?.txt", "read me ", "x" * 300, "READ", "read", "nested.zip"):
            file.writestr(name, b"x")
    with unpacked(tmp_path / "a.zip", wanted, tmp_path / "store") as root:
        assert {path.name for path in root.rglob("*") if path.is_file()} == {
            file.name for file in (tmp_path / "training").rglob("*") if file.is_file() and wanted(file.name)
        }
    done("prepare", "acdc", tmp_path / "a.zip", tmp_path / "store", "--side", 16)


def test_separators_of_windows(tmp_path: Path) -> None:
    with unpacked(zip_of(tmp_path / "a.zip", (f"a\\b\\{SCAN}", b"x")), wanted, tmp_path / "store") as root:
        assert [path.relative_to(root).as_posix() for path in root.rglob("*.gz")] == [f"a.zip/a/b/{SCAN}"]


def test_an_archive_of_two_dots(tmp_path: Path) -> None:
    """Its own name does not lead out either."""
    (tmp_path / "zips").mkdir()
    zip_of(tmp_path / "zips" / "...zip", (SCAN, b"x"))
    (tmp_path / "out").mkdir()
    with unpacked(tmp_path / "zips", wanted, tmp_path / "out" / "store") as root:
        assert [path.relative_to(root).as_posix() for path in root.rglob("*.gz")] == [f"...zip/{SCAN}"]
        assert list((tmp_path / "out").glob("*.gz")) == []


def flagged(path: Path, flag: int) -> Path:
    content = bytearray(path.read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + at] |= flag
    path.write_bytes(content)
    return path


def part(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    end = content.rindex(b"PK\5\6")
    content[end + 4 : end + 8] = b"\3\0\3\0"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("harm", "saying"),
    [
        (lambda file: flagged(file, 1), "is encrypted; unpack it yourself, and give the folder"),
        (part, "is one part of several; put them together, or unpack them yourself, and give the folder"),
        (lambda file: zip_of(file, (SCAN, b"x"), how=zipfile.ZIP_LZMA), "is packed in an unusual way; unpack"),
        (lambda file: zip_of(file, (SCAN, b"x"), how=zipfile.ZIP_BZIP2), "is packed in an unusual way; unpack"),
    ],
)
def test_ways_that_are_not_read(tmp_path: Path, harm: Callable[[Path], Path], saying: str) -> None:
    file = harm(zip_of(tmp_path / "a.zip", (SCAN, b"x")))
    refused("prepare", "acdc", file, tmp_path / "store", saying=[f"{file}: ", saying], folder=tmp_path)


def test_a_directory_that_lies_of_its_bombs(tmp_path: Path) -> None:
    """What bzip2 makes of a kilobyte would be held in memory before anybody counts it."""
    file = zip_of(tmp_path / "a.zip", (SCAN, bytes(1 << 26)), how=zipfile.ZIP_BZIP2)
    content, size = file.read_bytes(), (1 << 26).to_bytes(4, "little")
    assert content.count(size) == 2
    file.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    with small():
        refused("prepare", "acdc", file, tmp_path / "store", saying=[file], folder=tmp_path)


def test_members_that_share_their_bytes(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(10_000)
    file = one_for_many(tmp_path / "a.zip", "patient{:03d}_frame01.nii.gz", content, 50)
    refused("prepare", "acdc", file, tmp_path / "store", saying=[file, "share", "do not trust"], folder=tmp_path)


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
