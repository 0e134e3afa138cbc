"""Every open page is told what happens."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from studios import Page, act, click, ids, opened, scans


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
