"""DICOM is read by a process of its own: whatever that comes to, here it is one sentence about one file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from archives import refused
from hostile import VOXELS, dicom_series, greedy_dicom, within
from inbounds.errors import BadInput
from inbounds.scans import gdcm
from inbounds.scans.gdcm import Damaged, Gdcm
from inbounds.scans.scan import read


def test_a_file_that_wants_all_memory(tmp_path: Path) -> None:
    """Read without a limit, this takes 8 GB and half a minute."""
    if sys.platform != "linux":
        pytest.skip("only Linux limits the memory of a process")
    import resource

    path = greedy_dicom(tmp_path / "in.dcm")
    assert path.stat().st_size < 2000
    with within(15), pytest.raises(BadInput, match=r"in\.dcm: .*; copy or download it again"):
        read(path)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 21  # in kB
    (tmp_path / "scans").mkdir()
    shutil.copy(path, tmp_path / "scans")
    refused("prepare", "folder", tmp_path / "scans", tmp_path / "store", saying=["in.dcm", "copy"], folder=tmp_path)


def test_a_file_that_takes_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dicom_series(tmp_path / "series")
    monkeypatch.setattr(gdcm, "PATIENCE", 0.0)
    with pytest.raises(BadInput, match=r"0\.dcm: GDCM, which reads DICOM, takes longer than 0 s over this file"):
        read(tmp_path / "series")


def test_a_crash_is_a_sentence_and_the_end_of_the_process(tmp_path: Path) -> None:
    file = dicom_series(tmp_path / "series") / "2.dcm"
    with Gdcm(file) as process:
        assert process.information(file).size == (6, 5, 1)
        process._process.kill()
        with pytest.raises(BadInput, match=r"2\.dcm: GDCM, which reads DICOM, crashes, or wants more than"):
            process.information(file)
    with Gdcm(file) as process:
        into = np.empty((1, 5, 6), np.int16)
        process.read(file, into)
        np.testing.assert_array_equal(into, VOXELS[2:3])
        with pytest.raises(Damaged, match="promises 30 bytes of voxels, there are 60"):
            process.read(file, into.astype(np.int8))
        assert process._process.poll() is None
    assert process._process.poll() is not None


def test_a_bad_file_does_not_end_it(tmp_path: Path) -> None:
    file = dicom_series(tmp_path / "series") / "2.dcm"
    (tmp_path / "none").write_text("something else")
    with Gdcm(file) as process:
        with pytest.raises(Damaged):
            process.information(tmp_path / "none")
        assert process.information(file).series == "1.2.9"


def test_names_in_any_language(tmp_path: Path) -> None:
    (tmp_path / "Größe 大").mkdir()
    np.testing.assert_array_equal(read(dicom_series(tmp_path / "Größe 大" / "série\n")).array, VOXELS)


def test_no_module_that_lies_beside_the_scans_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dicom_series(tmp_path / "series")
    for place in (tmp_path, folder):
        for name in ("SimpleITK", "numpy", "json"):
            (place / f"{name}.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w').close()")
        monkeypatch.chdir(place)
        monkeypatch.setenv("PYTHONPATH", str(place))
        np.testing.assert_array_equal(read(folder).array, VOXELS)
    assert not (tmp_path / "done").exists()


def test_a_link_to_nothing_beside_a_series(tmp_path: Path) -> None:
    folder = dicom_series(tmp_path / "series")
    (folder / "notes").symlink_to("gone")
    np.testing.assert_array_equal(read(folder).array, VOXELS)
    (folder / "9.dcm").symlink_to("gone")
    with pytest.raises(BadInput, match=r"9\.dcm: there is no such file"):
        read(folder)
