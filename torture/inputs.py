"""Broken inputs: each is refused in a sentence that names it, or lived with; nothing worse, and nothing is left."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture import bad_archives, bad_scans, bad_settings, bad_stores, bad_tables
from torture.bad import Bad
from torture.campaign import Campaign, Result
from torture.material import commit, copied
from torture.process import Ended, Place, faults, run
from torture.trees import differences, tree

MEMORY = 500.0
"""MB by which a command may grow over its bad input: ten times what it takes for the good ones."""


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        make: Spoils something at a place, and says what is typed then.
        needs: Which of the material that takes.
        share: How many of the cases are its own, beside the others.
    """

    make: Callable[[random.Random, Place], Bad]
    needs: tuple[str, ...]
    share: int


KINDS = {
    "scans": Kind(bad_scans.make, ("formats", "store", "run"), 6),
    "tables": Kind(bad_tables.make, ("hearts", "bare"), 4),
    "settings": Kind(bad_settings.make, ("hearts", "store", "full", "run"), 4),
    "stores": Kind(bad_stores.make, ("hearts", "store", "full"), 4),
    "runs": Kind(bad_stores.make_run, ("hearts", "store", "run", "half"), 4),
    "archives": Kind(bad_archives.make, ("acdc.zip",), 3),
}


def case(campaign: Campaign, material: Place, number: int, place: Place) -> Result:
    """The case of a number: an input of one kind, spoilt, and the command that reads it."""
    cards = [name for name, kind in KINDS.items() for _ in range(kind.share)]
    name, rng = cards[number % len(cards)], campaign.draw(number)
    copied(material, place, KINDS[name].needs)
    bad = KINDS[name].make(rng, place)
    before = tree(place.here)
    ended = run(bad.words, place, limit=bad.limit)
    words = [str(word) for word in bad.words]
    result = Result(number, " ".join(words[: 1 + (words[0] == "prepare")]), name, bad.what)
    result.seconds, result.memory = ended.seconds, ended.memory
    result.outcome = {0: "accepted", 1: "failed in part", 2: "refused"}.get(ended.code, "broke")
    result.problems = faults(ended, set(bad.codes), "with it") + _wrong(ended, bad)
    if ended.code == 2:
        result.problems += [f"refused, {line}" for line in differences(tree(place.here), before)]
    if (place.here / "imported").exists():
        result.problems.append("code of the input was run")
    result.problems += [f"left behind in the temporary folder: {file.name}" for file in place.temporary.iterdir()]
    return result


def _wrong(ended: Ended, bad: Bad) -> list[str]:
    """What is wrong with a refusal, or with going on."""
    wrong = []
    said = ended.err + (ended.out if ended.code == 1 else "")
    # A folder that may name a patient is told when it is asked for.
    if ended.code in (1, 2) and not any(name and name in said for name in (*bad.names, "--folder-names")):
        wrong.append(f"what it says names none of {', '.join(map(repr, bad.names[:3]))}: {_last(said)}")
    if ended.code == 0 and bad.seen:
        wrong.append("nobody noticed")
    if ended.memory > MEMORY:
        wrong.append(f"it took {ended.memory:.0f} MB")
    return wrong


def _last(said: str) -> str:
    return (said.strip().splitlines() or ["nothing"])[-1][:300]


def campaign(out: Path, material: Place, count: int, seed: int, jobs: int, only: Sequence[int] = ()) -> list[Result]:
    """So many cases, or some of them again."""
    fed = Campaign("inputs", out.resolve(), seed, jobs, commit(material))
    return fed.go(only or range(count), lambda number, place: case(fed, material, number, place), keep=not only)
