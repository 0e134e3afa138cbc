"""Stores and runs that were edited, damaged in transfer, or made to be handed over; through all that reads them."""

from __future__ import annotations

import json
import random
import shutil
import struct
from pathlib import Path

import numpy as np

from torture import mutate
from torture.bad import Bad
from torture.material import TRAIN
from torture.process import Place

DTYPES = ("<f8", ">u1", "|O", "<U9", "|u1", "<f2", "<u4", "|V5", "<M8[s]", "[('a', '<i4')]")
SHAPES = ("(0,)", "()", "(1,)", "(2**62,)", f"({2**62}, {2**62})", "(-1,)", f"({2**62},)", "(5, 1, 48, 48)")
ONCE = ["--set", "training.epochs=1", "--set", "training.slices=4"]


def make(rng: random.Random, place: Place) -> Bad:
    """A store with something wrong in it."""
    name = rng.choice(("store", "full"))
    store = place.here / name
    labels, facts = ("clicks", "sizes") if name == "store" else ("disc", "disc")
    files = sorted(file for file in store.rglob("*") if file.is_file())
    file = rng.choice((*files, *[file for file in files if file.suffix == ".json"] * 2))
    content = file.read_bytes()
    what = _broken(rng, file)
    changed = file.parent.is_dir() and not (file.is_file() and file.read_bytes() == content)
    verify = ["verify", name]
    words = rng.choice(
        (
            *(verify, verify, verify, ["info", name], ["preview", name, "--out", "picture.png"]),
            ["train", "--store", name, "--annotation", labels, *TRAIN[3:], *ONCE, "--run", "made"],
            ["annotate", "store", "--name", "new", "--points", "hearts/clicks.csv"],
            ["annotate", name, "--name", "new", "--strategy", "disc"],
            ["facts", name, "--name", facts, "--export", "table.csv"],
            ["prepare", "add", "hearts/new", name],
        )
    )
    looked = words[0] == "verify"
    return Bad(
        words,
        (file.name, name),
        f"{file.relative_to(place.here)}: {what}",
        (0, 1, 2) if looked else (0, 2),
        seen=looked and changed and file.suffix == ".npy",
        limit=60.0,
    )


def make_run(rng: random.Random, place: Place) -> Bad:
    """A run with something wrong in it."""
    resume = rng.randrange(5) == 0
    run = place.here / ("half" if resume else "run")
    files = sorted(file for file in run.rglob("*") if file.is_file() and "tensorboard" not in file.parts)
    file = rng.choice((*files, run / "run.json", run / "run.json", *[f for f in files if f.suffix == ".safetensors"]))
    what = _with_code(rng, file, place) if file.name == "run.json" and rng.randrange(4) == 0 else _broken(rng, file)
    words = rng.choice(
        (
            ["predict", "run", "hearts/new", "--out", "made", "--no-doubt"],
            ["predict", "run", "hearts/new", "--out", "made"],
            ["evaluate", "run"],
            ["report", "run", "--out", "made"],
            [*TRAIN, *ONCE, "--run", "made", "--from", "run"],
        )
    )
    if resume:
        words = [*TRAIN, "--run", "half", "--resume"]
    elif rng.randrange(25) == 0:
        words = ["export", "run", "--onnx", "made.onnx"]
    names = (file.name, run.name, "checkpoints", "settings", "network.")
    codes = (0, 1, 2) if words[0] in ("predict", "train") else (0, 2)
    return Bad(words, names, f"{file.relative_to(place.here)}: {what}", codes, limit=60.0)


def _with_code(rng: random.Random, file: Path, place: Place) -> str:
    """A run that names code which lies beside it: whoever was handed it has not said --import."""
    marker = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"
    for folder in (place.here, file.parent):
        (folder / "evil.py").write_text(marker, encoding="utf-8")
    about = json.loads(file.read_text(encoding="utf-8"))
    settings = about["settings"]
    where = rng.choice(("network", "constraint", "regulariser", "plan"))
    if where == "network":
        settings["network"] = {"name": "evil:Net", "settings": {}}
    elif where == "constraint":
        settings["constraints"]["size"]["statistic"] = {"name": "evil:Statistic"}
    elif where == "regulariser":
        settings["regularisers"]["new"] = {"term": {"name": "evil:Term"}}
    else:
        about["plan"]["settings"]["network"] = {"name": "evil:Net"}
    file.write_text(json.dumps(about), encoding="utf-8")
    return f"its {where} is somebody's code"


def _broken(rng: random.Random, file: Path) -> str:
    way = rng.randrange(8)
    if way == 0:
        return mutate.kind_of(rng, file)
    if way == 1 and file.name.endswith(".json"):
        return mutate.file_of(rng, file)
    if file.suffix == ".json":
        return mutate.json_of(rng, file)
    if file.suffix == ".npy" and way < 5:
        return _array(rng, file)
    if file.suffix == ".safetensors" and way < 6:
        return _weights(rng, file)
    if way == 7 and file.parent.parent.name in ("annotations", "checkpoints"):
        shutil.rmtree(file.parent)
        return "its folder is gone"
    return mutate.file_of(rng, file, region=rng.choice((0, 0, 200)))


def _array(rng: random.Random, file: Path) -> str:
    """An array whose header lies, or says what could be run."""
    content = file.read_bytes()
    length = struct.unpack_from("<H", content, 8)[0]
    shape = rng.choice(SHAPES)
    order = rng.choice(("False", "True", "2"))
    header = f"{{'descr': {rng.choice(DTYPES)!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    kind = rng.randrange(4)
    if kind == 0:
        header = "__import__('os').system('touch imported')"
    elif kind == 1:
        header = "{" * 60
    made = header.ljust(length - 1)[: length - 1].encode() + b"\n"
    file.write_bytes(content[:10] + made + content[10 + length :])
    return header[:80]


def _weights(rng: random.Random, file: Path) -> str:
    """Weights whose header lies, whose numbers are not finite, or that are another's."""
    content = file.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    head, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    names = [name for name in head if name != "__metadata__"]
    name, way = rng.choice(names), rng.randrange(7)
    if way == 0:
        body = np.full(len(body) // 4, np.nan, np.float32).tobytes() + bytes(len(body) % 4)
        what = "every number is NaN"
    elif way == 1:
        head[name]["shape"], what = rng.choice(([2**40], [0], [-1], [], [2**62, 4], "x")), f"the shape of {name} lies"
    elif way == 2:
        head[name]["dtype"], what = rng.choice(("F64", "I8", "F8_E4M3", "X", "BF16")), f"the type of {name} lies"
    elif way == 3:
        head[name]["data_offsets"], what = (
            rng.choice(([0, 2**40], [8, 4], [-4, 4], [0, 0])),
            f"the place of {name} lies",
        )
    elif way == 4:
        del head[name]
        what = f"{name} is gone"
    elif way == 5:
        head[f"{name}.more"], what = head.pop(name), f"{name} is called otherwise"
    else:
        file.write_bytes(struct.pack("<Q", rng.choice((0, 1, 2**40, 2**63, length * 2))) + content[8:])
        return "the length of its header lies"
    made = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(made)) + made + body)
    return what
