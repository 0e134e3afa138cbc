"""The studio killed amid strokes: what it confirmed is there, nothing is there in half, and it starts again."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from torture.campaign import Campaign, Result
from torture.material import CLASSES, commit, copied
from torture.process import Command, Place, faults, start

PEOPLE = ("Ana", "Ben")
KILLS = 3
"""How often the server of a case is killed, and begun again on what the one before left."""
LONGEST = 0.6
"""Seconds from the first confirmed action to a kill, at most."""
READY = 30.0
WORDS = ["studio", "hearts/scans", "--project", "project", "--classes", CLASSES, "--no-browser"]


@dataclass
class Person:
    """Somebody before the page, and what the server has confirmed of what they did.

    Attributes:
        name: Of the person.
        address: The server's port and cookie.
        scans: What they draw on: number and shape.
        rng: What they do next.
        done: By number of the action, what it was.
        undone: How many of their last actions were taken back.
        problems: What the server should not have answered.
    """

    name: str
    address: tuple[int, str]
    scans: list[tuple[int, list[int]]]
    rng: random.Random
    done: dict[int, dict[str, Any]] = field(default_factory=dict)
    undone: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def work(self) -> None:
        """Draw, tell and take back, as fast as the server answers, until it is gone."""
        try:
            while True:
                if self.done and self.rng.random() < 0.1:
                    self.undone.append(self._ask("/api/undo", {"who": self.name})["sequence"])
                    continue
                what = self._stroke() if self.rng.random() < 0.8 else self._fact()
                self.done[self._ask("/api/actions", what)["id"]] = what
        except (OSError, http.client.HTTPException):
            return

    def _stroke(self) -> dict[str, Any]:
        scan, shape = self.rng.choice(self.scans)
        at = [self.rng.randrange(side) for side in shape]
        points = [
            [at[0], *(self.rng.uniform(0, side - 1) for side in shape[1:])] for _ in range(self.rng.randint(1, 60))
        ]
        more = {"plane": 0, "points": points, "radius": self.rng.choice([0, 2, 5])}
        return {"who": self.name, "kind": "stroke", "scan": scan, "class": self.rng.choice([0, 1, 2, 3, None]), **more}

    def _fact(self) -> dict[str, Any]:
        scan, shape = self.rng.choice(self.scans)
        size = {"low": self.rng.randint(1, 9), "high": self.rng.randint(10, 90), "unit": "px"}
        about = {"slice": self.rng.randrange(shape[0]), "present": True, "size": size}
        return {"who": self.name, "kind": "fact", "scan": scan, "class": self.rng.choice([1, 2, 3]), **about}

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, answer = asked(self.address, path, body)
        if status == 409 and path == "/api/undo":
            return {"sequence": 0}
        if status != 200:
            self.problems.append(f"{path} was answered with {status}: {answer}")
            raise OSError
        return answer


def asked(address: tuple[int, str], path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    """What the server answers."""
    port, cookie = address
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Cookie": cookie, "Content-Type": "application/json"}
    try:
        line.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        line.close()


@contextmanager
def served(place: Place) -> Iterator[tuple[Command, tuple[int, str]]]:
    """The studio, once its page can be opened: its process, its port and the cookie that lets in."""
    command = start(WORDS, place)
    said, until = place.root / f"{command.label}.out", time.monotonic() + READY
    while "token=" not in (text := said.read_text(encoding="utf-8")):
        if not command.running() or time.monotonic() > until:
            raise BadInput(f"the studio did not start: {(place.root / f'{command.label}.err').read_text()[-1000:]}")
        time.sleep(0.005)
    address = next(word for word in text.split() if "token=" in word)
    port = int(address.split(":")[2].split("/")[0])
    yield command, (port, f"inbounds_studio_{port}={address.rpartition('=')[2]}")


def case(campaign: Campaign, material: Place, number: int, place: Place) -> Result:
    """A project on which two people draw while its server is killed, again and again."""
    rng = campaign.draw(number)
    copied(material, place, ["hearts"])
    result = Result(number, "studio", "SIGKILL amid strokes")
    done: dict[int, dict[str, Any]] = {}
    undone: set[int] = set()
    for _ in range(KILLS):
        with served(place) as (command, address):
            project = asked(address, "/api/project")[1]
            scans = [(row["id"], row["shape"]) for row in project["scans"] if row["shape"]]
            people = [Person(name, address, scans, random.Random(rng.random())) for name in PEOPLE]
            threads = [threading.Thread(target=person.work) for person in people]
            for thread in threads:
                thread.start()
            while all(thread.is_alive() for thread in threads) and not any(person.done for person in people):
                time.sleep(0.001)
            time.sleep(rng.uniform(0, LONGEST))
            command.signal(signal.SIGKILL, group=True)
            for thread in threads:
                thread.join()
            ended = command.ended()
            result.problems += faults(ended, {-signal.SIGKILL}, "killed")
            result.seconds, result.memory = result.seconds + ended.seconds, max(result.memory, ended.memory)
        for person in people:
            done |= person.done
            undone |= {sequence for sequence in person.undone if sequence}
            result.problems += person.problems
        result.problems += lost(place.here / "project", done, undone, len(PEOPLE) * KILLS)
    result.what, result.outcome = f"{len(done)} actions, {len(undone)} taken back", "all there"
    with served(place) as (command, address):
        whole = asked(address, "/api/project")
        result.problems += [] if whole[0] == 200 else [f"afterwards it answers {whole}"]
        command.signal(signal.SIGINT)
        result.problems += faults(command.ended(), {0, 130}, "afterwards")
    return result


def lost(folder: Path, done: dict[int, dict[str, Any]], undone: set[int], most: int) -> list[str]:
    """What is not there as it was confirmed, or there in half; `most` may be there that nobody was told of."""
    from inbounds.studio.project import Project

    problems: list[str] = []
    project = Project(folder, folder.parent / "hearts" / "scans")
    try:
        rows = project.database.rows("SELECT id, batch, who, scan, kind, content, undone FROM actions ORDER BY id")
        kept = {row[0]: row for row in rows}
        for number, what in done.items():
            row = kept.get(number)
            if row is None:
                problems.append(f"action {number} was confirmed, and is not there")
                continue
            content = json.loads(row[5])
            same = all(content[name] == value for name, value in what.items() if name in ("points", "radius", "class"))
            if not same or (row[2], row[3], row[4]) != (what["who"], what["scan"], what["kind"]):
                problems.append(f"action {number} is there as another: {row}")
        problems += [f"undo {number} was confirmed, and is not there" for number in undone if number not in kept]
        people = [row for row in rows if row[2] in PEOPLE]
        untold = [row for row in people if row[0] not in done and row[0] not in undone]
        if len(untold) > most:
            problems.append(f"{len(untold)} actions are there that nobody was told of")
        undos = {row[0] for row in rows if row[4] == "undo"}
        marks = {row[6] for row in people if row[6] is not None}
        problems += [f"an action is undone by {mark}, which is no undo" for mark in marks - undos]
        for number in project.shelf.entries:
            listed, there = project.summary(number), project.labels(number).summary()
            if any(listed[name] != there[name] for name in ("classes", "marks")):
                problems.append(f"the labels of scan {number} are others than what the list says")
    finally:
        project.close()
    return problems


def campaign(out: Path, material: Place, count: int, seed: int, jobs: int, only: Sequence[int] = ()) -> list[Result]:
    """So many cases, or some of them again."""
    strokes = Campaign("strokes", out.resolve(), seed, jobs, commit(material))
    return strokes.go(only or range(count), lambda number, place: case(strokes, material, number, place), keep=not only)
