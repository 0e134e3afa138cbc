"""Tables for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def store_tables(content: dict[str, Any]) -> None:
    """What `summary` says of a store, for people."""
    console = Console()
    low, high = (content["spacing_mm"][end] for end in ("smallest", "largest"))
    about = Table(title=f"{content['name']} ({content['path']})", show_header=False, title_justify="left")
    about.add_row(
        "scans", f"{content['scans']} of {content['patients']} patients, {content['scans_with_truth']} with truth"
    )
    size = "x".join(str(side) for side in content["shape"])
    about.add_row("slices", f"{content['slices']} of {size}, {content['channels']} channel(s), {content['dtype']}")
    pixel = f", a pixel is {content['source']['pixel']:g} mm" if "pixel" in content["source"] else ""
    about.add_row("fit", f"{content['source'].get('fit')}{pixel}; {content['truth_pixels_lost']} truth pixels lost")
    if "window" in content["source"]:
        about.add_row("brightness", "{:g} to {:g}".format(*content["source"]["window"]))
    ends = zip(low, high, strict=True)
    spans = (f"{a:.3g}" if abs(b - a) < 1e-6 else f"{a:.3g} to {b:.3g}" for a, b in ends)
    about.add_row("spacing (mm)", " x ".join(spans) + " (slice, row, column)")
    for split, counts in content["split"].items():
        about.add_row(split, ", ".join(f"{n} {what}" for what, n in counts.items()))
    about.add_row("facts", ", ".join(content["facts"]) or "none")
    console.print(about)
    if content["sizes"]:
        sizes = Table("class", "slices", "smallest", "5 %", "median", "95 %", "99 %", "largest", title="size in pixels")
        for name, row in content["sizes"].items():
            sizes.add_row(
                name, *(f"{row[k]:.0f}" for k in ("slices", "smallest", "p5", "median", "p95", "p99", "largest"))
            )
        console.print(sizes)
    marks = Table("annotation", "strategy", "of all pixels", *content["classes"], title="labelled share")
    for name, row in content["annotations"].items():
        by_class = row["labelled_share_by_class"]
        shares = (f"{by_class[k]:.4%}" if k in by_class else "" for k in content["classes"])
        marks.add_row(name, row["strategy"], f"{row['labelled_share']:.4%}", *shares)
    console.print(marks)


def evaluation_table(summary: dict[str, Any]) -> None:
    """The means of an evaluation, for people."""
    title = f"{summary['run']}: {summary['split']}, model {summary['model']} (epoch {summary['epoch']})"
    table = Table(
        "metric", "class", "mean", "std", "median", "n", "not defined", title=title, title_justify="left", box=None
    )
    for metric, by_class in summary["metrics"].items():
        for klass, row in by_class.items():
            cells = ("" if row[k] is None else f"{row[k]:.4g}" for k in ("mean", "std", "median"))
            table.add_row(metric, klass, *cells, str(row["n"]), str(row["n_nan"] or ""))
    Console().print(table)
