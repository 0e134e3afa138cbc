"""Parsers fed with what mutation and coverage find: they may say that a file is bad, and nothing else may happen.

What an input makes a parser do for the first time makes it worth going on from. By itself this looks at the lines that
run; where Atheris is installed, `--atheris` gives the choice of inputs to it and to libFuzzer.
"""

from __future__ import annotations

import importlib
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import inbounds
from inbounds.errors import BadInput
from torture import mutate
from torture.campaign import Campaign, Result
from torture.material import commit
from torture.parsers import PARSERS, Parser, Read
from torture.process import Place

SLOW = 5
"""Seconds that a parser has for a file, which is small."""
ROUNDS = (1, 1, 1, 2, 4, 16)
"""How often an input is spoilt before it is tried."""
MOST = 200
"""Inputs that are kept to go on from."""
LARGEST = 2**16
"""Bytes of an input: what a parser does with more it does with these as well."""
Edge = tuple[CodeType, int]


class TooSlow(Exception):  # noqa: N818 (it names what happened)
    """A parser took too long."""


class Coverage:
    """The lines of the package that have run so far."""

    def __init__(self) -> None:
        self.seen: set[Edge] = set()
        self.new = 0
        self.root = str(Path(inbounds.__file__).parent)
        self.ours: dict[CodeType, bool] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at what runs meanwhile."""
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _: Any) -> Any:
        code = frame.f_code
        if code not in self.ours:
            self.ours[code] = code.co_filename.startswith(self.root)
        return self._line if self.ours[code] else None

    def _line(self, frame: FrameType, _event: str, _: Any) -> Any:
        edge = frame.f_code, frame.f_lineno
        if edge not in self.seen:
            self.seen.add(edge)
            self.new += 1
        return self._line


class Trial:
    """A parser, and what it did that it should not.

    Args:
        parser: Which.
        material: Where its good files are.
        folder: Where it reads, and where inputs are kept that found something.
    """

    def __init__(self, parser: Parser, material: Path, folder: Path) -> None:
        if parser.beside:
            beside = material / parser.beside
            copy = shutil.copytree if beside.is_dir() else shutil.copy
            copy(beside, folder / "0001" if beside.is_dir() else _made(folder / "0001"))
        self.file = _made(folder / "0001") / parser.name  # checkpoints are called so
        self.folder = folder
        self.seeds = [(material / seed).read_bytes() for seed in parser.seeds]
        self.read: Read = parser.make(material)
        self.found: dict[str, Path] = {}
        signal.signal(signal.SIGALRM, _late)

    def __call__(self, content: bytes, coverage: Coverage | None = None) -> None:
        """Read some bytes. What is not a `BadInput` is written down, the same thing once."""
        self.file.write_bytes(content)
        signal.setitimer(signal.ITIMER_REAL, SLOW)
        try:
            if coverage is None:
                self.read(self.file)
            else:
                with coverage.watched():
                    self.read(self.file)
        except BadInput:
            pass
        except Exception as error:
            self._found(error, content)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _found(self, error: Exception, content: bytes) -> None:
        root = Path(inbounds.__file__).parents[1]
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(root)]
        where = f"{Path(frames[-1].filename).relative_to(root)}:{frames[-1].lineno}" if frames else "elsewhere"
        key = f"{type(error).__name__} at {where}: {str(error)[:120]}"
        if not any(known.partition(":")[0] == key.partition(":")[0] for known in self.found):
            target = self.folder / f"found-{len(self.found)}-{self.file.name}"
            target.write_bytes(content)
            self.found[key] = target


def case(campaign: Campaign, material: Place, inputs: int, number: int, place: Place) -> Result:
    """So many inputs for one parser."""
    name = list(PARSERS)[number]
    rng, coverage = campaign.draw(number), Coverage()
    begun = time.monotonic()
    trial = Trial(PARSERS[name], material.here, place.root)
    corpus = list(trial.seeds)
    for content in trial.seeds:
        trial(content, coverage)
    first = len(coverage.seen)
    for _ in range(inputs):
        content = rng.choice(corpus)
        for _ in range(rng.choice(ROUNDS)):
            content, _what = mutate.bytes_of(rng, content, region=rng.choice((0, 64, 400)))
        coverage.new = 0
        trial(content[:LARGEST], coverage)
        if coverage.new and len(corpus) < MOST:
            corpus.append(content[:LARGEST])
    result = Result(number, name, "fuzzed", f"{inputs:,} inputs")
    result.outcome = f"{first} lines of the package at first, {len(coverage.seen)} in the end"
    result.problems = [f"{key}; the input is {file}" for key, file in trial.found.items()]
    result.seconds = round(time.monotonic() - begun, 1)
    return result


def by_atheris(material: Place, name: str, seconds: int, folder: Path) -> None:
    """One parser in the hands of Atheris, which ends this process."""
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        raise BadInput("Atheris is not installed: pip install atheris") from None
    shutil.rmtree(folder, ignore_errors=True)
    trial = Trial(PARSERS[name], material.here, folder)
    for number, content in enumerate(trial.seeds):
        (_made(folder / "corpus") / str(number)).write_bytes(content)
    for module in [module for key, module in sys.modules.items() if key.startswith("inbounds.")]:
        for each in vars(module).values():
            if callable(each) and getattr(each, "__module__", "") == module.__name__ and hasattr(each, "__code__"):
                atheris.instrument_func(each)

    def one(content: bytes) -> None:
        known = len(trial.found)
        trial(content)
        for key in list(trial.found)[known:]:
            print(f"{name}: {key}; the input is {trial.found[key]}", flush=True)

    words = [f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-verbosity=0", "-rss_limit_mb=4000"]
    atheris.Setup(["torture", *words, str(folder / "corpus")], one)
    atheris.Fuzz()


def campaign(out: Path, material: Place, inputs: int, seed: int, jobs: int, only: Sequence[int] = ()) -> list[Result]:
    """So many inputs for each parser, or for some of them again."""
    fuzzed = Campaign("fuzz", out.resolve(), seed, jobs, commit(material), inputs)
    numbers = only or range(len(PARSERS))
    return fuzzed.go(numbers, lambda number, place: case(fuzzed, material, inputs, number, place), keep=not only)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _late(*_: Any) -> None:
    raise TooSlow
