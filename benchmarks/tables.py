"""Tables of a benchmark, and the pages that show its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput

Lines = list[list[str]]
Points = list[tuple[int, float]]
Times = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By what they were measured on, by batch and by supervision."""
MARKED = re.compile(r"(<!-- bench:([\w+/-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)

TITLES = {
    "steps": "a training step; over partial cross-entropy",
    "steps-compiled": "a training step, compiled; over partial cross-entropy",
    "networks": "a training step with a direct penalty, of the paper's networks and batches",
    "method": "a step of the default method, part by part",
    "modes": "a training step; over the same as it is written",
    "many": "runs side by side, per run and step; over one alone",
    "epoch": "an epoch; over its steps alone",
    "comparison": "an epoch of the paper's nine supervisions side by side",
    "memory": "an epoch of a short run, and its memory",
    "plain": "a training step; over a plain loop",
    "growth": "the steps of an epoch",
    "devices": "an epoch of processes of one thread each, validation and checkpoint included; over that of one",
    "streamed": "a step, caches dropped before each epoch; over data in memory",
    "patches": "a step on volumes, by the size of a patch; over the same without an estimate of the rest",
    "predict": "some scans from files to masks; over the forward passes that this takes",
    "scans": "the memory that a large scan takes",
    "studio": "how soon the studio shows what it is asked for",
}
COLUMNS = {
    "ms": "median (ms)",
    "spread": "quartiles (ms)",
    "ratio": "ratio",
    "images_per_second": "images/s",
    "images": "images",
    "steps_per_second": "steps/s",
    "scans_per_second": "scans/s",
    "share": "of the rate of its forward passes",
    "read": "read from the disk, of all slices",
    "refresh": "looking at scans again, of an epoch",
    "outside": "outside steps",
    "minutes": "200 epochs (min)",
    "ms_per_image": "ms per image",
    "peak_mb": "peak (MB)",
    "early_mb": "early (MB)",
    "late_mb": "at the end (MB)",
    "above_mb": "above its imports (MB)",
}
CONSTRAINTS = ("penalty_1", "penalty_2", "size_centroid", "size_centroid_intensity")


def paper_times() -> Times:
    """Times of a training step in ms, of the paper and of its authors' code on another GPU."""
    content = json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
    times: Times = content["timing"]
    return times


def section_lines(section: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, Lines]:
    """The title of a section, and its table; the first line is the head."""
    mine = [row for row in rows if row["section"] == section]
    shown = [key for key in COLUMNS if any(_cell(row, key) for row in mine)]
    head = ["", "batch", *(COLUMNS[key] for key in shown)]
    named = ([row.get("label") or row["name"], str(row["batch"])] for row in mine)
    lines = [[*name, *(_cell(row, key) for key in shown)] for name, row in zip(named, mine, strict=True)]
    return TITLES[section], [head, *lines]


def timing_lines(benches: Sequence[Mapping[str, Any]], theirs: Times, batch: int = 1) -> Lines:
    """Others' times of a step and ours, and how they grow from partial cross-entropy."""
    others = {name: times[str(batch)] for name, times in theirs.items() if str(batch) in times}
    ours = {bench["device"]: found for bench in benches if (found := _by_name(bench, "steps", batch))}
    heads = (text for name in (*others, *ours) for text in (f"{name} (ms)", "ratio"))
    lines = [[f"a training step, batch {batch}", *heads]]
    for name in dict.fromkeys(name for rows in ours.values() for name in rows):
        label = next(rows[name]["label"] for rows in ours.values() if name in rows)
        known = [
            {"ms": times[name], "ratio": times[name] / times["partial"]} if name in times else {}
            for times in others.values()
        ]
        measured = [rows.get(name, {}) for rows in ours.values()]
        lines.append([label, *(_cell(one, key) for one in (*known, *measured) for key in ("ms", "ratio"))])
    return lines


def constraint_lines(benches: Sequence[Mapping[str, Any]]) -> Lines:
    """What constraints add to a step, over partial cross-entropy."""
    ours = [(bench["device"], batch, _by_name(bench, "steps", batch)) for bench in benches for batch in (1, 8)]
    ours = [one for one in ours if one[2]]
    lines = [["over partial cross-entropy", *(f"{device}, batch {batch}" for device, batch, _ in ours)]]
    for name in CONSTRAINTS:
        measured = [rows[name] for _, _, rows in ours if name in rows]
        if measured:
            lines.append([measured[0]["label"], *(_cell(rows.get(name, {}), "ratio") for _, _, rows in ours)])
    return lines


def filled(text: str, benches: Mapping[str, Mapping[str, Any]], theirs: Times) -> str:
    """A page with everything between `<!-- bench:... -->` and `<!-- end -->` as the benchmarks have it.

    Marks are `FILE/SECTION` for a table, `FILE/SECTION/NAME/BATCH` for a time and with `/KEY` for another number; and
    `timing` (at batch 1; `timing/8`) and `constraints`, tables over all files.

    Args:
        text: Of the page, in Markdown.
        benches: By name what `python -m benchmarks --json` wrote.
        theirs: The paper's times in ms.
    """

    def between(mark: re.Match[str]) -> str:
        start, wanted, _, end = mark.groups()
        file, *parts = wanted.split("/")
        if len(parts) > 1:
            section, name, batch, *key = parts
            row = _by_name(benches.get(file, {"rows": []}), section, int(batch)).get(name, {})
            return f"{start}{_cell(row, key[0] if key else 'ms') or 'not measured'}{end}"
        if file == "timing":
            lines = timing_lines(list(benches.values()), theirs, *map(int, parts))
        elif wanted == "constraints":
            lines = constraint_lines(list(benches.values()))
        else:
            lines = section_lines(parts[0], benches[file]["rows"])[1] if file in benches else []
        return f"{start}\n\n{markdown(lines) if len(lines) > 1 else 'Not measured yet.'}\n\n{end}"

    return MARKED.sub(between, text)


def _by_name(bench: Mapping[str, Any], section: str, batch: int) -> dict[str, Mapping[str, Any]]:
    return {row["name"]: row for row in bench["rows"] if (row["section"], row["batch"]) == (section, batch)}


def _cell(row: Mapping[str, Any], key: str) -> str:
    if key == "spread" and row:
        return f"{_short(row['low'])} to {_short(row['high'])}"
    value = row.get(key)
    if value is None:
        return ""
    if key == "ratio":
        return f"{value:.3f}"
    return f"{value:.1%}" if key in ("outside", "share") else _short(value)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or isinstance(value, int) else f"{value:.2f}"


def markdown(lines: Lines) -> str:
    """A table whose first line is the head."""
    head, *others = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *others])


def read_benches(folder: Path) -> dict[str, dict[str, Any]]:
    """By name, the files that `python -m benchmarks --json` wrote into a folder."""
    return {file.stem: _read(file) for file in sorted(folder.glob("*.json"))}


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        [(row["section"], row["name"], row["batch"], row["ms"]) for row in content["rows"]]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: not a benchmark ({error!r}); measure again with `python -m benchmarks`") from None
    return content


def growth(bench: Mapping[str, Any]) -> tuple[Points, Points]:
    """Seconds of an epoch's steps by images, at the largest batch; and ms per image by batch, for the same images."""
    rows = [row for row in bench["rows"] if row["section"] == "growth"]
    largest = max((row["batch"] for row in rows), default=0)
    images = sorted((row["images"], row["ms"] / 1000) for row in rows if row["batch"] == largest)
    middle = images[len(images) // 2][0] if images else 0
    return images, sorted((row["batch"], row["ms_per_image"]) for row in rows if row["images"] == middle)
