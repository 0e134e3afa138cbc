"""From settings to a supervision and a network: what is built, what is refused, and whose code may be used."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from inbounds import Ascent, Common, Exact, Known, Supervision
from inbounds.batches.fact_tensors import to_tensors
from inbounds.batches.samples import load
from inbounds.config import Settings, network_of, read_settings, supervision_of
from inbounds.errors import BadInput
from inbounds.store.facts import Facts
from inbounds.store.store import Store
from making import CLASSES, make_store, row


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


def made(store: Store, recipe: str, *changes: str) -> Supervision:
    return supervision_of(read_settings(recipe, None, changes), store, ["LV"], None)


@pytest.mark.parametrize(
    ("recipe", "changes", "project", "harden"),
    [
        ("proposals_common", [], Ascent(), True),
        ("proposals_common", ["proposals.project=exact"], Exact(), True),
        (
            "proposals_tags",
            ["proposals.project.early_stop=off", "proposals.harden=false"],
            Ascent(early_stop="off"),
            False,
        ),
        ("proposals_individual", ["proposals.project={step_size=1e-4, iterations=9}"], Ascent(1e-4, 9), True),
        ("proposals_volume", ["proposals.harden=false"], Exact(), False),
        ("proposals_volume", ["proposals.project=ascent"], Ascent(), True),
    ],
)
def test_proposals(store: Store, recipe: str, changes: list[str], project: object, harden: bool) -> None:
    proposals = made(store, recipe, *changes).proposals
    assert (proposals.project, proposals.harden) == (project, harden)


def test_a_regulariser_with_its_arguments(store: Store) -> None:
    image, probs = torch.zeros(1, 1, 8, 8), torch.linspace(0, 1, 8).expand(1, 2, 8, 8)
    values = {}
    for term in ("'border'", "{name='border', power=1}", "{name='border', framed=true}"):
        (border,) = made(store, "tags", f"regularisers.border={{term={term}, weight=2.0}}").regularisers
        values[term] = border(probs, image).item()
    plain, sharp, framed = values.values()
    assert 0 < plain < min(sharp, framed)


def test_further_constraints_stand_beside_proposals(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    file.write_text('[constraints.where]\nstatistic = "centroid"\nbounds = {kind = "fixed", lower = 3}\n')
    supervision = supervision_of(read_settings("proposals_common", file), store, ["LV"], None)
    assert [constraint.name for constraint in supervision.constraints] == ["size", "where"]
    assert supervision.proposals is not None


@pytest.mark.parametrize(
    ("recipe", "change", "message"),
    [
        ("tags", "proposals.project=exact", "'tags' makes no proposals; leave it out"),
        ("proposals_volume", "proposals.project.step_size=1", "project 'exact' has no argument 'step_size'"),
        ("proposals_tags", "proposals.project=newton", "no project 'newton'; there are: ascent, exact"),
        ("full", "weight=1", "'full' has no bounds called 'size'"),
        ("individual", "constraints.size.bounds.relativ=0.2", "has no argument 'relativ'; did you mean 'relative'"),
        ("individual", "constraints.size.bounds.lower=2", "has individual bounds, without 'lower'; they take relative"),
        (
            "tags",
            "constraints.size.penalty={name='log_barrier', s=3}",
            "'log_barrier' has no argument 's'; there are: t",
        ),
        ("tags", "constraints.size.statistic=sise", "no statistic 'sise'; did you mean 'size'"),
        ("tags", "constraints.x={statistic='spread', bounds={kind='individual', relative=0.1}}", "no fact exists"),
        ("tags", "constraints.x={statistic='spread'}", "constraints.x.bounds is"),
        (
            "centroid",
            "constraints.centroid.scale=typical",
            'nothing is typical of centroid; leave it at scale = "natural"',
        ),
        ("tags", "regularisers.x={term={name='border', edg=1}}", "term 'border' has no argument 'edg'"),
    ],
)
def test_refuses_what_cannot_work(store: Store, recipe: str, change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        made(store, recipe, change)
    assert str(error.value).startswith(f"--set {change}: ")


def test_several_recipes_share_settings(store: Store) -> None:
    """What a recipe has no use for is left alone; what nobody knows is not."""
    changes = ["weight=0.3", "constraints.size.bounds.patient=phantom001", "proposals.project=exact"]
    settings = {
        name: read_settings(name, None, changes, shared=True) for name in ("full", "tags", "common", "individual")
    }
    assert settings["full"].constraints == {}
    assert [settings[name].constraints["size"].weight for name in ("tags", "common", "individual")] == [0.3] * 3
    assert settings["tags"].constraints["size"].bounds == {"kind": "tags"}
    assert settings["common"].constraints["size"].bounds == {"kind": "common", "patient": "phantom001"}
    assert settings["individual"].proposals is None
    with pytest.raises(BadInput, match="has no argument 'patiend'"):
        read_settings("common", None, ["constraints.size.bounds.patiend=a"], shared=True)


def test_a_margin_given_takes_the_place_of_the_other() -> None:
    bounds = read_settings("individual", None, ["constraints.size.bounds.absolute=5"]).constraints["size"].bounds
    assert bounds == {"kind": "individual", "absolute": 5}


MINE = """
import torch
from torch import nn
from inbounds import size, statistic

@statistic(presence=size.presence)
def half(probs, *, scans=None):
    return size(probs, scans=scans) / 2

def tiny(channels, classes):
    return nn.Conv2d(channels, classes, 1)

def cubic(violation):
    return violation.relu() ** 3
"""


def test_code_of_a_persons_own_by_name(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From settings that a person wrote; a run that was handed over imports nothing."""
    monkeypatch.setattr("inbounds.config.build._trusted", set())
    (tmp_path / "my_parts_of_a_test.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    name = "my_parts_of_a_test"
    changes = [f"constraints.size.statistic={name}:half", f"constraints.size.penalty={name}:cubic"]
    written = read_settings("tags").model_dump()
    written["constraints"]["size"]["statistic"] = {"name": f"{name}:half"}
    handed_over = Settings.model_validate(written)
    with pytest.raises(BadInput, match=f"no settings load code by themselves; name it with --import {name}"):
        supervision_of(handed_over, store, ["LV"], None)
    assert name not in sys.modules
    (constraint,) = made(store, "tags", *changes).constraints
    assert constraint.statistic(torch.ones(1, 2, 4, 4))[0, 1].item() == 8
    assert constraint.penalty(torch.tensor(2.0)).item() == 8
    assert supervision_of(handed_over, store, ["LV"], None).constraints[0].statistic == constraint.statistic
    network = network_of(read_settings("tags", None, [f"network.name={name}:tiny"]).network, 1, 2)
    assert network(torch.zeros(1, 1, 5, 7)).shape == (1, 2, 5, 7)
    with pytest.raises(BadInput, match=f"{name}:cubic is no statistic: decorate it with"):
        made(store, "tags", f"constraints.size.statistic={name}:cubic")
    with pytest.raises(BadInput, match="no_such_module_here: cannot be imported"):
        read_settings("tags", None, ["network.name=no_such_module_here:x"])


def test_a_run_never_reaches_a_module_that_is_loaded_anyway(store: Store) -> None:
    written = read_settings("tags").model_dump()
    written["constraints"]["size"]["penalty"] = {"name": "os:system", "command": "true"}
    with pytest.raises(BadInput, match="no settings load code by themselves"):
        supervision_of(Settings.model_validate(written), store, ["LV"], None)


def test_common_bounds_are_fitted_for_the_classes_they_are_of(store: Store) -> None:
    fitted = ["constraints.size.bounds.patient=phantom001", "constraints.size.classes=['RV']"]
    settings = read_settings("common", None, fitted)
    (constraint,) = supervision_of(settings, store, ["LV", "RV"], "disc").constraints
    assert constraint.classes == (2,)
    assert len(constraint.bounds.lower) == 1
    with pytest.raises(BadInput, match="no patient '1'"):
        supervision_of(read_settings("common", None, ["constraints.size.bounds.patient=1"]), store, ["LV"], "disc")


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbf[training]\nepochs = 3\n")
    assert read_settings("tags", file).training.epochs == 3


def test_what_is_typical_comes_from_the_training_set(store: Store) -> None:
    """Of slices for images, of scans for volumes; the median of the sizes on the grid where the class is there."""
    for recipe, scope in (("individual", 0), ("volume", 1)):
        settings = read_settings(recipe, None, ["constraints.size.scale=typical"])
        (constraint,) = supervision_of(settings, store, ["LV"], "disc").constraints
        table = to_tensors(store, store.facts("disc"), [store.class_index("LV")])[scope]["size"][:, 1, 0]
        train = [n for n, record in enumerate(store.records) if record.split == "train"]
        rows = train if scope else [row for n in train for row in store.records[n].range]
        seen = table[rows]
        assert len(rows) < len(table)
        assert constraint.scale == "typical"
        assert constraint.typical == [[pytest.approx(float(np.median(seen[seen > 0])))]]
    assert made(store, "individual").constraints[0].scale == "natural"


def test_of_tags_alone_a_share_of_the_image_is_typical(store: Store) -> None:
    (image,) = made(store, "tags", "constraints.size.scale=typical").constraints
    pixels = store.shape[0] * store.shape[1]
    assert image.typical == [[pytest.approx(0.02 * pixels)]]
    (scan,) = made(store, "volume", "constraints.size.scale=typical").constraints
    depths = [record.slices for record in store.records if record.split == "train"]
    assert scan.typical == [[pytest.approx(0.02 * pixels * np.mean(depths))]]


KNOWN = "constraints.size={statistic='size', bounds={kind='known'%s}, scope='%s'}"


def test_facts_that_exclude_each_other_are_refused_by_name(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    table = Facts((row("a", 0, 1, size_px=100), row("b", 1, 2, size_px=40), row("b", None, 1, size_px=70)), CLASSES)
    table.write(tmp_path / "sizes.csv")
    store.import_facts(tmp_path / "sizes.csv", "sizes")

    def built(more: str, scope: str, *classes: str) -> Supervision:
        settings = read_settings("partial", None, [KNOWN % (more, scope)])
        return supervision_of(settings, store, list(classes), "sizes")

    assert built("", "image", "RV", "LV").constraints[0].bounds == Known()
    both = r"its own size \(34 to 46\) and the range common to all \(50 to 200\) exclude each other, in pixels of"
    with pytest.raises(BadInput, match=rf"constraints.size: .*store: b, slice 1, class LV: {both}"):
        built(", lower=50, upper=200", "image", "RV", "LV")
    with pytest.raises(BadInput, match="class LV"):
        built(", lower=50, upper=200", "image", "LV", "RV")
    assert built(", lower=50, upper=200", "image", "RV").constraints
    with pytest.raises(BadInput, match=r"store: b, class RV: its own size \(59.5 to 80.5\)"):
        built(", upper=50", "volume", "RV")


def test_relations_and_several_classes_together(tmp_path: Path) -> None:
    """From a table of facts and settings to bounds on a batch."""
    store = make_store(tmp_path / "store")
    lines = ["case,slice,class,size_px,ratio", "a,0,RV,40", "a,0,LV,60", "b,0,RV+LV,120", "a,0,RV:LV,,0.5"]
    (tmp_path / "sizes.csv").write_text("\n".join(lines))
    store.import_facts(tmp_path / "sizes.csv", "sizes")
    both = "{statistic='size', bounds={kind='individual', relative=0.1}, classes=['RV+LV'], scale='typical'}"
    ratios = "{statistic='ratio', bounds={kind='individual', absolute=0.1}, classes=['RV', 'LV'], class_weight=[2]}"
    inside = "{statistic={name='inclusion', reach=2}, bounds={kind='common', lower=0.9}, classes=['RV', 'RV+LV']}"
    changes = [f"constraints.both={both}", f"constraints.ratios={ratios}", f"constraints.inside={inside}"]
    settings = read_settings("partial", None, changes)
    union, ratio, inclusion = supervision_of(settings, store, ["RV", "LV"], "sizes").constraints
    assert union.classes == ((1, 2),)
    assert union.typical == [[110.0]]
    assert (ratio.classes, ratio.class_weight) == ((1, 2), [[2.0]])
    assert inclusion.classes == (1, (1, 2))
    samples = load(store, "full", facts="sizes", classes=["RV", "LV"])
    batch = samples.batch(torch.tensor([0, 3, 1]))
    probs = torch.full((3, 3, 32, 32), 1 / 3)
    bounds = union.interval(probs, batch.image, batch.annotation)
    torch.testing.assert_close(bounds.lower[:, 0, 0], torch.tensor([90, 108, -torch.inf]))
    torch.testing.assert_close(bounds.upper[:, 0, 0], torch.tensor([110, 132, torch.inf]))
    bounds = ratio.interval(probs, batch.image, batch.annotation)
    torch.testing.assert_close(bounds.upper[:, 0, 0], torch.tensor([0.6, torch.inf, torch.inf]))
    bounds = inclusion.interval(probs, batch.image, batch.annotation)
    torch.testing.assert_close(bounds.lower[:, 0, 0], torch.tensor([0.9, -torch.inf, -torch.inf]))
    with pytest.raises(BadInput, match="both: class 'MYO' is not trained"):
        supervision_of(read_settings("partial", None, [changes[0].replace("LV", "MYO")]), store, ["RV", "LV"], "sizes")
    one = changes[1].replace("['RV', 'LV']", "['RV']")
    with pytest.raises(BadInput, match=r"constraints.ratios: ratio is of 2 regions: name them"):
        supervision_of(read_settings("partial", None, [one]), store, ["RV", "LV"], "sizes")


def test_a_common_range_of_what_turns_with_images_is_refused_where_they_are_turned() -> None:
    order = "constraints.order={statistic='offset', bounds={kind='fixed', lower=[[-inf, 5]]}, classes=['RV', 'LV']}"
    assert read_settings("partial", None, [order, "augment.zoom=1.1"]).constraints["order"].bounds["lower"][0][1] == 5
    with pytest.raises(BadInput, match=r"fixed bounds on offset .*; set augment.flip=false, or bring facts"):
        read_settings("partial", None, [order, "augment.flip=true"])
    sized = "constraints.near={statistic='distance', bounds={kind='fixed', upper=9}, classes=['RV', 'LV']}"
    assert read_settings("partial", None, [sized, "augment.flip=true"]).constraints


def test_a_population_takes_the_place_of_a_range(store: Store) -> None:
    (constraint,) = made(
        store, "common", "constraints.size.bounds.mean=300", "constraints.size.bounds.sd=50"
    ).constraints
    assert constraint.bounds == Common(200, 400)
    with pytest.raises(BadInput, match="give mean and sd, or lower and upper, or a patient"):
        made(store, "common", "constraints.size.bounds.mean=300")
