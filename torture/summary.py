"""What campaigns found, in a page of JSON: counts, the slowest and the largest, and every failure with its repeat."""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from torture.campaign import Result
from torture.process import Place

MOST = 5


@dataclass(frozen=True)
class Accepted:
    """What may be found and is no fault: patterns, and the reason."""

    campaign: str
    command: str
    kind: str
    problem: str
    reason: str

    def covers(self, campaign: str, result: Result, problem: str) -> bool:
        """Whether a problem of a case is such a one."""
        pairs = ((campaign, self.campaign), (result.command, self.command), (result.kind, self.kind))
        return all(fnmatchcase(text, pattern) for text, pattern in (*pairs, (problem, self.problem)))


def accepted() -> list[Accepted]:
    """All that is written down in `accepted.toml`."""
    content = tomllib.loads(Path(__file__).with_name("accepted.toml").read_text(encoding="utf-8"))
    return [Accepted(**entry) for entry in content.get("accepted", [])]


def failures(campaign: str, results: Iterable[Result], known: Sequence[Accepted]) -> list[tuple[Result, list[str]]]:
    """The cases with problems that are not accepted."""
    found = []
    for result in results:
        left = [each for each in result.problems if not any(one.covers(campaign, result, each) for one in known)]
        if left:
            found.append((result, left))
    return found


def summarise(
    found: Mapping[str, Sequence[Result]], material: Place, *, seed: int, jobs: int, seconds: float
) -> dict[str, Any]:
    """The whole page.

    Args:
        found: The results of each campaign.
        material: Its run tells of versions and of the machine.
        seed: Of all that was drawn.
        jobs: How many cases ran at once.
        seconds: How long it all took.
    """
    about, known = json.loads((material.here / "run" / "run.json").read_text(encoding="utf-8")), accepted()
    processor = about["machine"]["processor"]
    machine = {"system": platform.platform(), "processor": processor, "cores": os.cpu_count(), "memory_gb": _memory()}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": about["commit"],
        "versions": about["versions"],
        "machine": machine,
        "seed": seed,
        "jobs": jobs,
        "seconds": round(seconds),
        "failures": sum(len(failures(name, results, known)) for name, results in found.items()),
        "campaigns": {name: _campaign(name, results, known, seed) for name, results in found.items()},
    }


def _campaign(name: str, results: Sequence[Result], known: Sequence[Accepted], seed: int) -> dict[str, Any]:
    counts: dict[str, dict[str, Counter[str]]] = {}
    for result in results:
        counts.setdefault(result.command, {}).setdefault(result.kind, Counter())[result.outcome] += 1
    slowest = sorted(results, key=lambda result: -result.seconds)[:MOST]
    largest = sorted(results, key=lambda result: -result.memory)[:MOST]
    lived = [(one, sum(one.covers(name, r, each) for r in results for each in r.problems)) for one in known]
    return {
        "cases": len(results),
        "counts": {command: dict(sorted(kinds.items())) for command, kinds in sorted(counts.items())},
        "slowest": [{**_named(result), "seconds": result.seconds} for result in slowest],
        "largest": [{**_named(result), "mb": result.memory} for result in largest],
        "accepted": [
            {"command": one.command, "kind": one.kind, "problem": one.problem, "reason": one.reason, "cases": count}
            for one, count in lived
            if count
        ],
        "failures": [
            {**_named(result), "problems": left, "repeat": repeat(name, result.number, seed)}
            for result, left in failures(name, results, known)
        ],
    }


def repeat(campaign: str, number: int, seed: int) -> str:
    """What does a case again, alone."""
    only = "" if campaign == "load" else f" --seed {seed} --only {number}"
    return f"python -m torture {campaign}{only}"


def _named(result: Result) -> dict[str, Any]:
    return {"number": result.number, "command": result.command, "kind": result.kind, "what": result.what}


def _memory() -> float | None:
    if "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
