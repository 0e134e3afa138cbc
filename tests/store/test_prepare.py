"""From sources to a store: splits, brightness, the same bytes every time, whatever happens on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archives import done, flat_folder, full_disk, heart, made, refused, snapshot
from inbounds.errors import BadInput
from inbounds.sources.source import Loaded, Source
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import FITS, Plan, normalise, prepare
from inbounds.store.split import hold_out, split_by_patient
from making import source, truth_like


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


class TestBrightness:
    def test_black_and_white_are_all_but_the_extremes(self) -> None:
        image = np.arange(10_001, dtype=np.int16).reshape(1, 1, 73, 137)
        scaled, (black, white) = normalise(image)
        assert (black, white) == pytest.approx((10, 9990))
        assert scaled.dtype == np.float32
        np.testing.assert_allclose(scaled, np.clip((image - 10) / 9980, 0, 1), atol=1e-6)

    @pytest.mark.parametrize("offset", [1e9, -1e9, 2.0**40])
    def test_a_small_range_far_from_zero_is_kept(self, offset: float) -> None:
        steps = np.arange(8, dtype=np.float64).reshape(1, 2, 2, 2)
        scaled, _ = normalise(steps + offset)
        np.testing.assert_allclose(scaled, normalise(steps)[0], atol=1e-4)
        assert np.isfinite(scaled).all()

    def test_one_bright_voxel_is_enough(self) -> None:
        image = np.zeros((1, 10, 40, 40), np.uint8)
        image[0, 5, 3, 4] = 9
        scaled, ends = normalise(image)
        assert ends == (0, 9)
        assert scaled.sum() == scaled[0, 5, 3, 4] == 1

    def test_channels_are_scaled_each_by_itself(self) -> None:
        image = np.stack([np.arange(64), 1000 * np.arange(64)]).reshape(2, 1, 8, 8)
        scaled, _ = normalise(image)
        np.testing.assert_allclose(scaled[0], scaled[1], atol=1e-6)


def test_names_must_differ(tmp_path: Path) -> None:
    plan = Plan("twice", ("background", "LV"), (8, 8), GridWindow.pad, "pad")
    with pytest.raises(BadInput, match="two scans are called 'p000_ED'"):
        prepare([*people(1), *people(1)], tmp_path / "store", plan)
    with pytest.raises(BadInput, match="no scans were found"):
        prepare([], tmp_path / "store", plan)
    assert list(tmp_path.iterdir()) == []


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done("prepare", "phantom", tmp_path / name, "--patients", 4, "--side", 48, "--seed", 7)
        for strategy in ("erosion", "disc", "scribble", "box"):
            noise = () if strategy == "box" else ("--noise", 0.1)
            done("annotate", tmp_path / name, "--strategy", strategy, "--name", strategy, "--seed", 3, *noise)
    assert snapshot(tmp_path / "a") == snapshot(tmp_path / "b")
    done("prepare", "phantom", tmp_path / "c", "--patients", 4, "--side", 48, "--seed", 8)
    assert snapshot(tmp_path / "c")["images.npy"] != snapshot(tmp_path / "a")["images.npy"]


def test_a_store_that_exists_is_left_alone(tmp_path: Path) -> None:
    store = made(tmp_path / "store", {"a": heart()}).path
    before = snapshot(store)
    words = ("prepare", "phantom", store, "--patients", 2, "--side", 48)
    refused(*words, saying=[store, "already exists", "choose another name"], folder=tmp_path)
    assert snapshot(store) == before
    (tmp_path / "empty").mkdir()
    done("prepare", "phantom", tmp_path / "empty", "--patients", 2, "--side", 48)


class TestFullDisk:
    SAYING = ("could not be written", "File too large", "make room")

    @pytest.mark.parametrize("size", [0, 100, 5_000, 60_000])
    def test_prepare(self, tmp_path: Path, size: int) -> None:
        flat_folder(tmp_path / "data")
        with full_disk(size):
            words = ("prepare", "folder", tmp_path / "data", tmp_path / "store", "--side", 64)
            refused(*words, saying=[tmp_path / "store", *self.SAYING], folder=tmp_path)
        done(*words)

    def test_everything_that_adds_to_a_store(self, tmp_path: Path) -> None:
        store = made(tmp_path / "store", {name: heart((9, 40, 36)) for name in "abcdef"}).path
        table, picture = tmp_path / "table.csv", tmp_path / "a.png"
        done("facts", store, "--name", "x", "--template", table)
        table.write_text(table.read_text().replace("a,0,RV,", "a,0,RV,1", 1))
        (store / "annotations").mkdir()
        (store / "facts").mkdir()
        commands = [
            ("annotate", store, "--name", "e", "--strategy", "erosion"),
            ("annotate", store, "--name", "e", "--strategy", "box"),
            ("facts", store, "--name", "x", "--import", table),
            ("facts", store, "--name", "x", "--template", tmp_path / "other.csv"),
            ("preview", store, "--out", picture),
        ]
        before = snapshot(store)
        for words in commands:
            with full_disk(1000):
                refused(*words, saying=self.SAYING, folder=tmp_path)
        assert snapshot(store) == before

    def test_as_a_program(self, tmp_path: Path) -> None:
        words = ("prepare", "phantom", str(tmp_path / "store"), "--patients", "2", "--side", "48")
        with full_disk(3000):
            program = [sys.executable, "-B", "-m", "inbounds", *words]  # -B: see `full_disk`
            ended = subprocess.run(program, capture_output=True, text=True)
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1].startswith(f"Error: {tmp_path / 'store'}: could not be written")
        assert "Traceback" not in ended.stderr
        assert list(tmp_path.iterdir()) == []


KILLER = """
# Runs a command again and again in a child, which kills itself at its first, second, ... step that touches the store.
import os, signal, sys, json
from pathlib import Path
import inbounds.store.annotate, inbounds.store.prepare, inbounds.sources.phantom, inbounds.store.verify
from inbounds.cli import run

target, every, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sys.argv = ["inbounds", *words]
EVENTS = ("open", "os.mkdir", "os.rename", "os.rmdir", "os.remove", "shutil.rmtree")

def child(moment):
    sys.stdout = sys.stderr = open(os.devnull, "w")
    steps = 0
    def step(event, values):
        nonlocal steps
        if event in EVENTS and Path(target).name in str(values[0]):
            steps += 1
            if steps == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(step)
    try:
        run()
    except SystemExit as end:
        os._exit(end.code or 0)
    os._exit(0)

def ended(moment):
    pid = os.fork()
    if not pid:
        child(moment)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def content():
    return {str(f): f.read_bytes().hex() for f in sorted(Path(target).rglob("*")) if f.is_file()}

moments = []
moment = 1
assert ended(0) == 0
whole = content()
while True:
    os.rename(target, f"{target}-{moment}")
    code = ended(moment)
    there = Path(target).exists()
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
    assert not there or content() == whole, f"half a store at {moment}"
    if not there:
        assert ended(0) == 0, f"no second try at {moment}"
        assert content() == whole, f"other bytes at {moment}"
    moments.append(there)
    left = [str(p) for p in Path(target).parent.iterdir() if p.name.startswith(".")]
    assert not left, left
    moment += every
print(json.dumps(moments))
"""


class TestKilled:
    """At every single step that touches a file, and a second try gives the store of an undisturbed run."""

    def killed(self, target: Path, every: int, *words: object) -> list[bool]:
        command = [sys.executable, "-c", KILLER, str(target), str(every), *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        moments: list[bool] = json.loads(ended.stdout)
        assert moments == sorted(moments), "once there, it stays"
        return moments

    def test_prepare(self, tmp_path: Path) -> None:
        store = tmp_path / "hearts"
        moments = self.killed(store, 1, "prepare", "phantom", store, "--patients", 2, "--side", 48)
        assert moments.count(False) >= 8

    def test_annotate(self, tmp_path: Path) -> None:
        store = made(tmp_path / "store", {"a": heart(), "b": heart()}).path
        target = store / "annotations" / "seeds"
        moments = self.killed(target, 2, "annotate", store, "--name", "seeds", "--strategy", "disc", "--seed", 5)
        assert moments.count(False) >= 5

    def test_from_outside_while_it_writes(self, tmp_path: Path) -> None:
        words = ["prepare", "phantom", str(tmp_path / "store"), "--patients", "30", "--side", "48"]
        process = subprocess.Popen([sys.executable, "-m", "inbounds", *words], stderr=subprocess.PIPE, text=True)
        assert process.stderr
        assert "of 60" in process.stderr.readline()  # a quarter is done
        process.kill()
        process.communicate()
        assert [entry.name for entry in tmp_path.iterdir()] == [".store.partial"]
        done(*words[:3], "--patients", 2, "--side", 48)
        done(*words[:2], tmp_path / "other", "--patients", 2, "--side", 48)
        assert snapshot(tmp_path / "store") == snapshot(tmp_path / "other")
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other", "store"]


def test_pixels_of_unlike_size_are_pointed_out_and_resampled(tmp_path: Path) -> None:
    scans = [
        source("fine", truth_like(0, 2, (60, 52)), spacing=(5.0, 0.7, 0.7)),
        source("coarse", truth_like(1, 2, (30, 26)), spacing=(5.0, 1.4, 1.4)),
    ]
    plan = Plan("tiny", ("background", "x", "y"), (32, 32), FITS["pad"], "pad")
    said = prepare(scans, tmp_path / "as-they-are", plan).notes
    assert any("pixels measure 0.7 (fine) to 1.4 mm (coarse); --pixel 1.4" in note for note in said)
    report = prepare(scans, tmp_path / "resampled", replace(plan, pixel=1.4))
    assert report.notes == ()
    assert [record.fit.scale for record in report.store.records] == [(0.5, 0.5), (1.0, 1.0)]
    assert report.store.source == {"from": "", "fit": "pad", "pixel": 1.4}


@pytest.mark.parametrize(("fit", "said"), [("pad", True), ("zoom", False), ("resize", False)])
def test_scans_of_many_pixels_beside_few_are_pointed_out(tmp_path: Path, fit: str, said: bool) -> None:
    scans = [source("few", truth_like(0, 2, (24, 20))), source("many", truth_like(1, 2, (30, 48)))]
    plan = Plan("tiny", ("background", "x", "y"), (32, 32), FITS[fit], fit)
    report = prepare(scans, tmp_path / fit, plan)
    note = "slices have 24 (few) to 48 (many) pixels along their longer side"
    assert any(note in words and "--fit zoom" in words for words in report.notes) == said
    alike = prepare(scans[:1], tmp_path / f"{fit}-alike", plan)
    assert not any("longer side" in words for words in alike.notes)
