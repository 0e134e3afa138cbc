"""What a plan chooses, and what it looks at."""

from __future__ import annotations

import pytest

from inbounds.config import read_settings
from inbounds.config.plan import Plan, plan
from inbounds.store.annotate import simulate
from inbounds.store.store import Store
from training_runs import hearts_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = hearts_store(tmp_path_factory.mktemp("hearts") / "store")
    simulate(made, "both", "disc", [1, 2, 3], background=True)
    return made


def planned(store: Store, recipe: str = "tags", labels: str = "disc", *changes: str, gpu: bool = False) -> Plan:
    facts = None if labels == "full" else labels
    return plan(read_settings(recipe, None, changes), store, labels, facts, ["LV"], gpu=gpu)


@pytest.mark.parametrize("recipe", ["tags", "common", "individual", "volume", "partial", "full", "proposals_tags"])
@pytest.mark.parametrize("gpu", [False, True])
def test_a_plan_can_be_trained_with(store: Store, recipe: str, gpu: bool) -> None:
    chosen = planned(store, recipe, "full" if recipe == "full" else "disc", gpu=gpu)
    settings = read_settings(recipe, layers=[chosen.settings])
    assert settings.training.epochs is None
    assert settings.network.name == "unet"
    assert settings.training.precision == ("bf16-mixed" if gpu else "32")


def test_bounds_wait_where_labels_can_teach_by_themselves(store: Store) -> None:
    assert planned(store, labels="both").settings["constraints"]["size"]["ramp"] == [0.05, 0.3]
    alone = planned(store, labels="disc").settings
    assert "ramp" not in alone["constraints"]["size"]
    assert alone["network"]["initial_share"] == 0.02


def test_full_scans_teach_what_background_is(store: Store) -> None:
    assert "ramp" in planned(store, "tags", "disc", "hybrid.full_scans=1").settings["constraints"]["size"]


def test_complete_labels_need_no_regulariser(store: Store) -> None:
    chosen = planned(store, "full", "full").settings
    assert "regularisers" not in chosen
    assert "constraints" not in chosen
    assert set(planned(store).settings["regularisers"]) == {"pairwise", "teacher"}


def test_a_network_that_a_person_names_is_left_alone(store: Store) -> None:
    chosen = planned(store, "tags", "both", "network.name=enet")
    assert "network" not in chosen.settings
    assert not [line for line in chosen.words if line.startswith("network")]


def test_a_small_image_has_few_levels(store: Store) -> None:
    assert planned(store).settings["network"]["settings"]["levels"] == 3  # 48, 24, 12 pixels
