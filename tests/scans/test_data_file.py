"""Headers that name data elsewhere, and data that go on and on: what the header says is not done unless it is safe."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from archives import done, noise, promise12, refused, zipped
from hostile import VOXELS, device, grown, metaimage, nrrd, pipe, small, within
from inbounds.errors import BadInput
from inbounds.scans.data_file import FOLLOW
from inbounds.scans.scan import header, read
from inbounds.store.store import Store

Header = Callable[[Path, str], Path]
HEADERS: dict[str, Header] = {
    "a.mhd": metaimage,
    "a.mha": metaimage,
    "a.nhdr": nrrd,
    "a.nrrd": nrrd,
    # What stands before the data must not hide them: teem reads all of it.
    "b.nhdr": lambda path, data: nrrd(path, data, more="# a\x0b\x0bb\n# " + "x" * 70_000),
    "c.nhdr": lambda path, data: edited(nrrd(path, data), b"data file", b"DataFile"),
}


def edited(path: Path, old: bytes, new: bytes) -> Path:
    path.write_bytes(path.read_bytes().replace(old, new))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where headers lie; voxels that are none of theirs lie beside the folder."""
    (tmp_path / "scans" / "below").mkdir(parents=True)
    for place in ("secret.raw", "scans/beside.raw", "scans/below/a.raw"):
        (tmp_path / place).write_bytes(VOXELS.tobytes())
    return tmp_path / "scans"


@contextmanager
def following() -> Iterator[None]:
    before = FOLLOW.set(True)
    yield
    FOLLOW.reset(before)


@pytest.mark.parametrize("name", HEADERS)
class TestElsewhere:
    def test_beside_the_header_and_below(self, folder: Path, name: str) -> None:
        (folder / "link.raw").symlink_to("below/a.raw")
        for data in ("beside.raw", "./beside.raw", "below/a.raw", "below/../beside.raw", "link.raw"):
            np.testing.assert_array_equal(read(HEADERS[name](folder / name, data)).array, VOXELS)

    @pytest.mark.parametrize("data", ["../secret.raw", "below/../../secret.raw", "link.raw", "loop/secret.raw"])
    def test_nowhere_else(self, folder: Path, name: str, data: str) -> None:
        (folder / "link.raw").symlink_to("../secret.raw")
        (folder / "loop").symlink_to("..")
        for given in (data, str((folder / data).absolute())):
            path = HEADERS[name](folder / name, given)
            with pytest.raises(BadInput) as caught:
                header(path)
            assert str(caught.value).startswith(
                f"{path}: its data file {given!r} lies outside the folder of the header"
            )
            assert "put it beside the header" in str(caught.value)
            assert "--follow" in str(caught.value)
            with following():
                np.testing.assert_array_equal(read(path).array, VOXELS)

    @pytest.mark.parametrize("data", ["/etc/passwd", "/etc/none", "//server/share/a.raw", r"\\server\share\a.raw"])
    def test_whether_it_is_there_is_not_told(self, folder: Path, name: str, data: str) -> None:
        with pytest.raises(BadInput, match="lies outside the folder"):
            header(HEADERS[name](folder / name, data))

    @pytest.mark.parametrize("data", ["LIST", "LIST 2", "a%03d.raw 1 4 1", "../a%d.raw 1 4 1"])
    def test_lists_and_patterns(self, folder: Path, name: str, data: str) -> None:
        with pytest.raises(BadInput, match="the slices lie in separate files"):
            header(HEADERS[name](folder / name, data))

    def test_no_files(self, folder: Path, name: str) -> None:
        pipe(folder / "pipe.raw")
        device(folder / "zero.raw")
        (folder / "ring.raw").symlink_to("ring.raw")
        with within(10), following():
            for data in ("none.raw", "below", "ring.raw", "x" * 5000):
                with pytest.raises(BadInput, match="is missing; put it beside"):
                    header(HEADERS[name](folder / name, data))
            for data in ("pipe.raw", "zero.raw"):
                with pytest.raises(BadInput, match=f"{data}: this is a (named pipe|device)"):
                    header(HEADERS[name](folder / name, data))


class TestCommands:
    def test_follow_is_said_by_who_prepares(self, folder: Path, tmp_path: Path) -> None:
        metaimage(folder / "a.mhd", "../secret.raw")
        nrrd(folder / "b.nhdr", "../secret.raw")
        refused("prepare", "folder", folder, tmp_path / "store", saying=["a.mhd", "--follow"], folder=tmp_path)
        done("prepare", "folder", folder, tmp_path / "store", "--follow", "--side", 16, "--fit", "pad")
        assert len(Store(tmp_path / "store").records) == 2
        # What was said once holds for that command alone.
        refused("prepare", "add", folder, tmp_path / "store", saying=["a.mhd", "--follow"], folder=tmp_path)

    def test_never_out_of_an_archive(self, tmp_path: Path) -> None:
        promise12(tmp_path / "cases", (3,))
        (tmp_path / "cases" / "Case03.raw").rename(tmp_path / "secret.raw")
        edited(tmp_path / "cases" / "Case03.mhd", b"Case03.raw", str(tmp_path / "secret.raw").encode())
        zipped(tmp_path / "cases", tmp_path / "a.zip")
        for follow in ([], ["--follow"]):
            words = ("prepare", "promise12", tmp_path / "a.zip", tmp_path / "store", *follow)
            refused(*words, saying=["Case03.mhd", "secret.raw", "lies outside"], folder=tmp_path)


PACKED: dict[str, Callable[[Path, bytes], Path]] = {
    "zlib": lambda path, content: metaimage(beside(path, content).with_suffix(".mhd"), path.name, packed=True),
    "gzip": lambda path, content: nrrd(path.with_suffix(".nrrd"), encoding="gzip", content=content),
    "bzip2": lambda path, content: nrrd(path.with_suffix(".nrrd"), encoding="bzip2", content=content),
}


def beside(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("encoding", PACKED)
class TestLimits:
    def test_a_stream_that_goes_on_is_not_followed(self, tmp_path: Path, encoding: str) -> None:
        content = grown(encoding, VOXELS.tobytes())
        with small(), pytest.raises(BadInput, match="go on after the 240 bytes of voxels that the header promises"):
            read(PACKED[encoding](tmp_path / "a.raw", content))

    def test_a_stream_that_stops_early(self, tmp_path: Path, encoding: str) -> None:
        whole = grown(encoding, VOXELS.tobytes(), 0)
        np.testing.assert_array_equal(read(PACKED[encoding](tmp_path / "a.raw", whole)).array, VOXELS)
        for count in (1, 4, 9, 100):
            with pytest.raises(BadInput, match="cut short or damaged"):
                read(PACKED[encoding](tmp_path / "a.raw", whole[:-count]))
        with pytest.raises(BadInput, match="promises 240 bytes of voxels, but there are only 238"):
            read(PACKED[encoding](tmp_path / "a.raw", grown(encoding, VOXELS.tobytes()[:-2], 0)))


def test_what_is_long_is_whole(tmp_path: Path) -> None:
    """Pieces of a stream join, and what stays in the decompressor between two of them is not lost."""
    for array in (noise((33, 500, 600)), np.zeros((33, 500, 600), "<i2")):
        array[-1, -1, -1] = 7
        (tmp_path / "a.zraw").write_bytes(zlib.compress(array.tobytes(), 1))
        path = edited(metaimage(tmp_path / "a.mhd", "a.zraw", packed=True), b"6 5 4", b"600 500 33")
        np.testing.assert_array_equal(read(path).array, array)


def test_nifti_that_goes_on(tmp_path: Path) -> None:
    import nibabel as nib

    content = nib.Nifti1Image(VOXELS.T, np.eye(4)).to_bytes()
    path = tmp_path / "a.nii.gz"
    path.write_bytes(grown("gzip", content))
    with small(), pytest.raises(BadInput, match=r"a\.nii\.gz: the compressed data go on after the 240 bytes"):
        read(path)
    path.write_bytes(gzip.compress(content) + b"garbage")
    with pytest.raises(BadInput, match=r"a\.nii\.gz: the data are cut short or damaged"):
        read(path)
    path.write_bytes(gzip.compress(content) + gzip.compress(bytes(9)))
    with pytest.raises(BadInput, match="go on after"):
        read(path)
