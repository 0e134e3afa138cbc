"""Label maps as runs: any slice can be read back, and a damaged file says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from inbounds.errors import BadInput
from inbounds.store.rle import RUN, Labels, array_file, encode, labels_file

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.sampled_from(np.array([0, 1, 3, 255], np.uint8))


@st.composite
def pieces(draw) -> list[np.ndarray]:
    """Scans of one to four slices each, or of so many patches, on one grid; mostly one value, as label maps are."""
    grid = draw(st.lists(st.integers(1, 5), min_size=2, max_size=3))
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return [draw(hnp.arrays(np.uint8, (n, *grid), elements=values, fill=values)) for n in counts]


def write(path: Path, *labels: np.ndarray) -> Path:
    with labels_file(path) as append:
        for label in labels:
            append(label)
    return path


@in_one_folder
@given(scans=pieces(), data=st.data())
def test_every_slice_reads_back(tmp_path, scans, data) -> None:
    dense = np.concatenate(scans)
    labels = Labels(write(tmp_path / "labels.npy", *scans), dense.shape)
    assert len(labels) == len(dense)
    np.testing.assert_array_equal(labels[:], dense)
    i, j = (data.draw(st.integers(-len(dense) - 1, len(dense) + 1)) for _ in range(2))
    np.testing.assert_array_equal(labels[i:j], dense[i:j])
    assert labels[i:j].dtype == np.uint8
    for index in range(-len(dense), len(dense)):
        np.testing.assert_array_equal(labels[index], dense[index])


def test_runs_by_hand() -> None:
    runs = encode(np.array([[[0, 0, 1], [1, 1, 255]]], np.uint8))
    assert runs.tolist() == [(2, 0), (3, 1), (1, 255)]


def test_a_run_ends_with_its_scan_and_an_empty_map_is_one_run(tmp_path) -> None:
    blank = np.zeros((10, 64, 64), np.uint8)
    file = write(tmp_path / "labels.npy", blank, blank)
    assert np.load(file).tolist() == [(blank.size, 0)] * 2
    assert file.stat().st_size < 200


def test_places_outside_and_steps_are_refused(tmp_path) -> None:
    labels = Labels(write(tmp_path / "labels.npy", np.zeros((2, 3, 3), np.uint8)), (2, 3, 3))
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"slice {index} of 2"):
            labels[index]
    with pytest.raises(ValueError, match="steps of 1, not 2"):
        labels[::2]


SHAPE = (2, 4, 4)


def good(path: Path) -> bytes:
    return write(path, np.arange(32, dtype=np.uint8).reshape(SHAPE) // 5).read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:7],
        lambda raw: raw[:60],
        lambda raw: raw[:-1],
        lambda raw: b"<!DOCTYPE html>" + raw[15:],
        lambda raw: b"PK\x03\x04" + raw[4:],
        lambda raw: raw.replace(b"<u4", b"<u8", 1),
        lambda raw: raw.replace(b"(7,)", b"(6,)", 1),
        lambda raw: raw.replace(b"(7,)", b"(0,)", 1),
        lambda raw: raw.replace(b"(7,)", b"7   ", 1),
        lambda raw: raw[:-5] + bytes([9]) + raw[-4:],
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(tmp_path, damage) -> None:
    file = tmp_path / "labels.npy"
    raw = good(file)
    assert damage(raw) != raw
    file.write_bytes(damage(raw))
    with pytest.raises(BadInput, match=r"labels\.npy: .*make it again"):
        Labels(file, SHAPE)


@in_one_folder
@given(at=st.integers(0, 127), byte=st.integers(0, 255))
def test_no_byte_of_the_header_makes_a_traceback(tmp_path, at, byte) -> None:
    file = tmp_path / "labels.npy"
    raw = bytearray(good(file))
    raw[at] = byte
    file.write_bytes(raw)
    try:
        shape, said = Labels(file, SHAPE)[:].shape, str(file)
    except BadInput as error:
        shape, said = SHAPE, str(error)
    assert shape == SHAPE
    assert said.startswith(str(file))


def test_missing_or_of_another_kind_or_size(tmp_path) -> None:
    file = tmp_path / "labels.npy"
    with pytest.raises(BadInput, match=r"labels\.npy: cannot be read"):
        Labels(file, SHAPE)
    np.save(file, np.zeros(SHAPE, np.uint8))
    with pytest.raises(BadInput, match="not a file of label runs"):
        Labels(file, SHAPE)
    np.save(file, np.empty(0, RUN))
    with pytest.raises(BadInput, match="do not add up"):
        Labels(file, SHAPE)
    good(file)
    with pytest.raises(BadInput, match=r"do not add up to \(3, 4, 4\)"):
        Labels(file, (3, 4, 4))


@pytest.mark.parametrize(("dtype", "shape"), [("uint8", (1, 3, 4)), ("float16", (2, 2, 2))])
def test_an_array_written_in_pieces_is_the_file_numpy_would_write(tmp_path, dtype, shape) -> None:
    whole = np.random.default_rng(0).uniform(0, 200, (1203, *shape)).astype(dtype)
    with array_file(tmp_path / "a" / "pieces.npy", np.dtype(dtype), shape) as append:
        for piece in np.array_split(whole, 7):
            append(piece)
    np.save(tmp_path / "whole.npy", whole)
    assert (tmp_path / "a" / "pieces.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_a_piece_of_another_kind_is_refused(tmp_path) -> None:
    with array_file(tmp_path / "x.npy", np.dtype("uint8"), (2, 2)) as append:
        for wrong in (np.zeros((1, 2, 3), np.uint8), np.zeros((1, 2, 2), np.float16)):
            with pytest.raises(ValueError, match=r"x\.npy: a piece .* does not fit"):
                append(wrong)
