"""What is kept of a run for good: one small JSON file with where it came from and what it measured epoch by epoch.

Tables and figures are made from these files alone; runs and weights may be gone.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from inbounds.errors import BadInput
from inbounds.runs.run import Run
from inbounds.runs.table import Row, read_rows
from inbounds.writing import file_aside
from reproduction.experiment import experiment, presets

KEPT = (
    *("dsc_slice", "dsc_volume", "soft_size_over_true", "hard_size_over_true", "precision", "recall"),
    *("satisfied", "satisfied_soft", "violations"),
)
"""Of each epoch's validation; of training, every loss."""

BEGUN = "begun"
"""A file in a run's folder, written when its training began; `run.json` changes once more when it ends."""

Protocol = Literal["best", "last"]
COLUMNS = (
    *("experiment", "preset", "row", "seed", "protocol", "epoch", "metric", "value"),
    *("data", "commit", "hardware", "seconds"),
)


@dataclass(frozen=True)
class Collected:
    """One run's file.

    Attributes:
        file: Where it lies.
        about: All of it but the curves.
        curves: By metric, a value for each epoch.
    """

    file: Path
    about: dict[str, Any]
    curves: dict[str, list[float]]

    @property
    def row(self) -> str:
        """Of the experiment's table."""
        return str(self.about["row"])

    @property
    def key(self) -> tuple[str, str]:
        """The experiment and the preset."""
        return str(self.about["experiment"]), str(self.about["preset"])

    @property
    def finished(self) -> bool:
        """Whether every epoch is there."""
        return len(self.curves["epoch"]) >= int(self.about["epochs"])

    def at(self, protocol: Protocol) -> int:
        """The place of an epoch: the first with the best DSC per slice on the validation scans, or the last one."""
        scores = self.curves["dsc_slice"]
        if protocol == "last":
            return len(scores) - 1
        return max(range(len(scores)), key=lambda n: (-math.inf if math.isnan(scores[n]) else scores[n], -n))

    def value(self, metric: str, protocol: Protocol) -> float:
        """What was measured at that epoch."""
        return self.curves[metric][self.at(protocol)]

    @property
    def hardware(self) -> str:
        """What it was trained on."""
        return str(self.about.get("hardware") or "hardware not known")


def collect(run: Run, origin: Mapping[str, Any], file: Path) -> None:
    """Write what is to be kept of a run, as far as it went.

    Args:
        run: The run; nothing is written before its first epoch is finished.
        origin: What the run itself does not know: experiment, preset, row.
        file: Where to.
    """
    measured = run.path / "metrics.csv"
    rows = read_rows(measured, growing=True)
    if not rows:
        return
    ended, begun = measured.stat().st_mtime, (run.path / BEGUN, run.path / "run.json")
    about = run.about
    content = {
        **origin,
        "seed": run.seed,
        "epochs": run.settings.training.epochs,
        "known": about["known"],
        "settings": run.settings.model_dump(),
        **({"plan": about["plan"]} if "plan" in about else {}),
        "classes": run.classes,
        "data": about["data"],
        "preparation": about["preparation"],
        "annotation": about["annotation"],
        "commit": about["commit"],
        "versions": about["versions"],
        "hardware": about["machine"].get("device") or f"CPU ({about['machine']['processor']})",
        "ended": datetime.fromtimestamp(ended, UTC).isoformat(timespec="seconds"),
        "seconds": round(ended - next(file for file in begun if file.is_file()).stat().st_mtime, 1),
    }
    write(file, content, curves_of(rows))


def curves_of(rows: Iterable[Row]) -> dict[str, list[float]]:
    """By metric, its values from epoch to epoch; five digits of them are plenty.

    A class has its name behind the metric's only where there are several.
    """
    wanted = [row for row in rows if row.metric in KEPT or row.metric.startswith("loss_")]
    epochs = sorted({row.epoch for row in wanted})
    names = {row.klass for row in wanted if row.metric == "hard_size_over_true"}
    series: dict[str, dict[int, float]] = {}
    for row in wanted:
        several = row.klass in names and len(names) > 1
        series.setdefault(f"{row.metric}/{row.klass}" if several else row.metric, {})[row.epoch] = row.value
    lines = {name: [float(f"{values.get(epoch, math.nan):.5g}") for epoch in epochs] for name, values in series.items()}
    return {"epoch": [float(epoch) for epoch in epochs], **lines}


def write(file: Path, content: Mapping[str, Any], curves: Mapping[str, Sequence[float]]) -> None:
    """Write a run's file: a line for each entry and each curve, so that a change is easy to see."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()]
    drawn = [f"  {json.dumps(name)}: {json.dumps(_plain(name, values))}" for name, values in curves.items()]
    lines.append(' "curves": {\n' + ",\n".join(drawn) + "\n }")
    with file_aside(file) as part:
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _plain(name: str, values: Sequence[float]) -> list[float | int | None]:
    return [int(v) if name == "epoch" else None if not math.isfinite(v) else v for v in values]


def read_all(root: Path) -> list[Collected]:
    """Every run's file below a folder, whatever the folders in between."""
    return [_read(file) for file in sorted(root.glob("**/seed-*.json"))]


def _read(file: Path) -> Collected:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        curves = {
            name: [math.nan if value is None else float(value) for value in values]
            for name, values in about.pop("curves").items()
        }
        missing = [key for key in ("experiment", "preset", "row", "seed", "epochs") if key not in about]
        missing += [name for name in ("epoch", "dsc_slice", "dsc_volume") if not curves.get(name)]
        if missing:
            raise KeyError(missing[0])
        return Collected(file, about, curves)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{file}: not the results of a run ({error!r}); collect them again, or remove it") from None


def write_table(file: Path, collected: Iterable[Collected]) -> None:
    """The numbers of all runs as one long table, one a line."""
    with file_aside(file) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        protocols: tuple[Protocol, Protocol] = ("best", "last")
        for run in collected:
            data = (run.about.get("data") or {}).get("checksums", {}).get("images.npy", "")
            origin = (data, run.about.get("commit") or "", run.hardware, run.about.get("seconds") or "")
            for protocol in protocols:
                epoch = int(run.value("epoch", protocol))
                for metric in run.curves:
                    if metric != "epoch":
                        number = (*run.key, run.row, run.about["seed"], protocol, epoch, metric)
                        writer.writerow((*number, run.value(metric, protocol), *origin))


def rows_of(name: str, preset: str, collected: Sequence[Collected]) -> dict[str, list[Collected]]:
    """For each row of a table its runs: its own or, where it has none, those of the row it is the same as."""
    by_row: dict[tuple[str, str], list[Collected]] = {}
    for run in collected:
        if run.key[1] == preset:
            by_row.setdefault((run.key[0], run.row), []).append(run)
    return {
        row: by_row.get((name, row)) or by_row.get(tuple(about.same_as.split("/")), [])  # type: ignore[arg-type]
        for row, about in experiment(name).rows.items()
    }


def counts(preset: str) -> Protocol:
    """The epoch whose result counts under a preset: the last one where it plans, else the best, as in the paper."""
    return "last" if preset in presets() and presets()[preset].plan else "best"


def presets_of(name: str, collected: Sequence[Collected]) -> list[str]:
    """The presets under which an experiment was run, in the order of the file of presets; others behind them."""
    there = {run.key[1] for run in collected if run.key[0] == name}
    return [*(preset for preset in presets() if preset in there), *sorted(there - set(presets()))]
