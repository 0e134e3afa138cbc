"""Trainings from the server's side: begun, stopped, gone on with, and how the current one stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from inbounds.locks import lock_file
from inbounds.studio.database import Conflict
from inbounds.studio.earlier import Earlier
from inbounds.studio.preview import Newest, choose
from inbounds.studio.project import Project
from inbounds.studio.standing import IDLE, RUNNING, Standing
from inbounds.studio.tables import write_tables
from inbounds.writing import write_json

INTERRUPTED = (
    "it was interrupted, as when a computer is switched off or has no memory left; go on with it, or train anew"
)


class Trainings:
    """The trainings of a project; one at a time."""

    def __init__(self, project: Project) -> None:
        self.project, self.folder = project, project.folder / "trainings"
        self._turn = threading.Lock()
        self._begun: subprocess.Popen[bytes] | None = None
        self._standing = Standing()

    @property
    def newest(self) -> Path | None:
        """The folder of the last training."""
        jobs = sorted(self.folder.glob("[0-9]*/job.json"))
        return jobs[-1].parent if jobs else None

    def about(self, folder: Path) -> dict[str, Any]:
        """What a job says of itself; a running one that is gone was stopped."""
        about: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        if about["state"] in RUNNING and not self._alive(folder):
            with suppress(OSError, ValueError):  # it may have ended between the two looks
                about = json.loads((folder / "job.json").read_text(encoding="utf-8"))
            if about["state"] in RUNNING:
                about |= {"state": "stopped", "sentence": INTERRUPTED}
        return about

    def begin(self, minutes: float, who: str) -> dict[str, Any]:
        """Write down all that is known, and let a program of its own train on it."""
        with self._turn:
            self._check_idle()
            before = self.newest
            number = 1 if before is None else int(before.name) + 1
            work, project = self.folder / f"{number:03d}", self.project
            usable = {entry.name: entry for entry in project.shelf.entries.values() if entry.error is None}
            scans = {name: [str(file) for file in entry.files] for name, entry in usable.items()}
            stamps = {name: project.shelf.stamp(entry.id) for name, entry in usable.items()}
            classes = [name for name, _ in project.classes.values()]
            if len(classes) < 2:
                raise Conflict("there is no class to learn; add one beside the background")
            sequence = project.sequence
            work.mkdir(parents=True, exist_ok=True)
            clicks, _ = write_tables(project, work)
            if not clicks:
                raise Conflict("nothing is labelled yet; click some of each class, and some background")
            earlier = Earlier(self.folder)
            store, run = earlier.store(stamps, classes), earlier.run(classes)
            about = {
                "state": "preparing",
                "number": number,
                "minutes": minutes,
                "who": who,
                "sequence": sequence,
                "classes": classes,
                "values": list(project.classes),
                "scans_folder": str(project.root),
                "scans": scans,
                "stamps": stamps,
                "left_out": {e.name: e.error for e in project.shelf.entries.values() if e.error and not e.gone},
                "folder": str(self.folder),
                "store": (store or work / "store").relative_to(self.folder).as_posix(),
                "from": None if run is None else run.relative_to(self.folder).as_posix(),
                "shown": choose(project, list(usable)),
                "commands": [],
                "words": [],
                "sentence": "",
                "resumed": False,
            }
            write_json(work / "job.json", about)
            self._start(work)
            earlier.tidy([store, run])
            return self.state()

    def stop(self) -> dict[str, Any]:
        """Ask the current training to stop; what it has finished is kept."""
        with self._turn:
            folder = self.newest
            if folder is None or self.about(folder)["state"] not in RUNNING:
                raise Conflict("no training is running")
            about = self._wait_for_pid(folder)
            with suppress(ProcessLookupError):
                if os.name == "nt":
                    os.kill(about["pid"], signal.CTRL_BREAK_EVENT)  # type: ignore[attr-defined,unused-ignore]
                else:
                    os.killpg(about["pid"], signal.SIGTERM)
            until = time.monotonic() + 15
            while self._alive(folder) and time.monotonic() < until:
                time.sleep(0.05)
            return self.state()

    def resume(self) -> dict[str, Any]:
        """Go on with a training that was stopped or that failed."""
        with self._turn:
            folder = self.newest
            about = {} if folder is None else self.about(folder)
            if folder is None or about["state"] not in ("stopped", "failed"):
                raise Conflict("there is no training to go on with")
            about.pop("pid", None)
            write_json(folder / "job.json", about | {"state": "preparing", "sentence": "", "resumed": True})
            self._start(folder)
            return self.state()

    def state(self) -> dict[str, Any]:
        """How the current training stands, for the page."""
        folder = self.newest
        if folder is None:
            return dict(IDLE)
        try:
            about = self.about(folder)
            told = {name: about[name] for name in ("state", "sentence", "number", "commands")}
            return IDLE | told | self._standing.of(folder, about)
        except (OSError, ValueError, KeyError) as error:
            sentence = f"{folder}: damaged ({error}); train again"
            return IDLE | {"state": "failed", "sentence": sentence, "number": int(folder.name)}

    def seen(self) -> Newest:
        """The newest masks of the current training, while it runs."""
        return Newest() if self.newest is None else self._standing.seen(self.newest)

    def close(self) -> None:
        """Take leave of the job that was begun: if it is still at work, it goes on without us."""
        if self._begun is not None and self._begun.poll() is None:
            self._begun.returncode = 0  # else Python would complain of it
        self._begun = None

    def _check_idle(self) -> None:
        folder = self.newest
        if folder is not None and self.about(folder)["state"] in RUNNING:
            raise Conflict("a training is running; stop it first, or wait until it has ended")

    def _start(self, work: Path) -> None:
        """Start a job that outlives this server."""
        self.close()
        apart: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}  # type: ignore[attr-defined,unused-ignore]
        with (work / "log.txt").open("ab") as log:
            self._begun = subprocess.Popen(
                [sys.executable, "-m", "inbounds.cli.job", str(work)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **apart,
            )

    def _alive(self, work: Path) -> bool:
        """Whether a job is at work: it holds its lock, or has not come so far."""
        if self._begun is not None and self._begun.args[-1] == str(work):  # type: ignore[index]
            return self._begun.poll() is None
        probe = FileLock(lock_file(work, inside=True), timeout=0, fallback_to_soft=False)
        try:
            with probe:
                return False
        except Timeout:
            return True

    def _wait_for_pid(self, folder: Path) -> dict[str, Any]:
        """A job that has just begun says soon who it is."""
        until = time.monotonic() + 10
        while "pid" not in (about := self.about(folder)) and time.monotonic() < until:
            time.sleep(0.05)
        if self._begun is not None and self._begun.poll() is None:
            about["pid"] = self._begun.pid
        return about
