"""A batch that several processes share has the loss and the gradient of the whole batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from cases import BOUNDS, PLANE, batch, constraint
from inbounds import Annotation, Exact, Individual, Scans, Supervision, recipes
from inbounds.annotations.rest import Rest
from inbounds.losses import cross_entropy
from inbounds.ranks import Part
from inbounds.regularisers import Regulariser, border, normalised_cut, pairwise
from together import begin, ended

NAMES = ["size", "centroid", "spread", "moment", "mean_intensity", "variance_intensity"]


def supervisions() -> dict[str, Supervision]:
    """Every recipe; every statistic of slices and of scans; every bounds, regulariser, mean and way to project."""
    terms = [Regulariser(border, 3.0, where="present"), Regulariser(pairwise, 2.0), Regulariser(normalised_cut, 1.0)]
    made = {name: build() for name, build in recipes.items()}
    for scope in ("image", "volume"):
        several = [constraint(one, PLANE, BOUNDS["individual"], name=one, scope=scope) for one in NAMES]
        made[f"statistics, {scope}"] = Supervision(constraints=several)
        of_size = [constraint("size", PLANE, bounds, name=name, scope=scope) for name, bounds in BOUNDS.items()]
        made[f"bounds, {scope}"] = Supervision(constraints=of_size)
    made["regularisers"] = Supervision(regularisers=terms)
    for mean in ("classes", "pixels"):
        made[f"mean over {mean}"] = Supervision(
            lambda *given, mean=mean, **named: cross_entropy(*given, mean=mean, **named)
        )
    for scope in ("individual", "volume"):
        project = recipes[f"proposals_{scope}"](project=Exact(), harden=False, classes=[1, 2])
        made[f"several classes, {scope}"] = project
    return made


def share(annotation: Annotation, part: Part) -> Annotation:
    """What one of several processes is given of a batch."""
    assert annotation.scans is not None
    return replace(
        annotation,
        label=part.take(annotation.label),
        facts={name: part.take(fact) for name, fact in annotation.facts.items()},
        scans=Scans(part.take(annotation.scans.index), annotation.scans.count, part=part),
        part=part,
    )


def known(images: int) -> tuple[Tensor, Tensor, Annotation]:
    logits, image, annotation = batch(3, PLANE, torch.float64)
    facts = {name: fact[:images] for name, fact in annotation.facts.items()}
    scans = Scans(annotation.scans.index[:images], 2)
    return (
        logits[:images],
        image[:images],
        replace(annotation, label=annotation.label[:images], facts=facts, scans=scans),
    )


def measured(images: int, part: Part | None = None) -> dict[str, Tensor]:
    """The value of every supervision, and the gradient at the scores of all images."""
    found = {}
    for name, supervision in supervisions().items():
        logits, image, annotation = known(images)
        scores = logits.clone().requires_grad_()
        if part is None:
            total = supervision(scores, image, annotation).total
        else:
            total = supervision(part.take(scores), part.take(image), share(annotation, part)).total
        total.backward()
        found |= {f"{name}: value": total.detach(), f"{name}: gradient": scores.grad}
    return found


SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
from safetensors.torch import save_file
from inbounds.training.group import joined, part_ways
from test_ranks import measured, remembered
from together import threads_of_gloo
group, out = joined(), sys.argv[1]
for images in (4, 3, 1):
    save_file(measured(images, group.part(images)), f"{out}/{images}-{group.rank}.safetensors")
save_file(remembered(group.part(4)), f"{out}/rest-{group.rank}.safetensors")
part_ways()
assert not threads_of_gloo(), threads_of_gloo()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ranks", [2, 3])
def test_several_processes_have_the_loss_and_gradient_of_the_whole_batch(tmp_path: Path, ranks: int) -> None:
    """Slices of one scan lie on different ones; of three or one images some process has none that counts."""
    ended(begin(ranks, ["-c", SCRIPT, tmp_path]))
    for what, whole in {**{str(n): measured(n) for n in (4, 3, 1)}, "rest": remembered()}.items():
        parts = [load_file(tmp_path / f"{what}-{rank}.safetensors") for rank in range(ranks)]
        for name, expected in whole.items():
            values = [part[name] for part in parts]
            found = torch.stack(values).mean(dim=0) if "gradient" in name else values[0]
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10, msg=f"{what}, {name}")
            assert "gradient" in name or all(torch.equal(value, values[0]) for value in values), name


def remembered(part: Part | None = None) -> dict[str, Tensor]:
    """Bounds on scans of which a batch has some slices, two of them the same one."""
    logits, _, annotation = known(4)
    scores = logits.clone().requires_grad_()
    same = torch.eye(4)
    same[0, 2] = same[2, 0] = 1  # both of the first scan
    row = torch.ones(4, 3, 1, dtype=torch.float64)
    rest = Rest(same, torch.tensor([1.0, 1.2, 0.9, 1.0]), 3 * row, row > 0, 5 * row[:2], row[:2] > 0)
    facts = {"size": 40 * row[:2]}
    whole = replace(annotation, scan_facts=facts, rest=rest)
    if part is not None:
        names = ("same", "zoom", "stored", "seen")
        own = replace(rest, part=part, **{name: part.take(getattr(rest, name)) for name in names})
        whole = replace(share(whole, part), rest=own)
    bound = replace(constraint("size", PLANE, Individual(relative=0.1)), scope="volume")
    total = bound((scores if part is None else part.take(scores)).softmax(dim=1), None, whole)
    total.backward()
    return {"value": total.detach(), "gradient": scores.grad}


def test_images_are_dealt_out_evenly_and_each_once() -> None:
    for whole in range(1, 20):
        for ranks in range(1, 9):
            parts = [Part(rank, ranks, whole) for rank in range(ranks)]
            images = torch.cat([part.take(torch.arange(whole)) for part in parts if part.counts])
            assert images.tolist() == list(range(whole))
            lengths = [len(part.take(torch.arange(whole))) for part in parts]
            assert max(lengths) - min(lengths) <= 1
            assert min(lengths) == (1 if whole < ranks else whole // ranks)


def test_the_whole_differs_from_what_one_process_would_find_by_itself() -> None:
    """What nobody may mistake for it: a bound on a scan of which one process sees half."""
    logits, _, annotation = known(4)
    bound = constraint("size", PLANE, Individual(relative=0.1), scope="volume")
    whole = bound(logits.softmax(dim=1), None, annotation)
    half = replace(share(annotation, Part(0, 2, 4)), scans=Scans(annotation.scans.index[:2], 2), part=None)
    assert bound(logits[:2].softmax(dim=1), None, half) > 2 * whole or whole > 2 * bound(
        logits[:2].softmax(dim=1), None, half
    )
