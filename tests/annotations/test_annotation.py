from __future__ import annotations

import pytest
import torch

from inbounds import UNLABELLED, Annotation, Scans

LABEL = torch.tensor([[[0, 1], [UNLABELLED, 2]], [[UNLABELLED, UNLABELLED], [0, 0]]])
NAN = torch.nan


def test_unlabelled_is_255() -> None:
    assert UNLABELLED == 255


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_labels_of_any_integer_type(dtype) -> None:
    annotation = Annotation(LABEL.to(dtype)).checked(3)
    assert (annotation.batch, dict(annotation.facts), annotation.scans) == (2, {}, None)


def test_facts_of_any_number_of_components_stand_side_by_side() -> None:
    annotation = Annotation(
        LABEL,
        facts={"size": torch.ones(2, 3, 1), "centroid": torch.ones(2, 3, 2), "present": torch.ones(2, 3, 1)},
        scan_facts={"centroid": torch.ones(1, 3, 2)},
        scans=Scans.of("aa"),
    )
    assert annotation.checked(3) is annotation


def test_unknown_is_nan_and_accepted() -> None:
    facts = {"present": torch.tensor([[[1.0], [0.0], [NAN]]] * 2), "size": torch.full((2, 3, 1), NAN)}
    assert Annotation(LABEL, facts).checked(3).batch == 2


def test_moves_to_a_device() -> None:
    scans = Scans(torch.zeros(2, dtype=torch.long), 1)
    facts, scan_facts = {"size": torch.ones(2, 3, 1)}, {"size": torch.ones(1, 3, 1)}
    moved = Annotation(LABEL, facts, scan_facts, scans, torch.ones(2)).to("meta")
    tensors = [moved.label, moved.facts["size"], moved.scan_facts["size"], moved.scans.index, moved.label_weight]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    bare = Annotation(LABEL).to("meta")
    assert bare.scans is None
    assert bare.label_weight is None


@pytest.mark.parametrize(
    ("label", "facts", "message"),
    [
        (torch.tensor([[[0, 3], [0, 0]]]), {}, r"label 3 at index \(0, 0, 1\) is neither a class \(0 to 2\) nor 255"),
        (torch.tensor([[[0, 0], [-1, 0]]]), {}, r"label -1 at index \(0, 1, 0\)"),
        (torch.tensor([[[0, 254]]], dtype=torch.uint8), {}, r"label 254 at index \(0, 0, 1\)"),
        (LABEL[:1], {"size": torch.ones(1, 2, 1)}, "fact 'size' has 2 columns, but there are 3 classes"),
        (LABEL[:1], {"size": torch.tensor([[[1.0], [2.0], [-torch.inf]]])}, r"'size' is -inf at index \(0, 2, 0\)"),
        (LABEL[:1], {"present": torch.tensor([[[1.0], [0.5], [0.0]]])}, r"'present' is 0.5 at index \(0, 1, 0\).*0, 1"),
        (
            LABEL[:1],
            {"size_min": torch.tensor([[[1.0], [9.0], [torch.nan]]]), "size_max": torch.full((1, 3, 1), 4.0)},
            r"'size_min' is 9.0 at index \(0, 1, 0\), above its other end",
        ),
    ],
)
def test_checked_refuses_numbers_with_their_index(label, facts, message) -> None:
    with pytest.raises(ValueError, match=message):
        Annotation(label, facts).checked(3)
    if facts:
        with pytest.raises(ValueError, match=message):
            Annotation(label, scan_facts=facts).checked(3)


@pytest.mark.parametrize("wrong", [-0.1, torch.inf, torch.nan])
def test_checked_refuses_what_an_image_cannot_count(wrong) -> None:
    Annotation(LABEL, label_weight=torch.tensor([1.0, 0.0])).checked(3)
    with pytest.raises(ValueError, match=f"label_weight is {wrong} for image 1"):
        Annotation(LABEL, label_weight=torch.tensor([1.0, wrong])).checked(3)


@pytest.mark.parametrize("wrong", [2, -1])
def test_checked_refuses_a_scan_index_out_of_range(wrong) -> None:
    annotation = Annotation(LABEL, scans=Scans(torch.tensor([0, wrong]), 2))
    with pytest.raises(ValueError, match=f"slice 1 has scan index {wrong}, but there are 2 scans"):
        annotation.checked(3)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label": LABEL.float()}, "label map must be of an integer type, not torch.float32"),
        ({"label": LABEL.bool()}, "label map must be of an integer type, not torch.bool"),
        ({"label": torch.tensor([0, 1])}, r"label map must be \(B, \*space\), but its shape is \(2,\)"),
        ({"scans": Scans.of("aab")}, "names 3 slices, the batch holds 2"),
        ({"label_weight": torch.ones(3)}, r"label_weight must be \(2,\), one for each image, not \(3,\)"),
        ({"facts": {"size": torch.ones(3, 3, 1)}}, r"fact 'size' must be .* N=2 images, not .* \(3, 3, 1\)"),
        ({"facts": {"size": torch.ones(2, 3)}}, r"fact 'size' must be .* shape \(2, 3\)"),
        ({"facts": {"size": torch.ones(2, 3, 1).long()}}, "fact 'size' must be a floating-point tensor.*torch.int64"),
        ({"scans": Scans.of("aa"), "scan_facts": {"size": torch.ones(2, 3, 1)}}, "fact 'size' must be .* N=1 scans"),
        ({"scan_facts": {"size": torch.ones(1, 3, 1)}}, "fact 'size' must be .* N=2 scans"),
    ],
    ids=str,
)
def test_refuses_shapes_and_types(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        Annotation(**{"label": LABEL, **settings})


@pytest.mark.plain
def test_a_rim_is_a_map_of_the_labels_shape() -> None:
    label = torch.full((2, 4, 4), 255)
    rim = torch.zeros(2, 4, 4, dtype=torch.bool)
    assert Annotation(label, rim=rim).to("cpu").rim is not None
    for wrong in (rim[:1], rim.float()):
        with pytest.raises(ValueError, match="rim must be boolean, of the label's shape"):
            Annotation(label, rim=wrong)
