from __future__ import annotations

import json
from pathlib import Path

from torture.campaign import Result
from torture.process import Place
from torture.summary import Accepted, failures, summarise

KNOWN = [Accepted("kills", "train*", "*", "left behind: *", "it is a reason")]
RESULTS = [
    Result(0, "train", "SIGKILL at a change", "at 3", [], "killed", 2.0, 10.0),
    Result(1, "train --folds", "SIGKILL at a change", "at 4", ["left behind: x"], "killed", 1.0, 30.0),
    Result(2, "predict", "SIGINT at a moment", "at 5", ["left behind: x", "differs: y"], "killed", 3.0, 20.0),
]


def test_accepted_problems_are_no_failures() -> None:
    assert [(result.number, left) for result, left in failures("kills", RESULTS, KNOWN)] == [
        (2, ["left behind: x", "differs: y"])
    ]


def test_the_page_counts_names_and_repeats(tmp_path: Path) -> None:
    run = tmp_path / "here" / "run"
    run.mkdir(parents=True)
    about = {"commit": "abc", "versions": {"torch": "2"}, "machine": {"processor": "x"}}
    (run / "run.json").write_text(json.dumps(about))
    page = summarise({"kills": RESULTS}, Place(tmp_path), seed=7, jobs=2, seconds=6.4)
    found = page["campaigns"]["kills"]
    assert (page["seed"], page["commit"], page["seconds"], page["failures"]) == (7, "abc", 6, 2)
    assert found["counts"]["train"] == {"SIGKILL at a change": {"killed": 1}}
    assert [each["number"] for each in found["slowest"]] == [2, 0, 1]
    assert [each["number"] for each in found["largest"]] == [1, 2, 0]
    assert found["failures"][-1]["repeat"] == "python -m torture kills --seed 7 --only 2"
