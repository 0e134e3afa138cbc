from __future__ import annotations

import pytest
import torch

from inbounds import (
    Annotation,
    Common,
    Constraint,
    Fixed,
    Individual,
    Scans,
    Tags,
    centroid,
    mean_intensity,
    size,
)

INF, NAN = torch.inf, torch.nan
PROBS = torch.full((3, 3, 4, 4), 1 / 3)


def known(scans: Scans | None = None, scan_facts: dict | None = None, **facts: list) -> Annotation:
    """What is known of three 4x4 images; each fact lists, image by image, a row for each of three classes."""
    tensors = {name: torch.tensor(rows, dtype=torch.float32) for name, rows in facts.items()}
    tensors = {name: fact if fact.ndim == 3 else fact.unsqueeze(-1) for name, fact in tensors.items()}
    return Annotation(torch.full((3, 4, 4), 255), tensors, scan_facts or {}, scans)


def bounds_of(bounds, annotation=None, statistic=size, **settings) -> tuple[list, list]:
    """Lower and upper side, a flat list per image."""
    constraint = Constraint(statistic, bounds, **settings)
    interval = constraint.interval(PROBS, torch.rand(3, 1, 4, 4), annotation)
    values = constraint.values(PROBS, torch.rand(3, 1, 4, 4), annotation)
    return tuple(side.expand_as(values).flatten(1).tolist() for side in (interval.lower, interval.upper))


# Image 0 shows both classes, image 1 lacks class 2, of image 2 nobody has said whether class 1 is there.
PRESENT = [[1, 1, 1], [1, 1, 0], [1, NAN, 1]]


def test_tags() -> None:
    lower, upper = bounds_of(Tags(), known(present=PRESENT))
    assert lower == [[1, 1], [1, 0], [-INF, 1]]
    assert upper == [[16, 16], [16, 0], [INF, 16]]


def test_tags_in_mm_count_pixels_in_mm() -> None:
    lower, upper = bounds_of(Tags(), known(present=PRESENT), size.using(spacing=(0.5, 0.5)))
    assert (lower[1], upper[1]) == ([0.25, 0], [4, 0])


def test_tags_of_a_volume_count_the_pixels_of_all_its_slices() -> None:
    present = torch.tensor([[[1.0], [1.0], [0.0]], [[1.0], [NAN], [1.0]]])
    annotation = known(Scans.of("aab"), {"present": present})
    lower, upper = bounds_of(Tags(), annotation, scope="volume")
    assert lower == [[1, 0], [-INF, 1]]
    assert upper == [[32, 0], [INF, 16]]


def test_tags_on_a_centroid_warn_and_say_nothing() -> None:
    with pytest.warns(UserWarning, match="tags say nothing about centroid: this constraint never acts"):
        constraint = Constraint(centroid, Tags())
    interval = constraint.interval(PROBS, None, known(present=PRESENT))
    assert (interval.lower == -INF).all()
    assert (interval.upper == INF).all()


def test_common() -> None:
    lower, upper = bounds_of(Common(2, 5), known(present=PRESENT))
    assert lower == [[2, 2], [2, 0], [-INF, 2]]
    assert upper == [[5, 5], [5, 0], [INF, 5]]


def test_common_with_one_number_per_class_and_an_open_side() -> None:
    lower, upper = bounds_of(Common([2, 3], None), known(present=PRESENT))
    assert lower == [[2, 3], [2, 0], [-INF, 3]]
    assert upper == [[INF, INF], [INF, 0], [INF, INF]]


def test_an_absent_centroid_is_open() -> None:
    lower, upper = bounds_of(Common(0, 3), known(present=PRESENT), centroid)
    assert lower == [[0, 0, 0, 0], [0, 0, -INF, -INF], [-INF, -INF, 0, 0]]
    assert upper == [[3, 3, 3, 3], [3, 3, INF, INF], [INF, INF, 3, 3]]


# Facts on the background are given too, and never used unless asked for.
SIZES = [[9, 10, 4], [9, 8, 0], [9, NAN, 2]]


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        (Individual(relative=0.5), [[5, 2], [4, 0], [-INF, 1]], [[15, 6], [12, 0], [INF, 3]]),
        (Individual(absolute=3), [[7, 1], [5, 0], [-INF, -1]], [[13, 7], [11, 0], [INF, 5]]),
        (Individual(absolute=0), [[10, 4], [8, 0], [-INF, 2]], [[10, 4], [8, 0], [INF, 2]]),
        (Individual(relative=0.5, tight="upper"), [[1, 1], [1, 0], [-INF, 1]], [[15, 6], [12, 0], [INF, 3]]),
    ],
)
def test_individual(bounds, lower, upper) -> None:
    assert bounds_of(bounds, known(size=SIZES, present=PRESENT)) == (lower, upper)


def test_individual_without_tags() -> None:
    """A size of 0 says by itself that the region is absent."""
    lower, upper = bounds_of(Individual(relative=0.5, tight="upper"), known(size=SIZES))
    assert (lower[1], upper[1]) == ([1, 0], [12, 0])


def test_a_tight_upper_side_below_one_pixel_stays_an_interval() -> None:
    lower, upper = bounds_of(Individual(relative=0.0, tight="upper"), known(size=[[0, 0.5, 0.5]] * 3))
    assert lower == upper == [[0.5, 0.5]] * 3


# Class 1 has a range in image 0 and an open one in image 1; class 2 only numbers, or nothing.
LEAST, MOST = [[0, 7, NAN], [0, NAN, NAN], [0, NAN, NAN]], [[0, 9, NAN], [0, 6, NAN], [0, NAN, NAN]]


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        (Individual(relative=0.5), [[7, 2], [-INF, 0], [-INF, 1]], [[9, 6], [6, 0], [INF, 3]]),
        (Individual(absolute=3), [[7, 1], [-INF, 0], [-INF, -1]], [[9, 7], [6, 0], [INF, 5]]),
        (Individual(relative=0.5, tight="upper"), [[1, 1], [1, 0], [-INF, 1]], [[9, 6], [6, 0], [INF, 3]]),
    ],
)
def test_individual_goes_by_a_range_without_a_margin(bounds, lower, upper) -> None:
    facts = {"size_min": LEAST, "size_max": MOST, "present": PRESENT}
    assert bounds_of(bounds, known(size=SIZES, **facts)) == (lower, upper)
    lower, upper = bounds_of(bounds, known(**facts))  # and where nothing else is known
    assert (upper[0], upper[1]) == ([9, INF], [6, 0])


def test_a_range_for_each_component() -> None:
    middles, least, most = ([[[NAN, NAN], at, at]] * 3 for at in ([1.0, 2.0], [0.5, NAN], [NAN, NAN]))
    facts = {"centroid": middles, "centroid_min": least, "centroid_max": most}
    lower, upper = bounds_of(Individual(absolute=1), known(**facts), centroid)
    assert lower[0] == [0.5, 1, 0.5, 1]
    assert upper[0] == [INF, 3, INF, 3]


def test_ranges_of_a_volume_are_those_of_its_slices_added_up() -> None:
    annotation = known(Scans.of("aab"), size_min=[[0, 4, 1]] * 3, size_max=[[0, 5, NAN]] * 3)
    lower, upper = bounds_of(Individual(relative=0.1), annotation, scope="volume")
    assert (lower, upper) == ([[8, 2], [4, 1]], [[10, INF], [5, INF]])
    own = {"size": torch.full((2, 3, 1), 12.0)}  # what is said of the whole comes first
    lower, upper = bounds_of(
        Individual(absolute=1), known(Scans.of("aab"), own, size_min=[[0, 4, 1]] * 3), scope="volume"
    )
    assert (lower, upper) == ([[11, 11]] * 2, [[13, 13]] * 2)


def test_individual_goes_by_another_fact() -> None:
    lower, _ = bounds_of(Individual(absolute=1, fact="report"), known(report=SIZES))
    assert lower[0] == [9, 3]


def test_individual_centroid() -> None:
    middles = [[[NAN, NAN], [1.0, 2.0], [-3.0, 0.5]]] * 3
    lower, upper = bounds_of(Individual(relative=0.5), known(centroid=middles, present=PRESENT), centroid)
    assert lower[0] == [0.5, 1, -4.5, 0.25]
    assert upper[0] == [1.5, 3, -1.5, 0.75]
    assert lower[1][2:] == [-INF, -INF]  # absent: no centre
    assert upper[1][2:] == [INF, INF]
    lower, upper = bounds_of(Individual(absolute=1, tight="upper"), known(centroid=middles), centroid)
    assert lower[0] == [-INF] * 4
    assert upper[0] == [2, 3, -2, 1.5]


def test_individual_of_a_volume_ignores_tags() -> None:
    scan_facts = {
        "size": torch.tensor([[[99.0], [10.0], [4.0]], [[99.0], [NAN], [6.0]]]),
        "present": torch.zeros(2, 3, 1),
    }
    annotation = known(Scans.of("aab"), scan_facts, present=[[0, 0, 0]] * 3)
    lower, upper = bounds_of(Individual(relative=0.5), annotation, scope="volume")
    assert lower == [[5, 2], [-INF, 3]]
    assert upper == [[15, 6], [INF, 9]]


def test_a_volume_adds_up_the_sizes_of_its_slices() -> None:
    """Without a fact on the scan, its slices' sizes say the same; one unknown slice leaves the scan unknown."""
    annotation = known(Scans.of("aba"), size=[[99, 1, 3], [99, 5, 5], [99, NAN, 4]])
    lower, upper = bounds_of(Individual(absolute=1), annotation, scope="volume")
    assert lower == [[-INF, 6], [4, 4]]
    assert upper == [[INF, 8], [6, 6]]


@pytest.mark.parametrize(
    ("lower", "upper", "row_lower", "row_upper"),
    [
        (1, 3, [1, 1, 1, 1], [3, 3, 3, 3]),
        (None, 3, [-INF] * 4, [3, 3, 3, 3]),
        ([0, 1], 3, [0, 0, 1, 1], [3, 3, 3, 3]),
        ([[0, 1], [2, 3]], [[3, 3], [3, 4]], [0, 1, 2, 3], [3, 3, 3, 4]),
        ([[0, 1]], None, [0, 1, 0, 1], [INF] * 4),
        (torch.tensor([[0.5], [1.5]]), torch.tensor(2), [0.5, 0.5, 1.5, 1.5], [2, 2, 2, 2]),
    ],
)
def test_fixed(lower, upper, row_lower, row_upper) -> None:
    assert bounds_of(Fixed(lower, upper), None, centroid) == ([row_lower] * 3, [row_upper] * 3)


def test_fixed_takes_no_notice_of_tags() -> None:
    assert bounds_of(Fixed(2, 3), known(present=[[0, 0, 0]] * 3)) == ([[2, 2]] * 3, [[3, 3]] * 3)


@pytest.mark.parametrize("classes", [[2], [2, 1], [0, 2]])
def test_any_subset_of_classes(classes) -> None:
    lower, _ = bounds_of(Individual(absolute=0), known(size=SIZES), classes=classes)
    assert lower[0] == [SIZES[0][k] for k in classes]
    lower, _ = bounds_of(Fixed(list(range(len(classes))), None), classes=classes)
    assert lower == [list(range(len(classes)))] * 3


def test_common_fit() -> None:
    facts = {"size": torch.tensor([[[0.0], [100.0], [7.0]], [[0.0], [0.0], [9.0]], [[0.0], [60.0], [NAN]]])}
    fitted = Common.fit(facts)
    assert torch.tensor(fitted.lower).flatten().tolist() == pytest.approx([54, 6.3])
    assert torch.tensor(fitted.upper).flatten().tolist() == pytest.approx([110, 9.9])
    lower, upper = bounds_of(fitted, known(present=PRESENT))
    assert lower[1] == pytest.approx([54, 0])
    assert upper[1] == pytest.approx([110, 0])
    assert Common.fit(facts, classes=[2], relative=0).lower == [[7]]


def test_common_fit_of_a_centroid_counts_slices_where_it_is_present() -> None:
    facts = {
        "centroid": torch.tensor([[[0.0, 0.0], [10.0, -20.0]], [[0.0, 0.0], [0.0, 500.0]], [[0.0, 0.0], [30.0, 40.0]]]),
        "present": torch.tensor([[[1.0], [1.0]], [[1.0], [0.0]], [[1.0], [1.0]]]),
    }
    fitted = Common.fit(facts, centroid)
    assert fitted.lower[0] == pytest.approx([9, -22])
    assert fitted.upper[0] == pytest.approx([33, 44])


def test_common_fit_on_ranges_takes_the_lowest_and_the_highest_end() -> None:
    """Class 1: 100, 80 to 90, 50 to an unknown end, none. Class 2: ranges alone, 0 to 30 and 20 to 40."""
    facts = {
        "size": torch.tensor([[[NAN], [100.0], [NAN]], [[NAN]] * 3, [[NAN]] * 3, [[NAN], [0.0], [0.0]]]),
        "size_min": torch.tensor([[[NAN], [NAN], [0.0]], [[NAN], [80.0], [20.0]], [[NAN], [50.0], [NAN]], [[NAN]] * 3]),
        "size_max": torch.tensor([[[NAN], [NAN], [30.0]], [[NAN], [90.0], [40.0]], [[NAN]] * 3, [[NAN]] * 3]),
    }
    fitted = Common.fit(facts)
    assert torch.tensor(fitted.lower).flatten().tolist() == pytest.approx([72, 0])
    assert torch.tensor(fitted.upper).flatten().tolist() == pytest.approx([110, 44])
    only = {name: fact for name, fact in facts.items() if name != "size"}
    assert Common.fit(only, relative=0) == Common([80, 0], [90, 40])
    present = torch.ones(4, 3, 1)
    present[0, 2] = NAN  # up to 30: it may be absent
    assert Common.fit({**only, "present": present}, relative=0) == Common([80, 20], [90, 40])


def test_common_fit_needs_the_class_and_the_fact() -> None:
    facts = {"size": torch.tensor([[[9.0], [0.0]], [[9.0], [NAN]]])}
    with pytest.raises(ValueError, match="class 1 appears in none of the 2 slices"):
        Common.fit(facts)
    with pytest.raises(ValueError, match=r"range of centroid cannot be fitted: there are facts on \['size'\] only"):
        Common.fit(facts, centroid)


@pytest.mark.parametrize(
    ("statistic", "bounds", "facts", "message"),
    [
        (size, Tags(), {}, r"need the fact 'present'.*it gives: none"),
        (size, Common(1, 2), {"size": SIZES}, r"need the fact 'present'.*it gives: size"),
        (size, Individual(relative=0.1), {"present": PRESENT}, r"need the fact 'size'.*it gives: present"),
        (
            centroid,
            Individual(relative=0.1),
            {"centroid": [[[0.0, 0, 0]] * 3] * 3},
            r"fact 'centroid' of shape \(3, 2, 3\) does not fit values of shape \(3, 2, 2\)",
        ),
    ],
)
def test_refuses_missing_and_misshapen_facts(statistic, bounds, facts, message) -> None:
    with pytest.raises(ValueError, match=message):
        Constraint(statistic, bounds)(PROBS, None, known(**facts))


def test_refuses_facts_without_an_annotation() -> None:
    with pytest.raises(ValueError, match="need the fact 'present'"):
        Constraint(size, Tags())(PROBS)


@pytest.mark.parametrize("kind", [Fixed, Common])
@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (3, 2, r"lower 3.0 lies above upper 2.0 at index \(\)"),
        ([1, 5], [2, 4], r"lower 5.0 lies above upper 4.0 at index \(1, 0\)"),
        ([[1, 1], [1, 9]], 4, r"lower 9.0 lies above upper 4.0 at index \(1, 1\)"),
        (NAN, 2, r"lower is nan"),
        (1, [2, NAN], r"upper is nan at index \(1, 0\)"),
        (INF, None, r"lower is inf"),
        ([1, 2], [1, 2, 3], r"do not fit together"),
        (torch.zeros(1, 2, 1), None, r"one number, one per class, or a row per class, not shape \(1, 2, 1\)"),
    ],
)
def test_refuses_ranges_that_are_none(kind, lower, upper, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(lower, upper)


@pytest.mark.plain
@pytest.mark.parametrize("lower", ["many", [[1, 2], [3]], [], [[]]], ids=["text", "ragged", "nothing", "no component"])
def test_refuses_what_are_no_numbers(lower) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Fixed(lower, None)


@pytest.mark.parametrize("lower", [[1, 2, 3], [[1, 2, 3]]])
def test_refuses_a_number_of_classes_or_components_that_does_not_fit(lower) -> None:
    with pytest.raises(
        ValueError, match=r"bounds for . classes and . components do not fit 2 classes and 2 components"
    ):
        Constraint(centroid, Fixed(lower, None))(PROBS)


@pytest.mark.parametrize(
    "margins", [{}, {"relative": 0.1, "absolute": 3.0}, {"relative": -0.1}, {"absolute": INF}, {"relative": NAN}]
)
def test_refuses_other_than_one_margin(margins) -> None:
    with pytest.raises(ValueError, match="give one margin, relative or absolute, of 0 or more"):
        Individual(**margins)


@pytest.mark.plain
def test_refuses_another_tightness() -> None:
    with pytest.raises(ValueError, match="tight must be 'both' or 'upper', not 'lower'"):
        Individual(relative=0.1, tight="lower")


def test_bounds_of_ones_own() -> None:
    """Anything with the method `interval` gives bounds; here a mean brightness at most that of the background."""

    class Darker:
        def interval(self, knowledge):
            from inbounds import Interval

            return Interval(None, torch.full_like(knowledge.like, 0.25), trusted=True)

    image = torch.full((3, 1, 4, 4), 0.5)
    violation = Constraint(mean_intensity, Darker()).violation(PROBS, image)
    torch.testing.assert_close(violation, torch.full((3, 2, 1), 0.25))


def test_the_range_of_a_population() -> None:
    assert Common.around([100.0, 50.0], [10.0, 5.0]) == Common([80, 40], [120, 60])
    assert Common.around(100, 10, within=1) == Common(90, 110)
    with pytest.raises(ValueError, match="an SD of 0 or more, not 100 and -1"):
        Common.around(100, -1)
