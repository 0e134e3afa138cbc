"""Weak labels in a store: simulated ones tell nothing but the truth, clicks land where people clicked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from archives import command, done, refused
from inbounds.annotations import UNLABELLED
from inbounds.config import read_settings
from inbounds.config.plan import plan
from inbounds.errors import BadInput
from inbounds.store.annotate import import_points, simulate
from inbounds.store.grid import GridWindow
from inbounds.store.measure import Noise
from inbounds.store.seeds import strategies
from inbounds.store.store import Store
from making import image_of, make_store, source, truth_like
from training_runs import hearts_store


@pytest.fixture
def store(tmp_path) -> Store:
    return make_store(tmp_path / "store")


def content(store: Store, name: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (store.path / "annotations" / name).iterdir()}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("classes", [[1], [1, 2]])
@pytest.mark.parametrize("strategy", strategies)
def test_marks_lie_inside_the_truth_of_the_classes_asked_for(store, strategy, classes, background) -> None:
    simulate(store, "weak", strategy, classes, background=background)
    label, truth = store.label("weak")[:], store.truth[:]
    assert store.annotations == ["full", "weak"]
    if strategy == "box":
        outside = label == 0
        assert not np.isin(truth[outside], classes).any()
        assert set(np.unique(label)) == {0, UNLABELLED}
        return
    marked = label != UNLABELLED
    np.testing.assert_array_equal(label[marked], truth[marked])
    for mask, marks in zip(truth, label, strict=True):
        wanted = (set(np.unique(mask)) & set(classes)) | ({0} if background else set())
        assert set(np.unique(marks)) - {UNLABELLED} == wanted


@pytest.mark.parametrize("strategy", strategies)
def test_the_same_seed_gives_the_same_bytes_and_another_others(tmp_path, strategy) -> None:
    noise = None if strategy == "box" else Noise(size=0.1, position=0.5)
    made = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        store = make_store(tmp_path / name)
        simulate(store, "weak", strategy, [1, 2], seed=seed, background=True, noise=noise)
        made.append(content(store, "weak"))
    assert sorted(made[0]) == ["annotation.json", "facts.csv", "labels.npy"]
    assert made[0] == made[1]
    if strategy != "box":  # which draws nothing
        assert made[0]["labels.npy"] != made[2]["labels.npy"]
        assert made[0]["facts.csv"] != made[2]["facts.csv"]


@pytest.mark.parametrize("strategy", ["disc", "scribble"])
def test_a_scan_is_marked_alike_whatever_the_others_hold(tmp_path, strategy) -> None:
    labels, facts = [], []
    for seed in (5, 6):
        store = make_store(tmp_path / str(seed), [source("a", truth_like(seed)), source("b", truth_like(1))])
        simulate(store, "weak", strategy, [1, 2], background=True, noise=Noise(0.1, 1.0))
        labels.append(store.label("weak"))
        facts.append([fact for fact in store.facts("weak") if fact.case == "b"])
    np.testing.assert_array_equal(labels[0][3:], labels[1][3:])
    assert (labels[0][:3] != labels[1][:3]).any()
    assert facts[0] == facts[1]


def test_equal_scans_are_not_marked_alike(tmp_path) -> None:
    store = make_store(tmp_path / "store", [source(name, truth_like(1)) for name in "ab"])
    simulate(store, "weak", "disc", [1, 2])
    assert (store.label("weak")[:3] != store.label("weak")[3:]).any()


@pytest.mark.parametrize("noise", [Noise(size=0.2), Noise(position=2.0)])
def test_noise_changes_facts_but_not_labels(store, noise) -> None:
    simulate(store, "exact", "disc", [1, 2])
    simulate(store, "noisy", "disc", [1, 2], noise=noise)
    exact, noisy = content(store, "exact"), content(store, "noisy")
    assert exact["labels.npy"] == noisy["labels.npy"]
    for before, after in zip(store.facts("exact"), store.facts("noisy"), strict=True):
        assert (before.case, before.slice, before.present) == (after.case, after.slice, after.present)
        if before.present and before.slice is not None:
            assert (before.known["size_px"] != after.known["size_px"]) == bool(noise.size)
            assert (before.known["centroid_row"] != after.known["centroid_row"]) == bool(noise.position)
        if not before.present:
            assert before == after


def test_each_slice_and_scan_gets_its_row_of_facts(store) -> None:
    simulate(store, "weak", "erosion", [2])
    rows = store.facts("weak").rows
    assert [(fact.case, fact.slice) for fact in rows] == [(c, n) for c in "ab" for n in (0, 1, 2, None)]
    assert {fact.klass for fact in rows} == {2}
    sizes = [(mask == 2).sum() for mask in store.truth[:3]]
    assert [fact.known["size_px"] for fact in rows[:4]] == [*sizes, sum(sizes)]
    assert rows[3].known["volume_ml"] == pytest.approx(sum(sizes) * 8 * 1.25 * 1.5 / 1000)


def test_a_box_tells_its_share_and_middle(store) -> None:
    simulate(store, "weak", "box", [1], box_share=(0.5, 0.7), settings={"margin": 1})
    about = store.about("weak")
    assert about["size_relative"] == pytest.approx(0.1 / 0.6)
    fact = store.facts("weak").rows[0]
    rows, columns = np.nonzero(store.truth[0] == 1)
    sides = np.ptp(rows) + 3, np.ptp(columns) + 3  # one pixel wider on every side
    assert fact.known["size_px"] == pytest.approx(0.6 * sides[0] * sides[1])
    corner = store.records[0].fit.point_back((rows.min() + rows.max()) / 2, (columns.min() + columns.max()) / 2)
    assert (fact.known["centroid_row"], fact.known["centroid_col"]) == pytest.approx(corner)
    assert (store.label("weak")[0] == UNLABELLED).sum() == sides[0] * sides[1]
    assert not any(fact.slice is None for fact in store.facts("weak"))
    assert "mean_intensity" not in fact.known


def test_settings_reach_the_strategy(store) -> None:
    simulate(store, "small", "disc", [1], settings={"radius": 0})
    simulate(store, "large", "disc", [1], settings={"radius": 2})
    assert (store.label("small")[:2] == 1).sum(axis=(1, 2)).tolist() == [1, 1]
    assert ((store.label("large")[:2] == 1).sum(axis=(1, 2)) > 1).all()
    assert store.about("large")["settings"] == {"radius": 2}


def test_a_scan_without_truth_gets_neither_labels_nor_facts(tmp_path) -> None:
    known, unknown = truth_like(0), source("u", None, image=image_of(truth_like(1)))
    store = make_store(tmp_path / "store", [unknown, source("k", known)])
    simulate(store, "weak", "box", [1, 2])
    assert (store.label("weak")[:3] == UNLABELLED).all()
    assert {fact.case for fact in store.facts("weak")} == {"k"}


def test_simulation_refuses_what_it_cannot_do(tmp_path, store) -> None:
    with pytest.raises(BadInput, match="no strategy 'dics'; there are: erosion, disc"):
        simulate(store, "weak", "dics", [1])
    bare = make_store(tmp_path / "bare", [source("u", None, image=image_of(truth_like(1)))])
    with pytest.raises(BadInput, match=r"bare: .*this store has none"):
        simulate(bare, "weak", "disc", [1])
    simulate(store, "weak", "disc", [1])
    before = content(store, "weak")
    with pytest.raises(BadInput, match="weak"):
        simulate(store, "weak", "erosion", [1])
    assert content(store, "weak") == before
    assert store.annotations == ["full", "weak"]


def clicks(path: Path, *lines: str, header: str = "case,slice,row,column,class") -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("fit", [GridWindow.pad, GridWindow.resize])
@pytest.mark.parametrize("shape", [(32, 32), (21, 17), (60, 13), (95, 101)])
def test_a_click_labels_the_pixel_it_lies_in(tmp_path, fit, shape) -> None:
    original = (30, 26)
    store = make_store(tmp_path / "store", fit=fit, shape=shape)
    spots = [(0, 14.0, 12.0, 1), (1, 10.3, 8.6, 2), (2, 11.6, 15.0, 0)]
    lines = [f"b,{number},{row},{column},{store.classes[klass]}" for number, row, column, klass in spots]
    assert import_points(store, clicks(tmp_path / "clicks.csv", *lines), "mine") == (3, ())
    label = store.label("mine")[:]
    assert (label[:3] == UNLABELLED).all()
    for number, row, column, klass in spots:
        (at,) = np.argwhere(label[3 + number] != UNLABELLED)
        assert label[3 + number][tuple(at)] == klass
        near = store.records[1].fit.point_back(*at.tolist())
        reach = [max(0.5, 0.5 / scale) for scale in store.records[1].fit.scale]  # half of the larger of both pixels
        assert abs(near[0] - row) <= reach[0] + 1e-9
        assert abs(near[1] - column) <= reach[1] + 1e-9
    assert original == store.records[1].fit.original


@pytest.mark.parametrize("corner", [(0, 0), (29, 25), (-0.5, 25.4), (29.49, -0.4)])
@pytest.mark.parametrize(
    ("fit", "shape"), [(GridWindow.pad, (32, 32)), (GridWindow.resize, (64, 13)), (GridWindow.resize, (7, 95))]
)
def test_a_click_at_the_edge_of_the_slice_counts(tmp_path, corner, fit, shape) -> None:
    store = make_store(tmp_path / "store", fit=fit, shape=shape)
    import_points(store, clicks(tmp_path / "clicks.csv", f"a,1,{corner[0]},{corner[1]},LV"), "mine")
    assert int((store.label("mine")[:] == 2).sum()) == 1


@pytest.mark.parametrize(("radius", "count"), [(0, 1), (1, 9), (2, 21)])
def test_a_click_may_be_a_disc(tmp_path, store, radius, count) -> None:
    import_points(store, clicks(tmp_path / "clicks.csv", "a,0,15,12,1"), "mine", radius=radius)
    rows, columns = np.nonzero(store.label("mine")[0] == 1)
    assert len(rows) == count
    assert (rows.mean(), columns.mean()) == store.records[0].fit.point(15, 12)


def test_two_classes_on_one_pixel_are_refused_by_both_lines(tmp_path, store) -> None:
    file = clicks(tmp_path / "clicks.csv", "a,0,15,12,LV", "a,1,15,12,RV", "a,0,15,12,LV", "a,0,15.2,11.8,RV")
    with pytest.raises(
        BadInput, match=r"clicks\.csv, line 5: a, slice 0, row 15\.2, column 11\.8 is RV here and LV in line 2"
    ):
        import_points(store, file, "mine")
    assert store.annotations == ["full"]


def test_an_annotation_is_replaced_if_told(tmp_path, store) -> None:
    """One that was being replaced when the process died is there again."""
    first, second = (clicks(tmp_path / f"{row}.csv", f"a,0,{row},12,LV") for row in (15, 16))
    done("annotate", store.path, "--points", first, "--name", "mine")
    before = store.label("mine")[:]
    for words in ([], ["--overwrite"]):
        bad = clicks(tmp_path / "bad.csv", "a,0,15,12,none")
        outcome = command("annotate", store.path, "--points", bad, "--name", "mine", *words)
        assert outcome.code == 2
    refused("annotate", store.path, "--points", second, "--name", "mine", saying=["'mine' already", "--overwrite"])
    np.testing.assert_array_equal(Store(store.path).label("mine")[:], before)
    done("annotate", store.path, "--points", second, "--name", "mine", "--overwrite")
    after = Store(store.path).label("mine")[:]
    assert not np.array_equal(before, after)
    folder = store.path / "annotations" / "mine"
    folder.rename(folder.with_name(".mine.before"))
    np.testing.assert_array_equal(Store(store.path).label("mine")[:], after)


def test_facts_are_replaced_if_told(tmp_path, store) -> None:
    done("annotate", store.path, "--strategy", "erosion", "--name", "eroded")
    for size in (10, 20):
        (tmp_path / f"{size}.csv").write_text(f"case,slice,class,size_px\na,0,LV,{size}\n")
    words = ["facts", store.path, "--name", "sizes", "--import"]
    done(*words, tmp_path / "10.csv")
    refused(*words, tmp_path / "20.csv", saying=["facts called 'sizes' already", "--overwrite replaces them"])
    done(*words, tmp_path / "20.csv", "--overwrite")
    assert [fact.known["size_px"] for fact in store.facts("sizes")] == [20]
    refused("facts", store.path, "--name", "eroded", "--import", tmp_path / "10.csv", "--overwrite",
            saying=["what has it is of another kind"])  # fmt: skip


def test_two_classes_on_one_pixel_of_a_coarse_grid_are_said(tmp_path) -> None:
    """Nobody knows which it is."""
    store = make_store(tmp_path / "coarse", fit=GridWindow.resize, shape=(10, 13))
    file = clicks(tmp_path / "clicks.csv", "a,0,15,12,LV", "a,0,16,12,RV", "b,1,3,3,LV")
    said = done("annotate", store.path, "--points", file, "--name", "mine").err
    where = "a, slice 0, LV in row 15, column 12 and RV in row 16, column 12"
    assert f"Warning: clicks of two classes lie on one pixel of the grid, which is left unlabelled: {where};" in said
    assert np.unique(store.label("mine")[:]).tolist() == [2, UNLABELLED]
    assert {(fact.case, fact.klass) for fact in store.facts("mine")} == {("a", 1), ("a", 2), ("b", 2)}


def test_of_discs_that_overlap_the_nearer_click_counts(tmp_path, store) -> None:
    """Whatever their order, and no click loses its own pixel."""
    lines = ["a,0,15,10,LV", "a,0,15,12,RV", "a,0,15,13,LV"]
    labels = []
    for number, order in enumerate((lines, lines[::-1])):
        import_points(store, clicks(tmp_path / "clicks.csv", *order), f"mine{number}", radius=2)
        labels.append(store.label(f"mine{number}")[0])
    row, column = (round(at) for at in store.records[0].fit.point(15, 8))
    assert labels[0][row, column : column + 8].tolist() == [2, 2, 2, UNLABELLED, 1, 2, 2, 2]
    np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize("absent_elsewhere", [False, True])
def test_a_clicked_class_is_present_and_elsewhere_absent_if_so_told(tmp_path, store, absent_elsewhere) -> None:
    file = clicks(tmp_path / "clicks.csv", "a,0,3,3,LV", "a,0,4,3,LV", "a,2,3,3,LV", "b,1,3,3,RV", "b,0,0,0,0")
    assert import_points(store, file, "mine", absent_elsewhere=absent_elsewhere) == (5, ())
    told = {(fact.case, fact.slice, fact.klass): fact.present for fact in store.facts("mine")}
    present = {("a", 0, 2): True, ("a", 2, 2): True, ("b", 1, 1): True}
    absent = {("a", 1, 2): False, ("b", 0, 1): False, ("b", 2, 1): False}
    assert told == (present | absent if absent_elsewhere else present)


def test_clicks_need_no_truth(tmp_path) -> None:
    store = make_store(tmp_path / "bare", [source("u", None, image=image_of(truth_like(1)))])
    import_points(store, clicks(tmp_path / "clicks.csv", "u,0,3,3,LV"), "mine")
    assert store.annotations == ["mine"]
    assert not store.about("mine")["simulated"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c,0,1,1,LV", "no case 'c'"),
        (",0,1,1,LV", "no case ''"),
        ("a,0,1,1,LVV", "no class 'LVV'; did you mean 'LV'"),
        ("a,0,1,1,", "no class ''"),
        ("a,0,1", "no class ''"),
        ("a,0,1,,LV", "a click needs a slice, a row and a column; fill them in"),
        ("a,,1,1,LV", "a click needs a slice"),
        ("a,zero,1,1,LV", "slice is 'zero', which is no number"),
        ("a,0.5,1,1,LV", "slice 0.5 of a, which has slices 0 to 2"),
        ("a,0,x,1,LV", "row is 'x', which is no number"),
        ("a,0,nan,1,LV", "row is 'nan', which is no number"),
        ("a,3,1,1,LV", "slice 3 of a"),
        ("a,-1,1,1,LV", "slice -1 of a"),
        ("a,0,29.6,1,LV", "lies outside a, whose slices have 30 rows and 26 columns"),
        ("a,0,1,26,LV", "lies outside a"),
        ("a,0,-0.6,1,LV", "lies outside a"),
    ],
)
def test_a_wrong_click_is_named_with_file_and_line_and_leaves_nothing(tmp_path, store, line, message) -> None:
    file = clicks(tmp_path / "clicks.csv", "a,0,1,1,LV", "", line)
    with pytest.raises(BadInput, match=rf"{re.escape(str(file))}, line 4: .*{message}"):
        import_points(store, file, "mine")
    assert store.annotations == ["full"]


def test_files_that_are_no_clicks(tmp_path, store) -> None:
    with pytest.raises(BadInput, match=r"none\.csv: cannot be read"):
        import_points(store, tmp_path / "none.csv", "mine")
    for header in ("case,slice,row,col,class", ""):
        with pytest.raises(
            BadInput, match=r"clicks\.csv: there is no column .*columns: case, slice, row, column, class"
        ):
            import_points(store, clicks(tmp_path / "clicks.csv", "a,0,1,1,LV", header=header), "mine")
    with pytest.raises(BadInput, match=r"clicks\.csv: there is no click; write a line for each"):
        import_points(store, clicks(tmp_path / "clicks.csv", ""), "mine")
    (tmp_path / "clicks.csv").write_bytes("case,slice,row,column,class\nMüller,0,1,1,LV".encode("latin-1"))
    with pytest.raises(BadInput, match=r"clicks\.csv: not a text file in UTF-8"):
        import_points(store, tmp_path / "clicks.csv", "mine")
    assert store.annotations == ["full"]


def test_clicks_as_any_spreadsheet_writes_them(tmp_path, store) -> None:
    """A mark at the start, semicolons, decimal commas, capitals, columns of one's own in any order."""
    file = tmp_path / "clicks.csv"
    file.write_bytes("\ufeffReader;Class;Column;ROW;Slice;Case\r\nDr. A;LV;12,4;14,0;1;b\r\n".encode())
    assert import_points(store, file, "mine") == (1, ("reader",))
    ((slice_, *at),) = np.argwhere(store.label("mine")[:] != UNLABELLED).tolist()
    assert (slice_, *at) == (4, *(round(x) for x in store.records[1].fit.point(14, 12.4)))
    with pytest.raises(BadInput, match="unknown column 'colum'; did you mean 'column'"):
        import_points(store, clicks(file, "a,0,1,1,LV", header="case,slice,row,colum,class"), "other")


@pytest.mark.parametrize("share", [(0.9, 0.5), (0, 0.5), (0.5, 1.1)])
def test_refuses_a_share_of_a_box_that_cannot_be(tmp_path, share) -> None:
    with pytest.raises(BadInput, match="fills between 0 and 1 of its box"):
        simulate(make_store(tmp_path / "store"), "weak", "box", [1], box_share=share)


def test_what_is_stopped_leaves_no_folder_behind(store) -> None:
    def stopped(records):
        yield records[0]
        raise KeyboardInterrupt

    before = sorted(store.path.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        simulate(store, "weak", "disc", [1], track=stopped)
    assert sorted(store.path.rglob("*")) == before


def test_damaged_facts_are_refused_before_anything_is_written(tmp_path, store) -> None:
    (tmp_path / "clicks.csv").write_text("case,slice,row,column,class\na,0,3,4,RV\n")
    (store.path / "facts").mkdir()
    (store.path / "facts" / "sizes.csv").write_bytes(b"\xff")
    words = ("annotate", store.path, "--name", "seeds", "--points", tmp_path / "clicks.csv")
    refused(*words, saying=["sizes.csv", "UTF-8"], folder=store.path)


def test_of_every_second_slice_alone(store) -> None:
    simulate(store, "all", "disc", [1, 2])
    simulate(store, "some", "disc", [1, 2], every=2)
    whole, some = store.label("all"), store.label("some")
    np.testing.assert_array_equal(some[1], whole[1])
    np.testing.assert_array_equal(np.stack([some[0], some[2]]), UNLABELLED)
    assert [fact for fact in store.facts("all") if fact.slice in (1, None)] == list(store.facts("some"))


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return hearts_store(tmp_path_factory.mktemp("hearts") / "store")


def drawn_clicks(store: Store, file: Path, number: int, *, exchanged: bool) -> Path:
    """Clicks on pixels of the truth, two of every class in every slice that shows it, and background as well."""
    rng = np.random.default_rng(0)
    lines = []
    for record in store.records:
        for index, mask in enumerate(store.truth[record.first : record.range.stop]):
            for klass in np.unique(mask):
                for at in rng.permutation(np.argwhere(mask == klass))[:2]:
                    row, column = record.fit.point_back(*at.tolist())
                    place = f"{column},{row}" if exchanged else f"{row},{column}"
                    lines.append(f"{record.name},{index},{place},{klass}")
    return clicks(
        file, *[line for line in lines if line[-1] != "0"][:number], *[line for line in lines if line[-1] == "0"]
    )


@pytest.mark.parametrize(("number", "exchanged", "said"), [(60, True, True), (60, False, False), (19, True, False)])
def test_clicks_with_rows_and_columns_exchanged_are_noted(tmp_path, phantoms, number, exchanged, said) -> None:
    file = drawn_clicks(phantoms, tmp_path / "clicks.csv", number, exchanged=exchanged)
    name = f"clicks-{number}-{exchanged}"
    told = done("annotate", phantoms.path, "--points", file, "--name", name).err
    assert ("Warning: rows and columns of the clicks in clicks.csv seem to be exchanged" in told) == said
    notes = phantoms.about(name).get("notes", [])
    assert len(notes) == said
    words = plan(read_settings("known", None, []), phantoms, name, name, ["LV"], gpu=False).words
    assert [line for line in words if "seem to be exchanged" in line] == [f"Warning: {note}" for note in notes]


def test_brightness_that_varies_half_as_much_is_the_limit(tmp_path) -> None:
    """Twenty clicks on 0 and 100 by turns, whose exchanged places hold 0 and `bright`: a variance of (bright / 2)^2."""
    for bright, said in ((70, True), (72, False)):  # 35^2 = 1225 and 36^2 = 1296 beside 50^2 / 2 = 1250
        image = np.zeros((1, 1, 32, 32), np.float32)
        image[0, 0, 1, 2:22:2], image[0, 0, 2:22:2, 1] = 100, bright
        image[0, 0, 31, 31] = 100
        store = make_store(tmp_path / str(bright), [source("u", None, image=image, split="train")])
        lines = [f"u,0,1,{column},LV" for column in range(2, 22)]
        import_points(store, clicks(tmp_path / "clicks.csv", *lines), "mine")
        assert bool(store.about("mine").get("notes")) == said
