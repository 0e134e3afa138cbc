from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from inbounds.evaluation.overlap import Overlap, dice_per_slice, dice_per_volume, overlap, relative_size_error
from inbounds.regions import Scans

monai = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::FutureWarning")
SPACES = pytest.mark.parametrize("space", [(9, 7), (3, 5, 4)], ids=["2-D", "3-D"])
CLASSES = pytest.mark.parametrize("classes", [2, 4])

PREDICTION = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [2, 0, 0, 0]])[None]
TRUTH = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]])[None]


def random(classes: int, space: tuple[int, ...], slices: int = 6) -> torch.Tensor:
    """Some slices lack some classes, and one has only background."""
    masks = torch.randint(0, classes, (slices, *space))
    masks[0] = 0
    masks[1][masks[1] == 1] = 0
    return masks


def counts_by_loops(prediction: torch.Tensor, truth: torch.Tensor, classes: int) -> np.ndarray:
    out = np.zeros((3, len(truth), classes), dtype=int)
    for n in range(len(truth)):
        for p, t in zip(prediction[n].flatten().tolist(), truth[n].flatten().tolist(), strict=True):
            if t != 255:
                out[0, n, t] += p == t
                out[1, n, p] += 1
                out[2, n, t] += 1
    return out


def slices(classes: int) -> st.SearchStrategy[tuple[torch.Tensor, torch.Tensor]]:
    values = arrays.arrays(np.int64, (2, 3, 2, 3), elements=st.integers(0, classes - 1))
    return values.map(lambda pair: (torch.from_numpy(pair[0]), torch.from_numpy(pair[1])))


def test_counts_by_hand() -> None:
    counts = overlap(PREDICTION, TRUTH, 4)
    assert counts.intersection.tolist() == [[9, 2, 0, 0]]
    assert counts.predicted.tolist() == [[11, 4, 1, 0]]
    assert counts.true.tolist() == [[12, 4, 0, 0]]


def test_dice_by_hand() -> None:
    """18 / 23 of background, 4 / 8, a class only predicted, and one in neither."""
    counts = overlap(PREDICTION, TRUTH, 4)
    torch.testing.assert_close(dice_per_slice(counts), torch.tensor([[18 / 23, 0.5, 0.0, 1.0]]))
    expected = torch.tensor([[18 / 23, 0.5, 0.0, torch.nan]])
    torch.testing.assert_close(dice_per_volume(counts, Scans.of("a")), expected, equal_nan=True)


def test_size_error_by_hand() -> None:
    error = relative_size_error(overlap(PREDICTION, TRUTH, 4), Scans.of("a"))
    expected = torch.tensor([[-1 / 12, 0.0, torch.nan, torch.nan]])
    torch.testing.assert_close(error, expected, equal_nan=True)


def test_a_volume_is_the_sum_of_its_slices() -> None:
    """Slice 0 misses 4 pixels and slice 2 has them in excess: the sizes of scan a agree, its regions do not."""
    prediction = torch.tensor([[0, 0, 0, 0, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    truth = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    scans, counts = Scans.of("aba"), overlap(prediction, truth, 2)
    torch.testing.assert_close(dice_per_volume(counts, scans)[:, 1], torch.tensor([4 / 12, 2 / 3]))
    assert relative_size_error(counts, scans)[:, 1].tolist() == [0, 1]
    assert relative_size_error(counts, Scans.of("abc"))[:, 1].tolist() == pytest.approx([-0.8, 1, 4])


@CLASSES
@SPACES
def test_counts_agree_with_loops_over_pixels(classes, space) -> None:
    prediction, truth = random(classes, space), random(classes, space).flip(0)
    truth[torch.rand(truth.shape) < 0.2] = 255
    counts = overlap(prediction, truth, classes)
    found = np.stack([counts.intersection, counts.predicted, counts.true])
    np.testing.assert_array_equal(found, counts_by_loops(prediction, truth, classes))


@monai
@CLASSES
@SPACES
def test_dice_agrees_with_monai(classes, space) -> None:
    """Its `ignore_empty=False` is the paper's convention."""
    metrics = pytest.importorskip("monai.metrics.meandice")
    prediction, truth = random(classes, space), random(classes, space).roll(1, 0)
    prediction[2] = truth[2] = 0
    one_hot = [torch.nn.functional.one_hot(mask, classes).movedim(-1, 1) for mask in (prediction, truth)]
    expected = metrics.compute_dice(*one_hot, include_background=True, ignore_empty=False)
    counts = overlap(prediction, truth, classes)
    torch.testing.assert_close(dice_per_slice(counts), expected)

    volume = [mask.movedim(0, 1)[None] for mask in one_hot]
    whole = metrics.compute_dice(*volume, include_background=True, ignore_empty=True)
    torch.testing.assert_close(dice_per_volume(counts, Scans.of("a" * len(truth))), whole, equal_nan=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@CLASSES
def test_dice_agrees_with_torchmetrics(classes) -> None:
    segmentation = pytest.importorskip("torchmetrics.functional.segmentation")
    prediction, truth = torch.randint(0, classes, (2, 5, 16, 16))
    expected = segmentation.dice_score(prediction, truth, classes, average="none", input_format="index")
    torch.testing.assert_close(dice_per_slice(overlap(prediction, truth, classes)), expected)


@given(st.sampled_from([2, 4]).flatmap(lambda k: slices(k).map(lambda pair: (k, *pair))))
def test_dice_is_symmetric_between_0_and_1_and_1_only_if_equal(drawn) -> None:
    classes, prediction, truth = drawn
    dice = dice_per_slice(overlap(prediction, truth, classes))
    torch.testing.assert_close(dice, dice_per_slice(overlap(truth, prediction, classes)), rtol=0, atol=0)
    assert bool(((dice >= 0) & (dice <= 1)).all())
    for k in range(classes):
        same = ((prediction == k) == (truth == k)).flatten(1).all(dim=1)
        assert (dice[:, k] == 1).tolist() == same.tolist()


@given(slices(4), st.permutations(range(3)))
def test_permuting_slices_permutes_values_and_leaves_volumes(pair, order) -> None:
    prediction, truth = pair
    counts, moved = overlap(prediction, truth, 4), overlap(prediction[order], truth[order], 4)
    assert torch.equal(dice_per_slice(counts)[order], dice_per_slice(moved))
    names = ["a", "b", "a"]
    before, after = Scans.of(names), Scans.of([names[i] for i in order])
    kept = [after.index[order.index(names.index(name))] for name in "ab"]
    volumes, again = dice_per_volume(counts, before), dice_per_volume(moved, after)[torch.stack(kept)]
    torch.testing.assert_close(volumes, again, rtol=0, atol=0, equal_nan=True)


@given(slices(2))
def test_what_is_predicted_where_the_truth_is_unknown_does_not_matter(pair) -> None:
    prediction, truth = pair
    truth = truth.clone()
    truth[:, 0] = 255
    rest = overlap(prediction[:, 1:], truth[:, 1:], 2)
    for changed in (prediction, 1 - prediction):
        other = prediction.clone()
        other[:, 0] = changed[:, 0]
        counts = overlap(other, truth, 2)
        for name in ("intersection", "predicted", "true"):
            assert torch.equal(getattr(counts, name), getattr(rest, name))


def test_a_slice_of_unknown_truth_is_not_a_success() -> None:
    truth = torch.stack([torch.full((4, 4), 255), torch.zeros(4, 4, dtype=torch.long)])
    counts = overlap(torch.zeros_like(truth), truth, 2)
    assert dice_per_slice(counts).isnan().tolist() == [[True, True], [False, False]]
    assert dice_per_volume(counts, Scans.of("ab"))[0].isnan().all()
    assert relative_size_error(counts, Scans.of("ab"))[0].isnan().all()


def test_batch_by_batch_is_the_same() -> None:
    prediction, truth = random(4, (8, 8)), random(4, (8, 8))
    whole = overlap(prediction, truth, 4)
    parts = [overlap(*pair, 4) for pair in zip(prediction.split(4), truth.split(4), strict=True)]
    for name in ("intersection", "predicted", "true"):
        assert torch.equal(getattr(Overlap.cat(parts), name), getattr(whole, name))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_any_integer_type_counts(dtype) -> None:
    truth = random(4, (20, 20))
    truth[:, 0] = 255
    prediction = random(4, (20, 20))
    expected = overlap(prediction, truth, 4)
    found = overlap(prediction, truth.to(dtype), 4)
    assert found.intersection.dtype == torch.int64
    assert torch.equal(found.intersection, expected.intersection)
    assert torch.equal(found.predicted, expected.predicted)


def test_nothing_is_read_back_from_the_device() -> None:
    """A tensor without data cannot be read: on it every round trip is an error."""
    masks = torch.empty(6, 8, 8, dtype=torch.uint8, device="meta")
    counts = Overlap.cat([overlap(masks, masks, 3), overlap(masks, masks, 3)])
    scans = Scans.of("aaaabbbbcccc")
    assert dice_per_slice(counts).shape == (12, 3)
    assert dice_per_volume(counts, scans).shape == relative_size_error(counts, scans).shape == (3, 3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_agrees_with_the_cpu_and_never_waits_for_the_device() -> None:
    prediction, truth, scans = random(4, (8, 8)), random(4, (8, 8)), Scans.of("aabbbc")

    def measure(prediction, truth, scans) -> list[torch.Tensor]:
        counts = overlap(prediction, truth, 4)
        return [dice_per_slice(counts), dice_per_volume(counts, scans), relative_size_error(counts, scans)]

    device = prediction.cuda(), truth.cuda(), scans.to("cuda")
    measure(*device)  # lazy initialisation may wait
    try:
        torch.cuda.set_sync_debug_mode("error")
        there = measure(*device)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for found, expected in zip(there, measure(prediction, truth, scans), strict=True):
        torch.testing.assert_close(found.cpu(), expected, equal_nan=True)


def test_docstring_examples() -> None:
    module, report = importlib.import_module("inbounds.evaluation.overlap"), []
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, out=report.append)
    assert runner.tries > 5
    assert not report, "".join(report)
