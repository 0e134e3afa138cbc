"""Generated short-axis hearts: a data set that can be had anywhere, and whose truth is exact.

A phantom is drawn, not simulated. Soft-edged shapes are painted over one another, in millimetres, from the back to the
front: lung, abdomen, chest wall, spine and vessels, and last the heart, whose outlines give the truth. Around the heart
lie structures as bright and as large as the left ventricle (aorta, stomach, bowel, the atria above the valves), so that
brightness alone does not find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage  # type: ignore[import-untyped]

from inbounds.sources.source import Extent, Loaded, Source

Phase: TypeAlias = Literal["ED", "ES"]
Field: TypeAlias = npt.NDArray[np.float64]
Point: TypeAlias = tuple[float, float]
Random: TypeAlias = np.random.Generator

NAME = "phantom"
VALIDATION = 0.25
CLASSES = ("background", "RV", "MYO", "LV")
"""What the values 0 to 3 of a truth stand for, as in ACDC. Papillary muscles belong to the LV, as there."""

SMALLEST = 48
"""The shortest side, in pixels, on which the wall of every heart is still wider than a pixel."""

_SLICES = 11
"""The most that a scan has."""
_DRAWING = 32
"""Bytes of memory that drawing it takes for each voxel, about."""
_CLOSED = 4.5
"""Radius in mm below which a cavity near the apex counts as closed."""


def sources(patients: int, *, side: int = 96, seed: int = 0) -> list[Source]:
    """Both phases of so many generated patients; the last quarter validates."""
    training = patients - round(patients * VALIDATION)
    phases: tuple[Phase, Phase] = ("ED", "ES")
    return [
        Source(
            f"phantom{patient:03d}_{phase}",
            f"phantom{patient:03d}",
            partial(generate, patient, phase, shape=(side, side), seed=seed),
            split="train" if patient <= training else "validation",
            phase=phase,
            extent=Extent((_SLICES, side, side), (10.0, 1.5, 1.5), 1, _SLICES * side * side * _DRAWING),
        )
        for patient in range(1, patients + 1)
        for phase in phases
    ]


def generate(patient: int, phase: Phase, *, shape: tuple[int, int] = (96, 96), seed: int) -> Loaded:
    """Draw one scan, base first. The same patient, phase, shape and seed give the same scan.

    Both phases of a patient share the anatomy, the contrast and the slice positions. At `ES` the cavity is smaller, the
    wall thicker and the base lower, so that a slice which cuts the ventricle at `ED` may pass above it. Of the 7 to 11
    slices up to three at the ends show no heart class. Another `shape` shows the same anatomy at another resolution:
    the field of view belongs to the shorter side.

    Grey values are whole numbers from 0 to 255: nothing is lost in 8 bits.

    Args:
        patient: Number of the patient, 0 or more.
        phase: `ED` (end of diastole, filled) or `ES` (end of systole, contracted).
        shape: Rows and columns, at least 48 each.
        seed: Number of the data set, 0 or more.
    """
    if phase not in ("ED", "ES"):
        raise ValueError(f"phase must be 'ED' or 'ES', not {phase!r}")
    if patient < 0 or seed < 0:
        raise ValueError(f"patient and seed must be 0 or more, not {patient} and {seed}")
    if len(shape) != 2 or min(shape) < SMALLEST:
        raise ValueError(f"a phantom needs two sides of at least {SMALLEST} pixels each, not a shape of {shape}")
    plan, picture, texture, *scans = np.random.SeedSequence([seed, patient]).spawn(5)
    noise = np.random.default_rng(scans[phase == "ES"])
    heart = _Heart.draw(np.random.default_rng(plan), phase)
    page = _Page.over(shape, heart, np.random.default_rng(texture))
    images, truths = [], []
    for z in heart.slices:
        # Every slice replays the patient's own random numbers: what differs between slices is their height alone.
        rng = np.random.default_rng(picture)
        page.image[:] = 0
        tissue = _Tissue.draw(rng)
        _surroundings(page, heart, tissue, z, rng)
        truths.append(_heart(page, heart, tissue, z, rng))
        images.append(page.image * page.gain)
    spacing = (heart.step, page.pixel, page.pixel)
    return Loaded(_digitise(np.stack(images), noise)[None], spacing, np.stack(truths))


@dataclass(frozen=True)
class _Heart:
    """The numbers of one heart in one phase. Lengths in mm; heights grow from the valves (0 at `ED`) to the apex."""

    field: float
    step: float
    slices: tuple[float, ...]
    turn: float
    centre: Point
    drift: Point
    base: float
    apex: float
    radius: float
    wall: float
    flat: float
    septum: float
    right: float
    right_apex: float
    reach: float

    @classmethod
    def draw(cls, rng: Random, phase: Phase) -> _Heart:
        """Everything is drawn for both phases, so that the stream does not depend on the phase."""
        inner, above, below = rng.integers(7, 10), rng.integers(0, 2), rng.integers(0, 2)
        step = round(2 * rng.uniform(8, 10)) / 2
        first = rng.uniform(0.2, 0.75)
        radius, wall = rng.uniform(16, 27), rng.uniform(6.5, 11.5)
        shrink, thicken, descent = rng.uniform(0.55, 0.88), rng.uniform(1.15, 1.5), rng.uniform(3, 11)
        contracted = phase == "ES"
        return cls(
            field=rng.uniform(165, 190),
            step=step,
            slices=tuple(float((i - above + first) * step) for i in range(inner + above + below)),
            turn=rng.uniform(-0.5, 0.5),
            centre=(rng.uniform(-18, 12), rng.uniform(-10, 22)),
            drift=(rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2)),
            base=descent if contracted else 0.0,
            apex=float(inner * step),
            radius=radius * shrink if contracted else radius,
            wall=wall * thicken if contracted else wall,
            flat=rng.uniform(0.82, 1.0),
            septum=rng.uniform(-0.6, 0.5) + np.pi,
            right=rng.uniform(0.9, 1.35) * (0.5 + 0.5 * shrink if contracted else 1.0),
            right_apex=rng.uniform(0.65, 0.95),
            reach=radius + wall,
        )

    def middle(self, z: float) -> Point:
        """Row and column of the long axis at a height."""
        return self.centre[0] + self.drift[0] * (z - 40), self.centre[1] + self.drift[1] * (z - 40)


@dataclass(frozen=True)
class _Tissue:
    """How bright each tissue is in one patient, from 0 to about 1."""

    blood: float
    muscle: float
    fat: float
    lung: float
    liver: float

    @classmethod
    def draw(cls, rng: Random) -> _Tissue:
        return cls(*(rng.uniform(*span) for span in ((0.6, 0.9), (0.2, 0.34), (0.6, 1), (0.03, 0.09), (0.2, 0.42))))


@dataclass(frozen=True)
class _Page:
    """A slice to paint on: an image, and where in mm each of its pixels lies in the patient.

    Beside it are three textures of variance about 1, and by how much the coils brighten each place.
    """

    image: Field
    y: Field
    x: Field
    pixel: float
    fine: Field
    medium: Field
    coarse: Field
    gain: Field

    @classmethod
    def over(cls, shape: tuple[int, int], heart: _Heart, rng: Random) -> _Page:
        pixel = heart.field / min(shape)
        rows, columns = ((np.arange(side) - (side - 1) / 2) * pixel for side in shape)
        sin, cos = np.sin(heart.turn), np.cos(heart.turn)
        y = rows[:, None] * cos - columns * sin
        x = rows[:, None] * sin + columns * cos
        fine, medium, coarse, smooth = (_texture(y, x, rng.standard_normal((n, n))) for n in (40, 18, 10, 4))
        gain = np.exp(rng.normal(0, 0.18) * y / 60 + rng.normal(0, 0.18) * x / 60 + 0.08 * smooth)
        return cls(np.zeros(shape), y, x, pixel, fine, medium, coarse, gain)

    def paint(self, inside: Field, brightness: float | Field, blur: float = 0.0) -> None:
        """Cover what lies `inside` (signed distance to an outline, in mm). Border pixels are mixed."""
        cover = np.clip(inside / (1.4 * self.pixel + blur) + 0.5, 0, 1)
        self.image[:] += cover * (brightness - self.image)

    def disc(self, centre: Point, radius: float) -> Field:
        """Signed distance to a circle, positive inside."""
        return radius - _length(self.y - centre[0], self.x - centre[1])

    def blob(self, centre: Point, radii: Point, angle: float = 0.0, wobble: Sequence[float] = ()) -> Field:
        """Signed distance, nearly, to an ellipse whose edge waves: by about `wobble[k]`, `k + 2` times around."""
        dy, dx = self.y - centre[0], self.x - centre[1]
        u = (dx * np.cos(angle) + dy * np.sin(angle)) / radii[0]
        v = (dy * np.cos(angle) - dx * np.sin(angle)) / radii[1]
        out = _length(u, v)
        edge = np.ones_like(out)
        # cos(n (angle + k)) by powers of a complex direction: cheaper than a cosine, and rounded alike everywhere.
        direction = (u + 1j * v) / np.maximum(out, 1e-9)
        power = direction
        for k, share in enumerate(wobble):
            power = power * direction
            edge += share / (1 + k / 2) * (power * np.exp(1j * (k + 2) * k)).real
        return np.asarray((edge - out) * min(radii))


def _texture(y: Field, x: Field, knots: Field) -> Field:
    """A smooth surface through random knots, which span 200 mm whatever the resolution and are mirrored beyond."""
    at = [(axis / 200 + 0.5) * (len(knots) - 1) for axis in (y, x)]
    return np.asarray(ndimage.map_coordinates(knots, at, order=2, mode="mirror"), dtype=np.float64) * 1.5


def _length(y: Field, x: Field) -> Field:
    """As `np.hypot`, which guards against an overflow that cannot happen here and takes several times as long."""
    return np.sqrt(y * y + x * x)


def _surroundings(page: _Page, heart: _Heart, tissue: _Tissue, z: float, rng: Random) -> None:
    """All but the heart. The number of draws must not depend on `z`."""
    t = z / heart.apex
    fine, coarse = page.fine, page.coarse
    page.paint(page.disc((0, 0), 1e3), tissue.lung * (1 + 0.25 * fine + 0.2 * coarse))
    for y, x, radius, bright in rng.uniform((-70, -70, 0.7, 0.3), (70, 90, 2.2, 1), (28, 4)):
        page.paint(page.disc((y + 0.3 * z, x), radius), tissue.blood * bright)

    # Below the diaphragm, which stands higher in slices nearer to the apex: liver, its veins, and loops of bowel.
    dome = 0.75 * heart.reach + rng.uniform(2, 18) - 16 * t
    slope = rng.uniform(-0.5, 0.1)
    below = page.y - heart.centre[0] - dome - slope * (page.x - heart.centre[1]) - 4 * coarse
    page.paint(below, tissue.liver * (1 + 0.06 * coarse + 0.1 * fine))
    veins = 1.6 - np.abs(page.medium) * 14 - np.maximum(coarse, 0) * 6
    page.paint(np.minimum(below - 3, veins), tissue.blood * rng.uniform(0.4, 0.8), blur=2)
    page.paint(np.minimum(below, 5 - below) - rng.uniform(0, 4) + 2 * coarse, tissue.fat * 0.9)

    _chest_wall(page, heart, tissue, rng)

    spine = (rng.uniform(60, 78), rng.uniform(45, 75))
    page.paint(page.blob(spine, (25, 20), 0.5, (0.03, 0.05)), tissue.muscle * 0.6, blur=2)
    page.paint(page.blob(spine, (22, 17), 0.5, (0.03, 0.05)), tissue.liver * (1.1 + 0.15 * fine), blur=2)
    aorta, bore = (spine[0] - rng.uniform(28, 36), spine[1] - rng.uniform(-8, 16)), rng.uniform(9, 15)
    page.paint(page.disc(aorta, bore + 2), tissue.muscle)
    page.paint(page.disc(aorta, bore), tissue.blood * (rng.uniform(0.85, 1.1) + 0.05 * coarse))

    # Stomach and bowel: bright contents in a grey wall, now and then as round as a ventricle.
    for _ in range(3):
        y, x = rng.uniform((40, -50), (75, 45))
        radius, squeeze, angle, wall = rng.uniform((8, 0.6, 0, 2), (22, 1, 3, 7))
        wobble = rng.normal(0, 0.05, 3)
        bright, shown = tissue.blood * rng.uniform(0.8, 1.15), rng.uniform(-0.6, 1.4)
        radius *= np.sqrt(max(0.0, 1 - (t - shown) ** 2 / 0.5))
        if radius > 4:
            middle = (heart.centre[0] + y - 12 * t, heart.centre[1] + x)
            page.paint(page.blob(middle, (radius + wall, radius * squeeze + wall), angle, tuple(wobble)), tissue.muscle)
            contents = page.blob(middle, (radius, radius * squeeze), angle, tuple(wobble))
            page.paint(contents, bright * (1 + 0.08 * coarse), blur=2)


def _chest_wall(page: _Page, heart: _Heart, tissue: _Tissue, rng: Random) -> None:
    """Fat between heart and breastbone, then muscle with ribs in it, fat and skin; beyond the skin there is air."""
    coarse = page.coarse
    gap, fat, meat = rng.uniform((0, 4, 8), (10, 22, 14))
    size, lean = rng.uniform(120, 180), rng.uniform(-2.7, -1.7)
    sin, cos = np.sin(lean), np.cos(lean)
    pad = (heart.centre[0] + 1.2 * heart.reach * sin, heart.centre[1] + 1.2 * heart.reach * cos)
    pad_here = page.blob(pad, (0.75 * heart.reach, heart.reach), lean, tuple(rng.normal(0, 0.08, 3))) + 3 * coarse
    page.paint(pad_here, tissue.fat * rng.uniform(0.3, 0.9) * (1 + 0.2 * coarse), blur=3)

    far = 1.25 * heart.reach + gap + meat + fat
    middle = (heart.centre[0] + (far - size) * sin, heart.centre[1] + (far - size) * cos)
    depth = page.blob(middle, (size * 1.1, size), lean, tuple(rng.normal(0, 0.012, 4)))
    along = np.arctan2(page.y - middle[0], page.x - middle[1]) * size
    fat_here = np.maximum(1.5, fat * (1 + 0.35 * np.sin(along / 45 + rng.uniform(0, 6)) + 0.12 * coarse))
    page.paint(fat_here + meat - depth, tissue.muscle * (0.8 + 0.1 * coarse))
    page.paint(1.2 - np.abs(depth - fat_here - 0.35 * meat + coarse), tissue.fat * 0.6, blur=2)
    page.paint(1.5 - np.abs(depth - fat_here - meat), tissue.fat * 0.5, blur=1)
    pitch = rng.uniform(28, 45)
    where = (along + rng.uniform(0, pitch) + 5 * coarse) % pitch - pitch / 2
    ribs = 3.5 - _length(depth - fat_here - 0.65 * meat, where / 2.2)
    page.paint(ribs, 0.1, blur=1)
    page.paint(ribs - 1.5, tissue.fat * rng.uniform(0.3, 0.7), blur=1)
    page.paint(fat_here - depth, tissue.fat * (0.95 + 0.06 * coarse))
    page.paint(1 - depth, tissue.muscle)
    page.paint(-depth, 0.01)


def _heart(page: _Page, heart: _Heart, tissue: _Tissue, z: float, rng: Random) -> npt.NDArray[np.uint8]:
    """The heart, or what lies above its valves; returns the truth. The number of draws must not depend on `z`."""
    t = (z - heart.base) / (heart.apex - heart.base)
    fine, coarse = page.fine, page.coarse
    blood = tissue.blood * (1 + 0.06 * coarse)
    muscle = tissue.muscle * (1 + 0.08 * fine + 0.05 * coarse)
    waves = tuple(rng.normal(0, (0.03, 0.025, 0.012)))
    tilt, uneven, turn = rng.uniform(0, 3), rng.uniform(0.0, 0.18), rng.uniform(0, 6)
    pillars = rng.uniform((0.7, 0.55, 0.12), (1.4, 0.75, 0.24), (2, 3))
    rough, fat = rng.uniform(0.3, 1.2), rng.uniform(0, 6)
    sway = rng.normal(0, 0.06, (3, 4))
    middle = heart.middle(z)
    around = np.arctan2(page.y - middle[0], page.x - middle[1])
    truth = np.zeros(page.image.shape, np.uint8)
    if t < 0:
        _atria(page, heart, tissue, blood, middle, sway)
        return truth

    cavity = heart.radius * np.sqrt(max(0.0, 1 - t**2.5))
    end = heart.apex + 0.35 * heart.wall
    outer = (heart.radius + heart.wall) * np.sqrt(max(0.0, 1 - ((z - heart.base) / (end - heart.base)) ** 2.5))
    if outer < _CLOSED:
        return truth
    open_ = cavity >= _CLOSED
    cavity = max(cavity, 1.0)
    wall = max(outer - cavity, 0.75 * heart.wall) * (1 + uneven * np.cos(around - turn))
    inside = page.blob(middle, (cavity, cavity * heart.flat), tilt, waves)
    shell = inside + wall
    reach = heart.radius + heart.wall
    grow = np.sqrt(max(0.0, 1 - (t / heart.right_apex) ** 3)) * heart.right
    rv_at = (middle[0] + 0.8 * outer * np.sin(heart.septum), middle[1] + 0.8 * outer * np.cos(heart.septum))
    crescent = page.blob(rv_at, (0.8 * reach * grow + 1, 1.08 * reach * grow + 1), heart.septum, waves[::-1])
    crescent = np.minimum(crescent, -shell) if grow > 0.3 else np.full_like(shell, -99.0)

    sac = np.maximum(shell, crescent + 2.5)
    page.paint(sac + fat * (0.7 + 0.5 * coarse) + 1, tissue.fat * 0.9)
    page.paint(sac, muscle)
    page.paint(crescent - rough * np.maximum(fine, 0) * 1.8, blood, blur=1)
    if open_:
        soft = 0.5 + 5 * t**3
        page.paint(inside - rough * np.maximum(fine, 0) * 1.5, blood, blur=soft)
        for k, (at, depth, size) in enumerate(pillars):
            angle = heart.septum + np.pi + (at if k else -at)
            r = cavity * depth
            place = (middle[0] + r * np.sin(angle), middle[1] + r * np.cos(angle))
            bulk = size * cavity * (1.25 if heart.base else 1.0) * np.sin(np.pi * np.clip(1.3 * t, 0, 1)) ** 0.5
            page.paint(np.minimum(page.blob(place, (bulk + 0.3, 0.7 * bulk + 0.3), angle), inside), muscle, blur=1)
    truth[crescent > 0] = 1
    truth[shell > 0] = 2
    if open_:
        truth[inside > 0] = 3
    return truth


def _atria(page: _Page, heart: _Heart, tissue: _Tissue, blood: Field, middle: Point, sway: Field) -> None:
    """Above the valves: thin-walled blood where the ventricles were, and the root of the aorta between."""
    r = heart.radius + 0.4 * heart.wall
    places = ((0.0, 0.0, 0.95), (1.5 * heart.right, 0.0, 1.0), (0.8, -0.75, 0.5))
    for (away, lift, size), (*wobble, change) in zip(places, sway, strict=True):
        place = (
            middle[0] + r * (away * np.sin(heart.septum) + lift),
            middle[1] + r * (away * np.cos(heart.septum) + 4 * change),
        )
        radii = (size * r * (1 + 2 * change), size * r * (0.8 - change))
        page.paint(page.blob(place, (radii[0] + 2.5, radii[1] + 2.5), heart.septum + lift, wobble), tissue.muscle)
        page.paint(page.blob(place, radii, heart.septum + lift, wobble), blood)


def _digitise(images: Field, rng: Random) -> npt.NDArray[np.float32]:
    """Blur of the acquisition, Rician noise (the magnitude of a complex signal), and whole grey values."""
    sigma = rng.uniform(0.012, 0.035)
    images = ndimage.gaussian_filter(images, (0, 0.45, 0.45))
    images = np.hypot(images + rng.normal(0, sigma, images.shape), rng.normal(0, sigma, images.shape))
    top = np.quantile(images, 0.997)
    return np.rint(np.clip(images / top, 0, 1) * 255).astype(np.float32)
