"""A region of unknown centre is cut only if what is known or seen of it reaches the rim."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from inbounds import Annotation, Constraint, Individual, Scans, mean_intensity, size
from inbounds.constraints.cut import cut_off

NAN, INF = torch.nan, torch.inf
EMPTY = torch.zeros(4, 3, 6, 6)


def known(*cut: float, scans: Scans | None = None, scan_cut: Tensor | None = None, **facts: float) -> Annotation:
    """Four images of two classes and background, the fact the same for all classes."""
    given = {name: torch.full((4, 3, 1), value) for name, value in facts.items()}
    given |= {"cut": torch.tensor(cut, dtype=torch.float32)[:, None, None].expand(4, 3, 1)} if cut else {}
    scan_facts = {} if scan_cut is None else {"cut": scan_cut}
    return Annotation(torch.full((4, 6, 6), 255), given, scan_facts, scans)


def test_the_fact_decides_where_it_is_known() -> None:
    everywhere = torch.ones_like(EMPTY)
    for probs in (EMPTY, everywhere):
        assert cut_off(probs, known(0, 1, 0, 1), [1, 2])[..., 0].tolist() == [[False] * 2, [True] * 2] * 2
    assert not cut_off(everywhere, known(), [1]).any()  # without the fact nothing is cut


@pytest.mark.parametrize("at", [(0, 3), (5, 5), (2, 0), (4, 5)])
def test_what_is_seen_or_clicked_at_the_rim_is_cut(at: tuple[int, int]) -> None:
    unknown = known(NAN, NAN, NAN, NAN)
    assert not cut_off(EMPTY, unknown, [1, 2]).any()
    probs = EMPTY.clone()
    probs[1, 2, at[0], at[1]] = 0.51
    probs[2, 2, at[0], at[1]] = 0.5  # not more likely than not
    probs[3, 2, 1:5, 1:5] = 1.0  # large, but inside
    assert cut_off(probs, unknown, [1, 2])[..., 0].nonzero().tolist() == [[1, 1]]
    assert cut_off(probs, unknown, [2])[..., 0].nonzero().tolist() == [[1, 0]]
    label = unknown.label.clone()
    label[0, at[0], at[1]] = 1
    label[3, 1:5, 1:5] = 1
    assert cut_off(EMPTY, replace(unknown, label=label), [1, 2])[..., 0].nonzero().tolist() == [[0, 0]]


def test_a_rim_takes_the_place_of_the_ring() -> None:
    rim = torch.zeros(4, 6, 6, dtype=torch.bool)
    rim[:, 2, 2] = True
    unknown = replace(known(NAN, NAN, NAN, NAN), rim=rim)
    probs = EMPTY.clone()
    probs[0, 1, 0], probs[1, 1, 2, 2] = 1, 1
    assert cut_off(probs, unknown, [1])[:, 0, 0].tolist() == [False, True, False, False]


def test_in_space_the_rim_is_the_surface() -> None:
    probs = torch.zeros(1, 2, 4, 4, 4)
    unknown = Annotation(torch.full((1, 4, 4, 4), 255), {"cut": torch.full((1, 2, 1), NAN)})
    probs[0, 1, 1:3, 1:3, 1:3] = 1
    assert not cut_off(probs, unknown, [1]).any()
    probs[0, 1, 3, 2, 2] = 1
    assert cut_off(probs, unknown, [1]).all()


@pytest.mark.parametrize("slices", [(NAN,) * 4, ()])
def test_a_scan_is_cut_where_any_of_its_slices_is(slices: tuple[float, ...]) -> None:
    scans = Scans.of("abab")
    probs = EMPTY.clone()
    probs[2, 1, 0, 0] = 1
    for fact, expected in ((NAN, [True, False]), (0.0, [False, False]), (1.0, [True, True])):
        annotation = known(*slices, scans=scans, scan_cut=torch.full((2, 3, 1), fact))
        assert cut_off(probs, annotation, [1], "volume")[:, 0, 0].tolist() == expected
    assert cut_off(probs, known(*slices, scans=scans), [1], "volume").tolist() == [[[False]], [[False]]]
    assert cut_off(probs, known(scan_cut=torch.full((4, 3, 1), NAN)), [1], "volume")[:, 0, 0].tolist() == [
        False,
        False,
        True,
        False,
    ]


def test_a_cut_opens_lower_bounds_and_bounds_on_averages() -> None:
    probs = EMPTY.clone()
    probs[0, 1, 0, 0] = 1
    unknown = known(NAN, NAN, NAN, NAN, size=10.0, mean_intensity=0.5)
    sized = Constraint(size, Individual(relative=0.1)).interval(probs, None, unknown)
    assert sized.lower[..., 0].tolist() == [[-INF, 9], [9, 9], [9, 9], [9, 9]]
    assert (sized.upper == 11).all()
    bright = Constraint(mean_intensity, Individual(absolute=0.1))
    bounds = bright.interval(probs, torch.rand(4, 1, 6, 6), unknown)
    for side in (bounds.lower, bounds.upper):
        assert side[..., 0].isinf().nonzero().tolist() == [[0, 0]]


def test_no_gradient_comes_from_it() -> None:
    probs = torch.full((4, 3, 6, 6), 0.6, requires_grad=True)
    assert not cut_off(probs, known(NAN, NAN, NAN, NAN), [1]).requires_grad


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_compiles() -> None:
    unknown = known(NAN, 0, 1, NAN, size=10.0)
    loss = Constraint(size, Individual(relative=0.1))
    compiled = torch.compile(lambda p: loss(p, None, unknown), fullgraph=True, backend="aot_eager")
    probs = torch.rand(4, 3, 6, 6).softmax(dim=1)
    torch.testing.assert_close(compiled(probs), loss(probs, None, unknown))
