"""Settings and words on the command line that nobody should type, and somebody will."""

from __future__ import annotations

import random

from inbounds.config.read import keys
from inbounds.config.settings import Settings
from torture import mutate
from torture.bad import LONG, WORDS, Bad
from torture.material import TRAIN
from torture.process import Place

SETTINGS = WORDS["settings"]
DEEP = ("a = " + "[" * 5000, "[a" + ".a" * 3000 + "]", "x = '" + "y" * 10**6)
SLOW = ("training.epochs", "training.minutes", "training.repeats", "training.threads", "training.compile")
"""What may be set to take long, and does."""


def make(rng: random.Random, place: Place) -> Bad:
    """A training with settings that are wrong, or an option of any command that is."""
    way = rng.choice((_key, _key, _name, _text, _value, _value, _value))
    return way(rng, place)


def _train(extra: list[str], names: tuple[str, ...], what: str) -> Bad:
    few = ["--set", "training.epochs=1", "--set", "training.slices=4"]
    return Bad([*TRAIN, "--run", "made", *few, *extra], names, what, codes=(0, 1, 2), limit=60.0)


def _key(rng: random.Random, _: Place) -> Bad:
    """One setting that is something else."""
    key = rng.choice([key for key in (*keys(Settings), *SETTINGS["keys"]) if key not in SLOW])
    text = f"{key}={rng.choice(SETTINGS['values'])}"
    return _train(["--set", text], (key, "--set", "settings", "training", "not finite"), text)


def _name(rng: random.Random, _: Place) -> Bad:
    """A thing by a name that there is not, or that is code of somebody's."""
    key = rng.choice(("network.name", "constraints.size.statistic", "constraints.size.penalty", "regularisers.x.term"))
    name = rng.choice([*SETTINGS["names"], *LONG])
    names = (key, name.partition(":")[0][:20] or "''", "settings")
    return _train(["--set", f"{key}={name!r}"], names, f"{key} is {name[:40]!r}")


def _text(rng: random.Random, place: Place) -> Bad:
    """A file of settings."""
    file = place.here / "settings.toml"
    text = rng.choice([*SETTINGS["texts"], *DEEP])
    file.write_text(text, encoding="utf-8")
    what = repr(text[:60])
    if rng.randrange(3) == 0:
        what = rng.choice((mutate.file_of, mutate.kind_of))(rng, file)
    return _train(["--config", "settings.toml"], ("settings.toml", "recipe"), what)


def _value(rng: random.Random, _: Place) -> Bad:
    """An option that says something else; the last one counts where an option is given twice."""
    command = rng.choice(list(WORDS["options"]))
    about = WORDS["options"][command]
    option, said = rng.choice(about["tried"]), rng.choice([*WORDS["said"], *LONG, "é\udcff"])
    words = [*(TRAIN if command == "train" else about["words"]), *about["usual"], option, said]
    # A bad value is named with its option, or as what it was taken for.
    names = (option, option.strip("-"), said.strip() or "''", *said.split(","), *words[1:3], "Invalid")
    codes = (0, 1, 2) if command in ("train", "predict") else (0, 2)
    return Bad(words, names, f"{option} {said[:40]!r}", codes)
