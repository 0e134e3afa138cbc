"""Label maps that count themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.studio import labels as room
from inbounds.studio.labels import UNLABELLED, Labels, pack, unpack

SHAPE = (3, 4, 5)
places = st.lists(st.integers(0, 59), min_size=1, max_size=20, unique=True).map(lambda at: np.array(sorted(at)))


@given(st.lists(st.tuples(places, st.sampled_from([0, 1, 7, UNLABELLED]), st.booleans()), max_size=12))
def test_counts_follow_every_change(changes: list[tuple[np.ndarray, int, bool]]) -> None:
    made, plain = Labels(SHAPE), np.full(SHAPE, UNLABELLED, np.uint8)
    for where, value, only_empty in changes:
        flat = plain.reshape(-1)
        if only_empty:
            made.fill(where, value)
            flat[where[flat[where] == UNLABELLED]] = value
        else:
            made.put(where, value)
            flat[where] = value
    assert np.array_equal(made.array, plain)
    assert np.array_equal(made.classes, np.bincount(plain.ravel(), minlength=256))
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        assert np.array_equal(made.along[axis], (plain != UNLABELLED).sum(axis=others))
    assert made.summary()["marks"][0] == [n for n in range(3) if (plain[n] != UNLABELLED).any()]
    where, values = made.voxels()
    assert np.array_equal(where, np.flatnonzero(plain.reshape(-1) != UNLABELLED))
    assert np.array_equal(values, plain.reshape(-1)[where])
    assert np.array_equal(made.in_slice(1), np.bincount(plain[1].ravel(), minlength=256))


@given(places, st.integers(0, 2**32))
def test_packed_voxels_come_back(where: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, len(where)).astype(np.uint8)
    order = rng.permutation(len(where))
    back, classes = unpack(pack(where[order], values[order]))
    assert np.array_equal(back, where)
    assert np.array_equal(classes, values)


def test_the_last_actions_are_taken_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REMEMBERED", 20)
    made, states = Labels(SHAPE), []
    for action in range(1, 6):
        states.append(made.array.copy())
        made.put(np.arange(action, action + 7), action, action)
    assert not made.take_back(4)  # not the last
    for action in (5, 4):
        assert made.take_back(action)
        assert np.array_equal(made.array, states[action - 1])
        assert np.array_equal(made.classes, np.bincount(made.array.ravel(), minlength=256))
    assert not made.take_back(3)  # forgotten: there was no room
    assert made.last == room.FORGOTTEN


def test_painted_masks_take_little_room() -> None:
    painted = np.zeros((40, 128, 128), np.uint8)
    painted[10:30, 30:90, 30:90] = 1
    where = np.flatnonzero(painted.reshape(-1))
    assert len(pack(where, painted.reshape(-1)[where])) < 10_000


def test_memory_is_taken_only_where_there_are_labels() -> None:
    made = Labels((800, 512, 512))
    made.put(np.arange(1000), 3)
    assert made.classes[3] == 1000
    assert made.summary()["classes"] == {"3": 1000}
