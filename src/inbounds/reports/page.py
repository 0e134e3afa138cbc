"""Runs side by side on one page that needs nothing but a browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.reports.cases import View
from inbounds.reports.comparison import Result, classes_of
from inbounds.reports.curves import Line, box, ratio_chart, share_chart, size_chart
from inbounds.reports.pictures import Window, grey, outline, png, window
from inbounds.reports.preview import PALETTE
from inbounds.reports.provenance import provenance_of, settings_of
from inbounds.store.store import Store
from inbounds.writing import file_aside

COLOURS = 10
"""How many runs differ in colour; names are written everywhere, so that more can be shown too."""

Masks = Mapping[int, np.ndarray]
"""For each position in the store, a predicted mask `(H, W)` in the run's own classes 1, 2, ..."""


@dataclass(frozen=True)
class Tile:
    """One picture of a row: whose outlines (style and path) lie over the scan, and how well they fit."""

    title: str
    run: int | None
    outlines: list[tuple[str, str]]
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
        dsc=share_chart(Line(n, result.name, _curve(result, "dsc_volume", "")) for n, result in enumerate(results)),
        satisfied=share_chart(_satisfied_lines(enumerate(results)), percent=True),
        together=[_row(view, results, masks, store) for view in views if not view.klass],
        legend=[(klass, store.class_index(klass) % len(PALETTE)) for klass in classes],
        palette=PALETTE,
        agreement={result.name: list(_agreement(result)) for result in results},
        satisfied_share={result.name: satisfied_share(result) for result in results},
        settings={result.name: list(settings_of(result.run)) for result in results},
        provenance={result.name: list(provenance_of(result.run)) for result in results},
        total=sum,
    )


def _section(
    klass: str, results: Sequence[Result], views: Sequence[View], masks: Sequence[Masks], store: Store
) -> dict[str, Any]:
    """All figures of a class."""
    numbered = [(n, result) for n, result in enumerate(results) if klass in result.run.classes]
    metrics = {result.name: result.summaries.get(result.model, {}) for _, result in numbered}
    means = [(each.get("dsc_volume", {}).get(klass, {}).get("mean"), name) for name, each in metrics.items()]
    ratios, sizes = (
        [
            Line(n, result.name, _curve(result, f"{kind}_{metric}", klass), soft=kind == "soft")
            for n, result in numbered
            for kind in ("soft", "hard")
        ]
        for metric in ("size_over_true", "size")
    )
    return {
        "klass": klass,
        "ranked": sorted((mean, name) for mean, name in means if mean is not None),
        "dsc": share_chart(Line(n, result.name, _curve(result, "dsc_volume", klass)) for n, result in numbered),
        "ratios": ratio_chart(ratios),
        "sizes": size_chart([size for size, ratio in zip(sizes, ratios, strict=True) if not ratio.points]),
        "satisfied": share_chart(_satisfied_lines(numbered, klass), percent=True),
        "begun": any(result.kept for _, result in numbered),
        "boxes": [box(n, result.name, result.cases[klass]) for n, result in numbered if result.cases[klass]],
        "rows": [_row(view, results, masks, store) for view in views if view.klass == klass],
    }


def _curve(result: Result, metric: str, klass: str) -> list[tuple[float, float]]:
    rows = (row for row in result.curves if row.split == "validation")
    return [(row.epoch, row.value) for row in rows if row.metric == metric and row.klass == klass]


def _satisfied_lines(numbered: Iterable[tuple[int, Result]], klass: str = "") -> Iterator[Line]:
    """The share of images (or scans) whose bounds hold; of probabilities too for a class or a single constraint."""
    for n, result in numbered:
        names = {row.klass for row in result.curves if row.metric == "satisfied_soft"}
        soft = _curve(result, "satisfied_soft", *names) if len(names) == 1 else []
        hard = _curve(result, "satisfied", "")
        if klass and len(result.run.classes) > 1:
            soft, hard = (_curve(result, f"satisfied_class_{kind}", klass) for kind in ("soft", "hard"))
        yield Line(n, result.name, soft, soft=True)
        yield Line(n, result.name, hard)


def _agreement(result: Result) -> Iterator[tuple[str, list[Any]]]:
    """Of each class: labelled pixels, sizes of slices and volumes that agree, and the bounds that both keep to."""
    metrics, classes = result.summaries.get(result.model, {}), result.run.classes
    scopes = {
        one.scope: f"satisfied_hard_{name}"
        for name, one in result.run.settings.constraints.items()
        if one.statistic["name"] == "size"
    }
    for klass in ("background", *classes):
        whose = "" if (klass,) == classes else klass
        columns = [("label_agreement", klass), ("size_error", klass), (scopes.get("image", ""), whose)]
        columns += [("volume_error", klass), (scopes.get("volume", ""), whose)]
        entries = [metrics.get(metric, {}).get(key) for metric, key in columns]
        if metrics.keys() & {"label_agreement", "size_error", "volume_error"}:
            yield klass, entries


def satisfied_share(result: Result) -> float | None:
    """The share of bounds that the masks of a run's chosen network keep, over all its constraints."""
    metrics = result.summaries.get(result.model, {})
    entries = [metrics[metric][""] for metric in metrics if metric.startswith("satisfied_hard_")]
    counts = [(float(entry["mean"]), int(entry["n"] or 0)) for entry in entries if entry["mean"] is not None]
    return sum(mean * n for mean, n in counts) / sum(n for _, n in counts) if counts else None


def _row(view: View, results: Sequence[Result], masks: Sequence[Masks], store: Store) -> dict[str, Any]:
    """A scan, its truth, and each run's mask: of one class or of all."""
    values = {klass: store.class_index(klass) for klass in ([view.klass] if view.klass else classes_of(results))}
    truth = store.truth[view.position] if view.score is not None else np.zeros(store.shape, dtype=np.uint8)
    true = {klass: truth == value for klass, value in values.items()}
    rows, columns = part = window(np.any(list(true.values()), axis=0))

    def drawn(style: str, regions: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
        return [(f"{style} k{values[klass] % len(PALETTE)}", outline(region)) for klass, region in regions.items()]

    tiles = [Tile("scan", None, [], (f"slice {view.slice + 1} of {view.record.slices}",))]
    if view.score is not None:
        notes = (f"{int(true[view.klass].sum())} px",) if view.klass else ()
        tiles.append(Tile("truth", None, drawn("halo", true) + drawn("whole", true), notes))
    for n, (result, predicted) in enumerate(zip(results, masks, strict=True)):
        learned = {klass: k for k, klass in enumerate(result.run.classes, start=1) if klass in values}
        if not learned:
            continue
        if view.position not in predicted:
            tiles.append(Tile(result.name, n, [], ("no epoch finished yet",)))
            continue
        mask = {klass: predicted[view.position] == k for klass, k in learned.items()}
        outlines = drawn("halo", mask) + drawn("true", true) + drawn("mask", mask)
        tiles.append(Tile(result.name, n, outlines, _fit(view, result, mask, part)))
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
        "tiles": tiles,
    }


def _fit(view: View, result: Result, masks: Mapping[str, np.ndarray], part: Window) -> tuple[str, ...]:
    volumes = {klass: result.cases[klass].get(view.record.name, math.nan) for klass in masks}
    if not view.klass:
        texts = {k: f"{masks[k].sum()} px" if math.isnan(dsc) else f"{dsc:.2f}" for k, dsc in volumes.items()}
        return (", ".join(f"{klass} {text}".replace(" ", "\N{NO-BREAK SPACE}") for klass, text in texts.items()),)
    mask, volume = masks[view.klass], volumes[view.klass]
    in_slice = result.slices.get((view.klass, view.record.name, view.slice), math.nan)
    notes = [f"{name} {value:.2f}" for name, value in (("DSC", volume), ("slice", in_slice)) if not math.isnan(value)]
    beyond = int(mask.sum() - mask[part].sum())
    size = f"{beyond} px out of view" if beyond else "" if notes else f"{int(mask.sum())} px"
    return tuple(note for note in (", ".join(notes), size if mask.any() else "nothing found") if note)
