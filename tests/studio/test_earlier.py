"""What earlier trainings left: what is used again, what is kept, and what is removed, whenever that is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inbounds.studio import earlier as room
from inbounds.studio.earlier import KEPT, LARGE, Earlier
from inbounds.studio.results import TABLE, newest

CLASSES = ["background", "LV"]
STAMPS = {"a": "1", "b": "2"}


def left(folder: Path, number: int, state: str = "done", store: int = 0, **more: Any) -> Path:
    """What a training leaves; without the number of another one's store, it has made its own."""
    work = folder / f"{number:03d}"
    about = {"number": number, "state": state, "classes": CLASSES, "values": [0, 1], "stamps": STAMPS, "left_out": {}}
    about |= {"store": f"{store or number:03d}/store", "commands": [f"inbounds train {number}"]}
    for name, file in (("run", "run.json"), ("masks", TABLE), ("store", "dataset.json")):
        if (name != "store" or not store) and (name != "masks" or state == "done"):
            (work / name).mkdir(parents=True)
            (work / name / file).write_text("case,class,doubt,volume_ml\n" if file == TABLE else "{}")
    (work / "clicks.csv").write_text("case,slice,row,column,class\n")
    (work / "job.json").write_text(json.dumps(about | more))
    return work


def there(folder: Path) -> dict[int, list[str]]:
    """What takes room, by training."""
    return {int(work.name): [name for name in LARGE if (work / name).exists()] for work in sorted(folder.iterdir())}


def test_only_one_store_for_the_same_scans_and_classes(tmp_path: Path) -> None:
    work = left(tmp_path, 1, stamps=STAMPS, left_out={"b": "bad"})
    assert Earlier(tmp_path).store({"a": "1"}, CLASSES) == work / "store"
    assert Earlier(tmp_path).store({"a": "2"}, CLASSES) is None
    assert Earlier(tmp_path).store({"a": "1"}, ["background", "RV"]) is None


def test_weights_are_those_of_the_last_finished_run_of_the_same_classes(tmp_path: Path) -> None:
    first = left(tmp_path, 1)
    left(tmp_path, 2, "stopped")
    left(tmp_path, 3, classes=["background", "RV"])
    assert Earlier(tmp_path).run(CLASSES) == first / "run"
    assert Earlier(tmp_path).run(["background", "LV", "RV"]) is None


def test_the_last_trainings_are_kept_and_what_they_build_on(tmp_path: Path) -> None:
    left(tmp_path, 1)
    left(tmp_path, 2, store=1)
    left(tmp_path, 3, "stopped", store=1)
    for number in (4, 5):
        left(tmp_path, number, store=1)
    left(tmp_path, 6)  # other scans
    left(tmp_path, 7, "failed")
    Earlier(tmp_path).tidy([tmp_path / "001" / "run"])  # from whose weights the next begins
    both = ["run", "masks"]
    assert KEPT == 3
    assert there(tmp_path) == {1: ["run", "store"], 2: [], 3: [], 4: both, 5: both, 6: [*both, "store"], 7: []}
    assert all((tmp_path / f"{number:03d}" / "clicks.csv").is_file() for number in range(1, 8))
    assert newest(tmp_path).number == 6


@pytest.mark.parametrize("after", range(8))
def test_a_kill_while_removing_leaves_all_that_is_kept_and_no_half(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before any of its steps, it has what is kept, and the next time removes the rest."""
    for number in range(1, 7):
        left(tmp_path, number, store=0 if number == 1 else 1)
    real, steps = {name: getattr(Path, name) for name in ("rename", "unlink", "rmdir")}, iter(range(99))

    def killed(name: str) -> Any:
        def step(path: Path, *rest: Any, **more: Any) -> Any:
            if next(steps) >= after:
                raise KeyboardInterrupt
            return real[name](path, *rest, **more)

        return step

    def halfway(path: Path) -> None:
        for file in sorted(path.rglob("*"), reverse=True):
            file.unlink()
        path.rmdir()

    with monkeypatch.context() as patched:
        patched.setattr(room, "remove", halfway)
        for name in real:
            patched.setattr(Path, name, killed(name))
        with pytest.raises(KeyboardInterrupt):
            Earlier(tmp_path).tidy([])
    for work in tmp_path.iterdir():
        for name, file in (("run", "run.json"), ("masks", TABLE), ("store", "dataset.json")):
            assert (work / name).exists() == (work / name / file).exists()
    assert Earlier(tmp_path).run(CLASSES) == tmp_path / "006" / "run"
    Earlier(tmp_path).tidy([])
    assert there(tmp_path) == {1: ["store"], 2: [], 3: []} | {number: ["run", "masks"] for number in (4, 5, 6)}
    assert not list(tmp_path.rglob(".*"))
