"""Labels after strokes, and after these were taken back and done again."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from studios import about, act, click, ids, labels, opened, row, scans


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
