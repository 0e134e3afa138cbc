"""Who trains and who validates: patients stay together, whether they are drawn, listed in a file or added later."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.errors import BadInput
from inbounds.sources.source import Loaded, Source
from inbounds.store.split import both_sides, hold_out, joined, split_by_file, split_by_patient
from inbounds.store.store import Store
from making import make_store, source, truth_like


def people(count: int) -> list[Source]:
    """Two scans of each patient."""
    return [Source(f"p{n:03d}_{phase}", f"p{n:03d}", unread) for n in range(count) for phase in ("ED", "ES")]


def unread() -> Loaded:
    raise AssertionError("nobody asked for the voxels")


@given(st.integers(1, 60), st.floats(0, 0.6), st.floats(0, 0.3), st.integers(0, 5))
def test_splits_are_by_patient_and_in_proportion(count: int, validation: float, test: float, seed: int) -> None:
    # A share of several patients is at least one of them.
    wanted = {
        name: max(int(count > 1), round(share * count)) if share else 0
        for name, share in (("validation", validation), ("test", test))
    }
    if sum(wanted.values()) >= count:
        with pytest.raises(BadInput, match="any left to train on"):
            split_by_patient(people(count), validation=validation, test=test, seed=seed)
        return
    found = split_by_patient(people(count), validation=validation, test=test, seed=seed)
    again = split_by_patient(people(count)[::-1], validation=validation, test=test, seed=seed)
    assert [source.split for source in again] == [source.split for source in found][::-1]
    by_patient = {(source.patient, source.split) for source in found}
    assert len(by_patient) == count
    sizes = {name: sum(split == name for _, split in by_patient) for name in ("validation", "test")}
    assert sizes == wanted


@pytest.mark.parametrize(("count", "share", "held"), [(100, 0.25, 25), (50, 0.2, 10), (20, 0.25, 5), (23, 0.25, 6)])
def test_the_proportions_of_the_known_sets(count: int, share: float, held: int) -> None:
    found = split_by_patient(people(count), validation=share)
    assert sum(source.split == "validation" for source in found) == 2 * held


def test_a_split_that_is_given_stays() -> None:
    found = split_by_patient([Source("a", "a", unread, split="test"), *people(3)], validation=0.3)
    assert found[0].split == "test"
    assert {source.split for source in hold_out(found, 0.25, seed=1) if source.patient == "a"} == {"test"}


def table(folder: Path, *lines: str) -> Path:
    file = folder / "split.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


class TestFile:
    @pytest.mark.parametrize(
        "lines",
        [
            ["case,split", "p000_ED,train", "p000_ES,train", "p001_ED,validation", "p001_ES,test"],
            ["patient;case;split", "p000;;Train", ";p001_ED;validation", ";p001_ES;test"],
        ],
        ids=["cases", "patients and cases"],
    )
    def test_every_scan_goes_where_the_file_says(self, tmp_path: Path, lines: list[str]) -> None:
        found = split_by_file(people(2), table(tmp_path, *lines))
        assert [scan.split for scan in found] == ["train", "train", "validation", "test"]

    @pytest.mark.parametrize(
        ("lines", "saying"),
        [
            (["patient,split", "p000,train", "p1,test"], r"split.csv, line 3: there is no patient 'p1'; did you mean"),
            (["case,split", "p000_ED,train"], r"no line says where p000_ES, p001_ED, p001_ES belong; add them"),
            (
                ["patient,split", "p000,train", "p001,val"],
                r"line 3: the split of p001 is 'val'; write one of train, val",
            ),
            (["case,patient,split", ",p000,train", "p000_ES,,test"], r"line 3: p000_ES is in train by a line above"),
            (["case,set", "p000_ED,train"], r"there is no column 'split'"),
        ],
    )
    def test_what_is_missing_or_unknown_is_named(self, tmp_path: Path, lines: list[str], saying: str) -> None:
        with pytest.raises(BadInput, match=saying):
            split_by_file(people(2), table(tmp_path, *lines))


def test_scans_that_are_added_join_their_patient() -> None:
    scans = [*people(2), Source("p002_ED", "p002", unread, split="test")]
    found = joined(scans, {"p000": "validation"})
    assert [scan.split for scan in found] == ["validation", "validation", "train", "train", "test"]


def test_a_patient_on_both_sides_is_pointed_out(tmp_path: Path) -> None:
    def store(name: str, *splits: str) -> Store:
        scans = [source(f"p1_{n}", truth_like(n), split=split, patient="p1") for n, split in enumerate(splits)]
        return make_store(tmp_path / name, scans)

    assert both_sides(store("apart", "train", "validation").records) == [
        "patients are on both sides of the split (p1; p1_0 in train and p1_1 in validation): scores will be too good"
    ]
    assert both_sides(store("together", "train", "train").records) == []
