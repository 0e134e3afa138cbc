"""Classes that people make, rename and delete."""

from __future__ import annotations

from pathlib import Path

from studios import act, click, ids, opened, scans


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
