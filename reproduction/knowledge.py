"""What rows are trained on: labels and facts, added to a store that lacks them, and what a plan makes of them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from inbounds.config.plan import Plan, plan
from inbounds.errors import BadInput
from inbounds.progress import bar
from inbounds.store.facts import Fact, Facts
from inbounds.store.measure import Noise, measure
from inbounds.store.store import FULL, Store
from inbounds.writing import workspace
from reproduction.experiment import Brought, Experiment, Preset, Seeds, presets, settings_of

Say = Callable[[str], None]
SLICES_A_STEP = 16
"""Of a plan on a GPU for slices, where there are enough of them."""
CENTRE, BRIGHTNESS = ("centroid_row", "centroid_col"), "mean_intensity"
COLUMNS = {
    "sizes": {"size_px"},
    "volumes": {"volume_ml"},
    "tags": set(),
    "centres": {*CENTRE},
    "intensities": {BRIGHTNESS},
    "centres and intensities": {*CENTRE, BRIGHTNESS},
}
"""What a table has beside presence; volumes are of scans and come without it."""


def labels_of(store: Store, table: Experiment, row: str, say: Say) -> str:
    """The name of the row's labels; weak ones are made if the store has none like them."""
    about = table.rows[row]
    if about.labels or about.recipe == "full":
        return about.labels or FULL
    seeds: Seeds = about.seeds or table.seeds
    wanted = {
        "strategy": seeds.strategy,
        "classes": list(table.classes),
        "seed": 0,
        "background": seeds.background,
        "settings": seeds.settings,
        "simulated": True,
        "every": seeds.every,
    }
    for name in store.annotations:
        has = {"every": 1} | store.about(name)
        if {key: has.get(key) for key in wanted} == wanted:
            return name
    from inbounds.store.annotate import simulate  # which needs SciPy

    name = seeds.name if seeds.name not in store.annotations else f"{seeds.name}-paper"
    classes = [store.class_index(klass) for klass in table.classes]
    simulate(
        store,
        name,
        seeds.strategy,
        classes,
        background=seeds.background,
        settings=seeds.settings,
        every=seeds.every,
        track=bar("annotating"),
    )
    say(f"{store.path}: annotation {name!r} added ({seeds.strategy}, {', '.join(table.classes)})")
    return name


def facts_of(store: Store, table: Experiment, row: str, say: Say) -> str | None:
    """The name of the facts that people bring to a row, made from the truth if the store lacks them.

    Raises:
        BadInput: The store has others of that name.
    """
    brought = table.rows[row].facts
    if brought is None:
        return None
    made = brought_facts(store, brought, [store.class_index(klass) for klass in table.classes])
    file = store.path / "facts" / f"{brought.name}.csv"
    if brought.name not in store.fact_names:
        made.write(file)
        off = f"{brought.error:.0%}" + (f" and {brought.pixels:g} pixels" if brought.pixels else "")
        say(f"{store.path}: facts {brought.name!r} added ({brought.what}, off by up to {off})")
        return brought.name
    with workspace(file) as folder:
        made.write(folder / file.name)
        if not file.is_file() or file.read_bytes() != (folder / file.name).read_bytes():
            raise BadInput(f"{store.path}: it has other facts called {brought.name!r}; rename or remove them")
    return brought.name


def brought_facts(store: Store, brought: Brought, classes: Sequence[int]) -> Facts:
    """What a person in a hurry would write down of scans whose truth is known: one number each."""
    rows = []
    for fact in _measured(store, tuple(classes), brought.error):
        known = {name: value for name, value in _rough(store, fact, brought).items() if name in COLUMNS[brought.what]}
        if brought.what == "volumes" and fact.slice is None:
            rows.append(replace(fact, present=None, known=known))
        elif brought.what != "volumes" and fact.slice is not None:
            left_out = fact.slice % brought.every != brought.every // 2  # as simulated labels leave them out
            rows += [] if left_out else [replace(fact, known=known)]
    return Facts(tuple(rows), store.classes)


def _rough(store: Store, fact: Fact, brought: Brought) -> dict[str, float]:
    """What is known, centres and brightness being off too; sizes are off already."""
    known, record = dict(fact.known), store.cases[fact.case]
    rng = np.random.default_rng(
        [1, zlib.crc32(fact.case.encode()), fact.klass, (fact.slice or 0) + (fact.slice is not None)]
    )
    *aside, brighter = rng.uniform(-1, 1, 3).tolist()
    for name, off, scale, side in zip(CENTRE, aside, record.fit.scale, record.fit.original, strict=True):
        if name in known:
            known[name] = min(max(known[name] + off * brought.pixels / scale, -0.5), side - 0.5)
    if BRIGHTNESS in known:
        black, white = record.intensity
        known[BRIGHTNESS] = min(black + (known[BRIGHTNESS] - black) * (1 + brought.error * brighter), white)
    return known


@cache
def _measured(store: Store, classes: Sequence[int], error: float) -> list[Fact]:
    """All facts; the smaller the error, the nearer each number, in the same direction."""
    facts = []
    for record in bar("measuring")([record for record in store.records if record.truth]):
        rng = np.random.default_rng([0, zlib.crc32(record.name.encode())])
        truth = store.truth[record.first : record.range.stop]
        facts += measure(store, record, truth, classes, rng, Noise(size=error))
    return facts


def planned(
    table: Experiment, row: str, preset: str, store: Store, labels: str, facts: str | None, changes: Sequence[str]
) -> Plan:
    """What `inbounds train` plans on a GPU for a row, with epochs that follow from the number of slices."""
    given = settings_of(table, row, preset, store, changes)
    facts, margin = store.facts_beside(labels, facts), table.rows[row].margin
    chosen = plan(given, store, labels, facts, table.classes, gpu=True, margin=margin)
    how: Preset = presets()[preset]
    training = [record.slices for record in store.records if record.split == "train"]
    mixed, repeat = given.hybrid, chosen.settings.get("hybrid", {}).get("repeat", 1)
    scans = mixed.full_scans if mixed.only_full else len(training) + (repeat - 1) * mixed.full_scans
    slices = scans / len(training) * sum(training)
    pace = {"repeats": math.ceil(how.slices / slices)}
    layer = chosen.settings | {"training": chosen.settings["training"] | pace}
    whole = settings_of(table, row, preset, store, changes, layer)
    decided = whole.training
    once = min(slices * decided.repeats, decided.slices or math.inf)
    # Of volumes as many voxels are seen as of slices, in patches of another number.
    batch = decided.batch if whole.network.dimensions == 2 else SLICES_A_STEP
    pace["epochs"] = max(1, round(how.steps * batch / once))
    steps = f"about {how.steps} steps in all" if whole.network.dimensions == 2 else "as many voxels as in 2-D"
    words = f"epochs: {pace['epochs']} of {once:.0f} slices, {steps}"
    return Plan(chosen.settings | {"training": chosen.settings["training"] | pace}, (*chosen.words, words))
