"""What five clicks and a rough size are worth: two networks in a few minutes, without a download.

Generated hearts as a person would have them: scans, five clicks on every third slice, sizes that are off by up to 15 %,
and no contour anywhere. One network learns from the clicks, one from clicks and sizes; both segment new scans. All of
it is done by commands that are printed as they run, so that each can be typed by hand for other data. Run it with
`python examples/demo.py --out out/demo`; stopped and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import shutil
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {"partial": "clicks alone", "known": "clicks and rough sizes"}
"""The recipes, and what they are called here; `known` is what `inbounds train` does by itself."""
COLUMNS = ("learnt from", "DSC of new scans", "RV", "MYO", "LV")
COLOURS = ("#3b4cff", "#ffb000", "#dc267f")
"""Of the classes: told apart by people who do not see all colours."""
BACKGROUND = "#ffffff"


def main(words: Sequence[str] | None = None) -> None:
    """Write a folder of scans, prepare, annotate, train, predict, compare."""
    parser = argparse.ArgumentParser(description="Clicks alone, or clicks and rough sizes, on generated hearts.")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="the folder that everything goes to")
    parser.add_argument("--patients", type=int, default=40, help="how many hearts, two scans each; a quarter is new")
    parser.add_argument("--minutes", type=float, default=2, help="for training")
    parser.add_argument("--epochs", type=int, help="instead of as many as fit the time")
    chosen = parser.parse_args(words)
    out, begun = chosen.out, time.monotonic()
    start_over_if_changed(out, {key: value for key, value in vars(chosen).items() if key != "out"})

    folder, store, runs = out / "hearts", out / "store", out / "runs"
    if not folder.exists():
        command("example", folder, "--patients", chosen.patients, "--side", 64)
    if not store.exists():
        command("prepare", "folder", folder / "scans", store, "--classes", "background,RV,MYO,LV")
    if not (store / "annotations" / "clicks").exists():
        command("annotate", store, "--points", folder / "clicks.csv", "--name", "clicks")
    if not (store / "facts" / "sizes.csv").exists():
        command("facts", store, "--import", folder / "sizes.csv", "--name", "sizes")
    length = ["--set", f"training.epochs={chosen.epochs}"] if chosen.epochs else ["--minutes", chosen.minutes]
    options = ["--annotation", "clicks", "--facts", "sizes", *length, "--set", "training.threads=1", "--resume"]
    command("train", ",".join(NAMES), "--store", store, "--run", runs, *options)
    for recipe in NAMES:
        if not (out / recipe).exists():
            command("predict", runs / recipe / "seed-0", folder / "new", "--out", out / recipe)
    command("report", *(runs / recipe / "seed-0" for recipe in NAMES), "--out", out)
    compare(out, folder)
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes. More in {out / 'index.html'}, a page for the browser.")


def start_over_if_changed(out: Path, choices: dict[str, Any]) -> None:
    """Remove what an earlier demo left that was called with other choices."""
    file = out / "demo.json"
    if file.exists() and json.loads(file.read_text(encoding="utf-8")) != choices:
        for folder in ("hearts", "store", "runs", *NAMES):
            shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(choices), encoding="utf-8")


def command(*words: Any) -> None:
    """Run `inbounds` in this process, and show how it was called."""
    from inbounds.cli import app

    line = [str(word) for word in words]
    print(f"\n$ inbounds {shlex.join(line)}", flush=True)
    app(line, standalone_mode=False)


def compare(out: Path, folder: Path) -> None:
    """A table, on the terminal and as `demo.csv`, and a picture, `demo.png`."""
    from rich.console import Console
    from rich.table import Table

    from inbounds.scans.scan import read, read_labels

    files = sorted((folder / "truth").iterdir())
    truth = [read_labels(file).array for file in files]
    masks = {recipe: [read_labels(out / recipe / file.name).array for file in files] for recipe in NAMES}
    scores = {recipe: np.array([dsc(*pair) for pair in zip(masks[recipe], truth, strict=True)]) for recipe in NAMES}
    table, rows = Table(*COLUMNS), []
    for recipe, name in NAMES.items():
        classes = np.nanmean(scores[recipe], axis=0)
        rows.append((name, *(f"{value:.3f}" for value in (classes.mean(), *classes))))
        table.add_row(*rows[-1])
    print()
    Console().print(table)
    with (out / "demo.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *rows])

    order = np.argsort(-np.nanmean(scores["known"], axis=1))
    views = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
    shown = []
    for rank, scan in views.items():
        at = int((truth[scan] > 0).sum(axis=(1, 2)).argmax())
        image = read(folder / "new" / files[scan].name).array[at]
        shown.append((rank, image, truth[scan][at], [masks[recipe][scan][at] for recipe in NAMES]))
    titles = [f"{row[0]}: {row[1]}" for row in rows]
    draw(clicked(folder), shown, titles, out / "demo.png")


def dsc(mask: Any, truth: Any) -> list[float]:
    """The overlap of each class; NaN where it is neither there nor found."""
    pairs = [(mask == value, truth == value) for value in range(1, len(COLOURS) + 1)]
    return [2 * float((a & b).sum()) / float(a.sum() + b.sum()) if (a | b).any() else float("nan") for a, b in pairs]


def clicked(folder: Path) -> list[tuple[Any, list[tuple[float, float, str]]]]:
    """Three slices that were clicked: the image, and row, column and colour of each click."""
    from inbounds.scans.scan import read

    colours = dict(zip(("background", "RV", "MYO", "LV"), (BACKGROUND, *COLOURS), strict=True))
    with (folder / "clicks.csv").open(encoding="utf-8") as stream:
        clicks = list(csv.DictReader(stream))
    places = sorted({(c["case"], int(c["slice"])) for c in clicks if c["class"] == "LV"})
    slices = []
    for case, at in places[:: max(1, len(places) // 3)][:3]:
        points = [
            (float(c["row"]), float(c["column"]), colours[c["class"]])
            for c in clicks
            if (c["case"], int(c["slice"])) == (case, at)
        ]
        slices.append((read(folder / "scans" / f"{case}.nii.gz").array[at], points))
    return slices


def draw(given: Sequence[Any], shown: Sequence[Any], titles: Sequence[str], file: Path) -> None:
    """On the left what a person gave; then new scans, a row each, with what the networks find. Dashed: the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    columns = 1 + len(titles)
    figure, axes = plt.subplots(len(shown), columns, figsize=(2.6 * columns, 2.6 * len(shown) + 0.3), squeeze=False)
    for row, (image, points) in zip(axes, given, strict=False):
        row[0].imshow(image, cmap="gray", interpolation="bicubic")
        for y, x, colour in points:
            row[0].plot(x, y, "o", markersize=7, color=colour, markeredgecolor="black", markeredgewidth=0.8)
    for row, (rank, image, truth, masks) in zip(axes, shown, strict=True):
        for axis, mask in zip(row[1:], masks, strict=True):
            axis.imshow(image, cmap="gray", interpolation="bicubic")
            found = np.ma.masked_equal(mask, 0)
            axis.imshow(found, cmap=ListedColormap(COLOURS), vmin=1, vmax=len(COLOURS), alpha=0.45)
            for value, colour in enumerate(COLOURS, start=1):
                if (truth == value).any():
                    axis.contour(truth == value, levels=[0.5], colors=[colour], linewidths=1.6, linestyles="dashed")
        row[1].set_ylabel(f"{rank} new scan", fontsize=11)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    axes[0, 0].set_title("given: five clicks\non every third slice", fontsize=11)
    for axis, title in zip(axes[0, 1:], titles, strict=True):
        axis.set_title(title.replace(": ", "\nmean DSC of new scans "), fontsize=11)
    figure.tight_layout()
    figure.savefig(file, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning, module="monai")
    main()
