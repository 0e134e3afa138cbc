"""Commands that are killed and repeated: in the end all must be as if nothing had happened."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

from inbounds.errors import BadInput
from torture import together
from torture.campaign import Campaign, Result
from torture.commands import COMMANDS, Killed
from torture.material import commit, copied
from torture.process import Place, faults, run
from torture.trees import Tree, differences, tree
from torture.watch import Stop

SIGNALS = (signal.SIGKILL,) * 3 + (signal.SIGTERM, signal.SIGINT)
MOMENTS = 4
"""One kill in so many comes at a random moment, the others at a change of a file."""
PAIRS = 6
"""One case in so many is two of the same command at once."""
LIMIT = 90.0
LOCK = ".*lock"
"""The names of lock files: one that a killed process leaves is harmless, and the next that needs it removes it."""


@dataclass(frozen=True)
class Undisturbed:
    """A command that nobody kills.

    Attributes:
        before: What lies there when it begins.
        after: What lies there in the end.
        changes: How often it changes files.
        seconds: How long it takes.
    """

    before: Tree
    after: Tree
    changes: int
    seconds: float


def undisturbed(material: Place, out: Path, name: str, place: Place) -> Undisturbed:
    """Run a command as it is, and again elsewhere: what differs then cannot be compared, and is a mistake here."""
    command, file = COMMANDS[name], out / "undisturbed" / f"{name}.json"
    found: list[Undisturbed] = []
    for root in (place, Place(place.root / "again")):
        copied(material, root, command.needs)
        before = tree(root.here, loose=command.loose)
        ended = run(command.words, root, limit=LIMIT)
        locks = [path.name for path in root.here.rglob(LOCK)]
        if ended.code or ended.notes or locks:
            raise BadInput(
                f"{name}: undisturbed, it ended with {ended.code}: {ended.err[-2000:]} {ended.notes} {locks}"
            )
        found.append(Undisturbed(before, tree(root.here, loose=command.loose), ended.changes, ended.seconds))
    if other := differences(found[0].after, found[1].after):
        raise BadInput(f"{name}: done twice, it is not the same: {'; '.join(other)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(found[0])), encoding="utf-8")
    return found[0]


def known(out: Path, name: str) -> Undisturbed:
    """What was found of it."""
    return Undisturbed(**json.loads((out / "undisturbed" / f"{name}.json").read_text(encoding="utf-8")))


def deck() -> list[str]:
    """The commands, each as often as its share, in a mixed order that is always the same."""
    cards = [name for name, command in COMMANDS.items() for _ in range(command.share)]
    random.Random(0).shuffle(cards)
    return cards


def case(campaign: Campaign, material: Place, number: int, place: Place) -> Result:
    """The case of a number: which command, killed when, by what, or met by another of its kind."""
    cards = deck()
    name = cards[number % len(cards)]
    command, whole, rng = COMMANDS[name], known(campaign.out, name), campaign.draw(number)
    copied(material, place, command.needs)
    if command.pair and rng.randrange(PAIRS) == 0:
        return together.case(number, name, command, whole.changes, rng, place, lambda: _as_ever(command, whole, place))
    return _killed(number, name, command, whole, _stop(cards, name, number, whole, rng), place)


def _stop(cards: list[str], name: str, number: int, whole: Undisturbed, rng: random.Random) -> Stop:
    """When to kill: one change after the other in a mixed order, so that none is left out for long."""
    sent = rng.choice(SIGNALS)
    several = name in ("train several", "train --folds")
    group = several and rng.random() < 0.5
    if several or not whole.changes or rng.randrange(MOMENTS) == 0:
        return Stop(sent, after=rng.uniform(0, 1.2 * whole.seconds), group=group)
    order = random.Random(name).sample(range(1, whole.changes + 1), whole.changes)
    place = number // len(cards) * cards.count(name) + cards[: number % len(cards)].count(name)
    return Stop(sent, order[place % len(order)], group=group)


def _killed(number: int, name: str, command: Killed, whole: Undisturbed, stop: Stop, place: Place) -> Result:
    first = run(command.words, place, stop, LIMIT)
    word = signal.Signals(stop.signal).name
    result = Result(number, name, f"{word} at {'a change' if stop.event else 'a moment'}")
    result.what = f"at change {stop.event} of {whole.changes}" if stop.event else f"after {stop.after:.3f} s"
    result.seconds, result.memory = first.seconds, first.memory
    result.outcome = "finished before" if first.code == 0 else "killed"
    expected = {0, -stop.signal, 128 + stop.signal}
    result.problems = faults(first, expected, "killed")
    if stop.signal == signal.SIGINT and first.code and not command.keeps:
        found = _tree(command, place)
        if found not in (whole.before, whole.after):
            nearer = min((differences(found, other) for other in (whole.before, whole.after)), key=len)
            result.problems += [f"after Ctrl-C, {line}" for line in nearer]
    result.problems += _repeated(command, whole, place)
    return result


def _repeated(command: Killed, whole: Undisturbed, place: Place) -> list[str]:
    """What is wrong when a command is typed again; it may say that all is there already, if it is."""
    again = run([*command.words, *command.again], place, limit=LIMIT)
    refused = again.code == 2 and "already" in again.err
    return faults(again, {2} if refused else {0}, "repeated") + _as_ever(command, whole, place)


def _as_ever(command: Killed, whole: Undisturbed, place: Place) -> list[str]:
    """What lies there that an undisturbed command does not leave, and what does not."""
    beside = [f"left behind in the temporary folder: {file.name}" for file in place.temporary.iterdir()]
    return differences(_tree(command, place), whole.after) + beside


def _tree(command: Killed, place: Place) -> Tree:
    found = tree(place.here, loose=command.loose)
    return {name: content for name, content in found.items() if not fnmatch(name.rpartition("/")[2], LOCK)}


def campaign(out: Path, material: Place, count: int, seed: int, jobs: int, only: Sequence[int] = ()) -> list[Result]:
    """So many cases, or some of them again; each command is first run undisturbed."""
    killed = Campaign("kills", out.resolve(), seed, jobs, commit(material))
    cards = deck()
    names = sorted({cards[number % len(cards)] for number in only or range(min(count, len(cards)))})

    def first(number: int, place: Place) -> Result:
        undisturbed(material, killed.out, names[number], place)
        return Result(number, names[number], "undisturbed")

    runs = Campaign("undisturbed", killed.out, seed, jobs).go(range(len(names)), first, keep=False)
    if any(result.problems for result in runs):
        return runs
    return killed.go(only or range(count), lambda number, place: case(killed, material, number, place), keep=not only)
