"""A release tried as users meet it: `make release`, or `python -m release.trial [FOLDER] [--python PYTHON]...`.

The wheel is installed with pip into fresh environments that share one torch: alone, with each extra by itself, and with
all. In each, every command either does its work on generated data, or names the extra that it lacks. The source archive
is unpacked, builds the same wheel, and passes the tests of the core that it holds.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import inbounds
from release.environments import Failed, Place, clean, fresh, must, with_torch
from release.lock import ROOT

NOT_FOR_USERS = {"dev", "docs"}
"""Extras of those who work on the package: `make lint docs test` tries them."""
Words = tuple[str, ...]
COMMANDS: dict[Words, frozenset[str]] = {
    ("--version",): frozenset(),
    ("--help",): frozenset(),
    ("recipes",): frozenset(),
    ("info", "store"): frozenset(),
    ("verify", "store"): frozenset(),
    ("example", "{new}", "--patients", "4", "--side", "48"): frozenset({"data"}),
    ("prepare", "folder", "hearts/scans", "{new}", "--classes", "background,RV,MYO,LV"): frozenset({"data"}),
    ("annotate", "store", "--points", "hearts/clicks.csv", "--name", "clicks", "--overwrite"): frozenset({"data"}),
    ("facts", "store", "--import", "hearts/sizes.csv", "--name", "sizes", "--overwrite"): frozenset(),
    ("preview", "store", "--out", "{new}.png"): frozenset({"figures"}),
    ("train", "--store", "store", "--run", "{new}", "--set", "training.epochs=2"): frozenset({"train"}),
    ("evaluate", "run", "--split", "train"): frozenset({"train", "evaluate"}),
    ("predict", "run", "hearts/new", "--out", "{new}"): frozenset({"data", "train"}),
    ("predict", "run", "dicom", "--out", "{new}", "--dicom-seg"): frozenset({"data", "dicom", "train"}),
    ("report", "run", "--out", "{new}"): frozenset({"figures", "train"}),
    ("export", "run", "--bundle", "{new}"): frozenset({"train"}),
    ("predict", "bundle", "hearts/new", "--out", "{new}"): frozenset({"data", "train"}),
    ("export", "run", "--onnx", "{new}.onnx"): frozenset({"export", "train"}),
    ("studio", "hearts/scans", "--project", "{new}", "--classes", "background,LV", "--no-browser"): frozenset(
        {"data", "studio"}
    ),
    ("sweep", "plan.toml", "--out", "{new}", "--on", "slurm"): frozenset({"slurm", "train"}),
    ("sweep", "plan.toml", "--out", "{new}", "--on", "ray"): frozenset({"ray", "train"}),
}
"""What each command needs beside the package itself, on what `_given` makes."""
FOREVER = "studio"
CLUSTERS = "sweep"
"""Where its extra is there, it would need a cluster: only that the extra can be imported is tried."""
CLUSTER_MODULES = {"slurm": "submitit", "ray": "ray"}


def main() -> None:
    """Try what lies in a folder; exits 1 where a user would have met something wrong."""
    parser = argparse.ArgumentParser(description="Try a wheel and a source archive in fresh environments.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"), help="what `python -m release` wrote")
    parser.add_argument("--python", action="append", help="which Pythons; this one if not given")
    parser.add_argument("--torch", type=Path, help="an environment that has torch alone, to share; else one is made")
    parser.add_argument("--out", type=Path, default=Path("out/release"), help="where environments are made")
    parser.add_argument("--only", help="which extras, such as train,all or core; all of them if not given")
    parser.add_argument("--no-sources", action="store_true", help="leave the source archive out")
    chosen = parser.parse_args()
    ends = f"{inbounds.__version__}-py3-none-any.whl", f"{inbounds.__version__}.tar.gz"
    wheel, sources = (chosen.folder.absolute() / f"inbounds-{end}" for end in ends)
    failures = 0
    for python in chosen.python or [sys.executable]:
        version = subprocess.check_output([python, "-c", "import platform as p; print(p.python_version())"], text=True)
        print(f"Python {version.strip()}", flush=True)
        out = chosen.out.absolute() / version.strip()
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        failures += try_wheel(wheel, python, out, chosen.torch, chosen.only.split(",") if chosen.only else None)
    if not chosen.no_sources:
        failures += _say("source archive", lambda: try_sources(sources, wheel, chosen.out.absolute() / "sources"))
    if failures:
        raise SystemExit(f"{failures} failed")


def try_wheel(wheel: Path, python: str, out: Path, torch: Path | None, only: Sequence[str] | None) -> int:
    """Install a wheel with each extra, and try every command; returns how many environments failed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for name in project["optional-dependencies"] if name not in NOT_FOR_USERS]
    sets = {"all": frozenset(extras), "core": frozenset(), **{name: frozenset([name]) for name in extras}}
    shared = torch or with_torch(python, out / "torch")
    everything = fresh(python, out / "all", shared, wheel, sets["all"])
    given = out / "given"
    _given(everything, given)
    failures = 0
    for name, some in sets.items():
        if only is None or name in only:
            place = everything if name == "all" else fresh(python, out / name, shared, wheel, some)
            failures += _say(name, partial(try_place, place, given, out / f"work-{name}"))
            if name != "all":
                shutil.rmtree(place.path)
    return failures


def try_place(place: Place, given: Path, work: Path) -> str:
    """Try every command in an environment, on a copy of what is given."""
    shutil.copytree(given, work)
    _, *code = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")
    done = place.run("-c", code[0].partition("```")[0] + "\nprint(ib.__file__)", within=work)
    if done.returncode or str(place.path) not in done.stdout:
        raise Failed(f"the README's Python: {done.stderr}")
    wrong: list[str] = []
    worked = 0
    for number, (words, needs) in enumerate(COMMANDS.items()):
        missing = needs - place.extras
        worked += not missing
        try:
            _try(place, words, number, needs, missing, work)
        except Failed as error:
            wrong.append(str(error))
    if wrong:
        raise Failed("\n".join(wrong))
    return f"{worked} of {len(COMMANDS)} commands do their work, the others name what to install"


def _try(place: Place, words: Words, number: int, needs: frozenset[str], missing: frozenset[str], work: Path) -> None:
    placed = [word.replace("{new}", f"new-{number}") for word in words]
    if missing:
        _refused(place, placed, missing, work)
    elif words[0] == CLUSTERS:
        for name in needs & CLUSTER_MODULES.keys():
            _good(place.run("-c", f"import {CLUSTER_MODULES[name]}", within=work), (name,))
    elif words[0] == FOREVER:
        _opened(place, placed, work)
    else:
        _good(place.run("-m", "inbounds", *placed, within=work), words)


def try_sources(sources: Path, wheel: Path, out: Path) -> str:
    """Unpack a source archive, build the wheel anew, and run tests, as whoever has nothing else would."""
    shutil.rmtree(out, ignore_errors=True)
    with tarfile.open(sources) as archive:
        archive.extractall(out, filter="data")
    (folder,) = out.iterdir()
    must(["make", "dist", "test-core", f"PYTHON={sys.executable}"], folder)
    tests = (
        "tests/test_package.py",
        "tests/test_cli.py",
        "tests/inference/test_predictor.py",
        "tests/release/test_lock.py",
    )
    told = must([".venv/bin/python", "-m", "pytest", "-q", *tests], folder)
    if _content(folder / "dist" / wheel.name) != _content(wheel):
        raise Failed("the wheel that it builds is another one")
    return f"it builds the same wheel, and of its tests {told.strip().splitlines()[-1]}"


def _content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist() if "/sboms/" not in name and "RECORD" not in name}


def _given(place: Place, folder: Path) -> None:
    """What the commands are tried on, made by them: hearts, a store, a run, a bundle; and a DICOM series."""
    folder.mkdir()
    sys.path.insert(0, str(ROOT / "tests"))
    import numpy as np

    import dicoms

    volume = np.random.default_rng(0).integers(0, 1000, (6, 48, 48)).astype(np.int16)
    dicoms.slices(folder / "dicom" / "series", volume)
    line = "store = 'store'\nannotation = 'clicks'\nrecipes = ['known']\n"
    (folder / "plan.toml").write_text(line, encoding="utf-8")
    for words in (
        ("example", "hearts", "--patients", "8", "--side", "48"),
        ("prepare", "folder", "hearts/scans", "store", "--classes", "background,RV,MYO,LV"),
        ("annotate", "store", "--points", "hearts/clicks.csv", "--name", "clicks"),
        ("facts", "store", "--import", "hearts/sizes.csv", "--name", "sizes"),
        ("train", "--store", "store", "--facts", "sizes", "--run", "run", "--set", "training.epochs=2"),
        ("export", "run", "--bundle", "bundle"),
    ):
        _good(place.run("-m", "inbounds", *words, within=folder), words)


def _good(done: subprocess.CompletedProcess[str], words: Sequence[str]) -> None:
    if done.returncode or "Traceback" in done.stderr:
        raise Failed(f"{' '.join(words)} ends with {done.returncode}: {done.stdout}{done.stderr}")


def _refused(place: Place, words: Sequence[str], missing: frozenset[str], work: Path) -> None:
    """It must end with code 2 and one line that says what to install."""
    done = place.run("-m", "inbounds", *words, within=work)
    lines = [line for line in done.stderr.splitlines() if line.startswith(("Error: ", "Failed: "))]
    named = any(f"pip install 'inbounds[{extra}]'" in line for line in lines for extra in missing)
    if done.returncode != 2 or not named or "Traceback" in done.stderr:
        raise Failed(f"{' '.join(words)} ends with {done.returncode} without {sorted(missing)}: {done.stderr}")


def _opened(place: Place, words: Sequence[str], work: Path) -> None:
    """A program that serves a page until it is stopped."""
    begun = subprocess.Popen(
        [place.python, "-u", "-m", "inbounds", *words],
        cwd=work,
        env=clean(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert begun.stdout is not None
    lines: list[str] = []
    for line in begun.stdout:
        lines.append(line)
        if "http://" in line:
            begun.send_signal(signal.SIGINT)
            lines += begun.stdout
    if begun.wait() not in (0, 130) or not any("http://" in line for line in lines):
        raise Failed(f"{' '.join(words)} ends with {begun.returncode}: {''.join(lines)}")


def _say(name: str, trying: Callable[[], str]) -> int:
    """Say what came of it; 1 if it failed."""
    begun = time.monotonic()
    try:
        told, failed = trying(), 0
    except Failed as error:
        told, failed = f"FAILED: {error}", 1
    print(f"  {name}: {told} ({time.monotonic() - begun:.0f} s)", flush=True)
    return failed


if __name__ == "__main__":
    main()
