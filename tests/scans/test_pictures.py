"""Pictures that promise more than anybody could want: pixels, pages, tiles."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hostile import small, tiff, within
from inbounds.errors import BadInput
from inbounds.scans.pictures import PAGES, PIXELS
from inbounds.scans.scan import header, read_labels


def test_an_honest_one_is_read(tmp_path: Path) -> None:
    assert read_labels(tiff(tmp_path / "a.tif", 3, 60)).array.shape == (3, 60, 60)


def test_pages_that_share_their_bytes(tmp_path: Path) -> None:
    path = tiff(tmp_path / "a.tif", 2000, 4000)
    assert path.stat().st_size < 1 << 18
    with small(), pytest.raises(BadInput, match=r"a\.tif: the header promises .* compressed bytes"):
        read_labels(path)


def test_pages_without_end(tmp_path: Path) -> None:
    path = tiff(tmp_path / "a.tif", 2 * PAGES, 2)
    with within(30), pytest.raises(BadInput, match=rf"a\.tif: more than {PAGES:,} pages; save the scan as several"):
        header(path)


def test_a_ring_of_pages_ends(tmp_path: Path) -> None:
    path = tiff(tmp_path / "a.tif", 3, 60)
    content = path.read_bytes()
    path.write_bytes(content[:-4] + content[4:8])
    with small():
        assert header(path).shape == (3, 60, 60)


@pytest.mark.parametrize("name", ["a.tif", "a.png"])
@pytest.mark.parametrize("side", [12_000, 60_000])
def test_a_picture_of_too_many_pixels(tmp_path: Path, side: int, name: str) -> None:
    if name == "a.tif":
        path = tiff(tmp_path / name, 1, side)
    else:
        Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / "b.png")
        content = bytearray((tmp_path / "b.png").read_bytes())
        content[16:24] = struct.pack(">II", side, side)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        path = tmp_path / name
        path.write_bytes(content)
    with small(), pytest.raises(BadInput, match=f"a picture of more than {PIXELS:,} pixels; scale it down"):
        header(path)


def test_a_later_page_of_too_many_pixels(tmp_path: Path) -> None:
    content = bytearray(tiff(tmp_path / "a.tif", 2, 60).read_bytes())
    for tag in (256, 257):
        at = content.rindex(struct.pack("<HHII", tag, 4, 1, 60))
        struct.pack_into("<I", content, at + 8, 60_000)
    (tmp_path / "a.tif").write_bytes(content)
    with small(), pytest.raises(BadInput, match="more than"):
        header(tmp_path / "a.tif")


def test_a_tile_that_is_larger_than_its_picture(tmp_path: Path) -> None:
    with small(), pytest.raises(BadInput, match="a picture of more than"):
        header(tiff(tmp_path / "a.tif", 1, 60, tile=40_000))
