from __future__ import annotations

import os
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.jobs.chunks import Hands, begun, do, folder_of, planned, progress, stamp
from inbounds.jobs.cluster import Cluster
from inbounds.jobs.manifest import read_manifest

LOCAL = Hands(on="local", cluster=Cluster(), chunk=1)


def test_another_size_or_time_of_a_file_or_of_what_belongs_to_it_is_another_stamp(tmp_path: Path) -> None:
    header, data, other, folder = (tmp_path / name for name in ("a[1].mhd", "a[1].raw", "b.mhd", "slices"))
    for file in (header, data, other):
        file.write_text("x")
    folder.mkdir()
    (folder / "1.dcm").write_text("x")
    stamps = [stamp([header, folder])]
    other.write_text("changed")
    assert stamp([header, folder]) == stamps[0]
    data.write_text("longer")
    stamps.append(stamp([header, folder]))
    os.utime(header, ns=(1, 1))
    stamps.append(stamp([header, folder]))
    (folder / "2.dcm").write_text("x")
    stamps.append(stamp([header, folder]))
    assert len(set(stamps)) == 4


def test_what_is_done_stays_and_other_work_begins_anew(tmp_path: Path) -> None:
    """The parts are there already, so that nothing has to be done."""
    result, lines = tmp_path / "store", planned("prepare", [{"a": 1}, {"a": 2}])
    assert not begun(result, lines)
    with pytest.raises(BadInput, match=r"2 of 2 tasks are not done; the same command goes on"):
        do(result, lines, LOCAL, lambda _: None)
    assert begun(result, lines)
    places = [folder_of(result) / line.place for line in lines]
    for place in places:
        place.parent.mkdir(exist_ok=True)
        place.write_text("{}")
        assert progress(place) == (1, 1, True)
    assert do(result, lines, LOCAL, lambda _: None) == places
    others = planned("prepare", [{"a": 1}, {"a": 3}])
    assert not begun(result, others)
    with pytest.raises(BadInput, match="damaged"):
        do(result, others, LOCAL, lambda _: None)
    assert read_manifest(folder_of(result)) == others
    assert not places[0].exists()
