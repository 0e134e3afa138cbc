"""DICOM as hospitals leave it: trees of patients, studies and series, compressed, in frames, and nobody's name told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dicoms import PLANES, frames, normal, places, pydicom, slices
from inbounds.errors import BadInput
from inbounds.scans.scan import header, read
from inbounds.scans.series import PATIENT, Wanted
from inbounds.sources.folder import recognise

VOLUME = np.random.default_rng(0).integers(0, 3000, (4, 20, 24)).astype(np.uint16)


def tree(root: Path) -> Path:
    """Two patients, one with two studies; a scout beside each scan, a report and a table of contents."""
    for patient, study, uid in (
        ("Doe^Jane", "20260102", "1.5"),
        ("Doe^Jane", "20260303", "1.6"),
        ("Roe^Jim", "x", "1.7"),
    ):
        about = {"PatientName": patient, "PatientID": patient[:3] + "-9", "StudyInstanceUID": uid}
        folder = root / patient.replace("^", "_") / study
        slices(folder / "T2", VOLUME, SeriesInstanceUID=f"{uid}.2", SeriesNumber=2, **about)
        slices(
            folder / "scout",
            VOLUME[:3],
            SeriesInstanceUID=f"{uid}.1",
            SeriesNumber=1,
            SeriesDescription=f"scout {patient[:3]}",
            **about,
        )
    (root / "DICOMDIR").write_bytes(bytes(128) + b"DICM" + b"contents of the disc")
    report = pydicom.Dataset()
    report.file_meta = pydicom.dataset.FileMetaDataset()
    report.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    report.file_meta.MediaStorageSOPClassUID = report.SOPClassUID = "1.2.840.10008.5.1.4.1.1.88.11"
    report.file_meta.MediaStorageSOPInstanceUID = report.SOPInstanceUID = "1.5.9"
    report.Modality, report.PatientName = "SR", "Doe^Jane"
    report.save_as(root / "Doe_Jane" / "20260102" / "T2" / "report.dcm", enforce_file_format=True)
    return root


class TestTrees:
    def test_the_largest_series_of_each_study(self, tmp_path: Path) -> None:
        layout = recognise(tree(tmp_path / "archive"))
        assert len(layout.images) == 3
        patients = set()
        for name, (path,) in layout.images.items():
            assert path.name == "T2"
            assert not {"doe", "roe", "jane", "jim"} & set(name.lower().replace("-", " ").split())
            patients.add(name.split("-")[0])
            np.testing.assert_array_equal(read(path).array, VOLUME)
        assert len(patients) == 2
        assert layout.patient == PATIENT
        (note, *_) = layout.notes
        assert "series 2 'T2 TSE' (4 slices) is taken, not 1 (3 slices); --series takes another" in note
        assert not any(word in note for note in layout.notes for word in ("Doe", "Roe", "Jane", "Jim"))

    def test_another_series_by_number_name_or_uid(self, tmp_path: Path) -> None:
        root = tree(tmp_path / "archive")
        for wanted in ("1", "1.?.1"):
            found = recognise(root, Wanted(wanted)).images.values()
            assert [path.name for (path,) in found] == ["scout"] * 3
        assert len(recognise(root, Wanted("*")).images) == 6
        with pytest.raises(
            BadInput, match=r"3 of 3 places .* has no series 't1\*', but 2 'T2 TSE' \(4 slices\); 1 \(3"
        ):
            recognise(root, Wanted("t1*"))

    def test_names_of_folders_if_asked(self, tmp_path: Path) -> None:
        names = recognise(tree(tmp_path / "archive"), Wanted(names=True)).images
        assert list(names) == ["Doe_Jane-20260102-T2", "Doe_Jane-20260303-T2", "Roe_Jim-x-T2"]

    def test_own_names_stay_unless_they_tell_whose_scan_it_is(self, tmp_path: Path) -> None:
        slices(tmp_path / "liver1", VOLUME)
        slices(tmp_path / "jane", VOLUME, SeriesInstanceUID="1.8")
        slices(tmp_path / "h-4711", VOLUME, SeriesInstanceUID="1.9", PatientIdentityRemoved="YES")
        names = list(recognise(tmp_path).images)
        assert names[:2] == ["h-4711", "liver1"]
        assert names[2].endswith("-s3-" + names[2][-6:])
        assert "jane" in recognise(tmp_path, Wanted(names=True)).images

    def test_several_series_in_one_folder(self, tmp_path: Path) -> None:
        folder = slices(tmp_path / "all", VOLUME)
        slices(folder, VOLUME[:2], name="other{}", SeriesInstanceUID="1.8", SeriesNumber=4)
        ((path,),) = recognise(folder).images.values()
        np.testing.assert_array_equal(read(path).array, VOLUME)
        ((path,),) = recognise(folder, Wanted("4")).images.values()
        np.testing.assert_array_equal(read(path).array, VOLUME[:2])
        assert list(recognise(folder, Wanted("*")).images) == ["all-s3", "all-s4"]
        slices(folder, VOLUME, name="same{}", SeriesInstanceUID="1.9", SeriesNumber=5)
        with pytest.raises(BadInput, match=r"all has 2 series of equal size: 3 'T2 TSE' .*; 5 .*--series"):
            recognise(folder)

    def test_a_series_in_two_folders(self, tmp_path: Path) -> None:
        slices(tmp_path / "a" / "b", VOLUME)
        slices(tmp_path / "a" / "c", VOLUME)
        with pytest.raises(BadInput, match="has 2 series of equal size: 3"):
            recognise(tmp_path)

    def test_what_is_damaged_is_said(self, tmp_path: Path) -> None:
        """The last slice of one, which no gap would show, and all of another."""
        first, other = slices(tmp_path / "a" / "b", VOLUME), slices(tmp_path / "a" / "c", VOLUME[:1])
        for file in (first / "IM1", other / "IM1"):
            file.write_bytes(file.read_bytes()[:400])
        layout = recognise(tmp_path)
        (note,) = layout.notes
        assert note.startswith("files that cannot be read as DICOM, and are of no series, are left out: IM1 (")
        ((path,),) = layout.images.values()
        with pytest.raises(BadInput, match=r"IM1: this slice cannot be read as DICOM \(.*\); copy it again"):
            header(path)


class TestFrames:
    @pytest.mark.parametrize("plane", PLANES)
    def test_frames_are_put_in_order(self, tmp_path: Path, plane: str) -> None:
        scan = read(frames(tmp_path / "a.dcm", VOLUME, plane=plane, order=[2, 0, 3, 1]))
        beside = header(slices(tmp_path / "slices", VOLUME, plane=plane))
        np.testing.assert_array_equal(scan.array, VOLUME)
        np.testing.assert_allclose(scan.geometry.affine, beside.geometry.affine, atol=1e-4)
        assert scan.spacing == pytest.approx(beside.spacing)

    def test_each_frame_has_its_own_slope(self, tmp_path: Path) -> None:
        slope = [1.0, 0.5, 2.0, 1.0]
        scan = read(frames(tmp_path / "a.dcm", VOLUME, order=[1, 0, 2, 3], slope=slope))
        np.testing.assert_allclose(scan.array, VOLUME * np.array(slope)[:, None, None])

    def test_a_missing_frame_and_two_phases(self, tmp_path: Path) -> None:
        where = places(4, "axial")
        where[3] += 3.0 * normal("axial")
        with pytest.raises(BadInput, match="3 mm apart, but 6 mm between frame 3 and frame 4; add the missing"):
            header(frames(tmp_path / "a.dcm", VOLUME, where=where))
        where[3] = where[2]
        with pytest.raises(BadInput, match="frame 3 and frame 4 lie at the same position"):
            header(frames(tmp_path / "b.dcm", VOLUME, where=where))


@pytest.mark.parametrize("shape", [slices, frames])
@pytest.mark.parametrize("syntax", ["RLELossless", "JPEG2000Lossless", "JPEGLSLossless"])
def test_compressed(tmp_path: Path, shape: object, syntax: str) -> None:
    volume = np.tile(VOLUME, (1, 3, 3))  # JPEG 2000 has no pictures as small as the others
    needs = {"JPEG2000Lossless": "openjpeg", "JPEGLSLossless": "jpeg_ls"}
    if syntax in needs:
        pytest.importorskip(needs[syntax], reason="compresses the pictures of this test; not installed")
    path = shape(tmp_path / "a.dcm", volume, syntax=getattr(pydicom.uid, syntax))
    np.testing.assert_array_equal(read(path).array, volume)


def test_a_tilted_gantry_is_refused(tmp_path: Path) -> None:
    aside = np.outer(np.arange(4), [0, 3 * np.tan(np.radians(12)), 0])
    with pytest.raises(
        BadInput, match=r"0\.638 mm aside of the one before, 12\.0 degrees .* tilted gantry; .*dcm2niix"
    ):
        header(slices(tmp_path / "tilted", VOLUME, where=places(4, "axial") + aside))


def test_pixels_of_two_sizes(tmp_path: Path) -> None:
    folder = slices(tmp_path / "a", VOLUME)
    last = pydicom.dcmread(folder / "IM1")
    last.PixelSpacing = [0.75, 0.75]
    last.save_as(folder / "IM1")
    with pytest.raises(BadInput, match=r"IM1: its pixels are 0\.75 x 0\.75 mm, those of .*IM4 0\.5 x 0\.75 mm"):
        header(folder)
