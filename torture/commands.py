"""The commands that are killed, and pairs of them that meet: a new command joins by a line here."""

from __future__ import annotations

from dataclasses import dataclass

from torture.material import CLASSES, SIDE, TRAIN


@dataclass(frozen=True)
class Killed:
    """A command, and how it is repeated.

    Attributes:
        words: What is typed.
        needs: Which of the material it reads or changes.
        again: What is typed after them when it is repeated.
        share: How many of the cases are its own, beside the others.
        loose: Patterns of the files it writes whose names and content hold times.
        keeps: A Ctrl-C leaves what is finished, on purpose.
        pair: Two of it at once are tried as well.
    """

    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    share: int = 4
    loose: tuple[str, ...] = ()
    keeps: bool = False
    pair: bool = True


BOARD = ("*/tensorboard/*",)
"""Event files, which have the time in their name and in each of their entries."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _train(extra: str, *, half: bool = False, share: int = 6, pair: bool = True) -> Killed:
    needs = ("store", "half") if half else ("store",)
    resume = () if "--resume" in extra else ("--resume",)
    return Killed((*TRAIN, *extra.split()), needs, resume, share, BOARD, keeps=True, pair=pair)


COMMANDS = {
    "example": Killed(_words(f"example made --patients 4 --side {SIDE}")),
    "prepare folder": Killed(_words("prepare folder flat made"), ("flat",)),
    "prepare formats": Killed(_words(f"prepare folder hearts/scans made --classes {CLASSES}"), ("hearts",), share=2),
    "prepare archive": Killed(_words("prepare acdc acdc.zip made --side 32"), ("acdc.zip",)),
    "prepare phantom": Killed(_words(f"prepare phantom made --patients 2 --side {SIDE}"), share=2),
    "prepare add": Killed(_words("prepare add hearts/new store"), ("hearts", "store"), share=6),
    "annotate points": Killed(_words("annotate bare --name clicks --points hearts/clicks.csv"), ("bare", "hearts")),
    "annotate simulated": Killed(_words("annotate full --name box --strategy box"), ("full",)),
    "facts import": Killed(_words("facts bare --name sizes --import hearts/sizes.csv"), ("bare", "hearts")),
    "facts export": Killed(_words("facts store --name sizes --export table.csv"), ("store",), share=2),
    "facts template": Killed(_words("facts bare --template table.csv"), ("bare",), share=2),
    "preview": Killed(_words("preview full --out picture.png"), ("full",), share=2),
    "verify": Killed(_words("verify full"), ("full",), share=1, pair=False),
    "train": _train("--run made"),
    "train --resume": _train("--run half --resume", half=True),
    "train several": _train("partial --seeds 0,1 --run made", share=1, pair=False),
    "train --folds": _train("--folds 2 --run made", share=1, pair=False),
    "predict": Killed(
        _words("predict run hearts/new --out made"), ("run", "store", "hearts"), ("--overwrite",), 6, keeps=True
    ),
    "predict probabilities": Killed(
        _words("predict run hearts/new --out made --probabilities --no-doubt"),
        *(("run", "store", "hearts"), ("--overwrite",), 2),
        keeps=True,
    ),
    "evaluate": Killed(_words("evaluate run"), ("run", "store")),
    "report": Killed(_words("report run --out made"), ("run", "store"), keeps=True),
    "export": Killed(_words("export run --onnx made.onnx"), ("run", "store"), share=2),
}
