"""How a scan is shown on a screen: which axis of its array runs down, which across, and what lies on which side.

A scan has three planes, one through each axis of its array, in the order of the axes: the first steps along the slices.
Where a file says how it lies in the body, planes are shown as radiologists look at them: the patient's right on the
left, anterior on top (axial), the head on top (coronal, sagittal), anterior on the left (sagittal). Oblique axes count
as those of the body that they run along most. Other files are shown as they are stored.

Slices keep the numbers that they have in the file; rows and columns of a screen may run against those of the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Shaped

from inbounds.scans.format import Affine, Shape

_RIGHT, _ANTERIOR, _SUPERIOR = range(3)
_LOOK = {
    _SUPERIOR: ("axial", _ANTERIOR, _RIGHT),
    _ANTERIOR: ("coronal", _SUPERIOR, _RIGHT),
    _RIGHT: ("sagittal", _SUPERIOR, _ANTERIOR),
}
"""What is seen along each axis of the body: the plane, and the axes of the body that run down and across it."""
_ENDS = ("RL", "AP", "SI")
"""Where each axis of the body begins on a screen, at the top or on the left, and where it ends."""
STORED = ("slices", "rows", "columns")
"""What planes are called where nobody knows how the scan lies."""


@dataclass(frozen=True)
class Plane:
    """One way to look at a scan.

    Attributes:
        name: `axial`, `coronal` or `sagittal`; one of `STORED` where nobody knows.
        through: The axis of the array that goes from picture to picture, without ever being turned round.
        down: The axis that runs down the screen.
        across: The axis that runs across it.
        flip_down: Whether the screen's rows run against the array's.
        flip_across: Whether its columns do.
        letters: What lies on the left, right, top and bottom: R, L, A, P, S or I; `None` where nobody knows.
        shape: Of the array.
        spacing: In mm, along its axes.
    """

    name: str
    through: int
    down: int
    across: int
    flip_down: bool
    flip_across: bool
    letters: tuple[str | None, str | None, str | None, str | None]
    shape: Shape
    spacing: tuple[float, float, float]

    @property
    def count(self) -> int:
        """How many pictures there are."""
        return self.shape[self.through]

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a picture."""
        return self.shape[self.down], self.shape[self.across]

    def picture(self, array: Shaped[np.ndarray, "slices rows columns"], n: int) -> Shaped[np.ndarray, "down across"]:
        """A picture as the screen shows it, its first row on top."""
        seen = array[tuple(n if axis == self.through else slice(None) for axis in range(3))]
        seen = seen if self.down < self.across else seen.T
        return seen[:: -1 if self.flip_down else 1, :: -1 if self.flip_across else 1]


def planes_of(shape: Shape, spacing: tuple[float, float, float], affine: Affine | None) -> tuple[Plane, Plane, Plane]:
    """The planes of an array whose affine goes from (column, row, slice, 1) to mm right, anterior, superior."""
    if affine is None:
        first, second, third = (_stored(axis, shape, spacing) for axis in range(3))
    else:
        body, towards = _axes(affine)
        first, second, third = (_plane(axis, body, towards, shape, spacing) for axis in range(3))
    return first, second, third


def _axes(affine: Affine) -> tuple[tuple[int, ...], list[bool]]:
    """The axis of the body along which each axis of the array runs, and whether towards right, anterior, superior."""
    steps = affine[:3, 2::-1]  # of slices, rows, columns
    lengths = np.linalg.norm(steps, axis=0)
    along = steps / np.where(lengths > 0, lengths, 1)
    body = max(permutations(range(3)), key=lambda order: sum(abs(along[b, a]) for a, b in enumerate(order)))
    return body, [bool(along[b, a] > 0) for a, b in enumerate(body)]


def _plane(
    through: int, body: Sequence[int], towards: Sequence[bool], shape: Shape, spacing: tuple[float, float, float]
) -> Plane:
    name, body_down, body_across = _LOOK[body[through]]
    down, across = body.index(body_down), body.index(body_across)
    letters = (*_ENDS[body_across], *_ENDS[body_down])
    return Plane(name, through, down, across, towards[down], towards[across], letters, shape, spacing)


def _stored(through: int, shape: Shape, spacing: tuple[float, float, float]) -> Plane:
    down, across = (axis for axis in range(3) if axis != through)
    return Plane(STORED[through], through, down, across, False, False, (None,) * 4, shape, spacing)
