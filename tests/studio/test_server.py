"""The page's requests, against the real application."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from studios import CLASSES, SHAPE, Page, about, act, click, ids, labels, opened, row, scans, volume, write_scan


def test_a_project_lists_its_scans_and_classes(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        told = client.get("/api/project").json()
        assert [one["name"] for one in told["scans"]] == ["one", "three", "two"]
        assert [one["name"] for one in told["classes"]] == list(CLASSES[1:])
        assert told["background"]["value"] == 0
        assert told["scans"][0]["shape"] == list(SHAPE)
        assert told["missing"] == [
            "label some background, or say how large something is",
            "label some LV",
            "label some RV",
        ]
        assert told["training"]["state"] == "idle"


def test_pictures_come_in_display_order(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        told = about(client, number)
        low, high = told["window"]
        voxels = volume(0).astype(np.float64)
        gray = np.clip((voxels - low) / (high - low) * 255, 0, 255)
        axial = told["planes"][0]
        assert (axial["name"], axial["flip"]) == ("axial", {"through": False, "down": False, "across": False})
        for plane in told["planes"]:
            answer = client.get(f"/api/scans/{number}/image/{plane['through']}/2")
            seen = np.frombuffer(answer.content, np.uint8).reshape(plane["rows"], plane["columns"]).astype(float)
            wanted = gray.take(2, axis=plane["through"])
            wanted = wanted if plane["down"] < plane["across"] else wanted.T
            steps = [-1 if plane["flip"][name] else 1 for name in ("down", "across")]
            assert np.abs(seen - wanted[:: steps[0], :: steps[1]]).max() <= 1
        again = client.get(f"/api/scans/{number}/image/2/2", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_what_is_clicked_on_the_screen_is_the_voxel_that_is_labelled(tmp_path: Path) -> None:
    """Turned files: the brightest pixel of each plane is clicked, and the brightest voxel of that slice is labelled."""
    affine = np.array([[0, 0, 5.0, 0], [1.5, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 0, 1]])
    write_scan(tmp_path / "scans" / "turned.nii", volume(3), affine)
    with opened(tmp_path / "scans") as client:
        number = ids(client)["turned"]
        for plane in about(client, number)["planes"]:
            n = 3
            picture = volume(3).take(n, axis=plane["through"])
            place = [0.0, 0.0, 0.0]
            answer = client.get(f"/api/scans/{number}/image/{plane['through']}/{n}").content
            seen = np.frombuffer(answer, np.uint8).reshape(plane["rows"], plane["columns"])
            y, x = np.argwhere(seen == seen.max())[0]
            place[plane["through"]] = n
            place[plane["down"]] = float(plane["rows"] - 1 - y if plane["flip"]["down"] else y)
            place[plane["across"]] = float(plane["columns"] - 1 - x if plane["flip"]["across"] else x)
            click(client, number, place, plane=plane["through"])
            drawn = labels(client, number, n, plane["through"])
            assert drawn[y, x] == 1
            assert volume(3)[tuple(int(part) for part in place)] >= np.percentile(volume(3), 99)
            assert picture.size == seen.size


def test_strokes_label_erase_and_count(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        click(client, number, (2, 10, 10), radius=3.1)
        # 3.1 mm: two rows of 1.5 mm and one column of 2 mm on either side
        drawn = labels(client, number, 2)
        assert [tuple(place) for place in np.argwhere(drawn == 1)] == [
            (r, c) for r, c in product(range(24), range(20)) if ((r - 10) * 1.5) ** 2 + ((c - 10) * 2) ** 2 <= 3.1**2
        ]
        count = int((drawn == 1).sum())
        assert row(client, "one")["labelled"] == count
        click(client, number, (2, 10, 10), None)
        assert labels(client, number, 2)[10, 10] == 255
        assert row(client, "one")["labelled"] == count - 1
        told = about(client, number)
        assert told["marks"][0] == [2]
        assert 10 in told["marks"][1]


def test_undo_and_redo_without_limit_across_restarts(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        number = ids(client)["one"]
        for column in range(5):
            click(client, number, (0, 3, column))
        assert client.post("/api/undo", json={"who": "Ana"}).json()["what"] == "stroke"
    with opened(root) as client:
        for left in (3, 2, 1, 0):
            assert client.post("/api/undo", json={"who": "Ana"}).status_code == 200
            assert row(client, "one")["labelled"] == left
        assert client.post("/api/undo", json={"who": "Ana"}).status_code == 409
    with opened(root) as client:
        for there in (1, 2, 3, 4, 5):
            assert client.post("/api/redo", json={"who": "Ana"}).status_code == 200
            assert row(client, "one")["labelled"] == there
        assert client.post("/api/redo", json={"who": "Ana"}).status_code == 409
        client.post("/api/undo", json={"who": "Ana"})
        click(client, number, (0, 9, 9))
        assert client.post("/api/redo", json={"who": "Ana"}).status_code == 409


def test_taking_back_what_is_not_the_last_leaves_the_rest_as_if_it_had_never_been(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        number, rng = ids(client)["one"], np.random.default_rng(0)
        for turn in range(30):
            who = "Ana" if rng.random() < 0.5 else "Ben"
            undo = client.post(f"/api/{rng.choice(['undo', 'redo'])}", json={"who": who}) if turn % 3 == 2 else None
            if undo is None and turn % 7 == 5:
                act(client, "box", scan=number, who=who, corners=[[2, 3, 3], [2, 12, 12]], **{"class": 1})
            elif undo is None:
                place = [2, *rng.uniform(2, 18, 2)]
                click(client, number, place, [0, 1, 2, None][turn % 4], who=who, radius=float(rng.uniform(0, 9)))
        now, told = client.studio.project.labels(number).array, row(client, "one")["labelled"]
    with opened(root) as client:  # made anew, from all that was done
        assert np.array_equal(client.studio.project.labels(number).array, now)
        assert client.studio.project.summary(number) == client.studio.project.labels(number).summary()
        assert row(client, "one")["labelled"] == told > 0


def test_two_people_do_not_undo_each_other(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        click(client, number, (0, 3, 3), 1, who="Ana")
        click(client, number, (0, 3, 3), 2, who="Ben")
        client.post("/api/undo", json={"who": "Ana"})
        assert labels(client, number, 0)[3, 3] == 2
        client.post("/api/undo", json={"who": "Ben"})
        assert labels(client, number, 0)[3, 3] == 255
        client.post("/api/redo", json={"who": "Ana"})
        assert labels(client, number, 0)[3, 3] == 1


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
        assert facts == [{"class": 1, "slice": 1, "present": None, "size": {"low": 25.0, "high": 45.0, "unit": "px"}}]


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
        ({"slice": 99, "present": True}, "slice 99 is not there"),
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
        assert any("3 voxels at most" in flag for flag in about(client, number)["row"]["flags"])


def test_classes_are_added_renamed_and_deleted(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        act(client, "class", value=3, name="MYO", colour="#123456")
        click(client, number, (0, 0, 0), 3)
        assert "has labels" in act(client, "class_delete", value=3, status=409)["error"]
        assert "already" in act(client, "class", value=4, name="lv", status=409)["error"]
        assert "comma" in act(client, "class", value=4, name="a,b", status=400)["error"]
        act(client, "class", value=3, name="muscle")
        click(client, number, (0, 0, 0), None)
        assert [one["name"] for one in client.get("/api/project").json()["classes"]] == ["LV", "RV", "muscle"]
        assert client.get("/api/project").json()["classes"][2]["colour"] == "#123456"
        act(client, "class_delete", value=3)
        assert act(client, "stroke", scan=number, points=[[0, 0, 0]], status=400, **{"class": 3})["error"]
        # taking back what made the class would leave the labels of others without one
        client.post("/api/undo", json={"who": "Ana"})
        click(client, number, (0, 0, 0), 3, who="Ben")
        for _ in range(4):
            answer = client.post("/api/undo", json={"who": "Ana"})
        assert answer.status_code == 409
        assert "has labels" in answer.json()["error"]


def test_strokes_that_cannot_be(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        for points, sentence in (
            ([[0, 50, 50]], "outside the scan"),
            ([[9, 5, 5]], "slice 9 is not there"),
            ([[0, 5, 5], [1, 5, 5]], "one slice at a time"),
            ([], "at least 1"),
            ([[0, 5]], "Field required"),
            ([[0, 1e9, 5]], "a place must be a number of voxels"),
        ):
            answer = act(client, "stroke", scan=number, points=points, status=400, **{"class": 1})
            assert sentence in answer["error"], answer
        assert "no scan 77" in act(client, "stroke", scan=77, points=[[0, 0, 0]], status=404, **{"class": 1})["error"]
        assert client.get("/api/scans/77").status_code == 404
        assert client.get(f"/api/scans/{number}/image/0/99").status_code == 404
        assert client.get(f"/api/scans/{number}/image/3/0").status_code == 404
        assert row(client, "one")["labelled"] == 0


def test_a_broken_scan_does_not_stop_the_others(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    (root / "empty.nii.gz").write_bytes(b"")
    whole = (root / "one.nii.gz").read_bytes()
    (root / "cut.nii.gz").write_bytes(whole[: len(whole) // 2])
    with opened(root) as client:
        assert "0 bytes" in row(client, "empty")["error"]
        answer = client.get(f"/api/scans/{ids(client)['cut']}")
        assert answer.status_code == 409
        assert "cut short or damaged" in answer.json()["error"]
        assert "cut short or damaged" in row(client, "cut")["error"]
        assert client.get(f"/api/scans/{ids(client)['two']}").status_code == 200
        act(client, "stroke", scan=ids(client)["empty"], points=[[0, 0, 0]], status=409, **{"class": 1})
    (root / "cut.nii.gz").write_bytes(whole)
    with opened(root) as client:
        assert row(client, "cut")["error"] is None


def test_a_scan_that_became_another_is_not_mixed_with_its_labels(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        click(client, ids(client)["one"], (5, 3, 3))
        kept = (root / "one.nii.gz").read_bytes()
    write_scan(root / "one.nii.gz", volume(0, (3, 24, 20)))
    with opened(root) as client:
        assert "6 x 24 x 20 voxels when it was labelled, now 3 x 24 x 20" in row(client, "one")["error"]
        assert client.get(f"/api/scans/{ids(client)['one']}").status_code == 409
        assert client.get(f"/api/scans/{ids(client)['two']}").status_code in (200, 202)
        (root / "one.nii.gz").write_bytes(kept)
        act(client, "rescan")
        assert labels(client, ids(client)["one"], 5)[3, 3] == 1


def test_a_mask_that_is_not_there_cannot_be_accepted(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        assert "no mask of it yet" in act(client, "accept", scan=ids(client)["one"], accepted=True, status=409)["error"]
        assert "no mask of it yet" in client.get(f"/api/scans/{ids(client)['one']}/mask/0/0").json()["error"]


def test_new_scans_are_found_when_asked_for(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    with opened(root) as client:
        first = ids(client)["one"]
        click(client, first, (0, 0, 0))
        write_scan(root / "a_new.nii.gz", volume(9))
        act(client, "rescan")
        assert set(ids(client)) == {"a_new", "one"}
        assert ids(client)["one"] == first
        (root / "one.nii.gz").unlink()
        act(client, "rescan")
        assert "no longer there" in row(client, "one")["error"]
        assert row(client, "one")["labelled"] == 1


def heard(client: Page, after: int, until: int) -> list[dict[str, Any]]:
    """What the page is told of, until an action has come."""
    told: list[dict[str, Any]] = []
    with client.stream("GET", "/api/events", params={"after": after}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                told.append(json.loads(line.removeprefix("data: ")))
                if told[-1].get("sequence") == until:
                    return told
    raise AssertionError(told)


def test_what_others_do_is_told_as_it_happens(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        before = client.get("/api/project").json()["sequence"]
        with ThreadPoolExecutor() as threads:
            listening = threads.submit(heard, client, before, before + 3)
            click(client, number, (0, 3, 3), who="Ana")
            act(client, "fact", scan=number, who="Ben", slice=1, present=True, **{"class": 1})
            client.post("/api/undo", json={"who": "Ana"})
            told = [one for one in listening.result(30) if "sequence" in one]
        assert told == [
            {"sequence": before + 1, "scan": number, "kind": "stroke", "who": "Ana"},
            {"sequence": before + 2, "scan": number, "kind": "fact", "who": "Ben"},
            {"sequence": before + 3, "scan": number, "kind": "undo", "who": "Ana"},
        ]
        # who was away is told what was missed, and a browser that was cut off says itself what it has heard
        with client.stream("GET", "/api/events?after=0", headers={"last-event-id": str(before + 2)}) as stream:
            assert next(line for line in stream.iter_lines() if line.startswith("id: ")) == f"id: {before + 3}"
        assert [one["sequence"] for one in heard(client, before + 1, before + 3) if "sequence" in one] == [
            before + 2,
            before + 3,
        ]


def test_training_is_told_of_as_well(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client, client.stream("GET", "/api/events") as stream:
        told = next(json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert told["training"]["state"] == "idle"


def test_two_tabs_at_once_lose_nothing(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]

        def draw(who: str, line: int) -> None:
            for column in range(15):
                click(client, number, (0, line, column), who=who)

        with ThreadPoolExecutor() as threads:
            for one in [threads.submit(draw, who, line) for line, who in enumerate(("Ana", "Ana", "Ben"))]:
                one.result(60)
        assert (labels(client, number, 0)[:3, :15] == 1).all()
        assert row(client, "one")["labelled"] == 45


def test_a_full_disk_is_told_with_507_and_nothing_is_half_done(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number, database = ids(client)["one"], client.studio.project.database
        pages = database.rows("PRAGMA page_count")[0][0]
        database.rows(f"PRAGMA max_page_count={pages + 1}")
        points = [[0, row % 24, row % 20] for row in range(2000)]
        content = {"who": "Ana", "kind": "stroke", "scan": number, "class": 1, "points": points}
        done = 0
        while (answer := client.post("/api/actions", json=content)).status_code == 200:
            done += 1
        assert answer.status_code == 507
        assert "make room" in answer.json()["error"]
        database.rows("PRAGMA max_page_count=100000")
        assert (row(client, "one")["labelled"] > 0) == (done > 0)
        click(client, number, (1, 1, 1))
        assert labels(client, number, 1)[1, 1] == 1


def test_a_project_of_a_thousand_scans_is_listed_at_once(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    for number in range(1000):
        (root / f"scan{number:04d}.nii.gz").hardlink_to(root / "one.nii.gz")
    with opened(root) as client:
        while any(one["shape"] is None for one in client.get("/api/project").json()["scans"]):
            time.sleep(0.2)
        begun = time.process_time()
        assert len(client.get("/api/project").json()["scans"]) == 1001
        assert time.process_time() - begun < 1


def test_thumbnails_are_png(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        answer = client.get(f"/api/scans/{number}/thumbnail")
        assert answer.headers["content-type"] == "image/png"
        picture = Image.open(BytesIO(answer.content))
        assert picture.size == (96, round(96 * 24 * 1.5 / (20 * 2)))
        (made,) = (tmp_path / "scans-studio" / "thumbs").glob("*.png")
        made.write_bytes(b"kept")
        assert client.get(f"/api/scans/{number}/thumbnail").content == b"kept"
        made.unlink()
        assert client.get(f"/api/scans/{number}/thumbnail").content == answer.content
