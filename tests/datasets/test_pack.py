"""A store as one file: the same store out of it, or a sentence about what is wrong."""

from __future__ import annotations

import io
import lzma
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archives import command, done, heart, made, refused, snapshot
from inbounds.datasets.pack import pack, unpack
from inbounds.datasets.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = made(tmp_path_factory.mktemp("pack") / "store", {name: heart((9, 40, 36)) for name in "abc"})
    done("annotate", store.path, "--name", "seeds", "--strategy", "erosion")
    done("facts", store.path, "--name", "form", "--template", store.path.parent / "form.csv")
    done("facts", store.path, "--name", "form", "--import", store.path.parent / "form.csv")
    return store


@pytest.fixture(scope="module")
def packed(store: Store) -> Path:
    pack(store, store.path.parent / "a.pack")
    return store.path.parent / "a.pack"


def test_there_and_back(store: Store, packed: Path, tmp_path: Path) -> None:
    unpack(packed, tmp_path / "back")
    assert snapshot(tmp_path / "back") == snapshot(store.path)
    assert "facts/form.csv" in snapshot(tmp_path / "back")
    assert packed.stat().st_size < sum(map(len, snapshot(store.path).values()))


def test_the_same_bytes_every_time(packed: Path, tmp_path: Path) -> None:
    done("unpack", packed, tmp_path / "back")
    (tmp_path / "back" / "annotations" / ".half.partial").mkdir()
    (tmp_path / "back" / "annotations" / ".half.partial" / "labels.npy").write_bytes(b"left by a killed process")
    outcome = done("pack", tmp_path / "back", tmp_path / "again.pack")
    assert "MB" in outcome.out
    assert (tmp_path / "again.pack").read_bytes() == packed.read_bytes()
    refused("pack", tmp_path / "back", tmp_path / "again.pack", saying=["already exists"], folder=tmp_path)


def test_a_place_that_cannot_be(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    refused("pack", store.path, tmp_path / "file" / "a.pack", saying=["could not be written"], folder=tmp_path)


def members(packed: Path) -> dict[str, bytes]:
    with tarfile.open(packed) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]


def write(path: Path, content: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.pax_headers = len(data), kind, {"path": name}
            tar.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "saying"),
    [
        ("images.npy.xz", ["images.npy: its checksum differs", "pack it again"]),
        ("truth.npy.xz", ["truth.npy: its checksum differs", "pack it again"]),
        ("annotations/seeds/labels.npy.xz", ["labels.npy: its checksum differs", "pack it again"]),
    ],
)
def test_tampered_members(packed: Path, tmp_path: Path, name: str, saying: list[str]) -> None:
    content = members(packed)
    data = bytearray(lzma.decompress(content[name]))
    data[-3] ^= 1
    file = write(tmp_path / "a.pack", content | {name: lzma.compress(data)})
    refused("unpack", file, tmp_path / "back", saying=[file, *saying], folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "kind", "saying"),
    [
        ({"../evil.xz": lzma.compress(b"x")}, tarfile.REGTYPE, ["'../evil.xz'", "do not trust"]),
        ({"/evil.xz": lzma.compress(b"x")}, tarfile.REGTYPE, ["'/evil.xz'", "do not trust"]),
        ({"a/../../evil.xz": lzma.compress(b"x")}, tarfile.REGTYPE, ["do not trust"]),
        ({"link.xz": b""}, tarfile.SYMTYPE, ["'link.xz'", "do not trust"]),
        ({"photo.png": b"x"}, tarfile.REGTYPE, ["'photo.png' does not belong"]),
        ({"images.npy.xz": b"not packed"}, tarfile.REGTYPE, ["damaged", "pack it again"]),
        ({"a\0b.xz": lzma.compress(b"x")}, tarfile.REGTYPE, ["do not trust"]),
        ({"images.npy.xz": lzma.compress(b"x")}, tarfile.REGTYPE, ["a.pack: there is no store in it", "inbounds pack"]),
        ({}, tarfile.REGTYPE, ["a.pack: there is no store in it"]),
    ],
)
def test_foreign_files(tmp_path: Path, content: dict[str, bytes], kind: bytes, saying: list[str]) -> None:
    (tmp_path / "inner").mkdir()
    file = write(tmp_path / "inner" / "a.pack", content, kind)
    refused("unpack", file, tmp_path / "inner" / "back", saying=saying, folder=tmp_path)


def test_no_pack_at_all(packed: Path, store: Store, tmp_path: Path) -> None:
    refused("unpack", tmp_path / "none", tmp_path / "back", saying=["none", "no such file"])
    cut = tmp_path / "cut.pack"
    cut.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    refused("unpack", cut, tmp_path / "back", saying=[cut, "damaged", "pack it again"], folder=tmp_path)
    cut.write_text("<html>Log in</html>")
    refused("unpack", cut, tmp_path / "back", saying=[cut, "not a packed store"], folder=tmp_path)
    refused("unpack", packed, store.path, saying=[store.path, "already exists"])


@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6), st.booleans()
)
def test_damage_anywhere_never_gives_a_traceback(packed: Path, damage: list[tuple[float, int]], early: bool) -> None:
    content = bytearray(packed.read_bytes())
    for at, value in damage:
        content[int(at * (512 if early else len(content)))] = value
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "a.pack"
        file.write_bytes(content)
        outcome = command("unpack", file, Path(name) / "back")
        assert outcome.code in (0, 2)
        assert (Path(name) / "back").exists() == (outcome.code == 0)
