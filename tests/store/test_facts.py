"""A facts table: as any spreadsheet writes it, with every mistake named by file and line."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inbounds.errors import BadInput
from inbounds.regions import statistics
from inbounds.store.facts import Fact, Facts
from inbounds.store.grid import GridWindow
from inbounds.store.record import Record
from making import row

CLASSES = ("background", "RV", "LV")
SPACING = (8.0, 1.25, 1.5)


def case(name: str, slices: int, original: tuple[int, int], spacing: tuple[float, float, float]) -> Record:
    return Record(name, name, "train", 0, slices, GridWindow.pad(original, (64, 64)), spacing, (0.0, 1.0))


CASES = {
    "patient001_ED": case("patient001_ED", 5, (40, 30), SPACING),
    "patient002_ED": case("patient002_ED", 3, (64, 64), (1.0, 1.0, 1.0)),
    "large": case("large", 19, (255, 257), (10.0, 1.3671, 1.3671)),
}
COLUMNS = ("size_px", "size_mm2", "volume_ml", "centroid_row", "centroid_col", "mean_intensity", "compactness")
HEADER = ",".join(("case", "slice", "class", "present", *COLUMNS))


def table(tmp_path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    file = tmp_path / "facts.csv"
    file.write_bytes("\n".join(lines).encode(encoding))
    return file


def read(tmp_path: Path, *lines: str, **how: str) -> list[Fact]:
    return list(Facts.read(table(tmp_path, *lines, **how), CLASSES, CASES))


NUMBERS = dict(zip(COLUMNS, (100.5, 188.4, 1.5, 10.25, 12.0, 300.0, 20.0), strict=True))
WHOLE = Fact("patient001_ED", 2, 2, True, NUMBERS)


@pytest.mark.parametrize(
    "lines",
    [
        (HEADER, "patient001_ED,2,LV,1,100.5,188.4,1.5,10.25,12,300,20"),
        (HEADER, "patient001_ED,2,2,yes,100.5,188.4,1.5,10.25,12,300,20", "", ",,,,,,,,,"),
        (HEADER.replace(",", ", "), "patient001_ED , 2.0 , LV , TRUE , 1.005e2 , 188.4 , 1.5 , 10.25 , 12 , 300 , 20"),
        (HEADER.replace(",", ";"), "patient001_ED;2;LV;y;100,5;188,4;1,5;10,25;12;3e2;20"),
        (HEADER.replace(",", ";"), "patient001_ED;2;LV;1;100.5;188.4;1.5;10.25;12;300;20"),
        (HEADER.replace(",", "\t"), "patient001_ED\t2\tLV\t1\t100.5\t188.4\t1.5\t10.25\t12\t300\t20"),
        (HEADER.upper(), '"patient001_ED","2","LV","1","100.5","188.4","1.5","10.25","12","300","20"'),
        (
            "compactness,mean_intensity,centroid_col,centroid_row,volume_ml,size_mm2,size_px,present,class,slice,case",
            "20,300,12,10.25,1.5,188.4,100.5,Yes,LV,2,patient001_ED",
        ),
    ],
    ids=["commas", "blank lines", "spaces", "decimal commas", "semicolons", "tabs", "quoted", "any order"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["", "\r"])
def test_a_table_as_any_spreadsheet_writes_it(tmp_path, lines, encoding, ending) -> None:
    assert read(tmp_path, *(line + ending for line in lines), encoding=encoding) == [WHOLE]


@pytest.mark.parametrize(("cell", "present"), [("1", True), ("No", False), ("false", False), ("0", False), ("", None)])
def test_presence_alone(tmp_path, cell, present) -> None:
    (fact,) = read(tmp_path, "case,slice,class,present", f"patient001_ED,0,RV,{cell}")
    assert fact == row("patient001_ED", 0, 1, present)


def test_columns_may_be_left_out_and_a_row_may_end_early(tmp_path) -> None:
    assert read(tmp_path, "class,case", "LV,patient002_ED") == [row("patient002_ED", None, 2)]
    assert read(tmp_path, HEADER, "patient002_ED,1,LV") == [row("patient002_ED", 1, 2)]
    assert read(tmp_path, HEADER) == []


def test_a_class_is_known_by_its_name_before_its_number(tmp_path) -> None:
    file, classes = tmp_path / "facts.csv", ("background", "2", "1")
    Facts((row("patient001_ED", 0, 1), row("patient001_ED", 0, 2, True)), classes).write(file)
    assert [(fact.klass, fact.present) for fact in Facts.read(file, classes, CASES)] == [(1, None), (2, True)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("patient001_ES,0,LV", r"no case 'patient001_ES'; did you mean 'patient001_ED'"),
        (",0,LV", r"no case ''; there are: patient001_ED, patient002_ED, large"),
        ("patient001_ED,0,LVV", r"no class 'LVV'; did you mean 'LV'"),
        ("patient001_ED,0,7", r"no class '7'; there are: background, RV, LV"),
        ("patient001_ED,0,", r"no class ''"),
        ("patient001_ED,5,LV", r"slice 5 of patient001_ED, which has slices 0 to 4"),
        ("patient001_ED,-1,LV", r"slice -1 of"),
        ("patient001_ED,1.5,LV", r"slice 1\.5 of"),
        ("patient001_ED,basal,LV", r"slice is 'basal', which is no number; leave the cell empty"),
        ("patient001_ED,0,LV,perhaps", r"present is 'perhaps'; write 1 or 0"),
        ("patient001_ED,0,LV,,-3", r"size_px is -3; a size is 0 or more"),
        ("patient001_ED,0,LV,,,-0.5", r"size_mm2 is -0\.5"),
        ("patient001_ED,,LV,,,,-1", r"volume_ml is -1"),
        ("patient001_ED,0,LV,,12 px", r"size_px is '12 px', which is no number"),
        ("patient001_ED,0,LV,,nan", r"size_px is 'nan', which is no number"),
        ("patient001_ED,0,LV,,1e999", r"size_px is '1e999', which is no number"),
        ('patient001_ED,0,LV,,"12,5"', r"size_px is '12,5', which is no number"),
        (
            "patient001_ED,0,LV,,,,,40,3",
            r"centroid_row is 40; it lies outside the slice, which has 40 of them \(0 to 39\)",
        ),
        ("patient001_ED,0,LV,,,,,3,-0.6", r"centroid_col is -0\.6; it lies outside"),
        ("patient001_ED,0,LV,,,,,3", r"a centroid needs all of centroid_row, centroid_col"),
        ("patient001_ED,0,LV,,,,,,3", r"a centroid needs all of"),
        ("patient001_ED,0,LV,0,12", r"present is 0 but the size is 12; correct one"),
        ("patient001_ED,0,LV,yes,0", r"present is yes but the size is 0"),
        ("patient001_ED,,LV,no,,,3", r"present is no but the size is"),
        ("patient001_ED,0,LV,,1201", r"a size of 1201 pixels is more than there are \(1200\); check the unit"),
        ("patient001_ED,0,LV,,,2300", r"is more than there are \(1200\)"),
        ("patient001_ED,,LV,,6001", r"is more than there are \(6000\)"),
        ("patient001_ED,,LV,,,,100", r"is more than there are \(6000\)"),
        ("patient001_ED,0,LV,,,,,,,,,surplus", r"12 cells for 11 columns"),
        ("patient001_ED,0,LV,0,,,,3,3", r"present is 0 but the centroid is 3; correct one"),
        ("patient001_ED,,LV,,,100", r"size_mm2 is 100, which a whole scan does not have; give size_px or volume_ml"),
        ("patient001_ED,0,LV,,100,100", r"size_mm2 is 100, or 53.3333 in size_px, not 100; keep one"),
        ("patient001_ED,0,LV,,,,,,,,-1", r"compactness is -1; a compactness is above 0"),
        ("patient001_ED,0,LV,,1200-800", r"size_px goes from 1200 to 800; put the smaller number first"),
        ("patient001_ED,0,LV,,800-1201", r"size_px_max is 800-1201; a size of 1201 pixels is more than there are"),
        ("patient001_ED,0,LV,,8-1e999", r"size_px is '1e999', which is no number"),
        ("patient001_ED,0,LV,,8-9-10", r"size_px is '8-9-10', which is no number"),
        ("patient001_ED,0,LV,0,5-9", r"present is 0 but the size is 5; correct one"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path, row, message) -> None:
    file = table(tmp_path, HEADER, "patient001_ED,0,RV,1", "", row)
    with pytest.raises(BadInput, match=rf"{re.escape(str(file))}, line 4: .*{message}"):
        Facts.read(file, CLASSES, CASES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("patient001_ED,1,LV,1", "patient001_ED,1,LV"),
        ("patient001_ED,1,LV", "patient001_ED,1.0,2,1"),
        ("patient001_ED,,2", "patient001_ED,,LV"),
    ],
)
def test_a_second_row_for_the_same_region_is_refused(tmp_path, first, second) -> None:
    with pytest.raises(BadInput, match=r"facts\.csv, line 3: a second row for patient001_ED, slice .*keep one"):
        read(tmp_path, HEADER, first, second)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("case,class,sise_px", r"unknown column 'sise_px'; did you mean 'size_px'"),
        ("case,class,size", r"unknown column 'size'; did you mean 'size_px'"),
        ("case,classes", r"unknown column 'classes'; did you mean 'class'"),
        ("slice,class", r"there is no column 'case'; the first line must name the columns: case, slice"),
        ("case,slice", r"there is no column 'class'"),
        ("case,class,case", r"a column appears twice"),
        ("", r"there is no column 'case'|unknown column ''"),
    ],
)
def test_a_wrong_first_line_is_refused(tmp_path, header, message) -> None:
    with pytest.raises(BadInput, match=rf"facts\.csv.*: ({message})"):
        read(tmp_path, header, "patient001_ED,LV,1")


def test_files_that_are_no_tables(tmp_path) -> None:
    with pytest.raises(BadInput, match=r"facts\.csv: not a text file in UTF-8; save the sheet as 'CSV UTF-8'"):
        read(tmp_path, HEADER, "Müller,0,LV", encoding="latin-1")
    with pytest.raises(BadInput, match=r"facts\.csv: not a text file in UTF-8"):
        read(tmp_path, HEADER, encoding="utf-16")
    with pytest.raises(BadInput, match=r"none\.csv: cannot be read \(No such file or directory\)"):
        Facts.read(tmp_path / "none.csv", CLASSES, CASES)
    with pytest.raises(BadInput, match=r"cannot be read"):
        Facts.read(tmp_path, CLASSES, CASES)
    with pytest.raises(BadInput, match=r"facts\.csv, line 2: .*save the sheet as CSV again"):
        read(tmp_path, HEADER, "x" * 200_000)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | st.text(alphabet="case,;\t\n\"'clas.-019LV\r\x00", max_size=60).map(str.encode))
def test_no_file_makes_a_traceback(tmp_path, content) -> None:
    file = tmp_path / "facts.csv"
    for start in (b"", HEADER.encode() + b"\n", b"case;class\npatient001_ED;LV\n"):
        file.write_bytes(start + content)
        said = str(file)
        try:
            Facts.read(file, CLASSES, CASES)
        except BadInput as error:
            said = str(error)
        assert said.startswith(str(file))


SIZE = statistics["size"].columns
SLICE, SCAN = (CASES["patient001_ED"].geometry(number) for number in (0, None))


def test_units_agree() -> None:
    depth, height, width = SPACING
    for known in ({"size_mm2": 80 * height * width}, {"volume_ml": 80 * depth * height * width / 1000}):
        assert row("a", 0, 1, **known).values(SIZE, SLICE)[0] == pytest.approx([80])
    assert row("a", None, 1, volume_ml=1.2).values(SIZE, SCAN)[0] == pytest.approx([1200 / (8 * 1.25 * 1.5)])
    ends = row("a", 0, 1, size_mm2_min=15, size_mm2_max=30).values(SIZE, SLICE)
    assert [end[0] for end in ends[1:]] == pytest.approx([8, 16])
    for nothing in (row("a", None, 1, size_mm2=100), row("a", 0, 1)):  # an area says nothing of a volume
        assert all(math.isnan(side[0]) for side in nothing.values(SIZE, SCAN))


@pytest.mark.parametrize(
    ("known", "present"),
    [
        ({}, None),
        ({"present": False}, False),
        ({"size_px": 0.0}, False),
        ({"volume_ml": 0.1}, True),
        ({"centroid_row": 1.0, "centroid_col": 1.0}, True),
        ({"mean_intensity": 0.0}, True),
        ({"size_px_min": 1.0}, True),
        ({"size_px_min": 0.0, "size_px_max": 9.0}, None),
        ({"size_px_max": 0.0}, False),
        ({"compactness_max": 20.0}, True),
    ],
)
def test_what_presence_follows_from(known, present) -> None:
    assert row("a", 0, 1, **known).is_present(SLICE) is present


@pytest.mark.parametrize(
    ("header", "line", "known"),
    [
        ("case,class,size_px", "large,LV,800-1200", {"size_px_min": 800, "size_px_max": 1200}),
        ("case,class,size_px", "large,LV,800 - 1200", {"size_px_min": 800, "size_px_max": 1200}),
        ("case,class,size_px", "large,LV,8e2\u20131200.5", {"size_px_min": 800, "size_px_max": 1200.5}),
        ("case;class;size_px", "large;LV;800,5 \u2013 1200,25", {"size_px_min": 800.5, "size_px_max": 1200.25}),
        ("case\tclass\tmean_intensity", "large\tLV\t-5--3", {"mean_intensity_min": -5, "mean_intensity_max": -3}),
        ("case\tclass\tmean_intensity", "large\tLV\t-5e-1", {"mean_intensity": -0.5}),
        ("case,class,SIZE_PX_MIN,size_px_max", "large,LV,800,1200", {"size_px_min": 800, "size_px_max": 1200}),
        ("case,class,size_px_min,size_px_max", "large,LV,,1200", {"size_px_max": 1200}),
        ("case,class,size_px,size_px_min", "large,LV,900,800", {"size_px": 900, "size_px_min": 800}),
        ("case,class,volume_ml", "large,LV,1-2", {"volume_ml_min": 1, "volume_ml_max": 2}),
    ],
)
def test_a_range_in_one_cell_or_in_two_columns(tmp_path, header, line, known) -> None:
    assert read(tmp_path, header, line) == [row("large", None, 2, **known)]


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        (
            "case,class,size_px_min,size_px_max",
            "large,LV,9,8",
            "size_px goes from 9 to 8; put the smaller number first",
        ),
        ("case,class,size_px,size_px_max", "large,LV,9,8", "size_px goes from 9 to 8"),
        (
            "case,class,size_px,size_px_max",
            "large,LV,7-9,8",
            "there are ends in size_px, and in size_px_min or size_px_",
        ),
        ("case,class,size_px_min", "large,LV,-8", "size_px_min is -8; a size is 0 or more"),
        ("case,slice,class,centroid_row", "large,0,LV,3-9", "a centroid needs all of centroid_row, centroid_col"),
    ],
)
def test_a_wrong_range_is_named_with_file_and_line(tmp_path, header, line, message) -> None:
    with pytest.raises(BadInput, match=rf"facts\.csv, line 2: {message}"):
        read(tmp_path, header, line)


def test_other_columns_are_ignored_and_named(tmp_path) -> None:
    file = table(tmp_path, "case,Reader,class,date,size_px,side,,", "large,Dr. A,LV,1.2.2020,9,left,,")
    facts = Facts.read(file, CLASSES, CASES)
    assert (list(facts), facts.ignored) == ([row("large", None, 2, size_px=9)], ("reader", "date", "side"))


def maybe(numbers: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | numbers


@st.composite
def known_facts(draw) -> Fact:
    case = draw(st.sampled_from(list(CASES.values())))
    number = draw(maybe(st.integers(0, case.slices - 1)))
    whole = case.fit.original[0] * case.fit.original[1] * (case.slices if number is None else 1)
    depth, height, width = case.spacing
    size = draw(maybe(st.just(0.0) | st.floats(0.01, whole)))
    unit = draw(
        st.sampled_from(["size_px", "volume_ml", "size_mm2"] if number is not None else ["size_px", "volume_ml"])
    )
    factor = {"size_px": 1, "size_mm2": height * width, "volume_ml": depth * height * width / 1000}[unit]
    centre = draw(maybe(st.tuples(*[st.floats(-0.5, side - 0.5) for side in case.fit.original])))
    bright, wide = draw(maybe(st.floats(-1e6, 1e6))), draw(maybe(st.floats(1, 30)))
    presences = st.booleans() if centre is bright is wide is None else st.just(True)
    if size == 0:
        centre = bright = wide = None
    known = {unit: size and size * factor, "mean_intensity": bright, "compactness_max": wide}
    known |= {"centroid_row_min": centre and centre[0], "centroid_col": centre and centre[1]}
    known |= {"centroid_row_max": centre and min(centre[0] + 1, case.fit.original[0] - 0.5)}
    return Fact(
        case.name,
        number,
        draw(st.integers(0, 2)),
        draw(maybe(presences if size is None else st.just(size > 0))),
        {column: value for column, value in known.items() if value is not None},
    )


# What checks types while tests run looks at an item drawn at random.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.lists(known_facts(), max_size=6, unique_by=lambda fact: (fact.case, fact.slice, fact.klass)))
def test_what_is_written_reads_back(tmp_path, facts) -> None:
    """Numbers keep six figures."""
    file = tmp_path / "a" / "facts.csv"
    Facts(tuple(facts), CLASSES).write(file)
    back = Facts.read(file, CLASSES, CASES)
    assert back.classes == CLASSES
    for before, after in zip(facts, back, strict=True):
        assert replace(after, known={}) == replace(before, known={})
        assert after.known == pytest.approx(before.known, rel=1e-5, abs=0)
    assert [file.name for file in file.parent.iterdir()] == ["facts.csv"]


def test_a_written_table_by_hand(tmp_path) -> None:
    rows = (WHOLE, row("patient001_ED", 0, 1, False, size_px=0), row("patient001_ED", None, 1, volume_ml=1 / 3))
    Facts(rows, CLASSES).write(tmp_path / "facts.csv")
    assert (tmp_path / "facts.csv").read_bytes().decode() == (
        f"{HEADER}\n"
        "patient001_ED,2,LV,1,100.5,188.4,1.5,10.25,12,300,20\n"
        "patient001_ED,0,RV,0,0,,,,,,\n"
        "patient001_ED,,RV,,,,0.333333,,,,\n"
    )


def test_a_region_that_fills_its_scan_survives_rounding(tmp_path) -> None:
    case = CASES["large"]
    voxels = case.slices * case.fit.original[0] * case.fit.original[1]
    rows = (
        row("large", None, 1, volume_ml=voxels * case.spacing[0] * case.spacing[1] * case.spacing[2] / 1000),
        row("large", None, 2, size_px=voxels),
    )
    Facts(rows, CLASSES).write(tmp_path / "facts.csv")
    back = Facts.read(tmp_path / "facts.csv", CLASSES, CASES)
    sizes = [fact.values(SIZE, case.geometry(None))[0][0] for fact in back]
    assert sizes == pytest.approx([voxels, voxels], rel=1e-5)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        ("case,slice,class,size_px_min,size_mm2_max", "patient002_ED,1,LV,150,80", "size_px would go from 150 to 80"),
        (
            "case,slice,class,size_px,size_mm2",
            "patient002_ED,1,LV,80-120,500",
            "size_px would go from 80 to 500 to 120",
        ),
        ("case;slice;class;size_px", "patient002_ED;1;LV;1.000", "size_px is 1.000, thousands or a fraction"),
    ],
)
def test_what_cannot_be_true_or_may_be_misread_is_refused(tmp_path: Path, header: str, line: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"facts.csv, line 2: .*{message}"):
        read(tmp_path, header, line)
    with pytest.raises(BadInput, match=r"facts.csv: a quotation mark is not closed, which hides the lines below it"):
        read(tmp_path, header + ',"note', line, line)


def test_rows_of_several_classes_and_of_relations(tmp_path) -> None:
    """Written and read again they are the same, and they stand beside those of classes."""
    file = table(
        tmp_path,
        "case,slice,class,size_px,ratio,offset_row,offset_col,distance_mm",
        "patient002_ED,1,LV,40",
        "patient002_ED,1,LV + RV,100-140",
        "patient002_ED,,RV:LV,,0.5-0.75,3,-4,5",
    )
    facts = Facts.read(file, CLASSES, CASES)
    union = Fact("patient002_ED", 1, 1, None, {"size_px_min": 100, "size_px_max": 140}, ((1, 2),))
    numbers = {"ratio_min": 0.5, "ratio_max": 0.75, "offset_row": 3, "offset_col": -4, "distance_mm": 5}
    related = Fact("patient002_ED", None, 1, None, numbers, ((1,), (2,)))
    assert facts.rows == (row("patient002_ED", 1, 2, size_px=40),)
    assert facts.relations == (union, related)
    facts.write(tmp_path / "again.csv")
    again = Facts.read(tmp_path / "again.csv", CLASSES, CASES)
    assert (again.rows, again.relations) == (facts.rows, facts.relations)
    other = replace(facts, rows=(), relations=(replace(related, known={"ratio_min": 0.5, "inclusion": 0.9}),))
    assert facts.merged(other, "here").relations[1].known == numbers | {"inclusion": 0.9}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("patient002_ED,1,RV:LV,40", r"size_px is of a class, or of several together, as LV\+MYO; write it into a row"),
        ("patient002_ED,1,LV,,0.5", "ratio is of two regions, as LV:RV; write it into a row of its own"),
        ("patient002_ED,1,LV+LV,40", r"class is LV\+LV; write different classes"),
        ("patient002_ED,1,LV:RV:LV,,0.5", "class is LV:RV:LV; write different classes, as"),
        ("patient002_ED,1,LV+MYO,40", "no class 'MYO'"),
        ("patient002_ED,1,LV:RV,,-0.5", "ratio is -0.5; it is 0 or more"),
        ("patient002_ED,1,LV:RV,,,1.5", "inclusion is 1.5; it is a share, from 0 to 1"),
    ],
)
def test_relations_that_cannot_be(tmp_path, line, message) -> None:
    with pytest.raises(BadInput, match=f"line 2: {message}"):
        read(tmp_path, "case,slice,class,size_px,ratio,inclusion", line)


def test_an_earlier_number_and_a_plausible_change_are_a_range(tmp_path) -> None:
    (one,) = read(tmp_path, "case,class,volume_ml,change", "large,LV,100,0.1")
    assert one.known == pytest.approx({"volume_ml_min": 90, "volume_ml_max": 110})
    (one,) = read(tmp_path, "case,class,volume_ml,change", "large,LV,100,-0.2-0.5")
    assert one.known == pytest.approx({"volume_ml_min": 80, "volume_ml_max": 150})
    (one,) = read(tmp_path, "case,class,volume_ml,change_max", "large,LV,100,0.5")
    assert one.known == pytest.approx({"volume_ml_min": 100, "volume_ml_max": 150})
    (one,) = read(tmp_path, "case,class,volume_ml,change", "large,LV,100,-1-0")
    assert one.known == {"volume_ml_max": 100}


def test_a_population_is_a_range_for_every_scan_that_says_nothing_itself(tmp_path) -> None:
    header = "case,class,present,size_px,sd"
    found = read(
        tmp_path, header, "*,LV,,300,50", "large,LV,,123", "patient001_ED,LV,0", "patient002_ED,LV", "*,RV,,9,6"
    )
    wanted = {"size_px_min": 200, "size_px_max": 400}
    assert {(f.case, f.klass): (f.present, f.known) for f in found} == {
        ("large", 2): (None, {"size_px": 123}),
        ("patient001_ED", 2): (False, {}),
        ("patient002_ED", 2): (None, wanted),
        **{(case, 1): (None, {"size_px_max": 21}) for case in CASES},
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("*,1,LV,9,,2", "slice is 1 of every scan; leave it empty: whole scans are meant"),
        ("large,,LV,,,2", "sd is of one number, and the row has 0"),
        ("large,,LV,1-9,,2", "sd is of one number, and the row has 2"),
        ("large,,LV,9,0.1,2", "sd is 2; give 0 or more, or a change, not both"),
        ("large,,LV,9,,-2", "sd is -2; give 0 or more"),
        ("large,,LV,9,0.5-0.1", "change goes from 0.5 to 0.1"),
        ("large,,LV,9,-3-1", "change is -3-1, a share"),
        ("*,,LV,99999999999,0.1", "is more than there are"),
    ],
)
def test_populations_and_changes_that_cannot_be(tmp_path, line, message) -> None:
    with pytest.raises(BadInput, match=f"line 2: .*{message}"):
        read(tmp_path, "case,slice,class,size_px,change,sd", line)
