"""Runs side by side on one page that needs nothing but a browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.reports.cases import View
from inbounds.reports.comparison import Result, classes_of
from inbounds.reports.curves import Line, box, ratio_chart, share_chart
from inbounds.reports.pictures import grey, outline, png, window
from inbounds.reports.provenance import provenance_of, settings_of
from inbounds.store.store import Store
from inbounds.writing import file_aside

COLOURS = 10
"""How many runs differ in colour; names are written everywhere, so that more can be shown too."""

Masks = Mapping[int, np.ndarray]
"""For each position in the store, a predicted mask `(H, W)` in the run's own classes 1, 2, ..."""


@dataclass(frozen=True)
class Tile:
    """One picture of a row: whose outline lies over the scan, and how well it fits."""

    title: str
    run: int | None
    outline: str
    notes: tuple[str, ...]


def write_page(
    out: Path, results: Sequence[Result], views: Sequence[View], masks: Sequence[Masks], split: str, title: str = ""
) -> Path:
    """Write `index.html` into a folder: aside, then renamed.

    Args:
        out: The folder.
        results: The runs, in the order in which they are shown.
        views: The slices to look at.
        masks: Of each run, its predictions for these slices; empty for a run that has none yet.
        split: What the runs were evaluated on.
        title: A heading, if not the data's name.
    """
    file = out / "index.html"
    text = render(results, views, masks, split, title)
    with file_aside(file) as part:
        part.write_text(text, encoding="utf-8")
    return file


def render(
    results: Sequence[Result], views: Sequence[View], masks: Sequence[Masks], split: str, title: str = ""
) -> str:
    """The page as text. The same files give the same page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    rooms = PackageLoader("inbounds", "reports")
    pages = Environment(loader=rooms, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.tests["number"] = lambda value: value is not None and math.isfinite(value)
    pages.filters["breakable"] = lambda name: Markup(re.sub(r"([/_.-])", r"\1<wbr>", str(escape(name))))
    store = results[0].run.opened_store()
    records = [record for record in store.records if record.split == split]
    classes = classes_of(results)
    return pages.get_template("page.html.j2").render(
        title=title or f"{store.name}: {', '.join(classes)}",
        data=store.name,
        split=split,
        scans=len(records),
        patients=len({record.patient for record in records}),
        slices=sum(record.slices for record in records),
        truth=any(record.truth for record in records),
        results=results,
        chosen="best" if all(result.model == "best" for result in results if result.kept) else "chosen",
        colours=COLOURS,
        sections=[_section(klass, results, views, masks, store) for klass in classes],
        satisfied=share_chart(_satisfied_lines(results), percent=True),
        satisfied_share={result.name: satisfied_share(result, split) for result in results},
        settings={result.name: list(settings_of(result.run)) for result in results},
        provenance={result.name: list(provenance_of(result.run)) for result in results},
        total=sum,
    )


def _section(
    klass: str, results: Sequence[Result], views: Sequence[View], masks: Sequence[Masks], store: Store
) -> dict[str, Any]:
    """All figures of a class."""
    numbered = [(n, result) for n, result in enumerate(results) if klass in result.run.classes]
    means = [(_mean(result, "dsc_volume", klass), result.name) for _, result in numbered]
    sizes = [
        Line(n, result.name, _curve(result, f"{kind}_size_over_true", klass), soft=kind == "soft")
        for n, result in numbered
        for kind in ("soft", "hard")
    ]
    return {
        "klass": klass,
        "ranked": sorted((mean, name) for mean, name in means if mean is not None),
        "dsc": share_chart(Line(n, result.name, _curve(result, "dsc_volume", klass)) for n, result in numbered),
        "sizes": ratio_chart(sizes),
        "boxes": [box(n, result.name, result.cases[klass]) for n, result in numbered if result.cases[klass]],
        "rows": [_row(view, results, masks, store) for view in views if view.klass == klass],
    }


def _mean(result: Result, metric: str, klass: str) -> float | None:
    return result.summaries.get(result.model, {}).get(metric, {}).get(klass, {}).get("mean")


def _curve(result: Result, metric: str, klass: str) -> list[tuple[float, float]]:
    rows = (row for row in result.curves if row.split == "validation")
    return [(row.epoch, row.value) for row in rows if row.metric == metric and row.klass == klass]


def _satisfied_lines(results: Sequence[Result]) -> Iterator[Line]:
    """The share of images (or scans) whose bounds hold; of probabilities too where there is a single constraint."""
    for n, result in enumerate(results):
        names = {row.klass for row in result.curves if row.metric == "satisfied_soft"}
        if len(names) == 1:
            yield Line(n, result.name, _curve(result, "satisfied_soft", *names), soft=True)
        yield Line(n, result.name, _curve(result, "satisfied", ""))


def satisfied_share(result: Result, split: str) -> float | None:
    """The share of bounds that the masks of a run's chosen network keep, over all its constraints."""
    metrics = result.summaries.get(result.model, {})
    entries = [metrics[metric][""] for metric in metrics if metric.startswith("satisfied_hard_")]
    counts = [(float(entry["mean"]), int(entry["n"] or 0)) for entry in entries if entry["mean"] is not None]
    if counts:
        return sum(mean * n for mean, n in counts) / sum(n for _, n in counts)
    if split != "validation":
        return None
    epoch = result.kept.get(result.model)
    return next((value for number, value in _curve(result, "satisfied", "") if number == epoch), None)


def _row(view: View, results: Sequence[Result], masks: Sequence[Masks], store: Store) -> dict[str, Any]:
    """A scan, its truth, and each run's mask."""
    value = store.class_index(view.klass)
    truth = store.truth[view.position] == value if view.score is not None else np.zeros(store.shape, dtype=bool)
    rows, columns = part = window(truth)
    tiles = [Tile("scan", None, "", (f"slice {view.slice + 1} of {view.record.slices}",))]
    if view.score is not None:
        tiles.append(Tile("truth", None, outline(truth), (f"{int(truth.sum())} px",)))
    for n, (result, predicted) in enumerate(zip(results, masks, strict=True)):
        if view.klass not in result.run.classes:
            continue
        if view.position not in predicted:
            tiles.append(Tile(result.name, n, "", ("no epoch finished yet",)))
            continue
        mask = predicted[view.position] == result.run.classes.index(view.klass) + 1
        tiles.append(Tile(result.name, n, outline(mask), _fit(view, result, mask, mask[part])))
    _, height, width = view.record.spacing
    scale = view.record.fit.scale
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    return {
        "view": view,
        "image": png(grey(store.images[view.position, 0][part])),
        "top": rows.start,
        "left": columns.start,
        "height": shape[0],
        "width": shape[1],
        "aspect": shape[1] * width / scale[1] / (shape[0] * height / scale[0]),
        "truth": outline(truth),
        "tiles": tiles,
    }


def _fit(view: View, result: Result, mask: np.ndarray, seen: np.ndarray) -> tuple[str, ...]:
    volume = result.cases[view.klass].get(view.record.name, math.nan)
    in_slice = result.slices.get((view.klass, view.record.name, view.slice), math.nan)
    notes = [f"{name} {value:.2f}" for name, value in (("DSC", volume), ("slice", in_slice)) if not math.isnan(value)]
    beyond = int(mask.sum() - seen.sum())
    size = f"{beyond} px out of view" if beyond else "" if notes else f"{int(mask.sum())} px"
    return tuple(note for note in (", ".join(notes), size if mask.any() else "nothing found") if note)
