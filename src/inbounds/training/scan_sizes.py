"""What is remembered of a run's scans, so that bounds on whole scans act on batches of any slices."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from inbounds.annotations.rest import Rest
from inbounds.batches.samples import Batch, Samples
from inbounds.constraints.cut import cut_off
from inbounds.ranks import Part
from inbounds.regions import Scans, size


class ScanSizes:
    """The last known size of every slice and class, on the device: one number each, NaN before it was seen.

    Args:
        samples: The slices, and the facts of their scans.
    """

    def __init__(self, samples: Samples) -> None:
        self.samples, device = samples, samples.device
        self.sizes = torch.full((len(samples), samples.classes, 1), torch.nan, device=device)
        longest = max(record.slices for record in samples.records)
        rows = [[*samples.slices_of(n), *[-1] * longest][:longest] for n in range(len(samples.records))]
        self.members = torch.tensor(rows, device=device)

    def annotated(self, batch: Batch, index: Int[Tensor, " W"]) -> Batch:
        """The batch with the facts of its slices' scans, and with what is remembered of the rest of them.

        Every image has room for a scan of its own, so that shapes are always the same; of the images of one scan the
        first gives the place, and nothing is known of the places that are left. Where several processes share the
        batch, the positions are those of all its slices, as the places are.
        """
        index, part = index.to(self.sizes.device), batch.annotation.part
        own = _own(index, part)
        scan = self.samples.scans.index[index]
        place = (scan[:, None] == scan).int().argmax(dim=1)
        order = torch.arange(len(index), device=index.device)
        taken = (place == order)[:, None, None]
        facts = {name: torch.where(taken, fact[scan], torch.nan) for name, fact in self.samples.scan_facts.items()}
        members = self.members[scan]
        elsewhere = (members >= 0) & ~(members[..., None] == index).any(dim=-1)
        remembered = self.sizes[members.clamp(min=0)]
        outside = elsewhere[..., None, None]
        rest = Rest(
            same=(own[:, None] == index).float(),
            zoom=torch.ones_like(own, dtype=torch.float32) if batch.zoom is None else batch.zoom,
            stored=self.sizes[own].nan_to_num(0.0),
            seen=~self.sizes[own].isnan(),
            others=torch.where(outside, remembered.nan_to_num(0.0), 0).sum(dim=1),
            complete=~(outside & remembered.isnan()).any(dim=1),
            part=part,
        )
        scans = Scans(_own(place, part), len(index), part=part)
        annotation = replace(batch.annotation, scan_facts=facts, scans=scans, rest=rest, scan_index=scan)
        return replace(batch, annotation=annotation)

    @torch.no_grad()
    def remember(
        self, batch: Batch, index: Int[Tensor, " W"], logits: Float[Tensor, "B K *space"], broken: Float[Tensor, ""]
    ) -> None:
        """Write down what the slices of an annotated batch measure, unless the loss has stopped being finite.

        Where several processes share the batch, each writes down what all of them have measured.
        """
        rest = batch.annotation.rest
        assert rest is not None
        index = index.to(self.sizes.device)
        probs = logits.detach().float().softmax(dim=1)
        now, measured = rest.each(size(probs), cut_off(probs, batch.annotation, range(probs.shape[1])))
        if rest.part is not None:
            now, measured = rest.part.gathered(now), rest.part.gathered(measured.to(now.dtype)) > 0
        self.sizes[index] = torch.where(measured & (broken == 0), now, self.sizes[index])


def _own(x: Tensor, part: Part | None) -> Tensor:
    return x if part is None else part.take(x)
