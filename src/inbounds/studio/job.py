"""One training, as a program of its own: the commands that anybody could type, one after the other.

    python -m inbounds.cli.job PROJECT/trainings/002

The folder has `job.json`, which says what to do and how far it has come, `clicks.csv` and `sizes.csv`; the commands put
their store, run and masks there, and what they say into `log.txt`. They run within this program, so that what they
need is loaded once. The page may be closed meanwhile, and its server be stopped. Begun again, a job goes on where it
was.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.locks import locked
from inbounds.stopping import stoppable
from inbounds.writing import write_json, write_table

STATES = {"prepare": "preparing", "annotate": "preparing", "facts": "preparing", "train": "training"}
"""What a job does while it runs a command; else it predicts."""
LINES = 50
Command = Callable[[Sequence[str]], None]
"""Does what is said on a command line, and exits with a code."""


class _Failed(Exception):  # noqa: N818
    """A command ended badly; these are its last words."""


class Job:
    """What is to be done in a folder, and how far it has come."""

    def __init__(self, folder: Path, command: Command, stops: Sequence[int]) -> None:
        self.folder, self._command, self._stops = folder, command, stops
        self.about: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))

    def note(self, **news: Any) -> None:
        """Write down how things stand."""
        self.about |= news
        write_json(self.folder / "job.json", self.about)

    def run(self) -> None:
        """Do what is not done yet."""
        self.note(pid=os.getpid(), state="preparing", sentence="", commands=[])
        work, others = self.folder, self.folder.parent
        store = others / self.about["store"]
        labels, facts = f"clicks-{self.about['number']:03d}", f"sizes-{self.about['number']:03d}"
        known = (work / "sizes.csv").is_file()
        self._prepare(store)
        self._only_what_the_store_has(store)
        words = [str(store), "--points", str(work / "clicks.csv"), "--name", labels]
        self._call("annotate", words, made=store / "annotations" / labels)
        if known:
            words = [str(store), "--import", str(work / "sizes.csv"), "--name", facts]
            self._call("facts", words, made=store / "facts" / f"{facts}.csv")
        words = ["--store", str(store), "--annotation", labels, *(["--facts", facts] if known else [])]
        words += ["--run", str(work / "run"), "--minutes", f"{self.about['minutes']:g}"]
        words += ["--from", str(others / self.about["from"])] if self.about["from"] else []
        with self._watched():
            self._call("train", [*words, *(["--resume"] if self.about["resumed"] else [])])
        words = [str(work / "run"), self.about["scans_folder"], "--out", str(work / "masks")]
        again = ["--overwrite"] if (work / "masks").is_dir() else []
        self._call("predict", [*words, *again], enough=work / "masks" / "predictions.csv")
        self.note(state="done", sentence="finished", ended=_now())

    def _prepare(self, store: Path) -> None:
        """Make the store; a scan that turns out to be unreadable is left out, and the others are prepared."""
        if (store / "dataset.json").is_file():
            self._told("prepare", self._preparing(store))
            return
        while True:
            try:
                self._call("prepare", self._preparing(store), made=store / "dataset.json")
            except _Failed as failure:
                name = self._blamed(str(failure))
                if name is None or len(self.about["left_out"]) + 1 == len(self.about["scans"]):
                    raise
                self.note(left_out={**self.about["left_out"], name: str(failure)}, commands=[])
            else:
                return

    def _preparing(self, store: Path) -> list[str]:
        words = ["folder", self.about["scans_folder"], str(store), "--classes", ",".join(self.about["classes"])]
        return [*words, "--validation", "0", *(word for name in self.about["left_out"] for word in ("--without", name))]

    def _blamed(self, sentence: str) -> str | None:
        """The scan of which a refusal speaks."""
        named = [
            (len(start), name)
            for name, files in self.about["scans"].items()
            for start in (*files, name)
            if sentence.startswith((f"{start}:", f"{start}{os.sep}")) and name not in self.about["left_out"]
        ]
        return max(named)[1] if named else None

    def _only_what_the_store_has(self, path: Path) -> None:
        """Take out of the tables what speaks of scans that were left out, or of pixels that the store has cut off."""
        from inbounds.store.store import Store

        store, lost = Store(path), 0
        for file in (self.folder / "clicks.csv", self.folder / "sizes.csv"):
            if not file.is_file():
                continue
            with file.open(encoding="utf-8", newline="") as stream:
                head, *rows = csv.reader(stream)
            kept = [row for row in rows if row[0] in store.cases]
            if file.name == "clicks.csv":
                places = [(store.cases[row[0]].fit, float(row[2]), float(row[3])) for row in kept]
                on_grid = [_within(fit.point(r, c), store.shape) for fit, r, c in places]
                lost = on_grid.count(False)
                kept = [row for row, there in zip(kept, on_grid, strict=True) if there]
            if len(kept) < len(rows):
                write_table(file, head, kept)
        if lost:
            self.note(words=[f"{lost} labelled voxels lie where the store has cut its scans, and are left out"])

    def _call(self, name: str, words: Sequence[str], made: Path | None = None, enough: Path | None = None) -> None:
        """Call a command, unless what it makes is there already; with `enough` there, it may have failed in part."""
        self._told(name, words)
        if made is not None and made.exists():
            return
        print(f"\n$ {self.about['commands'][-1]}", flush=True)
        code: object = 0
        start = (self.folder / "log.txt").stat().st_size
        try:
            self._command([name, *words])
        except SystemExit as ended:
            code = ended.code
        except Exception:
            traceback.print_exc()
            code = None
        if self._stops:  # which a command tells by its code
            raise KeyboardInterrupt
        sys.stdout.flush()
        if code != 0 and not (code == 1 and enough is not None and enough.is_file()):
            raise _Failed(last_words(self.folder / "log.txt", start) or f"{name} ended with code {code}")

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Let the page see the newest masks meanwhile; whatever becomes of that, training goes on."""
        line = [sys.executable, "-m", "inbounds.studio.preview", str(self.folder)]
        with (self.folder / "preview.txt").open("wb") as log:
            watching = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            yield
        finally:
            assert watching.stdin is not None
            watching.stdin.close()
            watching.kill()
            watching.wait()

    def _told(self, name: str, words: Sequence[str]) -> None:
        commands = [*self.about["commands"], shlex.join(["inbounds", name, *words])]
        self.note(state=STATES.get(name, "predicting"), since=time.time(), commands=commands)


def last_words(log: Path, start: int = 0) -> str:
    """The last line that a command has written, without what only a terminal needs."""
    with log.open("rb") as stream:
        stream.seek(start)
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines()[-LINES:]]
    told = [line for line in lines if line.startswith("Error: ")] or [line for line in lines if line]
    return told[-1].removeprefix("Error: ") if told else ""


def main(folder: Path, command: Command) -> int:
    """Do the job of a folder, by the commands of the command line."""
    with (folder / "log.txt").open("ab") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    with locked(folder, inside=True), stoppable() as stops:
        job = Job(folder, command, stops)
        try:
            job.run()
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                job.note(
                    state="stopped",
                    sentence="go on with it where it was, or train again on what is known now",
                    ended=_now(),
                )
        except (_Failed, BadInput, OSError, ValueError) as error:
            job.note(state="failed", sentence=str(error), ended=_now())
            return 1
    return 0


def _within(place: tuple[float, float], sides: tuple[int, int]) -> bool:
    return all(-0.5 <= at < side - 0.5 for at, side in zip(place, sides, strict=True))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
