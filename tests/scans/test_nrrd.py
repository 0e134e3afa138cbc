"""Headers of NRRD as they are written in the world, compared with what ITK makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from hostile import VOXELS, nrrd
from inbounds.errors import BadInput
from inbounds.scans.itk import ItkGeometry
from inbounds.scans.scan import header, read

SKEWED = "space directions: (1,0.5,0) (0,2,0) (0,0,3)\nspace origin: (10,20,30)"
USUAL = [
    *(f"space: {space}\n{SKEWED}" for space in ("right-anterior-superior", "RAS", "LAS", "left-posterior-superior")),
    *(f"space: {space}\n{SKEWED}" for space in ("LPS", "scanner-xyz", "3D-right-handed")),
    f"space dimension: 3\n{SKEWED}",
    "Space: LPS\nSPACE DIRECTIONS: ( 1 , 0,0) (0,1,0)(0,0,2)\nkinds: domain space time",
    "space: LPS\nspace directions: none (0,1,0) (0,0,2)\nspace origin: none",
    "space: LPS\nspace origin: (1,2,3)",
    "space: LPS",
    "",
    "spacings: 1 2 3",
    "spacings: nan 2 3\naxis mins: nan 5 6",
    "spacings: 1 2 3\naxismins: 5 6 7",
    "spacings: 1 2 3\naxis mins: 5 6 7\ncenters: cell node cell",
    "axis mins: 5 6 7",
    "byte skip: -1",
    "byteskip: 0\nlineskip: 0",
    'content: a scan\nlabels: "x" "y" "z"\nmin: 3\nold max: 4\n# sizes: 1 1 1\nspacings:=9 9 9\nsizes:=x',
]


@pytest.mark.parametrize("more", USUAL)
def test_the_place_is_that_of_itk(tmp_path: Path, more: str) -> None:
    path = nrrd(tmp_path / "a.nrrd", more=more, content=VOXELS.tobytes())
    made, scan = sitk.ReadImage(str(path)), read(path)
    np.testing.assert_array_equal(scan.array, sitk.GetArrayFromImage(made))
    assert isinstance(scan.geometry, ItkGeometry)
    assert scan.geometry.size == made.GetSize()
    for name in ("Spacing", "Origin", "Direction"):
        assert getattr(scan.geometry, name.lower()) == pytest.approx(getattr(made, f"Get{name}")()), name


@pytest.mark.parametrize("name", ["signed char", "uint8_t", "ushort", "unsigned long long int", "double"])
def test_types_have_many_names(tmp_path: Path, name: str) -> None:
    path = nrrd(tmp_path / "a.nrrd", content=bytes(range(240)) * 4)
    path.write_bytes(path.read_bytes().replace(b"type: short", f"type: {name}".encode()))
    assert read(path).array.dtype == sitk.GetArrayFromImage(sitk.ReadImage(str(path))).dtype


def test_the_other_byte_order_and_bytes_before_the_voxels(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(b"something else" + VOXELS.astype(">i2").tobytes())
    path = nrrd(tmp_path / "a.nhdr", "a.raw", more="byte skip: 14")
    path.write_bytes(path.read_bytes().replace(b"little", b"big"))
    np.testing.assert_array_equal(read(path).array, VOXELS)


@pytest.mark.parametrize(
    ("old", "new", "saying"),
    [
        ("encoding: raw", "encoding: ascii", "the encoding is 'ascii'.*save the scan as raw or gzip"),
        ("encoding: raw", "encoding: gzip\nbyte skip: 5", "after 0 lines and 5 bytes of something else"),
        ("encoding: raw", "encoding: raw\nline skip: 1", "after 1 lines and 0 bytes"),
        ("encoding: raw", "encoding: raw\nencoding: raw", "says twice what its encoding is"),
        ("type: short", "type: block", "of the type 'block'"),
        ("type: short", "", "of the type None"),
        ("endian: little", "", "the endian '', neither little nor big"),
        ("dimension: 3", "dimension: 2", "header is damaged .*the dimension is 2"),
        ("dimension: 3", "", "header is damaged"),
        ("sizes: 6 5 4", "sizes: 6 5 1e3", "header is damaged"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nkinds: list domain domain", "vectors of 6 channels .*'list'"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nkinds: domain", "header is damaged"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nspacings: 1 2", "2 numbers or directions for 3 axes"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nspacings: 1 -2 3", "-2 cannot be right"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nspace directions: (1,0) (0,1) (0,0)", "2 numbers or directions for 3 axes"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nspace directions: (1,0,0) (0,1,0)", "2 numbers or directions for 3 axes"),
        ("sizes: 6 5 4", "sizes: 6 5 4\nspace origin: (nan,0,0)", "holds NaN"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, saying: str) -> None:
    path = nrrd(tmp_path / "a.nrrd", content=VOXELS.tobytes())
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()).replace(b"\n\n", b"\n", new == ""))
    with pytest.raises(BadInput, match=saying) as caught:
        header(path)
    assert str(caught.value).startswith(str(path))


def test_a_header_without_an_end(tmp_path: Path) -> None:
    path = nrrd(tmp_path / "a.nrrd")
    path.write_bytes(path.read_bytes().rstrip() + b"\n" + b"a: b\n" * (1 << 22))
    with pytest.raises(BadInput, match="says twice"):
        header(path)
    path.write_bytes(b"NRRD0005\n" + b"#" * (1 << 25))
    with pytest.raises(BadInput, match="has no end"):
        header(path)
