"""What a plan chooses, and what it looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.config import read_settings
from inbounds.config.build import supervision_of
from inbounds.config.plan import Plan, half_on_cpu, plan
from inbounds.errors import BadInput
from inbounds.sources import phantom as hearts
from inbounds.store.annotate import import_points, simulate
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan as Large
from inbounds.store.prepare import prepare
from inbounds.store.store import Store
from training_runs import hearts_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = hearts_store(tmp_path_factory.mktemp("hearts") / "store")
    simulate(made, "both", "disc", [1, 2, 3], background=True)
    return made


def planned(
    store: Store, recipe: str = "tags", labels: str = "disc", *changes: str, gpu: bool = False, trained: bool = False
) -> Plan:
    facts = None if labels == "full" else labels
    return plan(read_settings(recipe, None, changes), store, labels, facts, ["LV"], gpu=gpu, trained=trained)


@pytest.mark.parametrize("recipe", ["tags", "common", "individual", "volume", "partial", "full", "proposals_tags"])
@pytest.mark.parametrize("gpu", [False, True])
def test_a_plan_can_be_trained_with(store: Store, recipe: str, gpu: bool) -> None:
    chosen = planned(store, recipe, "full" if recipe == "full" else "disc", gpu=gpu)
    settings = read_settings(recipe, layers=[chosen.settings])
    assert settings.training.epochs is None
    assert settings.network.name == "unet"
    assert settings.training.precision == ("bf16-mixed" if gpu or half_on_cpu() else "32")


def test_bounds_wait_where_labels_can_teach_by_themselves(store: Store) -> None:
    assert planned(store, labels="both").settings["constraints"]["size"]["ramp"] == [0.05, 0.3]
    alone = planned(store, labels="disc").settings
    assert "ramp" not in alone["constraints"]["size"]


def test_what_nobody_labelled_is_background_at_first(store: Store) -> None:
    for labels in ("both", "disc"):
        assert planned(store, labels=labels).settings["network"]["initial_share"] == 0.02
    assert "initial_share" not in planned(store, "full", "full").settings["network"]


@pytest.mark.parametrize("labels", ["both", "disc"])
def test_a_trained_network_goes_on_gently_and_waits_for_nothing(store: Store, labels: str) -> None:
    chosen = planned(store, labels=labels, trained=True)
    assert chosen.settings["training"]["lr"] == planned(store, labels=labels).settings["training"]["lr"] / 2
    assert "ramp" not in chosen.settings["constraints"]["size"]
    assert "initial_share" not in chosen.settings["network"]
    assert chosen.settings["training"]["label_mean"] == "classes"
    assert "label_mean" not in planned(store, labels=labels).settings["training"]
    assert "label_mean" not in planned(store, "full", "full", trained=True).settings["training"]
    assert "bounds: from the first step, as the network is trained already" in chosen.words
    read_settings("tags", layers=[chosen.settings])


def test_full_scans_teach_what_background_is(store: Store) -> None:
    assert "ramp" in planned(store, "tags", "disc", "hybrid.full_scans=1").settings["constraints"]["size"]


def test_two_thirds_of_what_is_seen_are_of_full_scans(store: Store) -> None:
    training = sum(record.split == "train" for record in store.records)
    chosen = planned(store, "tags", "disc", "hybrid.full_scans=1").settings
    full = chosen["hybrid"]["repeat"]
    assert abs(full / (training - 1 + full) - 2 / 3) < 0.15
    assert chosen["hybrid"]["weak_label_weight"] == 0.01
    assert chosen["constraints"]["size"]["weight"] == pytest.approx(0.01)
    assert "hybrid" not in planned(store, "full", "disc", "hybrid.full_scans=1", "hybrid.only_full=true").settings
    assert "hybrid" not in planned(store, "tags", "disc").settings


def test_complete_labels_need_no_regulariser(store: Store) -> None:
    chosen = planned(store, "full", "full").settings
    assert "regularisers" not in chosen
    assert "constraints" not in chosen
    assert set(planned(store).settings["regularisers"]) == {"border"}


def test_neighbours_belong_together_where_background_is_labelled_too(store: Store) -> None:
    taught, alone = (planned(store, labels=labels).settings["regularisers"] for labels in ("both", "disc"))
    assert (set(taught), set(alone)) == ({"pairwise"}, {"border"})


@pytest.mark.parametrize("recipe", ["tags", "common", "individual", "volume"])
def test_where_sizes_are_known_the_border_fades_and_bounds_weigh_more(store: Store, recipe: str) -> None:
    chosen = planned(store, recipe, "disc").settings
    schedule, weight = {"individual": ("lr", 3.0), "volume": ("lr", 10.0)}.get(recipe, ("constant", 0.3))
    assert chosen["regularisers"]["border"].get("schedule", "constant") == schedule
    assert chosen["constraints"]["size"]["weight"] == weight


def test_a_network_that_a_person_names_is_left_alone(store: Store) -> None:
    chosen = planned(store, "tags", "both", "network.name=enet")
    assert set(chosen.settings["network"]) == {"initial_share"}  # which is of any network
    assert not [line for line in chosen.words if line.startswith("network")]


def test_clicks_of_each_class_count_the_same(tmp_path: Path, store: Store) -> None:
    assert "class_weight" not in planned(store, labels="both").settings["training"]
    case, other = (store.records[n].name for n in (0, 1))
    lines = [f"{case},3,20,20,LV", *(f"{name},3,{row},2,background" for name in (case, other) for row in range(1, 5))]
    (tmp_path / "clicks.csv").write_text("\n".join(["case,slice,row,column,class", *lines]))
    import_points(store, tmp_path / "clicks.csv", "few")
    weights = planned(store, "partial", "few").settings["training"]["class_weight"]
    assert weights == [0.562, 4.5]  # 9 / 2 / 8 and 9 / 2 / 1: together each class counts 4.5
    with pytest.raises(BadInput, match="2 weights for 4 classes"):
        supervision_of(read_settings("partial", None, ["training.class_weight=[1,2]"]), store, store.classes[1:], None)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("known", "known: sizes of 60 of 60 slices, tags of 60, 1700 labelled pixels in 1 class and background"),
        ("tags", "known: tags of 60 of 60 slices, 1700 labelled pixels in 1 class and background"),
        ("volume", "known: volumes of 6 of 6 scans, 1700 labelled pixels in 1 class and background"),
        ("partial", "known: 1700 labelled pixels in 1 class and background"),
    ],
)
def test_what_is_used_is_said(store: Store, recipe: str, said: str) -> None:
    assert planned(store, recipe).words[0] == said


def test_a_small_image_has_few_levels(store: Store) -> None:
    assert planned(store).settings["network"]["settings"]["levels"] == 4  # 48, 24, 12, 6 pixels


def test_a_class_that_nothing_shows_is_said(store: Store) -> None:
    """Discs of LV and MYO alone: of RV there is neither a label nor a fact, until somebody gives a volume of it."""
    simulate(store, "two", "disc", [2, 3])

    def said(facts: str, *changes: str) -> list[str]:
        chosen = plan(read_settings("known", None, changes), store, "two", facts, ["LV", "RV"], gpu=False)
        return [line for line in chosen.words if "nothing in the training scans shows" in line]

    (line,) = said("two")
    assert line.startswith("Warning: nothing in the training scans shows RV: no pixel is labelled")
    assert said("two", "hybrid.full_scans=1") == []
    training = [record.name for record in store.records if record.split == "train"]
    for name, rows, told in (
        ("absent", [f"{training[0]},0,RV,0,"], True),
        ("elsewhere", [f"{store.records[-1].name},,RV,,900"], True),
        ("range", [f"{training[0]},0,RV,,0-900"], False),
        ("volume", [f"{training[0]},,RV,,900"], False),
    ):
        table = store.path.parent / f"{name}.csv"
        table.write_text("\n".join(["case,slice,class,present,size_px", *rows]) + "\n")
        store.import_facts(table, name)
        assert bool(said(f"two+{name}")) == told, name


def test_a_cpu_halves_the_resolution_of_large_slices(tmp_path: Path) -> None:
    sources = hearts.sources(4, side=96)
    large = prepare(
        sources, tmp_path / "large", Large("tiny", hearts.CLASSES, (192, 192), GridWindow.pad, "none")
    ).store
    simulate(large, "both", "disc", [1, 2, 3], background=True)
    slow, fast = (planned(large, labels="both", gpu=gpu).settings for gpu in (False, True))
    assert slow["network"]["settings"]["coarse"] == 2
    assert slow["regularisers"]["pairwise"]["term"]["stride"] == 4
    assert "coarse" not in fast["network"]["settings"]
    assert "stride" not in fast["regularisers"]["pairwise"]["term"]
