"""What parts are worth: on a few generated hearts, and from numbers alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import archives
from inbounds.errors import BadInput
from inbounds.jobs import training
from inbounds.runs.run import Run
from inbounds.sources import phantom
from inbounds.store.annotate import simulate
from inbounds.store.prepare import FITS, Plan, prepare
from inbounds.store.store import Store
from making import train_here
from reproduction.experiment import experiment, settings_of
from reproduction.knowledge import facts_of, labels_of, planned
from reproduction.pages import rebuild, rewrite
from reproduction.parts import COLUMNS, WHOLE, ablation, read_lines, table
from reproduction.split import held_out

SMALL = ["network.name=unet", "network.settings={width=2,levels=2}", "training.epochs=1", "training.slices=8"]
SMALL += ["training.device=cpu", "training.precision='32'"]
SET = [word for change in SMALL for word in ("--set", change)]
done, refused = (partial(by, program="reproduction.__main__") for by in (archives.done, archives.refused))


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "train_many", train_here)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Six patients, of whom one validates and the fifth of the others is to be held out."""
    scans = phantom.sources(6, side=48)
    last = scans[-1].patient
    scans = [replace(one, split="validation" if one.patient == last else "train") for one in scans]
    made = prepare(
        scans, tmp_path_factory.mktemp("data") / "six", Plan("six", phantom.CLASSES, (48, 48), FITS["none"], "none")
    ).store
    simulate(made, "scribble", "scribble", [1, 2, 3], background=True)
    return made


def line(part: str, row: str, seed: int, dsc: float) -> dict[str, str]:
    known = dict.fromkeys(COLUMNS, "x") | {"epochs": "40", "data": "acdc", "hardware": "H1", "commit": "0123456789abc"}
    return {**known, "part": part, "row": row, "seed": str(seed), "dsc": str(dsc)}


def test_every_part_is_one_of_the_plan_in_each_of_its_rows(store: Store, tmp_path: Path) -> None:
    """What it changes is there to be changed: among the regularisers and bounds that a plan has for these labels."""
    about, split = ablation(), held_out(store, tmp_path / "split")
    for row, (name, _, origin) in ((row, path.partition("/")) for row, path in about.rows.items()):
        labels, facts = (ask(split, experiment(name), origin, print) for ask in (labels_of, facts_of))
        assert labels is not None
        layer = planned(experiment(name), origin, "default", split, labels, facts, []).settings
        for part in about.parts.values():
            if row in part.rows:
                each = [
                    settings_of(experiment(name), origin, "default", split, changes, layer).model_dump()
                    for changes in ([], part.changes)
                ]
                assert len([key for key in each[0] if each[0][key] != each[1][key]]) == 1, part
    assert all(set(part.rows) <= set(about.rows) and part.rows for part in about.parts.values())


def test_parts_are_trained_and_told(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["ablation", "--store", store.path, "--out", out, *SET, "--rows", "scribbles_sizes,individual"]
    done(*words, "--parts", "whole,no-border")
    runs = {str(file.parent.relative_to(out / "runs")) for file in out.glob("runs/*/*/*/run.json")}
    assert runs == {"scribbles_sizes/whole/seed-0", "individual/whole/seed-0", "individual/no-border/seed-0"}
    removed, kept = (Run.open(out / "runs" / "individual" / part / "seed-0") for part in ("no-border", WHOLE))
    assert set(kept.settings.regularisers) - set(removed.settings.regularisers) == {"border"}
    assert kept.classes == ("LV",)
    assert {record.split for record in kept.opened_store().records} == {"train", "validation", "test"}
    with (out / "results" / "results.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 3
    assert {one["changed"] for one in lines if one["part"] == "no-border"} == {
        "; ".join(["regularisers.border=false", *SMALL])
    }
    assert {(one["epochs"], one["data"]) for one in lines} == {("1", "six, every fifth training patient held out")}
    assert [one["classes"].count(";") for one in lines if one["row"] == "scribbles_sizes"] == [2]
    before = {file: file.stat().st_mtime_ns for file in out.glob("runs/*/*/*/checkpoints/*")}
    done(*words[:-1], "individual", "--parts", "whole,no-initial-share", "--resume")
    assert {file: file.stat().st_mtime_ns for file in before} == before
    text = (out / "results" / "table.md").read_text(encoding="utf-8")
    first = [one.split(" | ")[0] for one in text.splitlines() if one.startswith("| ")]
    assert first[-3:] == ["| the whole method", "| no border term", "| no start with little foreground"]
    (out / "results" / "table.md").unlink()
    done("ablation", "--out", out)
    assert (out / "results" / "table.md").read_text(encoding="utf-8") == text


def test_what_is_not_known_is_refused_before_anything_is_written(store: Store, tmp_path: Path) -> None:
    words = ["--store", store.path, "--out", tmp_path / "out"]
    for name, more, saying in (
        ("ablation", ["--parts", "no-initial"], ["no part 'no-initial'", "no-initial-share"]),
        ("ablation", ["--rows", "tag"], ["no row 'tag'", "tags"]),
        ("ablation", ["--set", "training.epoch=1"], ["unknown setting 'training.epoch'"]),
        ("heart", ["--parts", "whole"], ["--parts whole", "leave it out"]),
    ):
        refused(name, *words, *more, saying=saying, folder=tmp_path)
    refused("ablation", "--out", tmp_path / "out", saying=["neither a run nor a result"], folder=tmp_path)


def test_differences_are_paired_by_seed() -> None:
    """Seeds differ by 0.1, and a part takes 0.01 and 0.03: of the third seed there is no whole."""
    lines = [line(WHOLE, "tags", seed, dsc) for seed, dsc in ((0, 0.7), (1, 0.8))]
    lines += [line("no-initial-share", "tags", seed, dsc) for seed, dsc in ((0, 0.69), (1, 0.77), (2, 0.7))]
    lines += [line("quadratic", "individual", 0, 0.9)]
    head, _, *rows = table(lines).splitlines()[:5]
    assert head == "|  | tags | individual |"
    assert rows == [
        "| the whole method | 0.750 |  |",
        "| no start with little foreground | 0.720 (-0.020 ± 0.014) |  |",
        "| quadratic penalty in place of the hinge |  | 0.900 |",
    ]
    assert "Seeds 0, 1, 2; 40 epochs; data: acdc; H1; commit 0123456789." in table(lines)


def test_pages_show_it_when_it_was_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- results:ablation -->\nold\n<!-- end -->\n")
    assert rewrite(page, tmp_path, []) == "<!-- results:ablation -->\n\nNot run yet.\n\n<!-- end -->\n"
    lines: Sequence[dict[str, str]] = [line(WHOLE, "tags", 0, 0.7)]
    (tmp_path / "ablation").mkdir()
    with (tmp_path / "ablation" / "results.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(lines)
    assert page in rebuild(tmp_path, [page])
    assert (tmp_path / "ablation" / "table.md").read_text(encoding="utf-8") in page.read_text(encoding="utf-8")
    (tmp_path / "ablation" / "results.csv").write_text("row,part\ntags,whole\n")
    with pytest.raises(BadInput, match=r"results.csv: not the results of an ablation"):
        read_lines(tmp_path / "ablation" / "results.csv")
