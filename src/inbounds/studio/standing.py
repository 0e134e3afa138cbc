"""How a training stands, for the page: epochs, curves, the newest masks, and a sentence."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from inbounds.runs.table import Row, read_rows
from inbounds.studio.job import last_words
from inbounds.studio.preview import FILE, Newest, read_newest

RUNNING = ("preparing", "training", "predicting")
IDLE: dict[str, Any] = {
    "state": "idle",
    "sentence": "",
    "number": 0,
    "epoch": 0,
    "epochs": 0,
    "curves": {},
    "commands": [],
    "words": [],
    "newest": None,
}


class Standing:
    """Looks into the folder of a training; what has not changed is not read again."""

    def __init__(self) -> None:
        self._measured: tuple[tuple[int, int], list[Row]] = (0, 0), []
        self._seen: tuple[tuple[Path, int] | None, Newest] = None, Newest()

    def of(self, folder: Path, about: dict[str, Any]) -> dict[str, Any]:
        """Epochs, curves, masks, and a sentence."""
        run, words, epochs = folder / "run", list(about["words"]), 0
        if (run / "run.json").is_file():
            made = json.loads((run / "run.json").read_text(encoding="utf-8"))
            words = [*made.get("plan", {}).get("words", []), *words]
            epochs = made["settings"]["training"].get("epochs") or made.get("epochs") or 0
        curves, epoch = self._curves_of(run / "metrics.csv")
        told: dict[str, Any] = {"epoch": epoch, "epochs": epochs, "curves": curves, "words": words}
        if about["state"] in RUNNING and (seen := self.seen(folder)).masks:
            told["newest"] = {"epoch": seen.epoch, "slices": seen.slices}
        if about["state"] == "training" and epochs:
            left = (time.time() - about["since"]) / epoch * (epochs - epoch) if epoch else about["minutes"] * 60
            told["sentence"] = f"epoch {min(epoch + 1, epochs)} of {epochs}, {_span(left)} left"
        elif about["state"] in RUNNING:
            log = folder / "log.txt"
            said = last_words(log) if log.is_file() else ""
            told["sentence"] = "" if said.startswith("$ ") else said
        elif about["state"] == "done":
            left, good = len(about["left_out"]), len(about["scans"].keys() - about["left_out"].keys())
            told["sentence"] = f"masks of {good} scans" + f"; {left} could not be read" * bool(left)
        return told

    def _curves_of(self, file: Path) -> tuple[dict[str, list[list[float | None]]], int]:
        """What was measured in each epoch; the sum of all parts is the loss."""
        if not file.is_file():
            return {}, 0
        stamp = file.stat().st_mtime_ns, file.stat().st_size
        if self._measured[0] != stamp:
            self._measured = stamp, read_rows(file, growing=True)
        curves: dict[str, dict[int, float]] = {"loss": {}}
        for row in self._measured[1]:
            if row.split == "train" and row.metric.startswith("loss_"):
                curves.setdefault(row.metric.removeprefix("loss_"), {})[row.epoch] = row.value
                curves["loss"][row.epoch] = curves["loss"].get(row.epoch, 0.0) + row.value
        told = {
            name: [[e, v if math.isfinite(v) else None] for e, v in sorted(each.items())]
            for name, each in curves.items()
        }
        return told, max(curves["loss"], default=0)

    def seen(self, folder: Path) -> Newest:
        """The newest masks, while it runs."""
        if not (folder / FILE).is_file():
            return Newest()
        stamp = folder / FILE, (folder / FILE).stat().st_mtime_ns
        if self._seen[0] != stamp:
            self._seen = stamp, read_newest(folder)
        return self._seen[1]


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
