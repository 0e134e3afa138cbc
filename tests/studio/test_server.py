"""The page's requests, against the real application."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from inbounds.studio.server import PAGE
from studios import CLASSES, SHAPE, act, click, ids, labels, opened, row, scans


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


def test_a_mask_that_is_not_there_cannot_be_accepted(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        assert "no mask of it yet" in act(client, "accept", scan=ids(client)["one"], accepted=True, status=409)["error"]
        assert "no mask of it yet" in client.get(f"/api/scans/{ids(client)['one']}/mask/0/0").json()["error"]


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


def test_all_modules_of_the_page_are_asked_for_at_once() -> None:
    asked = re.findall(r'(?:href|src)="/page/(\w+\.js)"', (PAGE / "index.html").read_text(encoding="utf-8"))
    assert sorted(asked) == sorted(file.name for file in PAGE.glob("*.js"))
