"""What a patch shows of its scan and what was found in the rest make up the scan, however it was turned and cut."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from inbounds import Constraint, Individual, size
from inbounds.annotations import Annotation
from inbounds.nnunet.frames import Frames, Rest

SCAN = (10, 40, 36)


def scan(axes: int, generator: torch.Generator) -> Tensor:
    """Probabilities of two classes, an ellipsoid that is nowhere sharp and the rest, `(2, *scan)`."""
    sides = torch.tensor(SCAN[3 - axes :])
    middle = sides / 2 + (torch.rand(axes, generator=generator) - 0.5) * sides / 3
    grid = torch.meshgrid(*(torch.arange(float(side)) for side in sides), indexing="ij")
    away = sum(((one - at) / (side / 4)) ** 2 for one, at, side in zip(grid, middle, sides, strict=True))
    inside = torch.sigmoid(6 * (1 - away))
    return torch.stack([1 - inside, inside])


def frame(axes: int, patch: tuple[int, ...], generator: torch.Generator, turned: bool) -> Frames:
    """A patch somewhere, cut out a little larger than it is, zoomed by up to 1.4 and maybe turned."""
    sides = torch.tensor(SCAN[3 - axes :])
    cut = torch.tensor(patch) + 4
    low = ((sides - cut / 2) * torch.rand(axes, generator=generator) - cut / 4).round()
    zoom = torch.empty(1).uniform_(0.7, 1.4, generator=generator)
    matrix = torch.eye(axes) * zoom
    angle = float(torch.rand(1, generator=generator)) * 2 * math.pi if turned else 0.0
    matrix[-2:, -2:] @= torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    rows = matrix, low + (cut - 1) / 2, low.clamp(min=0), (low + cut).minimum(sides), sides.float()
    return Frames(*(one[None] for one in rows), [1] if axes == 2 else None)


def looked_up(whole: Tensor, places: Tensor, sides: Tensor) -> Tensor:
    """Probabilities of a scan at some places, linearly; nothing is there beyond."""
    grid = torch.stack([at / (side / 2) for at, side in zip(places, sides, strict=True)][::-1], dim=-1)
    return functional.grid_sample(whole[None], grid[None], align_corners=False)[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("patch", [(20, 24), (66, 70), (6, 20, 24), (33, 64, 64)])
def test_a_patch_and_the_rest_are_the_scan(patch: tuple[int, ...], turned: bool) -> None:
    """Cells of one or two voxels, patches smaller and larger than their scan."""
    generator, axes, parts = torch.Generator().manual_seed(0), len(patch), []
    for number in range(12):
        whole, frames = scan(axes, generator), frame(axes, patch, generator, turned)
        rest = Rest(patch)
        rest.keep("one", (whole if axes == 3 else whole[:, None].expand(2, 3, *whole.shape[1:])).log())
        bare = frames.patches(patch)
        patches = rest.behind(frames, bare, ["one"])
        seen = looked_up(whole, bare.places[0], frames.sides[0])[None]
        expected = float(whole[1].sum())
        found, alone = (float(size(seen, scans=one)[0, 1]) for one in (patches, bare))
        assert patches.found is not None
        assert float(patches.found[0, 1]) == pytest.approx(expected, rel=1e-3)
        assert found == pytest.approx(expected, rel=0.03), number
        assert alone < expected * 1.03
        assert bool(patches.complete()[0, 1])
        parts.append(alone / expected)
    smaller = all(side < SCAN[3 - axes + axis] for axis, side in enumerate(patch))
    assert (min(parts) < 0.7) == smaller, "smaller patches leave out a part, larger ones little"


def test_until_somebody_has_looked_only_upper_bounds_act() -> None:
    """A half of a disc costs nothing before; afterwards what is missing in the patch does, and what is outside not."""
    square = torch.zeros(1, 1, 32, 32)
    square[..., 8:24, 8:24] = 1
    whole = torch.cat([1 - square, square], dim=1)
    rows = torch.tensor([[[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 15.5, 7.5], [0, 0, 0], [1, 32, 16], [1, 32, 32]]])
    frames = Frames.of(rows, 2, rows.device)
    patch, rest = whole[..., :16], Rest((32, 16))
    facts = {"size": torch.tensor([[[math.nan], [256.0]]])}
    constraint = Constraint(size, Individual(relative=0.1))

    def cost(probs: Tensor) -> float:
        patches = rest.behind(frames, frames.patches((32, 16)), ["one"])
        return float(constraint(probs, None, Annotation(torch.full((1, 32, 16), 255), facts, patches=patches)))

    nothing = torch.cat([torch.ones_like(patch[:, :1]), torch.zeros_like(patch[:, :1])], dim=1)
    everything = nothing.flip(1)
    assert cost(patch) == cost(nothing) == 0
    assert cost(everything) > 0
    rest.keep("one", whole.movedim(0, 1).log())
    assert cost(patch) == 0
    assert cost(nothing) > 0
    assert cost(everything) > 0


def test_scans_that_nobody_has_looked_at_are_left_alone() -> None:
    generator = torch.Generator().manual_seed(1)
    one, other = (frame(2, (20, 24), generator, False) for _ in range(2))
    parts = zip(list(vars(one).values())[:-1], list(vars(other).values())[:-1], strict=True)
    both = Frames(*(torch.cat(pair) for pair in parts), [0, 0])
    rest = Rest((20, 24))
    rest.keep("seen", scan(2, generator)[:, None].log())
    patches = rest.behind(both, both.patches((20, 24)), ["seen", "unseen"])
    assert patches.complete()[:, 1, 0].tolist() == [True, False]
    assert patches.found is not None
    assert patches.found.isnan()[:, :, 0].tolist() == [[True, False], [True, True]]
