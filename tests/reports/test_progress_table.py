"""What is shown while runs go on."""

from __future__ import annotations

import io
import math
from pathlib import Path

from rich.console import Console

from inbounds.reports.progress_table import Screen
from inbounds.training.loop import Progress

FULL, TAGS = Path("runs/a/full/seed-0"), Path("runs/a/tags/seed-0")


def progress(step: int, *, size: float | None = None) -> Progress:
    terms = {"labels": 0.0123} | ({} if size is None else {"size": size})
    found = {"dsc_volume": 0.8125} | ({} if size is None else {"satisfied": 0.4})
    return Progress(17, 200, step, 1446, 5e-4, terms, found, 754.0)


def shown(width: int, *, terminal: bool) -> str:
    out = io.StringIO()
    with Screen(Console(file=out, force_terminal=terminal, width=width, color_system=None)) as screen:
        screen.show(FULL, progress(1446))
        screen.show(TAGS, progress(700, size=0.0567))
        if terminal:
            screen.live.refresh()
    return out.getvalue()


def test_one_table_for_all_runs_on_a_terminal() -> None:
    for width in (80, 110):
        head, full, tags = shown(width, terminal=True).split("run ")[-1].splitlines()[:3]
        assert head.split() == ["epoch", "step", "lr", "left", "labels", "size", "DSC", "satisfied"]
        assert full.split()[0] == "full/seed-0"
        assert tags.split()[-9:] == ["17/200", "700/1446", "0.0005", "13", "min", "0.0123", "0.0567", "0.812", "40%"]


def test_a_line_an_epoch_elsewhere() -> None:
    (line,) = shown(40, terminal=False).splitlines()
    assert line == (
        "runs/a/full/seed-0: epoch 17/200, step 1446/1446, lr 0.0005, left 13 min, labels 0.0123, DSC 0.812"
    )


def test_before_the_first_step_nobody_knows_how_long_it_takes() -> None:
    out = io.StringIO()
    with Screen(Console(file=out, force_terminal=True, width=110, color_system=None)) as screen:
        screen.show(FULL, Progress(1, 200, 0, 1446, 5e-4, {}, {}, math.inf))
        screen.live.refresh()
    assert out.getvalue().split("run ")[-1].splitlines()[1].split()[-4:] == ["1/200", "0/1446", "0.0005", "?"]
