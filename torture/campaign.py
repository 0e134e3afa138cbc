"""Many cases, side by side: each in a process of its own, its result a line of JSON as soon as it is known."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer

from inbounds.errors import BadInput
from torture.process import Place, commands

PATIENCE = 600.0
"""Seconds that a case may take in all."""
LINES = 20


@dataclass
class Result:
    """What became of a case.

    Attributes:
        number: Which it was.
        command: What was run.
        kind: What was done to it.
        what: The same in detail.
        problems: What should not have been, in words; none if all is well.
        outcome: How it ended, for counting.
        seconds: How long the command took.
        memory: By how many MB it grew.
    """

    number: int
    command: str
    kind: str
    what: str = ""
    problems: list[str] = field(default_factory=list)
    outcome: str = ""
    seconds: float = 0.0
    memory: float = 0.0


Work = Callable[[int, Place], Result]


@dataclass(frozen=True)
class Campaign:
    """Cases by number, and where their results go.

    Attributes:
        name: Of the campaign.
        out: The folder for results.
        seed: Of all that is drawn.
        jobs: How many cases run at once.
        commit: Of the package. Cases of another are not counted as done.
        size: Of a case, where cases may be larger or smaller.
    """

    name: str
    out: Path
    seed: int
    jobs: int
    commit: str | None = None
    size: int = 0

    @property
    def file(self) -> Path:
        """A line for each case that is done."""
        return self.out / f"{self.name}.jsonl"

    def draw(self, number: int) -> random.Random:
        """The random numbers of a case, which depend on nothing else."""
        return random.Random(f"{self.name} {self.seed} {number}")

    def done(self) -> dict[int, Result]:
        """The cases that are done; a last line cut short by a kill is left out."""
        if not self.file.is_file():
            return {}
        content = self.file.read_text(encoding="utf-8")
        head, *lines = content[: content.rfind("\n") + 1].splitlines() or [json.dumps(self._head())]
        if json.loads(head) != self._head():
            raise BadInput(f"{self.file}: its cases were of another seed or version; remove it, or give another --out")
        return {result.number: result for result in (Result(**json.loads(line)) for line in lines)}

    def go(self, numbers: Sequence[int], work: Work, *, keep: bool = True) -> list[Result]:
        """Do what is not done yet, and give the results of all.

        Args:
            numbers: Of the cases.
            work: Does one; called in a process of its own.
            keep: Write results down; without it, cases are done again.
        """
        done = self.done() if keep else {}
        left = [number for number in numbers if number not in done]
        self.out.mkdir(parents=True, exist_ok=True)
        if keep:
            _write_lines(self.file, [self._head(), *map(asdict, done.values())])
        begun, said = time.monotonic(), 0
        for count, result in enumerate(self._results(left, work), start=1):
            done[result.number] = result
            if keep:
                with self.file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(asdict(result)) + "\n")
            if count * LINES // len(left) > said:
                said = count * LINES // len(left)
                typer.echo(f"{self.name}: {count} of {len(left)}, {time.monotonic() - begun:.0f} s", err=True)
        return [done[number] for number in numbers]

    def place(self, number: int) -> Place:
        """Where a case runs; it stays there if anything was wrong."""
        return Place(self.out / "cases" / f"{self.name}-{number}")

    def _results(self, numbers: Sequence[int], work: Work) -> Any:
        waiting, going = list(reversed(numbers)), dict[int, tuple[int, float]]()
        try:
            while waiting or going:
                while waiting and len(going) < self.jobs:
                    number = waiting.pop()
                    going[self._begin(number, work)] = number, time.monotonic()
                time.sleep(0.005)
                for process, (number, begun) in list(going.items()):
                    if os.waitpid(process, os.WNOHANG)[0]:
                        del going[process]
                        yield self._result(number)
                    elif time.monotonic() - begun > PATIENCE:
                        os.kill(process, signal.SIGTERM)
        finally:
            for process in going:
                os.kill(process, signal.SIGTERM)

    def _begin(self, number: int, work: Work) -> int:
        place = self.place(number)
        shutil.rmtree(place.root, ignore_errors=True)
        place.made()
        sys.stdout.flush()
        sys.stderr.flush()
        if process := os.fork():
            return process
        code = 0
        try:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            result = work(number, place)
            (place.root / "result.json").write_text(json.dumps(asdict(result)), encoding="utf-8")
        except BaseException:
            (place.root / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
            code = 1
        finally:
            for command in commands:
                with suppress(OSError):
                    command.signal(signal.SIGKILL, group=True)
            os._exit(code)

    def _result(self, number: int) -> Result:
        place = self.place(number)
        file, error = place.root / "result.json", place.root / "error.txt"
        if file.is_file():
            result = Result(**json.loads(file.read_text(encoding="utf-8")))
        else:
            reason = error.read_text(encoding="utf-8") if error.is_file() else "no word of it"
            result = Result(number, "?", "?", problems=[f"the case itself broke off: {reason}"])
        if not result.problems:
            shutil.rmtree(place.root, ignore_errors=True)
        return result

    def _head(self) -> dict[str, Any]:
        return {"campaign": self.name, "seed": self.seed, "commit": self.commit, "size": self.size}


def _write_lines(file: Path, lines: Sequence[Any]) -> None:
    part = file.with_name(f".{file.name}.partial")
    part.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    part.replace(file)
