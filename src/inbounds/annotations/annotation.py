"""All that a weakly supervised training may know of a batch. The full truth has no place in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from inbounds.annotations.rest import Rest
from inbounds.ranks import Part
from inbounds.regions.holding import Holding
from inbounds.regions.patches import Patches
from inbounds.regions.scans import Scans

UNLABELLED = 255
"""The value of a pixel of which nobody has said what it is."""


@dataclass(frozen=True, eq=False)
class Annotation(Holding):
    """What is known of a batch of images: some labelled pixels, some facts, and which slices make up a scan.

    Construction looks at shapes, types and devices only, so it is free on any device. `checked` looks at the numbers;
    call it where data enters the program.

    A dataset may give one for each image, `(1, *space)`: a `DataLoader` makes a batch of them, as `collate` does.

    Attributes:
        label: Class of each pixel, 0 for background and `UNLABELLED` (255) where unknown. Any integer type.
        facts: What is known of each image, by name: `present` (1, 0), `size`, `centroid`, ... Each is `(B, K, M)`
            with a column for every class, background included. NaN means unknown. `size_min` and `size_max` are the
            ends of a range. What is known of several classes together, or of a relation, is `(B, 1, M)`, and called
            `size(1+2)` or `ratio(1:2)`. `cut` is 1 where part of the region may lie outside the image, as after a
            shift: lower bounds are then open, and all bounds on averages. Where it is NaN, labels and prediction at the
            rim decide.
        scan_facts: The same of whole scans, `(S, K, M)`.
        scans: Which images are slices of the same scan. `None` when every image is a scan of its own.
        label_weight: How much the labels of each image count in the loss. `None` when all count alike, as 1.
        rim: The pixels at the border of what was scanned, where regions may be cut. `None`: the image's outermost ring.
        rest: What the batch does not show of its scans. `None` when it holds whole scans.
        patches: Which part of its own image each image of the batch is, where these are not whole: facts are of what
            they were cut from. Of whole scans, `Patches` in the place of `scans` say so.
        index: Which image of the data set each is, for penalties that remember images. `None` when nobody asks.
        scan_index: The same of scans.
        part: Which images of the batch these are, where several processes share it: losses are then of all of it.

    Example:
        >>> label = torch.full((2, 4, 4), UNLABELLED)
        >>> label[0, 1, 1] = 1  # one click in the first image
        >>> Annotation(label, facts={"present": torch.tensor([[[1.0], [1.0]], [[1.0], [0.0]]])}).batch
        2
    """

    label: Integer[Tensor, "B *space"]
    facts: Mapping[str, Float[Tensor, "B K _"]] = field(default_factory=dict)
    scan_facts: Mapping[str, Float[Tensor, "S K _"]] = field(default_factory=dict)
    scans: Scans | None = None
    label_weight: Float[Tensor, " B"] | None = None
    rim: Bool[Tensor, "B *space"] | None = None
    rest: Rest | None = None
    patches: Patches | None = None
    index: Integer[Tensor, " B"] | None = None
    scan_index: Integer[Tensor, " S"] | None = None
    part: Part | None = None

    def __post_init__(self) -> None:
        _check_tensors(self)
        if self.label.is_floating_point() or self.label.is_complex() or self.label.dtype == torch.bool:
            raise ValueError(f"a label map must be of an integer type, not {self.label.dtype}")
        if self.label.ndim < 2:
            raise ValueError(f"a label map must be (B, *space), but its shape is {tuple(self.label.shape)}")
        if self.scans is not None and self.scans.index.shape[0] != self.batch:
            raise ValueError(f"the scan index names {self.scans.index.shape[0]} slices, the batch holds {self.batch}")
        if self.patches is not None and (self.patches.index.shape[0], self.patches.count) != (self.batch, self.batch):
            raise ValueError(
                f"patches are of images by themselves, one for each of {self.batch}; those of whole scans are `scans`"
            )
        if self.label_weight is not None and self.label_weight.shape != (self.batch,):
            raise ValueError(
                f"label_weight must be ({self.batch},), one for each image, not {tuple(self.label_weight.shape)}"
            )
        if self.rim is not None and (self.rim.shape != self.label.shape or self.rim.dtype != torch.bool):
            raise ValueError(
                f"rim must be boolean, of the label's shape {tuple(self.label.shape)}, not {self.rim.dtype} of shape "
                f"{tuple(self.rim.shape)}"
            )
        scans = self.batch if self.scans is None else self.scans.count
        for name, index, rows in (("index", self.index, self.batch), ("scan_index", self.scan_index, scans)):
            if index is not None and (index.shape != (rows,) or index.is_floating_point()):
                raise ValueError(f"{name} must be whole numbers ({rows},), not {index.dtype} {tuple(index.shape)}")
        for rows, facts, what in ((self.batch, self.facts, "images"), (scans, self.scan_facts, "scans")):
            for name, fact in facts.items():
                if not fact.is_floating_point() or fact.ndim != 3 or fact.shape[0] != rows:
                    raise ValueError(
                        f"fact {name!r} must be a floating-point tensor (N, K, M) with N={rows} {what}, not "
                        f"{fact.dtype} of shape {tuple(fact.shape)}"
                    )

    @property
    def batch(self) -> int:
        """The number of images."""
        return self.label.shape[0]

    def checked(self, classes: int) -> Annotation:
        """The same annotation, once every number has been looked at.

        Raises:
            ValueError: A label is neither a class nor 255, a fact has a column too many or too few, is infinite,
                or says something other than 0 or 1 about presence, a region that is absent has a size, or an image
                counts less than nothing. The message gives the first offending index.
        """
        self.check_labels(classes)
        for facts in (self.facts, self.scan_facts):
            for name, fact in facts.items():
                base, bracket, of = name.partition("(")
                if fact.shape[1] != (1 if bracket else classes):
                    raise ValueError(f"fact {name!r} has {fact.shape[1]} columns, but there are {classes} classes")
                bad, wanted = fact.isinf(), "finite, or NaN for unknown"
                if base == "present":
                    bad, wanted = ~(fact.isnan() | (fact == 0) | (fact == 1)), "0, 1 or NaN"
                if bool(bad.any()):
                    at = tuple(bad.nonzero()[0].tolist())
                    raise ValueError(f"fact {name!r} is {float(fact[at])} at index {at}: it must be {wanted}")
                high = f"{base.removesuffix('_min')}_max{bracket}{of}"
                other = facts.get(high) if base.endswith("_min") else None
                if other is not None and bool((fact > other).any()):
                    at = tuple((fact > other).nonzero()[0].tolist())
                    raise ValueError(f"fact {name!r} is {float(fact[at])} at index {at}, above its other end")
            for name in sorted({"size", "size_min"} & facts.keys()) if "present" in facts else ():
                there = (facts["present"] == 0) & (facts[name] > 0)
                if bool(there.any()):
                    at = tuple(there.nonzero()[0].tolist())
                    raise ValueError(
                        f"fact {name!r} is {float(facts[name][at])} at index {at}, where 'present' is 0: one of them "
                        "is wrong; give a region that is absent no size, or 0"
                    )
        if self.label_weight is not None:
            bad = ~(self.label_weight.isfinite() & (self.label_weight >= 0))
            if bool(bad.any()):
                image = int(bad.nonzero()[0])
                weight = float(self.label_weight[image])
                raise ValueError(f"label_weight is {weight:g} for image {image}: it must be 0 or more, and finite")
        if self.scans is not None:
            outside = (self.scans.index < 0) | (self.scans.index >= self.scans.count)
            if bool(outside.any()):
                slice_ = int(outside.nonzero()[0])
                raise ValueError(
                    f"slice {slice_} has scan index {int(self.scans.index[slice_])}, but there are {self.scans.count} "
                    "scans, numbered from 0; number the scans of a batch with Scans.of"
                )
        return self

    def check_labels(self, classes: int) -> None:
        """Refuse a label that is neither a class nor 255."""
        wrong = (self.label != UNLABELLED) & ((self.label < 0) | (self.label >= classes))
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            found = int(self.label[at])
            raise ValueError(
                f"label {found} at index {at} is neither a class (0 to {classes - 1}) nor {UNLABELLED} (unlabelled); "
                f"if it says that nobody has labelled the pixel: label.masked_fill(label == {found}, {UNLABELLED}), or "
                f"Loss(..., ignore_index={found})"
            )

    @classmethod
    def collate(cls, annotations: Sequence[Annotation]) -> Annotation:
        """Those of several batches as that of one. Scans stay apart, and what one of them does not know is unknown."""
        from inbounds.annotations.joined import joined

        return joined(annotations)

    def __len__(self) -> int:
        return self.batch

    def __getitem__(self, images: int | slice | Sequence[int] | Tensor) -> Annotation:
        """That of some images, of which it looks up the scans: of each scan all slices are needed, or none."""
        from inbounds.annotations.joined import chosen

        return chosen(self, images)

    @property
    def shape(self) -> torch.Size:
        """That of the label with an axis for channels, `(B, 1, *space)`, as losses of other libraries ask for it."""
        return torch.Size((self.batch, 1, *self.label.shape[1:]))

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.label.device

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Whoever shrinks the target for a coarser output gets it as it is, and `Loss` then knows."""
        return Coarser(args[0]) if function is torch.nn.functional.interpolate else NotImplemented


@dataclass(frozen=True)
class Coarser:
    """What is known of images, for an output on a coarser grid than theirs, as deep supervision has them."""

    annotation: Annotation


def _check_tensors(annotation: Annotation) -> None:
    """Refuse arrays of other libraries, and tensors that are not all on one device."""
    scans = {"scans": annotation.scans.index} if isinstance(annotation.scans, Scans) else {}
    named = {"label": annotation.label, "label_weight": annotation.label_weight, "rim": annotation.rim, **scans}
    named |= {
        f"fact {name!r}": fact for facts in (annotation.facts, annotation.scan_facts) for name, fact in facts.items()
    }
    for name, tensor in named.items():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ValueError(f"{name} must be a tensor, not {type(tensor).__name__}: torch.as_tensor(...) makes one")
        if tensor is not None and tensor.device != annotation.label.device:
            raise ValueError(
                f"{name} is on {tensor.device}, the label on {annotation.label.device}: make the annotation on one "
                "device, and move it with .to(device)"
            )
