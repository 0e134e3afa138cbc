"""The benchmark as a command: what it writes hangs together. How fast anything is, no test says."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from archives import done as done_by
from archives import refused as refused_by
from benchmarks.bench import QUICK, VARIANTS, Bench
from benchmarks.tables import filled, read_benches, timing_lines
from benchmarks.timing import in_turn, row
from browsing import CHROMIUM

pytestmark = [
    pytest.mark.plain,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
done, refused = (partial(by, program="benchmarks.__main__") for by in (done_by, refused_by))
STARTED = ("command alone", "command to page")
PAPER = {"paper": {"1": {"partial": 100.0, "penalty_2": 150.0}}}


def test_the_studio(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs a Chromium: apt-get install chromium")
    done("--quick", "--device", "cpu", "--sections", "studio", "--json", tmp_path / "here.json")
    rows = {row["name"]: row for row in json.loads((tmp_path / "here.json").read_text(encoding="utf-8"))["rows"]}
    assert set(rows) == {
        "first slice, nii",
        "first slice, nii.gz",
        *(f"key to slice, {plane}" for plane in ("axial", "coronal", "sagittal")),
        *(f"opened {when}, {what}" for when in ("for the first time", "again") for what in STARTED),
    }
    assert all(len(row["times"]) == QUICK.presses for name, row in rows.items() if name.startswith("key"))
    for when in ("for the first time", "again"):
        alone, whole = (rows[f"opened {when}, {what}"]["ms"] for what in STARTED)
        assert 0 < alone < whole


def test_the_whole_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    told = done("--quick", "--device", "cpu", "--json", file)
    content = json.loads(file.read_text(encoding="utf-8"))
    rows = content["rows"]
    assert content["device"].startswith("CPU")
    assert content["device"] in told.out
    assert {"python", "torch", "inbounds"} <= set(content["versions"])
    assert content["settings"]["side"] == QUICK.side
    assert list(dict.fromkeys(r["section"] for r in rows)) == [
        "memory",
        "steps",
        "method",
        "modes",
        "epoch",
        "plain",
        "growth",
    ]
    for found in rows:
        assert min(found["times"]) > 0
        assert found["ms"] == pytest.approx(median(found["times"]))
        assert min(found["times"]) <= found["low"] <= found["ms"] <= found["high"] <= max(found["times"])
        images = found.get("images", found["batch"])
        assert found["images_per_second"] == pytest.approx(1000 * images / found["ms"])

    def some(section: str) -> dict[tuple[str, int], dict]:
        return {(r["name"], r["batch"]): r for r in rows if r["section"] == section}

    for section, base, names in (
        ("steps", "partial", QUICK.variants),
        ("modes", "eager", ("eager",)),
        ("plain", "plain", ("plain", "eager")),
    ):
        found = some(section)
        assert set(found) == {(name, batch) for name in names for batch in QUICK.batches}
        for (_, batch), one in found.items():
            pairs = zip(one["times"], found[base, batch]["times"], strict=True)
            assert one["ratio"] == pytest.approx(median(mine / theirs for mine, theirs in pairs))
    (epoch,) = some("epoch").values()
    pairs = zip(epoch["times"], epoch["alone"], strict=True)
    assert 1 / (1 - epoch["outside"]) == pytest.approx(median(whole / alone for whole, alone in pairs))
    for memory in some("memory").values():
        assert 0 < memory["early_mb"] <= memory["late_mb"] <= memory["peak_mb"]
    grown = some("growth").values()
    assert {one["batch"] for one in grown} == {1, 2, 4}
    few, _, all_ = sorted({one["images"] for one in grown})
    assert all_ == 4 * few

    page = filled(
        "<!-- bench:here/steps/full/1/ratio --><!-- end --> <!-- bench:timing --><!-- end -->",
        read_benches(tmp_path),
        PAPER,
    )
    assert f"-->{some('steps')['full', 1]['ratio']:.3f}<!--" in page
    ours = some("steps")["penalty_2", 1]
    assert f"| direct penalty, 2 bounds | 150 | 1.500 | {ours['ms']:.2f} | {ours['ratio']:.3f} |" in page


def test_every_supervision_is_known(tmp_path: Path) -> None:
    made = Bench(tmp_path, "cpu", QUICK)
    for told in VARIANTS.values():
        assert made.run(told.recipe, *told.changes).settings.recipe == told.recipe


@pytest.mark.slow
def test_what_only_a_gpu_measures(tmp_path: Path) -> None:
    """Through the same code on a CPU, where its numbers mean nothing."""
    made = Bench(tmp_path, "cpu", QUICK)
    found = made.many() + made.comparison()
    names = [one["name"] for one in found]
    assert names == ["many_1", "many_2", "comparison"]
    last = found[-1]
    assert last["runs"] == 9
    assert last["minutes"] == pytest.approx(200 * last["ms"] / 60_000)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="a peak that only Linux tells")
def test_the_memory_of_scans(tmp_path: Path) -> None:
    done("--quick", "--device", "cpu", "--sections", "scans", "--json", tmp_path / "here.json")
    rows = json.loads((tmp_path / "here.json").read_text(encoding="utf-8"))["rows"]
    assert [one["name"] for one in rows] == ["prepare nii.gz", "predict nii.gz"]
    for one in rows:
        assert one["images"] == QUICK.scan[0]
        assert -50 < one["above_mb"] < one["peak_mb"] < 2000


def test_predicting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.predict.NNUNET", tmp_path / "none")
    done("--quick", "--device", "cpu", "--sections", "predict", "--json", tmp_path / "here.json")
    rows = json.loads((tmp_path / "here.json").read_text(encoding="utf-8"))["rows"]
    assert [one["name"] for one in rows] == ["forward passes alone", "predict --no-doubt", "predict"]
    for one, passes in zip(rows, (1, 1, 3), strict=True):
        assert one["images"] == 3 * one["scans"]
        assert one["scans_per_second"] == pytest.approx(1000 * one["scans"] / one["ms"])
        ratios = [mine / (passes * alone) for mine, alone in zip(one["times"], rows[0]["times"], strict=True)]
        assert one["share"] == pytest.approx(1 / median(ratios))


def test_what_it_refuses() -> None:
    refused("--quick", "--device", "cpu", "--sections", "steps,wrong", saying=["wrong", "growth"])
    refused("--quick", "--device", "cpu", "--sections", "steps,many", saying=["many", "on a CPU"])
    refused("--device", "tpu", saying=["tpu", "cpu"])


def test_in_turn() -> None:
    made: list[str] = []
    ways = {name: lambda count, name=name: made.extend([name] * count) for name in "ab"}
    times = in_turn(ways, 2, "test", warm=1)
    assert "".join(made) == "ba" + "ab" + "ba"
    assert {name: len(found) for name, found in times.items()} == {"a": 2, "b": 2}


def test_row() -> None:
    found = row("steps", "x", 2, [3.0, 1.0, 2.0], [1.0, 1.0, 4.0])
    assert (found["ms"], found["low"], found["high"], found["ratio"]) == (2.0, 1.5, 2.5, 1.0)
    assert found["images_per_second"] == 1000
    assert row("steps", "x", 1, [4.0])["high"] == 4.0


def test_a_page_without_benchmarks(tmp_path: Path) -> None:
    page = "<!-- bench:gpu/modes/eager/1 -->?<!-- end --> <!-- bench:gpu/many -->?<!-- end -->"
    assert filled(page, read_benches(tmp_path), PAPER) == (
        "<!-- bench:gpu/modes/eager/1 -->not measured<!-- end --> "
        "<!-- bench:gpu/many -->\n\nNot measured yet.\n\n<!-- end -->"
    )


@pytest.mark.slow
def test_processes_together_and_data_on_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    done("--quick", "--device", "cpu", "--sections", "devices,streamed", "--json", file)
    rows = {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert list(rows) == ["processes_1", "processes_2", "in memory", "on the disk"]
    assert all(row["batch"] == 16 and min(row["times"]) > 0 for row in rows.values())
    assert (rows["in memory"]["read"], rows["processes_1"]["ratio"]) == (0, 1)


def test_networks_of_the_paper(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    done("--quick", "--device", "cpu", "--sections", "networks", "--json", file)
    (one,) = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert (one["name"], one["batch"], one["ratio"]) == ("residual_unet", 2, None)
    assert min(one["times"]) > 0


def test_times_at_another_batch() -> None:
    """Whoever has no time at that batch has no column."""
    here = {
        "device": "H1",
        "rows": [row("steps", "partial", batch, [2.0 * batch], [1.0], label="p") for batch in (1, 8)],
    }
    theirs = {"paper": {"1": {"partial": 4.0}}, "authors": {"1": {"partial": 3.0}, "8": {"partial": 5.0}}}
    head, line = timing_lines([here, {"device": "H2", "rows": []}], theirs, 8)
    assert head == ["a training step, batch 8", "authors (ms)", "ratio", "H1 (ms)", "ratio"]
    assert line == ["p", "5.00", "1.000", "16.00", "16.000"]


def test_patches_of_volumes(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    done("--quick", "--device", "cpu", "--sections", "patches", "--json", file)
    alone, estimated = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [alone["name"], estimated["name"]] == ["4 x 48 x 48", "4 x 48 x 48, estimated"]
    for found in (alone, estimated):
        assert found["steps_per_second"] == pytest.approx(1000 / found["ms"])
    assert estimated["refresh"] > 0
    assert alone["ratio"] == 1
