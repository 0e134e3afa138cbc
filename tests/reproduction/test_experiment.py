"""The experiments as they are written down, and what is made of collected results."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.runs.table import Row
from inbounds.store.store import Store
from inbounds.supervision import recipes
from making import make_store
from reproduction.drawings import curves, figures, levels
from reproduction.experiment import NAMES, OURS, chosen, experiment, paper, presets, settings_of
from reproduction.pages import rebuild, rewrite, write_results, write_timing
from reproduction.results import curves_of, presets_of, read_all, write
from reproduction.tables import table


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def kept(root: Path, name: str, row: str, seed: int = 0, scores: tuple[float, ...] = (0.2, 0.6, 0.5), **about) -> None:
    content = {"experiment": name, "preset": "paper", "row": row, "seed": seed, "epochs": len(scores)} | about
    curves = {"epoch": range(1, len(scores) + 1), "dsc_slice": scores, "dsc_volume": [s + 0.1 for s in scores]}
    write(root / name / "paper" / row / f"seed-{seed}.json", content, curves)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_fits_together(name: str) -> None:
    told = experiment(name)
    assert set(paper(name)) == (set() if name in OURS else set(told.rows))
    named = {row for panel in told.curves for row in panel.rows} | set(told.pictures)
    named |= {row for levels in told.levels for line in levels.lines.values() for row in line.values()}
    assert len({levels.stem for levels in told.levels}) == len(told.levels)
    assert named <= set(told.rows)
    assert "default" not in told.presets  # one rule for all
    for row in told.rows.values():
        assert len(row.cells) == len(told.columns)
        if row.same_as:
            other, _, its = row.same_as.partition("/")
            same = experiment(other)
            assert (same.rows[its].settings, same.rows[its].weight) == (row.settings, row.weight)
            assert same.presets == told.presets
            assert (same.rows[its].recipe, same.settings, same.seeds) == (row.recipe, told.settings, told.seeds)


@pytest.mark.parametrize("preset", presets())
@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_settings(store: Store, name: str, preset: str) -> None:
    for row, told in experiment(name).rows.items():
        if told.recipe not in recipes:
            continue
        settings = settings_of(experiment(name), row, preset, store, ["training.epochs=3"])
        assert settings.recipe == told.recipe
        assert settings.training.epochs == 3
        patients = [one.bounds.get("patient") for one in settings.constraints.values()]
        assert all(patient in (None, store.records[0].patient) for patient in patients)


def test_the_papers_settings(store: Store) -> None:
    def of(name: str, row: str):
        return settings_of(experiment(name), row, "paper", store)

    anatomies = ("left-ventricle", "spine", "prostate")
    assert [of(name, "full").training.batch for name in anatomies] == [1, 20, 4]
    assert [of(name, "individual").constraints["size"].weight for name in ("left-ventricle", "spine", "prostate")] == [
        0.05,
        0.01,
        0.01,
    ]
    assert {of(name, "tags").constraints["size"].weight for name in ("left-ventricle", "spine", "prostate")} == {0.01}
    prostate = of("prostate", "full")
    assert prostate.network.name == "residual_unet"
    assert (prostate.training.repeats, prostate.augment.flip, prostate.augment.quarter) == (4, True, True)
    assert (prostate.training.epochs, prostate.training.lr) == (200, 5e-4)


def test_what_an_experiment_says_of_a_preset_counts_there_alone(store: Store) -> None:
    for preset, epochs, batch in (("small", 12, 8), ("paper", 200, 20)):
        training = settings_of(experiment("spine"), "full", preset, store).training
        assert (training.epochs, training.batch) == (epochs, batch)


@pytest.mark.parametrize("preset", ["paper", "small"])
def test_every_row_of_a_table_gets_the_same_network_training_and_augmentation(store: Store, preset: str) -> None:
    told = experiment("left-ventricle")
    rows = [settings_of(told, row, preset, store) for row in told.rows]
    for shared in ("network", "training", "augment", "regularisers"):
        assert len({repr(getattr(row, shared)) for row in rows}) == 1


def test_rows_run_with_other_settings_than_the_preset_has_are_named(tmp_path: Path, store: Store) -> None:
    told = experiment("left-ventricle")
    for row, changes in (("full", []), ("common", []), ("tags", ["training.epochs=3"]), ("partial", [])):
        settings = settings_of(told, row, "paper", store, changes).model_dump()
        settings["network"] |= {"dilate": 0, "edge_filter": 0.5 if row == "partial" else 0.0}  # both are gone
        settings["training"] |= {"threads": 3, "data_on_device": True}  # which change no result
        kept(tmp_path, "left-ventricle", row, settings=settings, changes=changes, known=["size from 1 to 2"])
    found = read_all(tmp_path)
    lines = [line for line in table("left-ventricle", "paper", found).splitlines() if line.startswith("Run with")]
    assert lines == ["Run with settings that the preset has no longer, and that are in their files: `partial`."]
    kept(tmp_path, "left-ventricle", "full", settings={"recipe": "full", "unheard": 1})
    assert "`partial`, `full`." in table("left-ventricle", "paper", read_all(tmp_path))


def test_a_panel_of_one_curve_gives_way_to_one_that_compares(tmp_path: Path) -> None:
    kept(tmp_path, "left-ventricle", "full")
    assert [title for title, _ in curves("left-ventricle", "paper", read_all(tmp_path))] == [
        "Common bounds",
        "Individual bounds",
    ]
    kept(tmp_path, "left-ventricle", "individual")
    ((title, shown),) = curves("left-ventricle", "paper", read_all(tmp_path))
    assert (title, [curve.name for curve in shown]) == ("Individual bounds", ["full", "ours"])


def test_the_last_epoch_counts_where_a_preset_plans(tmp_path: Path) -> None:
    """Where the paper has none of an experiment, neither table nor figure has a place for it."""
    classes = {"dsc_volume/RV": [0.1, 0.2], "dsc_volume/MYO": [0.3, 0.4], "dsc_volume/LV": [0.8, 0.6]}
    measured = {"epoch": [1, 2], "dsc_slice": [0.5, 0.3], "dsc_volume": [0.5, 0.4], **classes}
    for preset in ("default", "paper"):
        content = {"experiment": "heart", "preset": preset, "row": "full", "seed": 0, "epochs": 2}
        write(tmp_path / preset / "seed-0.json", content, measured)
    found = read_all(tmp_path)
    assert "| every pixel | - | 0.400 | 0.200 | 0.400 | 0.600 | 1 |" in table("heart", "default", found)
    assert table("heart", "small", found) == "Not run yet.\n"
    error, _ = experiment("heart").levels
    for preset, value in (("default", 0.4), ("paper", 0.5)):
        shown = levels("heart", preset, found, error)
        assert [[mean for mean, _ in line.ours] for line in shown if line.name == "every pixel"] == [[value] * 4]
        assert all(math.isnan(figure) for line in shown for figure in line.paper)
    assert figures("heart", "default", found) == {}  # one row alone, which compares nothing
    for row in ("scribbles_sizes", "error_10"):
        content = {"experiment": "heart", "preset": "default", "row": row, "seed": 0, "epochs": 2}
        write(tmp_path / row / "seed-0.json", content, measured)
    found = read_all(tmp_path)
    assert set(figures("heart", "default", found)) == {error.stem}
    assert len(write_results(tmp_path, "heart", "default", found)) == 4
    assert table("heart", "default", found, ["error_10"]).count("\n|") == 2


def test_changes_of_speed_alone_are_not_told(tmp_path: Path) -> None:
    kept(tmp_path, "left-ventricle", "full", changes=["training.compile=nothing"])
    assert "changed" not in table("left-ventricle", "paper", read_all(tmp_path))
    kept(tmp_path, "left-ventricle", "tags", changes=["training.compile=nothing", "weight=0.1"])
    assert "changed: `weight=0.1`; seed" in table("left-ventricle", "paper", read_all(tmp_path))


def test_what_is_not_known_is_refused_with_the_nearest(store: Store) -> None:
    with pytest.raises(BadInput, match="no experiment 'left-ventrical'; did you mean 'left-ventricle'"):
        experiment("left-ventrical")
    with pytest.raises(BadInput, match="no row 'ful'; did you mean 'full'"):
        chosen(experiment("spine"), ["ful"], store)
    with pytest.raises(BadInput, match="no preset 'defualt'; did you mean 'default'"):
        settings_of(experiment("spine"), "full", "defualt", store)
    with pytest.raises(BadInput, match=r"unknown setting 'training.epoch'"):
        settings_of(experiment("spine"), "full", "small", store, ["training.epoch=3"])


def test_rows_that_need_other_data(store: Store) -> None:
    """They are left out, and refused when asked for."""
    told = experiment("prostate")
    assert told.rows["tags_drawn"].data == {"name": "promise12 split at random"}
    assert "tags_drawn" not in chosen(told, [], store)
    assert chosen(told, ["tags", "partial"], store) == ["partial", "tags"]
    with pytest.raises(BadInput, match="the row 'common_paper' needs a store with rows='256'; prepare one"):
        chosen(experiment("spine"), ["common_paper"], store)
    with pytest.raises(BadInput, match="'tags_drawn' needs a store with name='promise12 split at random'"):
        chosen(told, ["tags_drawn"], store)
    store.name = "promise12 split at random"
    assert chosen(told, ["tags_drawn"], store) == ["tags_drawn"]


def test_how_far_runs_came_that_did_not_end(tmp_path: Path) -> None:
    for seed, (scores, asked) in enumerate([((0.5, 0.7), 9), ((0.5, 0.7, 0.6), 9), ((0.5,), 4), ((0.5, 0.6), 2)]):
        kept(tmp_path, "left-ventricle", "tags", seed, scores, epochs=asked)
    assert "4 (3 had 1 of 4 epochs, 2 or 3 of 9 epochs) |" in table("left-ventricle", "paper", read_all(tmp_path))


def test_both_protocols_and_several_seeds(tmp_path: Path) -> None:
    kept(tmp_path, "left-ventricle", "full", 0, (0.2, 0.6, 0.5))
    kept(tmp_path, "left-ventricle", "full", 1, (0.4, 0.3, 0.4))  # of equal epochs the first
    kept(tmp_path, "left-ventricle", "tags", 0, (0.5, 0.7), epochs=9)
    found = read_all(tmp_path)
    assert [run.at("best") for run in found] == [1, 0, 1]
    lines = table("left-ventricle", "paper", found).splitlines()
    wanted = (
        "| every pixel | cross-entropy | 0.887 | 0.600 ± 0.141 | 0.500 ± 0.141 | 0.550 ± 0.071 | 0.450 ± 0.071 | 2 |"
    )
    assert wanted in lines
    assert "| tags | direct penalty | 0.792 | 0.800 | 0.700 | 0.800 | 0.700 | 1 (2 of 9 epochs) |" in lines
    assert not any(line.startswith("| volume bounds") for line in lines)
    assert any(line.startswith("Not run: `partial`, ") and "`proposals_volume`, `volume`" in line for line in lines)
    (listed,) = (line for line in lines if line.startswith("Not run: "))
    assert listed.count("`") / 2 == len(experiment("left-ventricle").rows) - 2


def test_a_row_may_be_that_of_another_table(tmp_path: Path) -> None:
    kept(tmp_path, "left-ventricle", "full", 0, (0.7,))
    kept(tmp_path, "hybrid", "full_5", 0, (0.3,))
    text = table("hybrid", "paper", read_all(tmp_path))
    assert "| Full_All | 150 | 0 | 0.887 | 0.800 |" in text
    assert "| Full_5 | 5 | 0 | 0.543 | 0.400 |" in text
    assert "Not run: `weak_all`, `hybrid_5`, " in text
    assert presets_of("spine", read_all(tmp_path)) == []


def test_curves_are_kept_by_epoch() -> None:
    rows = [
        Row(epoch=epoch, split="validation", klass=klass, metric=metric, value=value)
        for epoch, value in ((1, 0.123456789), (2, 0.5))
        for metric, klass in (("dsc_slice", ""), ("hard_size_over_true", "LV"), ("soft_size", "LV"), ("satisfied", ""))
    ]
    rows.append(Row(epoch=1, split="train", metric="loss_labels", value=3.0))
    found = curves_of(rows)
    assert set(found) == {"epoch", "dsc_slice", "hard_size_over_true", "satisfied", "loss_labels"}
    assert found["dsc_slice"] == [0.12346, 0.5]
    assert found["loss_labels"][0] == 3
    assert math.isnan(found["loss_labels"][1])


def test_everything_is_made_from_results_alone(tmp_path: Path) -> None:
    for row in ("full_5", "hybrid_5", "full_all"):
        kept(tmp_path / "results", "hybrid", row, hardware="a GPU", seconds=90, ended="2026-01-01T00:02:00+00:00")
    kept(tmp_path / "results", "left-ventricle", "full", 1)
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("before\n\n<!-- results:hybrid -->\nold\n<!-- end -->\nafter\n")
    written = rebuild(tmp_path / "results", [page])
    assert page in written
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "(../results/hybrid/paper/levels.svg)" in text
    for file in ("levels.svg", "levels.png", "table.md", "results.csv"):
        assert (tmp_path / "results" / "hybrid" / "paper" / file).stat().st_size
    with (tmp_path / "results" / "left-ventricle" / "paper" / "results.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert {(line["protocol"], line["epoch"], line["value"]) for line in lines if line["metric"] == "dsc_slice"} == {
        ("best", "2", "0.6"),
        ("last", "3", "0.5"),
    }
    before = {file: file.read_bytes() for file in (tmp_path / "results").rglob("*.svg")}
    assert before
    assert page not in rebuild(tmp_path / "results", [page])
    assert {file: file.read_bytes() for file in before} == before


def test_nothing_run_shows_the_paper(tmp_path: Path) -> None:
    text = table("bounds", "paper", [])
    assert text.count("not run") == 8
    assert len(write_results(tmp_path, "bounds", "paper", [])) == 2


def test_timing_beside_the_paper(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no benchmark in it"):
        write_timing(tmp_path)
    step = {
        "section": "steps",
        "name": "partial",
        "label": "partial cross-entropy",
        "batch": 1,
        "ms": 4.25,
        "ratio": 1.0,
    }
    (tmp_path / "bench.json").write_text(json.dumps({"device": "H1", "rows": [step]}))
    text = write_timing(tmp_path).read_text(encoding="utf-8")
    assert "| partial cross-entropy | 112 | 1.000 | 45.30 | 1.000 | 4.25 | 1.000 |" in text
    assert "H1 (ms)" in text
    (tmp_path / "other.json").write_text('{"rows": [{"name": "full"}]}')
    with pytest.raises(BadInput, match=r"other.json: not a benchmark .*python -m benchmarks"):
        write_timing(tmp_path)


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "seed-0.json").write_text('{"row": "full", "curves": {}}')
    with pytest.raises(BadInput, match=r"seed-0.json: not the results of a run .*collect them again"):
        read_all(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- results:spin -->\n<!-- end -->\n")
    with pytest.raises(BadInput, match="no results 'spin'; did you mean 'spine'"):
        rewrite(page, tmp_path, [])


def test_presets_side_by_side(tmp_path: Path) -> None:
    data = {"name": "acdc", "checksums": {"images.npy": "0123456789abcdef"}}
    made = {"shape": [160, 160], "fit": "zoom"}
    kept(tmp_path, "left-ventricle", "full", 0, (0.7, 0.6), data=data, preparation=made)
    kept(tmp_path, "left-ventricle", "volume", 0, (0.5, 0.4), preset="older")
    kept(tmp_path, "left-ventricle", "individual", 0, (0.5, 0.4), preset="older", epochs=9)
    page = tmp_path / "page.md"
    page.write_text("<!-- results:left-ventricle:paper,small,older -->\n<!-- end -->\n")
    lines = rewrite(page, tmp_path, read_all(tmp_path)).splitlines()
    assert "| known beside the seeds | method | paper | `paper` | `older` |" in lines
    assert "| every pixel | cross-entropy | 0.887 | 0.800 / 0.700 |  |" in lines
    assert "| tags | direct penalty | 0.792 |  |  |" in lines
    assert "| volume bounds | direct penalty | 0.858 |  | 0.600 / 0.500 |" in lines
    assert "| individual bounds | direct penalty | 0.871 |  | 0.600 / 0.500 (2 of 9 epochs) |" in lines
    assert any(
        line.endswith(" Data: acdc (160x160, zoom, images 0123456789) for `paper`; not known for `older`.")
        for line in lines
    )
    assert not any("`small`" in line for line in lines)  # nothing was run
    page.write_text("<!-- results:left-ventricle:paper,older:full,volume -->\n<!-- end -->\n")
    rows = [line for line in rewrite(page, tmp_path, read_all(tmp_path)).splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in rows[1:]] == ["| every pixel", "| volume bounds"]
    page.write_text("<!-- results:left-ventricle:paper,older:ful -->\n<!-- end -->\n")
    with pytest.raises(BadInput, match="left-ventricle has no row 'ful'; did you mean 'full'"):
        rewrite(page, tmp_path, read_all(tmp_path))
    page.write_text("<!-- results:left-ventricle:paper,smal -->\n<!-- end -->\n")
    with pytest.raises(BadInput, match="no preset 'smal'; did you mean 'small'"):
        rewrite(page, tmp_path, [])
