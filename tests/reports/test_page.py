"""The page about runs: what the files hold is what it says, and it needs nothing but itself."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from archives import done, refused
from inbounds.config import read_settings
from inbounds.evaluation.evaluate import predict_slices
from inbounds.reports.cases import choose, choose_for_page
from inbounds.reports.comparison import Result, read_results, unmeasured
from inbounds.reports.curves import Line, box, epochs, path, ratio_chart, share_chart, shorten, size_chart, spread
from inbounds.reports.page import render, satisfied_share
from inbounds.reports.pictures import grey, outline, png, window
from inbounds.reports.preview import PALETTE
from inbounds.runs.checkpoint import kept_epochs
from inbounds.runs.run import Run
from inbounds.runs.table import read_rows
from inbounds.sources import phantom as hearts
from inbounds.store.annotate import simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store
from inbounds.training.loop import Trainer
from processes import another
from training_runs import blind

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

SMALL = [
    "network.name=monai:UNet",
    "network.settings={spatial_dims=2,channels=[4,8],strides=[2]}",
    "training.batch=8",
    "training.device=cpu",
    "training.lr=0.01",
]
NAMES = ("full", "tags", "common-bounds-with-a-name-that-is-rather-long", "begun")
NONE = "\N{EN DASH}"
VOID = {"meta", "br", "wbr"}


class Page(HTMLParser):
    """What a reader of the page finds: balanced tags, values with their text, everything it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.values: list[tuple[float, str]] = []
        self.references: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self.values.append((float(told["value"] or ""), ""))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.references += [told[name] or "" for name in ("src", "href", "srcset", "action") if name in told]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            assert "url(" not in data
            assert "@import" not in data
            return
        self.words.append(data)
        if self.open and self.open[-1] == "data":
            self.values[-1] = (self.values[-1][0], data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.words)


def made(path: Path, patients: int = 8, side: int = 48) -> Store:
    plan = Plan("tiny", hearts.CLASSES, (side, side), GridWindow.pad, "none")
    store = prepare(hearts.sources(patients, side=side), path, plan).store
    simulate(store, "disc", "disc", [1, 2, 3], background=True)
    return store


def started(path: Path, store: Store, recipe: str, classes: Sequence[str], *changes: str) -> Run:
    settings = read_settings(recipe, None, [*SMALL, "training.epochs=3", *changes])
    return Run.create(path, settings, store, annotation=None if recipe == "full" else "disc", classes=classes)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return made(tmp_path_factory.mktemp("data") / "hearts")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, store: Store) -> list[Run]:
    """Two classes in full, one with tags, two with a common range, and one that has not finished an epoch."""
    root = tmp_path_factory.mktemp("runs")
    chosen = (("full", ["LV", "RV"]), ("tags", ["LV"]), ("common", ["RV", "LV"]), ("tags", ["LV"]))
    found = [started(root / name, store, *told) for name, told in zip(NAMES, chosen, strict=True)]
    for run in found[:-1]:
        torch.manual_seed(0)
        Trainer(run).fit()
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, runs: list[Run]) -> Path:
    out = tmp_path_factory.mktemp("page")
    done("report", *(run.path for run in runs), "--out", out / "wall", "--title", "Hearts & <bounds>")
    assert [file.name for file in (out / "wall").iterdir()] == ["index.html"]
    return out / "wall" / "index.html"


@pytest.fixture(scope="module")
def page(written: Path) -> Page:
    return Page(written.read_text(encoding="utf-8"))


def test_every_number_of_the_evaluations_is_on_the_page(page: Page, runs: list[Run]) -> None:
    shown = dict(page.values)
    for run in runs[:-1]:
        for model in ("best", "last"):
            summary = json.loads(
                (run.path / "evaluation" / f"validation-{model}" / "summary.json").read_text(encoding="utf-8")
            )
            for metric, by_class in summary["metrics"].items():
                for klass, entry in by_class.items():
                    numbers = [entry[key] for key in ("mean", "std", "median")]
                    assert all(number is None or number in shown for number in numbers), (metric, klass)
                    told = [NONE if number is None else f"{number:.3f}" for number in numbers]
                    assert [metric, klass, *told, str(entry["n"]), str(entry["n_nan"])] in page.rows


def test_text_of_a_value_is_that_value_rounded(page: Page) -> None:
    assert len(page.values) > 100
    for value, text in page.values:
        places = len(text.rstrip(" %").partition(".")[2])
        assert float(text.rstrip(" %")) == pytest.approx(value * (100 if "%" in text else 1), abs=0.51 * 10**-places)


def test_the_table_of_runs(page: Page, runs: list[Run]) -> None:
    """By hand from the files: what was known, DSC of best and last, HD95, bounds held, epochs, seed."""
    for run, name in zip(runs[:-1], NAMES, strict=False):
        first = run.classes[0]
        best, last = (
            json.loads((run.path / "evaluation" / f"validation-{model}" / "summary.json").read_text(encoding="utf-8"))[
                "metrics"
            ]
            for model in ("best", "last")
        )
        row = next(row for row in page.rows if row and row[0].startswith(name) and len(row) > 8)
        assert row[3] == first
        wanted = [best["dsc_volume"], last["dsc_volume"], best["dsc_slice"], last["dsc_slice"]]
        assert [cell.split()[0] for cell in row[4:8]] == [f"{entry[first]['mean']:.3f}" for entry in wanted]
        distance = best["hd95_mm"][first]["mean"]
        assert row[8].split()[0].startswith(NONE if distance is None else f"{distance:.1f}")
        held = best.get("satisfied_hard_size", {}).get("", {}).get("mean")
        assert row[9] == ("no bounds" if held is None else f"{100 * held:.0f} %")
        assert row[10] == f"3 of 3best: {kept_epochs(run.checkpoint)['best']}"
        assert row[11] == "0"
    known = {row[0]: (row[1], row[2]) for row in page.rows if len(row) == 12}
    assert known["full"] == ("every pixel", "100 %")
    assert known["tags"][0] == "disc labelswhether the region is there"
    assert known[f"{NAMES[2]}common"][0].startswith("disc labelssize from 60 to 2000 px where it is there")
    share = float(known["tags"][1].rstrip(" %"))
    assert 0 < share < 50


def test_a_run_without_a_finished_epoch_is_shown_and_says_so(page: Page) -> None:
    row = next(row for row in page.rows if row and row[0] == "beguntags")
    assert row[4:10] == [NONE] * 6
    assert row[10] == "0 of 3none finished"
    assert "no epoch finished yet" in page.text


def test_the_page_needs_nothing_outside_and_has_no_script(page: Page, written: Path) -> None:
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert page.references
    for reference in page.references:
        assert reference.startswith(("#scan-", "data:image/png;base64,"))
    text = written.read_text(encoding="utf-8")
    places = {f"#{place}" for place in re.findall(r'id="([^"]*)"', text)}
    assert places == {reference for reference in page.references if reference.startswith("#")}
    assert "Hearts &amp; &lt;bounds&gt;" in text
    for word in ("nan", "inf ", "None", "undefined"):
        assert word not in page.text.replace("not defined", "").lower().split(), word
        assert f'"{word}"' not in text
    assert len(text) < 1_000_000


def test_every_run_and_its_provenance(page: Page, runs: list[Run]) -> None:
    for run, name in zip(runs, NAMES, strict=True):
        assert name in page.text
        for value in (*run.about["data"]["checksums"].values(), *run.about["versions"].values()):
            assert value in page.text
        assert (run.about["commit"] or "not known") in page.text
    assert str(runs[0].store) not in page.text


def test_the_same_files_give_the_same_page(written: Path, runs: list[Run], tmp_path: Path) -> None:
    before = {file: file.stat().st_mtime_ns for run in runs for file in run.path.rglob("summary.json")}
    done("report", *(run.path for run in runs), "--out", tmp_path, "--title", "Hearts & <bounds>")
    assert (tmp_path / "index.html").read_bytes() == written.read_bytes()
    assert before == {file: file.stat().st_mtime_ns for file in before}


@pytest.mark.usefixtures("written")
def test_cases_are_chosen_by_rule(runs: list[Run], store: Store) -> None:
    results = read_results(runs, "validation")
    tables = [read_rows(run.path / "evaluation" / "validation-best" / "cases.csv") for run in runs[:-1]]
    views = choose(results, "validation")
    for klass in ("LV", "RV"):
        means = {}
        for record in (record for record in store.records if record.split == "validation"):
            rows = [row for table in tables for row in table if (row.case, row.klass) == (record.name, klass)]
            values = [row.value for row in rows if row.metric == "dsc_volume" and not math.isnan(row.value)]
            means[record.name] = sum(values) / len(values)
        order = sorted(means, key=lambda name: (-means[name], name))
        mine = [view for view in views if view.klass == klass]
        assert [view.rank for view in mine] == ["best", "median", "worst"]
        assert [view.record.name for view in mine] == [order[0], order[(len(order) - 1) // 2], order[-1]]
        for view in mine:
            assert view.score == pytest.approx(means[view.record.name])
            sizes = [int((store.truth[n] == store.class_index(klass)).sum()) for n in view.record.range]
            assert view.slice == sizes.index(max(sizes))
            assert view.position == view.record.first + view.slice


@pytest.mark.usefixtures("written")
def test_ties_and_too_few_cases(runs: list[Run], store: Store) -> None:
    (result,) = read_results(runs[1:2], "validation")
    names = [record.name for record in store.records if record.split == "validation"]

    def ranks(cases: dict[str, float]) -> dict[str, str]:
        return {v.rank: v.record.name for v in choose([replace(result, cases={"LV": cases})], "validation")}

    equal = dict.fromkeys(names, 0.5)
    assert list(ranks(equal).values()) == [sorted(names)[0], sorted(names)[(len(names) - 1) // 2], sorted(names)[-1]]
    assert ranks({names[0]: 0.2, names[1]: 0.4}) == {"best and median": names[1], "worst": names[0]}
    assert ranks({names[0]: 0.2, names[1]: math.nan}) == {"best and median and worst": names[0]}
    assert ranks({names[0]: math.nan}) == {}


def test_pictures_show_the_masks_that_were_measured(written: Path, runs: list[Run], store: Store) -> None:
    views = choose(read_results(runs, "validation"), "validation")
    text = written.read_text(encoding="utf-8")
    for run in runs[:-1]:
        masks = predict_slices(run, [view.position for view in views])
        rows = read_rows(run.path / "evaluation" / "validation-best" / "cases.csv")
        for view in views:
            if view.klass not in run.classes:
                continue
            mask = masks[view.position] == run.classes.index(view.klass) + 1
            truth = store.truth[view.position] == store.class_index(view.klass)
            place = (view.record.name, view.slice, view.klass, "dsc_slice")
            (score,) = (row.value for row in rows if (row.case, row.slice, row.klass, row.metric) == place)
            total = int(mask.sum() + truth.sum())
            assert score == pytest.approx(2 * int((mask & truth).sum()) / total if total else 1, abs=1e-6)
            assert not mask.any() or f'd="{outline(mask)}"' in text
            assert f'd="{outline(truth)}"' in text


def drawn(run: Run, number: int, metric: str, klass: str) -> str:
    """The curve of a share as the page has it, from the run's file."""
    rows = [row for row in read_rows(run.path / "metrics.csv") if (row.split, row.metric) == ("validation", metric)]
    (line,) = share_chart([Line(number, "", [(row.epoch, row.value) for row in rows if row.klass == klass])]).lines
    return f'<path class="r{number}{" soft" if "soft" in metric else ""}" d="{line.path}"/>'


def test_every_class_has_its_curves(written: Path, runs: list[Run]) -> None:
    text = written.read_text(encoding="utf-8")
    whole, *parts = text.split("<h2>All classes together</h2>")[1].split(", by scan and by epoch</h2>")
    assert [whole.rpartition("<h2>")[2], parts[0].rpartition("<h2>")[2]] == ["LV", "RV"]
    for klass, part in zip(("LV", "RV"), parts, strict=True):
        assert drawn(runs[0], 0, "dsc_volume", klass) in part
        assert drawn(runs[2], 2, "dsc_volume", klass) in part
        assert drawn(runs[2], 2, "satisfied_class_hard", klass) in part
        assert drawn(runs[2], 2, "satisfied_class_soft", klass) in part
        assert f"inside their bounds for {klass}. " in part
        assert part.count("<h3>Predicted size over true size, by epoch</h3>") == 1
    assert drawn(runs[1], 1, "satisfied", "") in parts[0]  # a single class needs no rows of its own
    assert drawn(runs[2], 2, "satisfied", "") in whole
    assert drawn(runs[2], 2, "dsc_volume", "") in whole


def test_all_classes_in_one_view(written: Path, runs: list[Run], store: Store) -> None:
    """The outlines of each class in its own colour, those of the truth too, and a legend that names them."""
    results = read_results(runs, "validation")
    views = [view for view in choose_for_page(results, "validation") if not view.klass]
    assert [view.rank for view in views] == ["best", "median", "worst"]
    scores = {}
    for record in (record for record in store.records if record.split == "validation"):
        values = [cases[record.name] for result in results for cases in result.cases.values() if cases]
        scores[record.name] = float(np.nanmean(values))
    assert {views[0].score, views[2].score} == {max(scores.values()), min(scores.values())}
    text = written.read_text(encoding="utf-8").split("All classes in 3 scans, chosen by rule")[1].split("<section>")[0]
    colours = {klass: store.class_index(klass) for klass in ("LV", "RV")}
    for klass, k in colours.items():
        assert f'<span class="k{k}"><span class="key"></span>{klass}</span>' in text
        assert f".together .k{k} {{ --run: {PALETTE[k]}; }}" in written.read_text(encoding="utf-8")
    assert '<i class="dashed"></i>truth' in text
    for view, part in zip(views, text.split('<div class="case together">')[1:], strict=True):
        assert f"{view.rank.capitalize()}: {view.record.name}" in part
        truth = store.truth[view.position]
        sizes = [int(np.isin(store.truth[n], list(colours.values())).sum()) for n in view.record.range]
        assert view.slice == sizes.index(max(sizes))
        for run, result in zip(runs[:-1], results, strict=False):
            mask = predict_slices(run, [view.position])[view.position]
            for k, klass in enumerate(run.classes, start=1):
                if (mask == k).any():
                    assert f'<path class="mask k{colours[klass]}" d="{outline(mask == k)}"/>' in part
                assert f'<path class="true k{colours[klass]}" d="{outline(truth == colours[klass])}"/>' in part
                assert f"{klass}\N{NO-BREAK SPACE}{result.cases[klass][view.record.name]:.2f}" in part


@pytest.mark.usefixtures("written")
def test_many_classes_are_not_shown_one_by_one(runs: list[Run]) -> None:
    results = read_results(runs, "validation")
    both = choose_for_page(results, "validation")
    assert [view.klass for view in both] == [""] * 3 + ["LV"] * 3 + ["RV"] * 3
    assert choose_for_page(results, "validation", many=2) == both[:3]
    assert choose_for_page(results[1:2], "validation") == choose(results[1:2], "validation")
    page = Page(render(results, both[:3], [{} for _ in runs], "validation"))
    assert "All classes in 3 scans, chosen by rule" in page.text
    assert "LV in 3 scans" not in page.text


def test_several_classes_without_truth(store: Store, tmp_path: Path) -> None:
    """Sizes, bounds and masks are shown, and nothing that would need a truth."""
    unknown = blind(store, tmp_path / "blind")
    run = started(tmp_path / "run", unknown, "individual", ["LV", "RV"], "training.epochs=2")
    Trainer(run).fit()
    done("report", run.path, "--out", tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "No epoch has been validated" not in page.text
    assert "DSC per volume, by epoch" not in page.text
    assert '<i class="dashed"></i>truth' not in text
    rows = read_rows(run.path / "metrics.csv")
    for klass in ("LV", "RV"):
        lines = [
            Line(0, "run", [(row.epoch, row.value) for row in rows if (row.metric, row.klass) == (metric, klass)])
            for metric in ("soft_size", "hard_size")
        ]
        soft, hard = size_chart(lines).lines
        part = text.split(f"<h2>{klass}, by epoch</h2>")[1].split("</section>")[0]
        assert "Predicted size in pixels, by epoch" in part
        assert f'<path class="r0 soft" d="{soft.path}"/>' in part
        assert f'<path class="r0" d="{hard.path}"/>' in part
        assert drawn(run, 0, "satisfied_class_hard", klass) in part
    records = [record for record in unknown.records if record.split == "validation"]
    shown = [records[0], records[(len(records) - 1) // 2], records[-1]]
    for rank, record in zip(("First", "Middle", "Last"), shown, strict=True):
        assert f"{rank}: {record.name}" in page.text
        place = record.first + record.slices // 2
        mask = predict_slices(run, [place])[place]
        for k, klass in enumerate(run.classes, start=1):
            assert f"{klass} {int((mask == k).sum())} px" in page.text.replace("\N{NO-BREAK SPACE}", " ")

    metrics = json.loads((run.path / "evaluation" / "validation-last" / "summary.json").read_text(encoding="utf-8"))[
        "metrics"
    ]
    assert "Agreement with what is known" in page.text
    for klass in ("LV", "RV"):
        row = next(row for row in page.rows if len(row) in (6, 7) and klass in row[:2])
        columns = (("label_agreement", "mean"), ("size_error", "median"), ("satisfied_hard_size", "mean"))
        wanted = [(metrics[metric][klass], key) for metric, key in (*columns, ("volume_error", "median"))]
        told = [f"{100 * entry[key]:.0f} % of {entry['n']}" for entry, key in wanted]
        assert row[-5:] == [*told, NONE]  # a recipe that bounds no whole scans

    (result,) = read_results([run], "validation")
    begun = replace(result, curves=[], kept={}, summaries={})
    assert "Agreement" not in render([begun], [], [{}], "validation")
    nothing = render([replace(result, curves=[])], [], [{}], "validation")
    assert nothing.count("No scan is held out for validation") == 2
    assert render([begun], [], [{}], "validation").count("validated yet") == 2


@pytest.mark.usefixtures("written")
def test_an_evaluation_of_an_earlier_epoch_is_made_anew(runs: list[Run], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs[1].path, copy)
    run = Run.open(copy)
    assert unmeasured([run], "validation") == []
    file = copy / "evaluation" / "validation-last" / "summary.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "epoch": 2}))
    assert unmeasured([run], "validation") == [(run, "last")]
    file.write_text("{")
    assert unmeasured([run], "validation") == [(run, "last")]
    (copy / "evaluation" / "validation-best" / "cases.csv").unlink()
    assert unmeasured([run], "validation") == [(run, "best"), (run, "last")]


def test_damaged_curves_are_refused_before_anything_is_measured(runs: list[Run], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs[1].path, copy, ignore=shutil.ignore_patterns("evaluation"))
    (copy / "metrics.csv").write_bytes(b"\xff\n")
    refused("report", copy, "--out", tmp_path / "page", saying=["metrics.csv", "UTF-8"], folder=tmp_path)


def test_without_truth_there_is_no_dsc_but_bounds_and_pictures(runs: list[Run], store: Store, tmp_path: Path) -> None:
    """A run on scans whose truth nobody knows, which then has no best network."""
    copy = tmp_path / "blind"
    shutil.copytree(store.path, copy)
    described = json.loads((copy / "dataset.json").read_text(encoding="utf-8"))
    for scan in described["scans"]:
        scan["truth"] = scan["split"] == "train"
    (copy / "dataset.json").write_text(json.dumps(described))
    run = started(tmp_path / "run", Store(copy), "tags", ["LV"], "training.epochs=1")
    Trainer(run).fit()
    done("report", run.path, "--out", tmp_path / "out")
    page = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    assert "These scans have no truth" in page.text
    assert "No epoch has been validated" not in page.text
    assert "First: " in page.text
    assert "Best: " not in page.text
    row = next(row for row in page.rows if row and row[0].startswith("run"))
    assert "DSC per slice" not in page.text
    (result,) = read_results([run], "validation")
    held = next(m.value for m in result.curves if m.metric == "satisfied" and m.epoch == result.kept["last"])
    assert satisfied_share(result) == pytest.approx(held)
    assert row[3] == f"{100 * held:.0f} %"


@pytest.mark.usefixtures("written")
def test_many_runs_and_strange_numbers(runs: list[Run]) -> None:
    """More runs than colours; every case undefined, infinite distances, gaps in the curves."""
    (result,) = read_results(runs[1:2], "validation")
    empty = {"mean": None, "std": None, "median": None, "n": 0, "n_nan": 20}
    strange = replace(
        result,
        name="strange",
        summaries={"best": {"dsc_volume": {"LV": empty}, "hd95_mm": {"LV": {**empty, "mean": math.inf}}}},
        cases={"LV": dict.fromkeys(result.cases["LV"], math.nan)},
        curves=[replace(row, value=math.nan) if row.epoch == 2 else row for row in result.curves],
    )
    many: list[Result] = [replace(result, name=f"run {n}") for n in range(12)]
    text = render([*many, strange], [], [{} for _ in range(13)], "validation")
    page = Page(text)
    assert all(f"run {n}" in page.text for n in range(12))
    assert "20 not defined" in page.text
    assert "nan" not in text.lower().replace("tenant", "").split('"')
    assert "inf" not in [text for _, text in page.values]


def test_what_cannot_be_compared_or_written(runs: list[Run], store: Store, tmp_path: Path) -> None:
    other = started(tmp_path / "other", made(tmp_path / "less", 4), "tags", ["LV"])
    out = tmp_path / "out"
    refused("report", runs[0].path, other.path, "--out", out, saying=["scans differ", "share a store", other.path.name])
    refused("report", runs[0].path, "--out", out, "--split", "test", saying=["'test'", "train, validation"])
    refused("report", runs[0].path, runs[0].path, "--out", out, saying=["given twice"])
    refused("report", tmp_path, "--out", out, saying=["not a run", "inbounds train"])
    with another(out, "inside") as first:
        refused("report", runs[0].path, "--out", out, saying=["in use by process", first.pid])
    (tmp_path / "file").write_text("in the way")
    refused("report", runs[1].path, "--out", tmp_path / "file", saying=["could not be written", "another place"])
    assert not out.exists()


def test_runs_on_a_copy_of_the_data_can_be_compared(runs: list[Run], store: Store, tmp_path: Path) -> None:
    """The same held-out scans in another folder, whose training scans differ."""
    shutil.copytree(store.path, tmp_path / "copy")
    described = json.loads((tmp_path / "copy" / "dataset.json").read_text(encoding="utf-8"))
    described["checksums"]["images.npy"] = "0" * 64
    (tmp_path / "copy" / "dataset.json").write_text(json.dumps(described))
    run = started(tmp_path / "run", Store(tmp_path / "copy"), "tags", ["LV"])
    assert unmeasured([runs[-1], run], "validation") == []
    assert [result.name for result in read_results([runs[-1], run], "validation")] == ["begun", "run"]


def test_names_are_as_long_as_it_takes_to_tell_runs_apart(runs: list[Run], tmp_path: Path) -> None:
    for seed in ("0", "1"):
        shutil.copytree(runs[-1].path, tmp_path / seed / "begun")
    some = [Run.open(tmp_path / "0" / "begun"), Run.open(tmp_path / "1" / "begun"), runs[0]]
    assert [result.name for result in read_results(some, "validation")] == ["0/begun", "1/begun", "full"]


def test_lines_by_hand() -> None:
    chart = share_chart([Line(0, "a", [(1, 0.0), (2, 0.5), (3, 1.0)]), Line(1, "b", [(1, math.nan)])])
    (line,) = chart.lines
    assert line.path == "M0 220L50 110L100 0"
    assert line.end == (100, 0)
    assert chart.x_ticks == [(0, "1"), (50, "2"), (100, "3")]
    ratios = ratio_chart([Line(0, "a", [(1, 0.0), (2, 2.0)]), Line(0, "a", [(1, 4.0)], soft=True)])
    assert ratios.lines[0].path == "M0 220L100 55"
    assert [text for _, text in ratios.y_ticks] == ["1/4", "1/2", "1", "2", "4"]
    assert path([(0, 1), (1, math.nan), (2, 3), (3, 4)]) == "M0 1h0.5M2 3L3 4"
    assert share_chart([]).lines == []
    sizes = size_chart([Line(0, "a", [(1, 0.0), (2, 330.0), (3, 400.0)])])
    assert [text for _, text in sizes.y_ticks] == ["0", "100", "200", "300", "400"]
    assert sizes.lines[0].path == "M0 220L50 38.5L100 0"
    assert size_chart([]).lines == size_chart([Line(0, "a", [(1, math.nan)])]).lines == []


@pytest.mark.parametrize(
    ("last", "ticks"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 3, 4, 5]), (12, [1, 5, 10]), (200, [1, 50, 100, 150, 200])]
)
def test_ticks_of_epochs(last: int, ticks: list[int]) -> None:
    assert epochs(last) == ticks


def test_labels_move_apart_and_stay_inside() -> None:
    assert spread([10, 12, 50], 10, (0, 100)) == [6, 16, 50]
    assert spread([100, 100, 99], 10, (0, 100)) == [90, 100, 80]
    assert spread([], 10, (0, 100)) == []
    moved = spread(np.random.default_rng(0).uniform(0, 100, 8).tolist(), 12, (0, 100))
    assert np.diff(sorted(moved)).min() >= 12 - 1e-9
    assert min(moved) >= 0
    assert max(moved) <= 100


def test_a_box_by_hand() -> None:
    drawn = box(0, "run", {"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.8, "e": 0.1, "f": math.nan})
    assert (drawn.n, drawn.undefined) == (5, 1)
    assert drawn.median == 0.6
    assert drawn.quartiles == pytest.approx((50, 60, 70))
    assert drawn.ends == pytest.approx((50, 80))  # 0.1 is further than 1.5 x 0.2 below 0.5
    assert sorted(dot[2] for dot in drawn.dots)[0] == "a: 0.500"
    assert box(0, "run", {"a": math.nan}).n == 0


def test_long_names_keep_both_ends() -> None:
    assert shorten("individual") == "individual"
    assert shorten("common-bounds-of-seed-3") == "common-…-seed-3"
    assert len(shorten("x" * 99)) == 15


def test_outlines_enclose_what_they_should(tmp_path: Path) -> None:
    ring = np.ones((3, 3), dtype=bool)
    ring[1, 1] = False
    assert outline(ring) == "M0 0h1h1h1v1v1v1h-1h-1h-1v-1v-1v-1M1 2h1v-1h-1v1"
    for seed in range(3):
        mask = np.random.default_rng(seed).random((7, 9)) < 0.5
        crossed = np.zeros((7, 10), dtype=int)
        for line in outline(mask).split("M")[1:]:
            x, y = start = [int(place) for place in re.match(r"(\d+) (\d+)", line).groups()]  # type: ignore[union-attr]
            for axis, step in re.findall(r"([hv])(-?1)", line):
                if axis == "v":
                    crossed[min(y, y + int(step)), x] += 1
                x, y = (x + int(step), y) if axis == "h" else (x, y + int(step))
            assert [x, y] == start  # closed, so that dashes run on along it
        assert np.array_equal(crossed.cumsum(axis=1)[:, :-1] % 2 == 1, mask)
    assert outline(np.zeros((2, 2), dtype=bool)) == ""


def test_an_image_survives_the_way_into_the_page(tmp_path: Path) -> None:
    import base64

    pixels = np.random.default_rng(0).integers(0, 256, (5, 7), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(base64.b64decode(png(pixels).partition(",")[2]))
    with Image.open(tmp_path / "a.png") as image:
        assert np.array_equal(np.asarray(image), pixels)
    assert grey(np.array([[0, 0.5, 1]], dtype=np.float16)).tolist() == [[0, 128, 255]]
    assert grey(pixels) is pixels


def test_the_view_holds_the_region() -> None:
    region = np.zeros((100, 60), dtype=bool)
    region[90:95, 30:34] = True
    rows, columns = window(region)
    assert (rows.start, rows.stop) == (76, 100)
    assert (columns.start, columns.stop) == (20, 44)
    assert window(np.zeros((4, 6), dtype=bool)) == (slice(0, 4), slice(0, 6))
