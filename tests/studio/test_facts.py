"""What people say of a region's size and presence, through the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from studios import about, act, click, ids, labels, opened, row, scans


def test_a_box_says_what_is_background_and_how_large_the_region_is(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        click(client, number, (1, 0, 0), 2)
        act(client, "box", scan=number, plane=0, corners=[[1, 5, 4], [1, 9, 13]], **{"class": 1})
        drawn = labels(client, number, 1)
        assert (drawn[5:10, 4:14] == 255).all()
        assert drawn[0, 0] == 2
        assert (drawn == 0).sum() == 24 * 20 - 50 - 1
        facts = about(client, number)["facts"]
        size = {"low": 25.0, "high": 45.0, "unit": "px"}
        assert facts == [{"class": 1, "slice": 1, "present": None, "size": size, "warning": None}]


def test_facts_replace_each_other_and_are_taken_back(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        size = {"low": 1, "high": 2, "unit": "ml"}
        act(client, "fact", scan=number, slices=[1, 2], present=True, **{"class": 1})
        act(client, "fact", scan=number, slice=None, size=size, **{"class": 1})
        act(client, "fact", scan=number, slice=2, present=False, **{"class": 1})
        facts = {one["slice"]: one for one in about(client, number)["facts"]}
        assert (facts[1]["present"], facts[2]["present"], facts[None]["size"]) == (True, False, size)
        assert row(client, "one")["volumes"] == {"LV": {"predicted": None, "known": [1.0, 2.0]}}
        act(client, "fact", scan=number, slice=1, present=None, **{"class": 1})
        assert row(client, "one")["facts"] == 2
        client.post("/api/undo", json={"who": "Ana"})
        assert row(client, "one")["facts"] == 3


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        ({"slice": 99, "present": True}, "slice 100 is not there: the scan has slices 1 to 6"),
        ({"slice": 1, "size": {"low": 10, "high": 481, "unit": "px"}}, "481 voxels: all of it has 480"),
        ({"slice": 1, "size": {"low": 5, "high": 2, "unit": "px"}}, "smaller number first"),
        ({"slice": None, "size": {"low": 5, "high": 9, "unit": "mm2"}}, "no size in mm2"),
        ({"slice": None, "size": {"low": 5, "high": 900, "unit": "ml"}}, "check the unit"),
        ({"slice": 1, "present": False, "size": {"low": 5, "high": 9, "unit": "px"}}, "cannot be absent"),
        ({"slice": 1, "present": True, "size": {"low": 0, "high": 0, "unit": "px"}}, "cannot be there"),
        ({"slice": -1, "present": True}, "greater than or equal to 0"),
        ({"slice": 1, "size": {"unit": "px"}}, "a size needs a number"),
    ],
)
def test_what_cannot_be_is_refused(fact: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        before = client.get("/api/project").json()["sequence"]
        answer = act(client, "fact", scan=ids(client)["one"], status=400, **{"class": 1}, **fact)
        assert sentence in answer["error"]
        assert client.get("/api/project").json()["sequence"] == before


def test_a_size_smaller_than_what_is_labelled_is_taken_with_a_warning(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        click(client, number, (1, 10, 10), radius=6)
        size = {"low": 1, "high": 3, "unit": "px"}
        answer = act(client, "fact", scan=number, slice=1, size=size, **{"class": 1})
        assert "3 voxels at most" in answer["warning"]
        assert "3 voxels at most" in about(client, number)["facts"][0]["warning"]
