from __future__ import annotations

import pytest
import torch

from inbounds import Annotation, Patches, Scans


def annotation(**changes: object) -> Annotation:
    settings = {
        "label": torch.full((2, 4, 4), 255),
        "facts": {"size": torch.tensor([[[torch.nan], [3.0]]] * 2)},
        "scans": Scans.of("aa"),
        **changes,
    }
    return Annotation(**settings)


def test_what_is_the_same_is_equal_and_nan_is_nan() -> None:
    assert annotation() == annotation()
    assert Scans.of("ab") == Scans.of("xy")
    patches = [Patches.at("ab", torch.zeros(2, 1, dtype=torch.long), (2,), (4,)) for _ in range(2)]
    assert patches[0] == patches[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"label": torch.full((2, 4, 4), 255, dtype=torch.uint8)},
        {"label": torch.full((2, 4, 5), 255)},
        {"label": torch.zeros(2, 4, 4, dtype=torch.long)},
        {"facts": {"size": torch.tensor([[[0.0], [3.0]]] * 2)}},
        {"facts": {"present": torch.tensor([[[torch.nan], [3.0]]] * 2)}},
        {"facts": {}},
        {"scans": Scans.of("ab")},
        {"scans": None},
        {"label_weight": torch.ones(2)},
    ],
    ids=str,
)
def test_what_differs_is_not(changes) -> None:
    assert annotation(**changes) != annotation()
    assert annotation(**changes) != "something else"


def test_moves_and_changes_every_tensor() -> None:
    patches = Patches.at("ab", torch.zeros(2, 2, dtype=torch.long), (4, 4), (8, 8))
    whole = annotation(scans=None, patches=patches, rim=torch.zeros(2, 4, 4, dtype=torch.bool))
    moved = whole.to("meta", non_blocking=True)
    tensors = [moved.label, moved.facts["size"], moved.rim, *(getattr(moved.patches, n) for n in ("places", "sides"))]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved.patches.count == 2
    assert moved.patches.outside is None
    seen: list[torch.Tensor] = []
    assert whole.mapped(lambda tensor: seen.append(tensor) or tensor) == whole
    assert len(seen) == 7


def test_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor is, by the method that a loader calls: pinning itself needs a GPU."""
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor.shape) or tensor)
    assert annotation().pin_memory() == annotation()
    assert pinned == [(2, 4, 4), (2, 2, 1), (2,)]
