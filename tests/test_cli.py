"""The command line as a program: quick to answer, plain about mistakes, and the same from either end."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import inbounds
from archives import command, done, heart, made, refused
from inbounds.store.store import Store

COMMANDS = [
    "recipes",
    "example",
    "annotate",
    "facts",
    "info",
    "verify",
    "preview",
    "prepare",
    "train",
    "evaluate",
    "predict",
    "report",
    "export",
    "nnunet",
]
SETS = ["acdc", "promise12", "spine", "folder", "add", "phantom"]


@pytest.mark.parametrize("words", [[], *[[name] for name in COMMANDS], *[["prepare", name] for name in SETS]])
def test_help(words: list[str]) -> None:
    outcome = done(*words, "--help")
    assert "Usage: inbounds" in outcome.out
    assert "--help" in outcome.out


def test_help_needs_nothing_heavy() -> None:
    script = """
import sys
from inbounds.cli import run
for words in sys.argv[1:]:
    sys.argv = ["inbounds", *words.split(), "--help"]
    try:
        run()
    except SystemExit as end:
        assert not end.code
heavy = {"torch", "nibabel", "SimpleITK", "matplotlib", "scipy", "skimage", "PIL"} & set(sys.modules)
assert not heavy, heavy
"""
    words = ["", *COMMANDS, *(f"prepare {name}" for name in SETS)]
    subprocess.run([sys.executable, "-c", script, *words], check=True, capture_output=True)


def test_as_a_module_and_as_a_mistake() -> None:
    ended = subprocess.run([sys.executable, "-m", "inbounds", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"inbounds {inbounds.__version__}\n"
    ended = subprocess.run([sys.executable, "-m", "inbounds", "info", "nowhere"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "Error: nowhere: this is not a store (no dataset.json in it); make one with `inbounds prepare`\n"
    )


@pytest.mark.parametrize(
    "words", [["frobnicate"], ["prepare", "acdc"], ["annotate", "x"], ["prepare", "phantom", "x", "--side", "47"]]
)
def test_wrong_usage(words: list[str]) -> None:
    outcome = command(*words)
    assert outcome.code == 2
    assert "Usage: inbounds" in outcome.err
    assert "Traceback" not in outcome.err


def test_recipes() -> None:
    out = done("recipes").out
    for name in inbounds.recipes:
        assert name in out


def test_phantom(tmp_path: Path) -> None:
    outcome = done("prepare", "phantom", tmp_path / "store", "--patients", 4, "--side", 48)
    assert "8 scans (6 train, 2 validation)" in outcome.out
    assert outcome.err.splitlines() == [f"preparing: {n} of 8" for n in (2, 4, 6, 8)]
    assert [r.phase for r in Store(tmp_path / "store").records] == ["ED", "ES"] * 4


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "store", {"a": heart(), "b": heart()})


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class TestFacts:
    def test_a_form_is_filled_in_and_comes_back(self, store: Store, tmp_path: Path) -> None:
        form = tmp_path / "forms" / "form.csv"
        done("facts", store.path, "--name", "reader", "--template", form)
        rows = table(form)
        assert len(rows) == 2 * (4 + 1) * 3  # scans, slices and the whole, classes
        assert {row["size_px"] for row in rows} == {""}
        next(row for row in rows if (row["case"], row["slice"], row["class"]) == ("b", "2", "LV"))["size_mm2"] = "60"
        with form.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        assert "30 facts as 'reader'" in done("facts", store.path, "--name", "reader", "--import", form).out
        done("facts", store.path, "--name", "reader", "--export", tmp_path / "out.csv")
        assert table(tmp_path / "out.csv") == rows
        told = [fact for fact in store.facts("reader") if fact.known]
        assert [(fact.case, fact.slice, fact.klass, fact.known) for fact in told] == [("b", 2, 3, {"size_mm2": 60})]

    def test_columns_of_others_are_named(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "facts.csv").write_text("case,class,Reader,size_px,date\na,LV,Dr. A,30-50,today\n")
        out = done("facts", store.path, "--name", "mine", "--import", tmp_path / "facts.csv").out
        assert "1 facts as 'mine'; ignored columns: reader, date" in out
        done("facts", store.path, "--name", "mine", "--export", tmp_path / "out.csv")
        (row,) = table(tmp_path / "out.csv")
        assert (row["size_px"], row["size_px_min"], row["size_px_max"]) == ("", "30", "50")
        (tmp_path / "clicks.csv").write_text("case;slice;row;column;class;date\na;0;1,5;1;LV;today\n")
        out = done("annotate", store.path, "--name", "clicks", "--points", tmp_path / "clicks.csv").out
        assert "1 clicks as annotation 'clicks'; ignored columns: date" in out

    def test_reports_are_read_and_a_dry_run_shows_what_is_understood(self, store: Store, tmp_path: Path) -> None:
        sentences = "LV volume 0.05 ml, EF 57 %, no RV"
        (tmp_path / "reports.csv").write_text(f'case,report\na,"{sentences}"\nb,"left ventricle 0.04-0.06 ml"\n')
        words = ("facts", store.path, "--reports", tmp_path / "reports.csv", "--word", "left ventricle=LV")
        outcome = done(*words, "--dry-run")
        assert "line 2: 'LV volume 0.05 ml': a, LV: volume_ml 0.05" in outcome.out
        assert "line 2: 'no RV': a, RV: present 0" in outcome.out
        assert "line 3: 'left ventricle 0.04-0.06 ml': b, LV: volume_ml_min 0.04, volume_ml_max 0.06" in outcome.out
        assert "3 facts; nothing was brought in" in outcome.out
        assert "line 2: 'EF 57 %' was not understood: no number with a unit that is known" in outcome.err
        assert store.fact_names == []
        assert "3 facts as 'reports'" in done(*words, "--name", "reports").out
        assert store.facts("reports").rows[0].known == {"volume_ml": 0.05}
        (tmp_path / "reports.csv").write_text("case,report\na,nothing to say\n")
        refused(*words, "--name", "more", saying=["nothing was understood", "--dry-run"], folder=tmp_path)
        refused(
            *words[:-1], "heart", "--name", "more", saying=["--word heart: write it as word=class"], folder=tmp_path
        )

    def test_a_dry_run_of_a_table_brings_nothing_in(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "facts.csv").write_text("case,class,size_px,ratio\na,LV,30,\na,LV:RV,,0.5\n")
        words = ("facts", store.path, "--import", tmp_path / "facts.csv")
        assert "2 facts; nothing was brought in" in done(*words, "--dry-run").out
        assert store.fact_names == []
        assert "2 facts as 'mine'" in done(*words, "--name", "mine").out

    def test_export_of_what_was_simulated(self, store: Store, tmp_path: Path) -> None:
        done("annotate", store.path, "--name", "seeds", "--strategy", "erosion", "--classes", "LV")
        done("facts", store.path, "--name", "seeds", "--export", tmp_path / "out.csv")
        done("facts", store.path, "--name", "copy", "--import", tmp_path / "out.csv")
        assert store.facts("copy") == store.facts("seeds")
        words = ("facts", store.path, "--name", "seeds", "--export", tmp_path / "out.csv")
        refused(*words, saying=["out.csv: already exists", "choose another name"], folder=tmp_path)

    @pytest.mark.parametrize(
        ("lines", "saying"),
        [
            ("case,class,size\na,LV,3\n", ["unknown column 'size'", "did you mean 'size_px'?"]),
            ("case,class,size_px\nc,LV,3\n", ["line 2: no case 'c'", "there are: a, b"]),
            ("case,class,size_px\na,LVV,3\n", ["line 2: no class 'LVV'", "did you mean 'LV'?"]),
            ("case,class,size_px\na,LV,much\n", ["line 2: size_px is 'much'", "leave the cell empty"]),
        ],
    )
    def test_mistakes_in_a_table(self, store: Store, tmp_path: Path, lines: str, saying: list[str]) -> None:
        (tmp_path / "table.csv").write_text(lines)
        words = ("facts", store.path, "--name", "x", "--import", tmp_path / "table.csv")
        refused(*words, saying=["table.csv", *saying], folder=tmp_path)


def test_annotate_tells_what_it_did(store: Store) -> None:
    out = done(
        "annotate", store.path, "--name", "points", "--strategy", "centroid", "--radius", 0, "--classes", "LV"
    ).out
    assert f"annotation 'points' labels {6 / (8 * 40 * 36):.3%} of all pixels" in out
    assert store.about("points")["classes"] == ["LV"]


def test_all_that_the_disk_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> Store:
        raise PermissionError(13, "Permission denied", "somewhere/dataset.json")

    monkeypatch.setattr("inbounds.cli.data.open_store", broken)
    refused("info", tmp_path, saying=["Permission denied", "somewhere/dataset.json", "check"])


def test_options_that_clicks_have_no_use_for_and_an_empty_form_are_refused(store: Store, tmp_path: Path) -> None:
    clicks, form = tmp_path / "clicks.csv", tmp_path / "form.csv"
    clicks.write_text("case,slice,row,column,class\na,1,20,20,LV\n")
    words = ["annotate", store.path, "--points", clicks, "--name", "x"]
    for option in (["--classes", "LV"], ["--background"], ["--margin", 2], ["--noise", 0.1], ["--jitter", 1]):
        refused(*words, *option, saying=[option[0], "goes with --strategy, not with --points"], folder=tmp_path)
    done("facts", store.path, "--template", form)
    refused(
        "facts", store.path, "--import", form, "--name", "x", saying=[form, "no cell says anything"], folder=tmp_path
    )


@pytest.mark.parametrize("words", [("verify", "loop"), ("prepare", "phantom", "loop")])
def test_links_that_lead_to_themselves(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused(
        *(tmp_path / word if word == "loop" else word for word in words), saying=[tmp_path / "loop"], folder=tmp_path
    )
