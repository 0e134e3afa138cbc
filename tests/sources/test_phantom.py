"""Generated hearts: the same every time, anatomically sound, and of the sizes they promise."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from inbounds.sources.phantom import CLASSES, generate, sources
from inbounds.sources.source import Loaded

RV, MYO, LV = 1, 2, 3
CROSS = ndimage.generate_binary_structure(2, 1)


@pytest.fixture(scope="module")
def scans() -> list[Loaded]:
    return [generate(patient, phase, seed=0) for patient in range(12) for phase in ("ED", "ES")]


def digest(scan: Loaded) -> str:
    return hashlib.sha256(scan.image.tobytes() + scan.truth.tobytes()).hexdigest()


def areas(scan: Loaded, klass: int) -> np.ndarray:
    return (scan.truth == klass).sum(axis=(1, 2))


def test_what_a_scan_holds():
    scan = generate(7, "ED", seed=0)
    assert scan.image.dtype == np.float32
    assert scan.truth.dtype == np.uint8
    assert scan.image.shape == (1, *scan.truth.shape)
    assert scan.truth.shape[1:] == (96, 96)
    assert set(np.unique(scan.truth)) == set(range(len(CLASSES)))
    assert scan.spacing[1] == scan.spacing[2]
    assert 165 <= 96 * scan.spacing[1] <= 190


def test_sources_are_both_phases_of_each_patient_and_the_last_quarter_validates():
    scans = sources(4, side=48, seed=1)
    assert [scan.name for scan in scans[:3]] == ["phantom001_ED", "phantom001_ES", "phantom002_ED"]
    assert [scan.split for scan in scans] == ["train"] * 6 + ["validation"] * 2
    assert digest(scans[1].load()) == digest(generate(1, "ES", shape=(48, 48), seed=1))


def test_nothing_is_lost_in_eight_bits(scans):
    for scan in scans:
        np.testing.assert_array_equal(scan.image.astype(np.uint8), scan.image)
        assert scan.image.max() == 255


def test_same_seed_same_bytes():
    assert digest(generate(3, "ES", seed=5)) == digest(generate(3, "ES", seed=5))


def test_patient_phase_and_seed_each_matter():
    scans = [generate(3, "ED", seed=5), generate(4, "ED", seed=5), generate(3, "ES", seed=5), generate(3, "ED", seed=6)]
    assert len({digest(scan) for scan in scans}) == 4
    assert len({hashlib.sha256(scan.truth.tobytes()).hexdigest() for scan in scans}) == 4


def test_global_random_state_is_neither_read_nor_changed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    generate(0, "ED", seed=0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_the_heart_contracts(scans):
    for ed, es in zip(scans[::2], scans[1::2], strict=True):
        assert ed.spacing == es.spacing
        assert ed.image.shape == es.image.shape
        ejected = 1 - areas(es, LV).sum() / areas(ed, LV).sum()
        assert 0.15 < ejected < 0.9
        both = (areas(ed, LV) > 60) & (areas(es, LV) > 0)
        thickness = [np.sqrt(areas(s, LV) + areas(s, MYO))[both] - np.sqrt(areas(s, LV))[both] for s in (ed, es)]
        assert (thickness[1] > thickness[0]).all()


def test_phases_share_all_but_the_heart(scans):
    for patient, (ed, es) in enumerate(zip(scans[:10:2], scans[1:10:2], strict=True)):
        heart = ndimage.binary_dilation((ed.truth + es.truth).any(axis=0), iterations=12)
        atria = ndimage.binary_dilation(heart, iterations=6)
        one, same, other = (scan.image[0] for scan in (ed, es, generate(patient + 100, "ED", seed=0)))
        apart = np.abs(one / one.mean() - same / same.mean())[:, ~atria]
        z = min(len(other), len(one))
        unlike = np.abs(one[:z] / one.mean() - other[:z] / other.mean())[:, ~atria]
        assert apart.mean() < 0.5 * unlike.mean()


def test_slices_run_from_base_to_apex(scans):
    assert {len(scan.truth) for scan in scans} <= set(range(7, 12))
    assert len({len(scan.truth) for scan in scans}) > 2
    for scan in scans:
        shown = np.flatnonzero(areas(scan, LV))
        assert (np.diff(shown) == 1).all()
        assert areas(scan, LV)[shown[-1]] < 0.6 * areas(scan, LV)[shown[0]]


def test_empty_slices_lie_at_the_ends_of_many_scans(scans):
    empty = [scan.truth.any(axis=(1, 2)) for scan in scans]
    for present in empty:
        assert (np.diff(np.flatnonzero(present)) == 1).all()
        assert (~present).sum() <= 3
    assert 0.4 < np.mean([not present.all() for present in empty]) < 1


def test_sizes_vary_strongly(scans):
    lv = np.concatenate([areas(scan, LV) for scan in scans])
    lv = lv[lv > 0]
    largest = [areas(scan, LV).max() for scan in scans[::2]]
    assert 10 <= lv.min() < 40
    assert 450 < lv.max() < 950
    assert max(largest) > 2.2 * min(largest)


@given(patient=st.integers(0, 10_000), es=st.booleans(), side=st.sampled_from([48, 72, 96]), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_anatomy_is_sound(patient, es, side, seed):
    scan = generate(patient, "ES" if es else "ED", shape=(side, side), seed=seed)
    assert (scan.truth == LV).any()
    for truth in scan.truth:
        cavity, wall, right = truth == LV, truth == MYO, truth == RV
        around = ndimage.binary_dilation(cavity, CROSS) & ~cavity
        assert wall[around].all(), "the cavity touches something other than its wall"
        assert ndimage.label(cavity)[1] <= 1
        assert ndimage.label(cavity | wall)[1] <= 1
        if right.sum() > 20:
            septum = ndimage.binary_dilation(right, CROSS) & wall
            assert septum.any(), "the right ventricle does not lie against the septum"
        if cavity.any():
            assert not ndimage.binary_fill_holes(wall)[~(wall | cavity)].any()


def test_the_heart_lies_in_the_picture(scans):
    for scan in scans:
        heart = scan.truth >= MYO
        assert not heart[:, [0, -1], :].any()
        assert not heart[:, :, [0, -1]].any()


def test_blood_is_bright_wall_is_grey_and_look_alikes_exist(scans):
    alike = 0
    for scan in scans:
        blood, wall = (np.median(scan.image[0][scan.truth == k]) for k in (LV, MYO))
        assert blood > 1.25 * wall
        bright = np.abs(ndimage.gaussian_filter(scan.image[0], (0, 1, 1)) - blood) < 0.2 * blood
        around = bright & (scan.truth == 0)
        parts, _ = ndimage.label(around[len(around) // 2])
        alike += (np.bincount(parts.ravel())[1:] > 40).any()
    assert alike > 0.8 * len(scans)


@pytest.mark.parametrize("shape", [(48, 48), (64, 96), (256, 256)])
def test_another_shape_shows_the_same_anatomy(shape):
    small, large = generate(2, "ED", seed=0), generate(2, "ED", shape=shape, seed=0)
    assert large.image.shape == (1, len(small.truth), *shape)
    zoom = (min(shape) / 96) ** 2
    assert areas(large, LV).sum() == pytest.approx(areas(small, LV).sum() * zoom, rel=0.06)
    assert large.spacing[1] * min(shape) == pytest.approx(small.spacing[1] * 96)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"patient": -1}, "0 or more"),
        ({"seed": -2}, "-2"),
        ({"shape": (47, 96)}, r"at least 48 .*\(47, 96\)"),
    ],
)
def test_bad_settings_are_named(settings_, message):
    with pytest.raises(ValueError, match=message):
        generate(**({"patient": 0, "phase": "ED", "seed": 0} | settings_))


@pytest.mark.plain
def test_an_unknown_phase_is_named():
    with pytest.raises(ValueError, match="'mid'"):
        generate(0, "mid", seed=0)  # type: ignore[arg-type]
