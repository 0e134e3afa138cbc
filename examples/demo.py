"""What a few labelled pixels and a rough size are worth: five networks in a few minutes, without a download.

Generated hearts, a disc of labelled pixels in each slice, and one network for each level of supervision. All of it is
done by commands that are printed as they run, so that each can be typed by hand for other data. Run it with
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

RECIPES = ("partial", "tags", "common", "individual", "full")
CONFIG = Path(__file__).with_name("demo.toml")
WEIGHT = 0.8
"""Of the bounds: sixteen times the authors' 0.05, for images with a sixteenth of their pixels. A size that is off by
the same share of the image then costs the same."""
FITTED = "phantom001"
"""The patient whose sizes give `common` its range; the others have no use for it."""
COLUMNS = ("recipe", "DSC per volume", "bounds satisfied", "pixels labelled")
MARKED = "what is marked"
TOLD, TRUE = "#ff9f1c", "#3ddc97"


def main(words: Sequence[str] | None = None) -> None:
    """Prepare, annotate, train, compare."""
    parser = argparse.ArgumentParser(description="Five levels of supervision on generated hearts.")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="the folder that everything goes to")
    parser.add_argument("--patients", type=int, default=160, help="how many hearts, two scans each")
    parser.add_argument("--seed", type=int, default=0, help="of the networks")
    parser.add_argument("--epochs", type=int, help="if not as many as in demo.toml")
    chosen = parser.parse_args(words)
    out, seed, begun = chosen.out, chosen.seed, time.monotonic()
    start_over_if_changed(
        out, {"patients": chosen.patients, "epochs": chosen.epochs, "settings": CONFIG.read_text(encoding="utf-8")}
    )

    store = out / "hearts"
    config = CONFIG.relative_to(Path.cwd()) if CONFIG.is_relative_to(Path.cwd()) else CONFIG
    if not store.exists():
        command("prepare", "phantom", store, "--patients", chosen.patients, "--side", 64)
    if not (store / "annotations" / "disc").exists():
        command("annotate", store, "--strategy", "disc", "--classes", "LV", "--name", "disc")
    options = ["--store", store, "--annotation", "disc", "--classes", "LV", "--config", config]
    options += ["--set", f"training.epochs={chosen.epochs}"] if chosen.epochs else []
    options += ["--seeds", seed, "--run", out / "runs", "--resume"]
    command("train", "full,partial", *options)
    weak = ["--set", f"weight={WEIGHT}", "--set", f"constraints.size.bounds.patient={FITTED}"]
    command("train", "tags,common,individual", *options, *weak)
    runs = [out / "runs" / recipe / f"seed-{seed}" for recipe in RECIPES]
    command("report", *runs, "--out", out)
    compare(runs, out)
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes. More in {out / 'index.html'}, a page for the browser.")


def start_over_if_changed(out: Path, choices: dict[str, Any]) -> None:
    """Remove what an earlier demo left that was called with other choices."""
    file = out / "demo.json"
    if file.exists() and json.loads(file.read_text(encoding="utf-8")) != choices:
        for folder in ("hearts", "runs"):
            shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(choices), encoding="utf-8")


def command(*words: Any) -> None:
    """Run `inbounds` in this process, and show how it was called."""
    from inbounds.cli import app

    line = [str(word) for word in words]
    print(f"\n$ inbounds {shlex.join(line)}", flush=True)
    app(line, standalone_mode=False)


def compare(paths: Sequence[Path], out: Path) -> None:
    """A table, on the terminal and as `demo.csv`, and a picture, `demo.png`."""
    from rich.console import Console
    from rich.table import Table

    from inbounds.evaluation.evaluate import predict_slices
    from inbounds.reports.cases import choose
    from inbounds.reports.comparison import read_results
    from inbounds.reports.page import satisfied_share
    from inbounds.runs.run import Run

    runs = [Run.open(path) for path in paths]
    results = read_results(runs, "validation")
    rows, table = [], Table(*COLUMNS, "what was known")
    for recipe, result in zip(RECIPES, results, strict=True):
        score = result.summaries[result.model]["dsc_volume"]["LV"]["mean"]
        share = satisfied_share(result)
        row = (recipe, f"{score:.3f}", "" if share is None else f"{share:.0%}", f"{100 * result.labelled:.3g}%")
        table.add_row(*row, ", ".join(result.known))
        rows.append(row)
    print()
    Console().print(table)
    with (out / "demo.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *rows])

    views = choose(results, "validation")
    places = [view.position for view in views]
    store = runs[0].opened_store()
    marked = store.label("disc")
    masks = {MARKED: {place: marked[place] == store.class_index("LV") for place in places}}
    for (recipe, score, *_), run in zip(rows, runs, strict=True):
        masks[f"{recipe}: {score}"] = {place: mask == 1 for place, mask in predict_slices(run, places).items()}
    draw(store, views, masks, out / "demo.png")


def draw(store: Any, views: Sequence[Any], masks: dict[str, dict[int, Any]], file: Path) -> None:
    """A scan a row: a slice with its label, then with what each network finds in it. Dashed: the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (2 * len(masks) + 0.2, 2 * len(views) + 0.4)
    figure, axes = plt.subplots(len(views), len(masks), figsize=size, squeeze=False, layout="constrained")
    for view, row in zip(views, axes, strict=True):
        truth = store.truth[view.position] == store.class_index("LV")
        for axis, (name, mask) in zip(row, masks.items(), strict=True):
            axis.imshow(store.images[view.position, 0], cmap="gray", interpolation="bicubic")
            if mask[view.position].any():
                axis.contourf(
                    mask[view.position], levels=[0.5, 1.5], colors=[TOLD], alpha=0.9 if name == MARKED else 0.5
                )
            axis.contour(truth, levels=[0.5], colors=[TRUE], linewidths=1.5, linestyles="dashed")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        row[0].set_ylabel(f"{view.rank} scan", fontsize=11)
    for axis, name in zip(axes[0], masks, strict=True):
        axis.set_title(name, fontsize=11)
    figure.savefig(file, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning, module="monai")
    main()
