from __future__ import annotations

import pickle

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from inbounds import Annotation, Constraint, Fixed, Patches, Scans, size
from inbounds.annotations.rest import Rest

NAN = torch.nan


def sample(number: int, **known: object) -> Annotation:
    label = torch.full((1, 4, 4), 255)
    label[0, 0, 0] = number % 2
    return Annotation(label, facts={"size": torch.tensor([[[NAN], [float(number)]]])}, **known)


class Samples(Dataset):
    """Pairs of an image and what is known of it, one image each."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[Tensor, Annotation]:
        if index >= len(self):
            raise IndexError(index)
        return torch.full((1, 4, 4), float(index)), sample(index)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork of a process with threads
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_makes_batches_of_samples(workers) -> None:
    """In a process of its own too, and back from there."""
    batches = list(DataLoader(Samples(), batch_size=3, num_workers=workers))
    assert [len(known) for _, known in batches] == [3, 2]
    for images, known in batches:
        assert isinstance(known, Annotation)
        assert known.facts["size"][:, 1, 0].tolist() == images[:, 0, 0, 0].tolist()
        assert known.facts["size"][:, 0].isnan().all()
        assert (known.label[:, 0, 0] == images[:, 0, 0, 0] % 2).all()
    assert batches[0][1] == Annotation.collate([sample(n) for n in range(3)])


def test_pickles() -> None:
    whole = Annotation.collate([sample(1, scans=Scans.of("a")), sample(2, label_weight=torch.tensor([0.5]))])
    assert pickle.loads(pickle.dumps(whole)) == whole


def test_what_some_do_not_say_is_unknown() -> None:
    first = sample(1, scan_facts={"size": torch.full((1, 2, 1), 9.0)}, scans=Scans.of("a"))
    second = Annotation(torch.full((2, 4, 4), 1), facts={"present": torch.ones(2, 2, 1)})
    both = Annotation.collate([first, second])
    assert both.batch == 3
    assert both.facts["size"][:, 1, 0].nan_to_num(-1).tolist() == [1, -1, -1]
    assert both.facts["present"][:, 1, 0].nan_to_num(-1).tolist() == [-1, 1, 1]
    assert both.scan_facts["size"][:, 1, 0].nan_to_num(-1).tolist() == [9, -1, -1]
    assert both.scans == Scans(torch.tensor([0, 1, 2]), 3)
    assert both.label_weight is None
    weighed = Annotation.collate([second, sample(0, label_weight=torch.tensor([0.5]))])
    assert weighed.label_weight.tolist() == [1, 1, 0.5]


def volumes(names: str, found: bool = True) -> Annotation:
    """Patches of volumes, and the size of these."""
    offset = torch.arange(len(names))[:, None] % 2 * 2
    patches = Patches.at(names, offset, (3,), (5,))
    if found:
        patches = patches.estimated(torch.full((patches.count, 2, 5), 0.5))
    facts = {"size": torch.full((patches.count, 2, 1), 3.0)}
    return Annotation(torch.full((len(names), 3), 255), scan_facts=facts, scans=patches)


def test_patches_stay_with_their_scans() -> None:
    wanted = Constraint(size, Fixed(1, 2), scope="volume")
    probs = torch.rand(5, 2, 3)
    parts = [volumes("aab"), volumes("cc")]
    both = Annotation.collate(parts)
    assert both.scans.index.tolist() == [0, 0, 1, 2, 2]
    values = [wanted.values(some, None, known) for some, known in zip(probs.split([3, 2]), parts, strict=True)]
    assert torch.equal(wanted.values(probs, None, both), torch.cat(values))
    assert both[3:] == parts[1]
    assert both[[0, 1, 2]] == parts[0]
    mixed = Annotation.collate([volumes("ab"), volumes("c", found=False)])
    assert mixed.scans.complete()[:, 1, 0].tolist() == [True, True, False]


def test_some_images() -> None:
    whole = Annotation.collate([sample(n, rim=torch.ones(1, 4, 4, dtype=torch.bool)) for n in range(4)])
    assert whole[2] == sample(2, rim=torch.ones(1, 4, 4, dtype=torch.bool))
    assert whole[1:3].facts["size"][:, 1, 0].tolist() == [1, 2]
    assert whole[torch.tensor([3, 0])].facts["size"][:, 1, 0].tolist() == [3, 0]
    assert whole[torch.tensor([True, False, False, True])] == whole[(0, 3)]
    assert Annotation.collate([whole[:1], whole[1:]]) == whole


def test_a_scan_is_chosen_whole_or_not_at_all() -> None:
    label = torch.arange(5)[:, None, None].expand(5, 2, 2)
    scan_facts = {"size": torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)}
    whole = Annotation(label, scan_facts=scan_facts, scans=Scans.of("abbac"))
    some = whole[[0, 3, 4]]
    assert some.scans == Scans(torch.tensor([0, 0, 1]), 2)
    assert some.scan_facts["size"].flatten().tolist() == [1, 3]
    with pytest.raises(ValueError, match="all slices of a scan, or none"):
        whole[:2]


def test_refuses_what_does_not_make_a_batch() -> None:
    with pytest.raises(ValueError, match="no annotation"):
        Annotation.collate([])
    with pytest.raises(ValueError, match=r"labels of different shapes.*\(1, 4, 4\), \(1, 4, 5\)"):
        Annotation.collate([sample(0), Annotation(torch.full((1, 4, 5), 255))])
    with pytest.raises(ValueError, match="fact 'size' has other classes"):
        Annotation.collate([sample(0), Annotation(torch.full((1, 4, 4), 255), facts={"size": torch.ones(1, 3, 1)})])
    with pytest.raises(ValueError, match="patches of scans, some whole scans"):
        Annotation.collate([volumes("a"), Annotation(torch.full((1, 3), 255))])
    with pytest.raises(ValueError, match="have a rim, some do not"):
        Annotation.collate([sample(0), sample(1, rim=torch.ones(1, 4, 4, dtype=torch.bool))])
    alone = Patches.at("a", torch.zeros(1, 2, dtype=torch.long), (4, 4), (8, 8))
    with pytest.raises(ValueError, match=r"which part of its image .* some do not"):
        Annotation.collate([sample(0), sample(1, patches=alone)])
    one = torch.ones(1, 2, 1)
    rest = Rest(torch.ones(1, 1), torch.ones(1), one, one > 0, one, one > 0)
    remembered = sample(0, scans=Scans.of("a"), rest=rest)
    with pytest.raises(ValueError, match="is of one batch"):
        Annotation.collate([remembered])
    with pytest.raises(ValueError, match="is of a whole batch"):
        remembered[0]


def test_the_numbers_of_images_follow_them() -> None:
    label = torch.full((2, 4, 4), 255)
    one = Annotation(label, index=torch.tensor([5, 7]), scan_index=torch.tensor([1, 2]))
    both = Annotation.collate([one, one])
    assert both.index.tolist() == [5, 7, 5, 7]
    assert (both[[1, 2]].index.tolist(), both[[1, 2]].scan_index.tolist()) == ([7, 5], [2, 1])
    scan = Annotation(label, scans=Scans.of("aa"), index=torch.tensor([0, 1]), scan_index=torch.tensor([9]))
    pair = Annotation.collate([scan, scan])
    assert pair[[2, 3]].scan_index.tolist() == [9]
    with pytest.raises(ValueError, match="some annotations say which images they are of"):
        Annotation.collate([one, Annotation(label)])
