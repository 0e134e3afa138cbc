"""From sources to a store: splits, brightness, the same bytes every time, whatever happens on the way."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from archives import done, flat_folder, full_disk, heart, made, nifti, noise, refused, snapshot
from inbounds.errors import BadInput
from inbounds.sources.source import Source
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import FITS, Plan, prepare
from inbounds.store.store import Store
from making import source, truth_like
from processes import another


def test_names_must_differ(tmp_path: Path) -> None:
    plan = Plan("twice", ("background", "LV"), (8, 8), GridWindow.pad, "pad")
    twins = [source("p000_ED", truth_like(0)) for _ in range(2)]
    with pytest.raises(BadInput, match="two scans are called 'p000_ED'"):
        prepare(twins, tmp_path / "store", plan)
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
import os, shutil, signal, sys, json
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

"""

NEW = """
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
    assert ended(0) == (2 if there else 0), f"no second try at {moment}"
    assert content() == whole, f"other bytes at {moment}"
    moments.append(there)
    left = [str(p) for p in Path(target).parent.iterdir() if p.name.startswith(".")]
    assert not left, left
    moment += every
print(json.dumps(moments))
"""

REPLACED = """
from inbounds.store.store import Store

moments, before = [], content()
shutil.copytree(target, f"{target}-0")
assert ended(0) == 0
whole = content()
while True:
    moment = 1 + every * len(moments)
    shutil.rmtree(target)
    shutil.copytree(f"{target}-0", target)
    code = ended(moment)
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
    Store(target)
    now = content()
    assert now in (before, whole), f"half a store at {moment}"
    assert ended(0) == (2 if now == whole else 0), f"no second try at {moment}"
    assert content() == whole, f"other bytes at {moment}"
    left = [str(p) for p in Path(target).parent.iterdir() if p.name.startswith(".")]
    assert not left, left
    moments.append(now == whole)
print(json.dumps(moments))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be halted on this system")
def test_the_second_of_two_is_told_of_the_first(tmp_path: Path) -> None:
    words = ["prepare", "phantom", str(tmp_path / "store"), "--patients", "30", "--side", "48"]
    with subprocess.Popen([sys.executable, "-m", "inbounds", *words], stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr
        assert "of 60" in first.stderr.readline()  # a quarter is done
        first.send_signal(signal.SIGSTOP)  # or it might be ready before the second begins
        try:
            refused(*words[:3], "--patients", 2, saying=["store: in use by process", first.pid, "wait until"])
        finally:
            first.send_signal(signal.SIGCONT)
        first.communicate()
    assert first.returncode == 0
    done("verify", tmp_path / "store")
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


def test_a_store_is_not_replaced_while_others_add_to_it_nor_added_to_while_it_is(tmp_path: Path) -> None:
    store = made(tmp_path / "store", {"a": heart(), "b": heart()}).path
    nifti(tmp_path / "more" / "c.nii.gz", noise((4, 40, 36)))
    before = snapshot(store)
    adding = ("prepare", "add", tmp_path / "more", store)
    with another(store / "seeds") as first:
        refused(*adding, saying=["seeds: in use by process", first.pid])
        refused("annotate", store, "--name", "seeds", "--strategy", "disc", saying=["seeds: in use by", first.pid])
        done("annotate", store, "--name", "others", "--strategy", "disc")
    shutil.rmtree(store / "annotations")
    (tmp_path / "table.csv").write_text("case,slice,class,present\na,0,RV,1\n")
    with another(store) as first:
        for words in (
            adding,
            ("annotate", store, "--name", "seeds", "--strategy", "disc"),
            ("facts", store, "--name", "seeds", "--import", tmp_path / "table.csv"),
        ):
            refused(*words, saying=["store: in use by process", first.pid], folder=store)
    assert snapshot(store) == before
    opened = Store(store)
    done(*adding)
    with pytest.raises(BadInput, match="replaced already since this command began; run it again"):
        opened.import_facts(tmp_path / "table.csv", "seeds")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no devices among the files of this system")
def test_a_device_in_a_store_is_not_copied(tmp_path: Path) -> None:
    store = made(tmp_path / "store", {"a": heart(), "b": heart()}).path
    nifti(tmp_path / "more" / "c.nii.gz", noise((4, 40, 36)))
    (store / "facts").mkdir()
    (store / "facts" / "note.txt").symlink_to("/dev/null")
    refused("prepare", "add", tmp_path / "more", store, saying=["note.txt: this is a device"], folder=tmp_path)


class TestKilled:
    """At every single step that touches a file, and a second try gives the store of an undisturbed run."""

    def killed(self, target: Path, every: int, *words: object, script: str = NEW) -> list[bool]:
        command = [sys.executable, "-c", KILLER + script, str(target), str(every), *map(str, words)]
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

    def test_add(self, tmp_path: Path) -> None:
        store = made(tmp_path / "store", {"a": heart(), "b": heart()}).path
        nifti(tmp_path / "more" / "c.nii.gz", noise((4, 40, 36)))
        moments = self.killed(store, 1, "prepare", "add", tmp_path / "more", store, script=REPLACED)
        assert moments.count(False) >= 20
        assert any(moments), "the last steps come after the new store is in its place"

    def test_from_outside_while_it_writes(self, tmp_path: Path) -> None:
        words = ["prepare", "phantom", str(tmp_path / "store"), "--patients", "30", "--side", "48"]
        process = subprocess.Popen([sys.executable, "-m", "inbounds", *words], stderr=subprocess.PIPE, text=True)
        assert process.stderr
        assert "of 60" in process.stderr.readline()  # a quarter is done
        process.kill()
        process.communicate()
        lock, left = sorted(entry.name for entry in tmp_path.iterdir())
        assert lock == ".store.lock"
        assert re.fullmatch(rf"\.store\.[\w-]+-{process.pid}-[0-9a-f]{{8}}\.partial", left)
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


class TestAdd:
    """Scans that are added lie in the store as if they had been there from the start."""

    def test_the_arrays_are_those_of_all_scans_together(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "all", ["p1_a", "p1_b", "p2_a", "p3_a"])
        flat_folder(tmp_path / "first", ["p1_a", "p1_b"])
        for name in ("p2_a", "p3_a"):
            for kind in ("images", "labels"):
                file = tmp_path / "all" / kind / f"{name}.nii.gz"
                nifti(tmp_path / "more" / kind / file.name, np.asarray(nib.load(file).dataobj).T)
        how = ("--side", 48, "--pixel", 1.4, "--window", "10,3000", "--patient", "^(p[0-9])", "--spacing", "9,1.5,1.4")
        for name in ("all", "first"):
            done("prepare", "folder", tmp_path / name, tmp_path / f"{name}-store", *how, "--validation", 0)
        done("prepare", "add", tmp_path / "more", tmp_path / "first-store")
        one, other = Store(tmp_path / "all-store"), Store(tmp_path / "first-store")
        assert one.records == other.records
        assert one.checksums == other.checksums
        assert other.source == {
            "from": "flat",
            "fit": "pad",
            "pixel": 1.4,
            "window": [10, 3000],
            "spacing": [9, 1.5, 1.4],
            "patient": "^(p[0-9])",
        }
        assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []

    def test_labels_and_facts_stay_and_say_nothing_of_the_new(self, tmp_path: Path) -> None:
        store = made(tmp_path / "store", {"a": heart(), "b": heart()}, validation=["b"]).path
        done("annotate", store, "--name", "e", "--strategy", "disc")
        (tmp_path / "sizes.csv").write_text("case,slice,class,size_px\na,0,LV,40\n")
        done("facts", store, "--import", tmp_path / "sizes.csv", "--name", "sizes")
        before = snapshot(store)
        weak = np.where(np.arange(40)[:, None] % 4 == 0, heart(), 9).astype(np.uint8)
        flat_folder(tmp_path / "data", ["b_2", "c"], weak)
        (tmp_path / "data" / "labels" / "c.nii.gz").unlink()
        (tmp_path / "split.csv").write_text("case,split\nb_2,validation\nc,test\n")
        words = ("prepare", "add", tmp_path / "data", store, "--unlabelled", 9, "--split", tmp_path / "split.csv")
        said = done(*words).err
        assert "1 scan (c) has no mask, where others have one" in said
        opened, after = Store(store), snapshot(store)
        assert [(r.name, r.split, r.truth) for r in opened.records] == [
            ("a", "train", True),
            ("b", "validation", True),
            ("b_2", "validation", False),
            ("c", "test", False),
        ]
        assert {name for name in before if before[name] == after[name]} == {
            str(Path("annotations", "e", "facts.csv")),
            str(Path("facts", "sizes.csv")),
        }
        assert opened.annotations == ["e", "full", "given"]
        for name in ("e", "full"):
            assert (opened.label(name)[8:] == 255).all()
            assert (opened.label(name)[:8] != 255).any()
        given = opened.label("given")
        assert (given[:8] == 255).all()
        np.testing.assert_array_equal(given[8:12], np.where(weak == 9, 255, weak))
        assert (given[12:] == 255).all()
        assert "problems" not in done("verify", store).err

    def test_scans_of_a_known_patient_join_it(self, tmp_path: Path) -> None:
        names = [f"p{number}_{phase}" for number in range(4) for phase in ("ED", "ES")]
        flat_folder(tmp_path / "data", names)
        said = done("prepare", "folder", tmp_path / "data", tmp_path / "store").err
        assert "patients: told by --patient '^(p[0-9]+)' in the scans' names" in said
        split = {record.patient: record.split for record in Store(tmp_path / "store").records}
        assert sorted(split.items()) == [(f"p{n}", split[f"p{n}"]) for n in range(4)]
        assert sorted(split.values()) == ["train", "train", "train", "validation"]
        flat_folder(tmp_path / "more", [f"p{number}_late" for number in range(5)])
        done("prepare", "add", tmp_path / "more", tmp_path / "store")
        found = {r.patient: r.split for r in Store(tmp_path / "store").records if r.name.endswith("late")}
        assert found == split | {"p4": "train"}

    def test_a_store_that_knew_no_patients(self, tmp_path: Path) -> None:
        """Names tell that a scan belongs to one that is there."""
        names = {f"p{number}_ED": heart() for number in range(4)}
        store = made(tmp_path / "store", names, validation=["p2_ED"]).path
        flat_folder(tmp_path / "more", ["p1_ES", "p2_ES"])
        done("prepare", "add", tmp_path / "more", store)
        assert [record.split for record in Store(store).records[4:]] == ["train", "validation"]

    def test_refusals(self, tmp_path: Path) -> None:
        store = made(tmp_path / "store", {"a": heart(), "b": heart()}).path
        flat_folder(tmp_path / "data", "bc")
        words = ("prepare", "add", tmp_path / "data", store)
        refused(*words, saying=[store, "it has b already", "rename what is new"], folder=tmp_path)
        (tmp_path / "data" / "images" / "b.nii.gz").unlink()
        saying = ["labels/b.nii.gz", "labels without their scan"]
        refused(*words, saying=saying, folder=tmp_path)
        (tmp_path / "data" / "labels" / "b.nii.gz").unlink()
        root = tmp_path / "nnunet"
        nifti(root / "imagesTr" / "d_0000.nii.gz", noise((4, 40, 36)))
        (root / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "LV": 1, "RV": 2, "MYO": 3}}))
        saying = ["its classes are background, LV, RV, MYO", "are background, RV, MYO, LV"]
        refused(*words[:2], root, store, saying=saying, folder=tmp_path)
        before = snapshot(store)
        with full_disk(5000):
            refused(*words, saying=TestFullDisk.SAYING, folder=tmp_path)
        assert snapshot(store) == before
        content = json.loads((store / "dataset.json").read_text())
        content["source"]["fit"] = "by hand"
        (store / "dataset.json").write_text(json.dumps(content))
        refused(*words, saying=[store, "its preparation is", "make a new store of all scans"], folder=tmp_path)


class TestDoubts:
    PLAN = Plan("tiny", ("background", "x", "y"), (32, 32), FITS["pad"], "pad")

    def notes(self, folder: Path, *scans: Source, plan: Plan = PLAN) -> tuple[str, ...]:
        return prepare(scans, folder / "store", plan).notes

    def test_a_spacing_that_was_lost(self, tmp_path: Path) -> None:
        scans = [source(name, truth_like(0), spacing=(1.0, 1.0, 1.0)) for name in "ab"]
        (note,) = self.notes(tmp_path, *scans)
        assert note.startswith("2 scans (a, b) have a spacing of exactly 1 mm, as if it was lost")
        assert "--spacing Z,Y,X" in note
        report = prepare(scans, tmp_path / "said", replace(self.PLAN, spacing=(8.0, 1.5, 1.25)))
        assert report.notes == ()
        assert [record.spacing for record in report.store.records] == [(8.0, 1.5, 1.25)] * 2

    def test_scans_without_masks_beside_others(self, tmp_path: Path) -> None:
        bare = [source(name, None, image=noise((1, 2, 30, 26))) for name in "bcde"]
        (note,) = self.notes(tmp_path, source("a", truth_like(0)), *bare)
        assert note == "4 scans (b, c, d, e) have no mask, where others have one"
        assert prepare(bare, tmp_path / "bare", self.PLAN).notes == ()

    def test_the_same_image_under_two_names(self, tmp_path: Path) -> None:
        """In one split it only counts twice; in two, a network is judged by what it was trained on."""
        a, b, c = (
            source(name, truth_like(0), split=split)
            for name, split in zip("abc", ("train", "validation", "test"), strict=True)
        )
        other = source("d", truth_like(1), split="validation")
        (note,) = self.notes(tmp_path, a, other, b)
        assert (
            note
            == "the same image is on both sides of the split (a in train and b in validation): scores will be too good"
        )
        assert prepare([a, replace(c, split="train"), other], tmp_path / "alike", self.PLAN).notes == ()

    def test_other_labels_are_no_mask(self, tmp_path: Path) -> None:
        """A mask that has unlabelled pixels is not missing, one with scribbles beside it is."""
        truth = truth_like(0)
        scans = [
            source("a", truth, weak={"scribble": truth}),
            source("b", None, image=noise((1, *truth.shape)), weak={"scribble": truth}),
            source("c", None, image=noise((1, *truth.shape)), weak={"given": truth}),
        ]
        (note,) = self.notes(tmp_path, *scans)
        assert note == "1 scan (b) has no mask, where others have one"
        assert prepare(scans[1:2], tmp_path / "alone", self.PLAN).notes == ()

    def test_crops_without_truth(self, tmp_path: Path) -> None:
        large = noise((1, 2, 40, 30)) + 1
        padded = np.pad(large[:, :, 4:-4], ((0, 0), (0, 0), (4, 4), (0, 0)))
        truth = np.zeros((2, 40, 30), np.uint8)
        scans = [
            source("cut", None, image=large),
            source("padded", None, image=padded),
            source("known", truth, image=large),
        ]
        notes = self.notes(tmp_path, *scans)
        assert [note for note in notes if "grid" in note] == [
            "1 scan (cut) has no full mask and more than the grid holds: a region may be lost there; a larger --side, "
            "or --pixel, covers all"
        ]


def test_a_window_is_for_one_channel(tmp_path: Path) -> None:
    plan = Plan("tiny", ("background", "x", "y"), (32, 32), FITS["pad"], "pad", window=(0, 100))
    with pytest.raises(BadInput, match="a: 2 channels, and a window goes with one"):
        prepare([source("a", None, image=noise((2, 2, 30, 26)))], tmp_path / "store", plan)
    assert list(tmp_path.iterdir()) == []
