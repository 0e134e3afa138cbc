"""From a store to batches: each slice with what is known of it, and never with its truth."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import torch

from inbounds import UNLABELLED, Annotation, Supervision, recipes
from inbounds.batches.fact_tensors import to_tensors
from inbounds.batches.samples import (
    Batch,
    Samples,
    by_scan,
    by_slice,
    class_table,
    load,
    truth_of,
)
from inbounds.errors import BadInput
from inbounds.store.annotate import simulate
from inbounds.store.store import Store
from making import image_of, make_store, source, truth_like

SPLITS = {"a": "train", "b": "validation", "c": "train", "d": "train", "e": "test", "f": "train"}
TRAIN = [name for name, split in SPLITS.items() if split == "train"]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Six scans of two to four slices; the scan f has no truth."""
    path = tmp_path_factory.mktemp("stores") / "store"
    sources = [
        source(name, truth_like(seed, slices=2 + seed % 3), split=split)
        if name != "f"
        else source(name, None, image=image_of(truth_like(seed, slices=2)), split=split)
        for seed, (name, split) in enumerate(SPLITS.items())
    ]
    made = make_store(path, sources)
    simulate(made, "weak", "erosion", [1, 2], background=True)
    return made


def rows_of(store: Store, names: list[str]) -> list[int]:
    return [row for record in store.records if record.name in names for row in record.range]


def same(one: Batch, other: Batch) -> bool:
    first, second = one.annotation, other.annotation
    pairs = [(one.image, other.image), (first.label, second.label)]
    for some, others in ((first.facts, second.facts), (first.scan_facts, second.scan_facts)):
        assert some.keys() == others.keys()
        pairs += [(some[name], others[name]) for name in some]
    if first.scans is not None:
        pairs.append((first.scans.index, second.scans.index))
    return all(torch.equal(a.nan_to_num(-1), b.nan_to_num(-1)) for a, b in pairs)


def everything(samples: Samples) -> Batch:
    return samples.batch(torch.arange(len(samples)))


@pytest.mark.parametrize("split", ["train", "validation", "test", None])
def test_a_split_holds_its_scans_as_they_are_in_the_store(store, split) -> None:
    names = [name for name, its in SPLITS.items() if split in (None, its)]
    samples = load(store, "weak", split=split)
    rows = rows_of(store, names)
    assert [record.name for record in samples.records] == names
    assert len(samples) == len(rows)
    assert samples.classes == 3
    batch = everything(samples)
    np.testing.assert_array_equal((batch.image * 255).round().numpy(), store.images[rows])
    np.testing.assert_array_equal(batch.annotation.label.numpy(), store.label("weak")[:][rows])
    assert batch.annotation.scans is None
    table, _ = to_tensors(store, store.facts("weak"), [1, 2])
    assert same(batch, Batch(batch.image, Annotation(batch.annotation.label, {k: v[rows] for k, v in table.items()})))
    batch.annotation.checked(3)


def test_half_precision_images_are_taken_as_they_are(tmp_path) -> None:
    store = make_store(tmp_path / "store", dtype="float16")
    image = everything(load(store, "full")).image
    assert image.dtype == torch.float32
    np.testing.assert_array_equal(image.numpy(), store.images[:].astype(np.float32))


@pytest.mark.parametrize("classes", [["LV"], ["RV"], ["LV", "RV"], ["2"]])
def test_chosen_classes_are_numbered_and_others_become_background(store, classes) -> None:
    label = everything(load(store, "full", classes=classes)).annotation.label.numpy()
    truth = store.truth[:][rows_of(store, TRAIN)]
    wanted = np.zeros_like(truth)
    for number, name in enumerate(classes, start=1):
        wanted[truth == store.class_index(name)] = number
    wanted[truth == UNLABELLED] = UNLABELLED
    np.testing.assert_array_equal(label, wanted)
    np.testing.assert_array_equal(truth_of(store, classes=classes, split="train").numpy(), wanted)
    assert load(store, "full", classes=classes).classes == len(classes) + 1


def test_the_table_of_classes_by_hand() -> None:
    table = class_table(4, [3, 1])
    assert table[[0, 1, 2, 3, 4, 254, 255]].tolist() == [0, 2, 0, 1, 255, 255, 255]


@pytest.mark.parametrize("full_scans", [0, 2])
def test_resident_and_streamed_batches_are_the_same(store, full_scans) -> None:
    settings = {"full_scans": full_scans, "classes": ["LV"]}
    resident, streamed = (load(store, "weak", data_on_device=resident, **settings) for resident in (True, False))
    assert len(streamed.images) == store.slices  # the memory map itself, of the whole store
    for index in by_slice(resident, 3, torch.Generator().manual_seed(0)):
        assert same(resident.batch(index), streamed.batch(index))
    assert same(resident.scan_batch([2, 0]), streamed.scan_batch([2, 0]))


@pytest.mark.parametrize("copies", [1, 4])
def test_an_epoch_by_slice_covers_every_slice(store, copies) -> None:
    samples = load(store, "weak")
    batches = list(by_slice(samples, 4, torch.Generator().manual_seed(0), repeats=copies))
    assert Counter(torch.cat(batches).tolist()) == dict.fromkeys(range(len(samples)), copies)
    assert {len(batch) for batch in batches[:-1]} == {4}
    again = list(by_slice(samples, 4, torch.Generator().manual_seed(0), repeats=copies))
    assert all(map(torch.equal, batches, again))
    other = torch.cat(list(by_slice(samples, 4, torch.Generator().manual_seed(1), repeats=copies)))
    assert not torch.equal(torch.cat(batches), other)


def test_an_epoch_by_scan_covers_every_scan(store) -> None:
    samples = load(store, "weak")
    orders = [list(by_scan(samples, torch.Generator().manual_seed(seed))) for seed in range(6)]
    assert all(sorted(order) == list(range(len(TRAIN))) for order in orders)
    assert len({tuple(order) for order in orders}) > 1


@pytest.mark.parametrize("chosen", [[1], [2, 0], [3, 1, 0]])
def test_a_batch_of_whole_scans_knows_which_slices_belong_together(store, chosen) -> None:
    samples = load(store, "weak")
    batch = samples.scan_batch(chosen)
    names = [TRAIN[scan] for scan in chosen]
    rows = [row for name in names for row in rows_of(store, [name])]
    owners = [number for number, name in enumerate(names) for _ in rows_of(store, [name])]
    annotation = batch.annotation
    np.testing.assert_array_equal((batch.image * 255).round().numpy(), store.images[rows])
    assert annotation.scans.count == len(chosen)
    assert annotation.scans.index.tolist() == owners
    _, table = to_tensors(store, store.facts("weak"), [1, 2])
    order = [record.name for record in store.records]
    for name, fact in annotation.scan_facts.items():
        wanted = table[name][[order.index(case) for case in names]]
        torch.testing.assert_close(fact, wanted, equal_nan=True)
    for number, name in enumerate(names):
        if name != "f":
            truth = store.truth[:][rows_of(store, [name])]
            assert annotation.scan_facts["size"][number, :, 0].tolist()[1:] == [(truth == k).sum() for k in (1, 2)]
    annotation.checked(3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [0, 1, 3])
def test_hybrid_some_scans_complete_with_open_bounds_and_the_rest_weak(store, count, seed) -> None:
    samples = load(store, "weak", full_scans=count, seed=seed)
    weak = load(store, "weak")
    truth = truth_of(store, split="train")
    complete = 0
    for scan, record in enumerate(samples.records):
        batch, before = samples.scan_batch([scan]), weak.scan_batch([scan])
        if same(batch, before):
            continue
        complete += 1
        assert record.truth
        assert torch.equal(batch.annotation.label, truth[list(samples.slices_of(scan))])
        tables = (batch.annotation.facts, batch.annotation.scan_facts)
        assert all(fact.isnan().all() for table in tables for fact in table.values())
    assert complete == count
    only = load(store, "weak", full_scans=count or 1, only_full=True, seed=seed)
    assert len(only.records) == (count or 1)
    assert not bool((everything(only).annotation.label == UNLABELLED).any())


def test_full_scans_may_come_more_often(store) -> None:
    once, thrice = (load(store, "weak", full_scans=1, repeat=n, seed=3) for n in (1, 3))
    full = load(store, "weak", full_scans=1, only_full=True, seed=3).records[0]
    names = [record.name for record in thrice.records]
    assert names == [r.name for r in once.records for _ in range(3 if r.name == full.name else 1)]
    first = names.index(full.name)
    assert all(same(thrice.scan_batch([first]), thrice.scan_batch([first + n])) for n in (1, 2))
    assert not bool((thrice.scan_batch([first]).annotation.label == UNLABELLED).any())
    assert len(thrice) == len(once) + 2 * full.slices


@pytest.mark.parametrize("resident", [True, False])
def test_labels_of_the_other_scans_may_count_less(store, resident) -> None:
    samples = load(store, "weak", full_scans=1, repeat=2, weak_label_weight=0.1, seed=3, data_on_device=resident)
    full = load(store, "weak", full_scans=1, only_full=True, seed=3).records[0]
    for scan, record in enumerate(samples.records):
        counts = samples.scan_batch([scan]).annotation.label_weight
        assert counts.tolist() == pytest.approx([1.0 if record.name == full.name else 0.1] * record.slices)
    mixed = samples.batch(torch.tensor([len(samples) - 1, 0]))
    assert mixed.annotation.label_weight.tolist() == samples.label_weight[[-1, 0]].tolist()
    assert (
        load(store, "weak", full_scans=1, data_on_device=resident).batch(torch.tensor([0])).annotation.label_weight
        is None
    )


def test_another_seed_draws_other_full_scans(store) -> None:
    drawn = {load(store, "weak", full_scans=1, only_full=True, seed=seed).records[0].name for seed in range(20)}
    assert drawn == {"a", "c", "d"}


def test_complete_labels_come_without_facts_unless_asked_for(store) -> None:
    bare = everything(load(store, "full")).annotation
    assert all(fact.isnan().all() for fact in bare.facts.values())
    told = everything(load(store, "full", facts="weak")).annotation
    assert bool((told.facts["present"][:, 1:] == 1).any())
    assert torch.equal(told.label, bare.label)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"annotation": "week"}, "no annotation 'week'; did you mean 'weak'"),
        ({"facts": "none"}, "no facts 'none'"),
        ({"classes": ["LW"]}, "no class 'LW'"),
        ({"classes": ["LV", "2"]}, "classes must differ"),
        ({"classes": ["background"]}, "cannot be the background"),
        ({"split": "tset"}, "no scan is in the split 'tset'"),
        ({"full_scans": 4}, "4 fully labelled scans asked for, and 3 have a truth"),
        ({"full_scans": -1}, "-1 fully labelled scans"),
        ({"only_full": True}, "full_scans"),
    ],
    ids=str,
)
def test_what_cannot_be_loaded_is_refused(store, settings, message) -> None:
    with pytest.raises(BadInput, match=f"store: .*{message}"):
        load(store, **{"annotation": "weak", **settings})


def test_training_never_opens_the_truth(store, monkeypatch) -> None:
    """Weak labels load where the truth cannot even be read; only what asks for it by name fails."""
    opened = Store(store.path)

    def closed(self: Store) -> None:
        raise AssertionError("the truth was opened")

    monkeypatch.setattr(Store, "truth", property(closed))
    for resident in (True, False):
        samples = load(opened, "weak", data_on_device=resident)
        samples.scan_batch([0])
        everything(samples)
    for settings in ({"annotation": "full"}, {"annotation": "weak", "full_scans": 1}):
        with pytest.raises(AssertionError, match="was opened"):
            load(opened, **settings)
    with pytest.raises(AssertionError, match="was opened"):
        truth_of(opened)


def test_no_way_leads_from_a_batch_to_the_truth(store) -> None:
    assert [field.name for field in fields(Batch)] == ["image", "annotation", "zoom"]
    known = ["label", "facts", "scan_facts", "scans", "label_weight", "rim", "rest", "patches", "index", "scan_index"]
    known += ["part"]
    assert [field.name for field in fields(Annotation)] == known
    assert list(inspect.signature(Supervision.__call__).parameters) == ["self", "logits", "image", "annotation"]
    samples = load(store, "weak")
    assert not [name for name in vars(samples) if "truth" in name]
    batch, truth = samples.batch(torch.tensor([0])), truth_of(store, split="train")[0]
    with pytest.raises(TypeError):
        Batch(batch.image, batch.annotation, truth=truth)
    assert not np.array_equal(batch.annotation.label[0].numpy(), truth.numpy())


@pytest.mark.parametrize("whole_scans", [False, True])
@pytest.mark.parametrize("name", recipes)
def test_every_recipe_runs_on_a_batch(store, name, whole_scans) -> None:
    samples = load(store, "weak", full_scans=1)
    batch = samples.scan_batch([0, 3, 1]) if whole_scans else everything(samples)
    logits = torch.randn(len(batch.image), 3, 32, 32, requires_grad=True)
    if "volume" in name and not whole_scans:
        with pytest.raises(ValueError, match="does not say which slices make up a scan"):
            recipes[name]()(logits, batch.image, batch.annotation)
        return
    terms = recipes[name]()(logits, batch.image, batch.annotation)
    terms.total.backward()
    assert bool(terms.total > 0)
    assert bool(terms.total.isfinite())
    assert bool(logits.grad.isfinite().all())


def test_a_store_without_any_truth_gives_samples(tmp_path) -> None:
    label = np.full((3, 30, 26), UNLABELLED, np.uint8)
    label[0, 3, 4] = 1
    scan = source("u", None, image=image_of(truth_like(1)), weak={"given": label})
    store = make_store(tmp_path / "store", [scan])
    samples = load(store, "given")
    assert [int((label == 1).sum()) for label in samples.labels] == [1, 0, 0]
    with pytest.raises(BadInput, match="no truth"):
        truth_of(store, split=None)
