from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inbounds import Ascent, Exact, Supervision
from inbounds.config import read_settings
from inbounds.errors import BadInput
from inbounds.runs.supervise import supervision_of
from inbounds.store.store import Store


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


def made(store: Store, recipe: str, *changes: str) -> Supervision:
    return supervision_of(read_settings(recipe, None, changes), store, ["LV"], None)


@pytest.mark.parametrize(
    ("recipe", "changes", "project", "harden"),
    [
        ("proposals_common", [], Ascent(), True),
        ("proposals_common", ["proposals.method=exact"], Exact(), True),
        ("proposals_tags", ["proposals.early_stop=off", "proposals.harden=false"], Ascent(early_stop="off"), False),
        ("proposals_individual", ["proposals.step_size=1e-4", "proposals.iterations=9"], Ascent(1e-4, 9), True),
        ("proposals_volume", ["proposals.harden=false"], Exact(), False),
        ("proposals_volume", ["proposals.method=ascent"], Ascent(), True),
    ],
)
def test_proposals(store: Store, recipe: str, changes: list[str], project: object, harden: bool) -> None:
    proposals = made(store, recipe, *changes).proposals
    assert (proposals.project, proposals.harden) == (project, harden)


@pytest.mark.parametrize("recipe", ["tags", "common", "individual", "volume", "proposals_individual", "centroid"])
def test_a_margin_is_on_sizes_alone_and_on_proposals_too(store: Store, recipe: str) -> None:
    supervision = made(store, recipe, "tighten=0.1")
    margins = {constraint.name: constraint.tighten for constraint in supervision.constraints}
    assert margins == {"size": 0.0 if recipe == "tags" else 0.1} | ({"centroid": 0.0} if recipe == "centroid" else {})
    if recipe.startswith("proposals"):
        assert supervision.proposals.constraint.tighten == 0.1
    assert made(store, "full", "tighten=0.1") == made(store, "full")


def test_a_border_may_be_framed_by_a_setting(store: Store) -> None:
    image, probs = torch.zeros(1, 1, 8, 8), torch.ones(1, 2, 8, 8)
    for framed, found in (("false", False), ("true", True)):
        written = f"statistic='border', bounds='fixed', upper=0, penalty='hinge', weight=1.0, framed={framed}"
        (_, border) = made(store, "tags", f"constraints=[{{{written}}}]").constraints
        assert bool(border(probs, image) > 0) == found


def test_the_power_of_a_border_is_a_setting(store: Store) -> None:
    image, probs = torch.zeros(1, 1, 8, 8), torch.linspace(0, 1, 8).expand(1, 2, 8, 8)
    written = "statistic='border', bounds='fixed', upper=0, penalty='hinge', weight=1.0"
    (_, square), (_, sharp) = (
        made(store, "tags", f"constraints=[{{{written}, power={power}}}]").constraints for power in (2, 1)
    )
    assert sharp(probs, image) > square(probs, image)


def test_further_constraints_stand_beside_proposals(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    file.write_text('[[constraints]]\nstatistic = "centroid"\nbounds = "fixed"\nlower = 3\nname = "where"\n')
    supervision = supervision_of(read_settings("proposals_common", file), store, ["LV"], None)
    assert [constraint.name for constraint in supervision.constraints] == ["size", "where"]
    assert supervision.proposals is not None


@pytest.mark.parametrize(
    ("recipe", "change", "message"),
    [
        ("tags", "proposals.method=exact", "'tags' makes no proposals: leave proposals.method out"),
        ("proposals_volume", "proposals.step_size=1", "proposals.step_size belongs to the ascent"),
        ("proposals_common", "weight=1", "has no 'weight'"),
    ],
)
def test_refuses(store: Store, recipe: str, change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        made(store, recipe, change)


@pytest.mark.parametrize("change", ["proposals.method=newton", "proposals.iterations=0", "proposals.step_size=0"])
def test_refuses_settings(change: str) -> None:
    with pytest.raises(BadInput, match="proposals"):
        read_settings("proposals_common", None, [change])
