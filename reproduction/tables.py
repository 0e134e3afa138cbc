"""Tables of collected results, in Markdown, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from statistics import fmean, stdev
from typing import Any, get_args

from pydantic import ValidationError

from benchmarks.tables import markdown
from inbounds.config import Settings
from reproduction.experiment import experiment, paper, presets, settings_of
from reproduction.results import Collected, Protocol, presets_of, rows_of

SPEED = ("device", "threads", "data_on_device", "cuda_graphs", "compile", "save_optimizer")
"""Settings of training that change where and how fast a run is, and no result."""


def table(name: str, preset: str, collected: Sequence[Collected], rows_shown: Sequence[str] = ()) -> str:
    """The paper's table with ours beside it, in Markdown; rows that were not run are named below it.

    Where some rows are named, these alone are shown, in that order.
    """
    about, theirs, shown = experiment(name), paper(name), _shown(name)
    lines = [[*about.columns, *(["paper"] if theirs else []), *shown, "runs"]]
    by_row = rows_of(name, preset, collected)
    by_row = {row: by_row[row] for row in rows_shown or by_row}
    missing = [row for row, runs in by_row.items() if not runs]
    if not theirs and len(missing) == len(by_row):
        return "Not run yet.\n"
    for row, runs in by_row.items():
        if row in missing and len(missing) < len(by_row):
            continue
        ours = [mean([run.value(metric, protocol) for run in runs]) for protocol, metric in shown.values()]
        lines.append([*about.rows[row].cells, *_theirs(theirs, row), *ours, _count(runs)])
    notes = _notes(preset, by_row)
    if 0 < len(missing) < len(by_row):
        notes.append(f"Not run: {', '.join(f'`{row}`' for row in missing)}.")
    return markdown(lines) + "\n" + "".join(f"\n{note}\n" for note in notes)


def _shown(name: str) -> dict[str, tuple[Protocol, str]]:
    """The columns of a table: both protocols; of several classes their mean and each, at the last epoch alone."""
    classes, protocols = experiment(name).classes, get_args(Protocol)
    if len(classes) > 1:
        mean: dict[str, tuple[Protocol, str]] = {"last epoch, per volume": ("last", "dsc_volume")}
        return {**mean, **{klass: ("last", f"dsc_volume/{klass}") for klass in classes}}
    return {f"{end} epoch, per {what}": (end, f"dsc_{what}") for end in protocols for what in ("volume", "slice")}


def comparison(
    name: str, presets_shown: Sequence[str], collected: Sequence[Collected], rows_shown: Sequence[str] = ()
) -> str:
    """Presets side by side, in Markdown: DSC per volume at the best and at the last epoch of each row.

    Those under which nothing was run are left out; so are rows, where some are named. What other presets found stands
    in a last column where none of these has a row.
    """
    about, theirs = experiment(name), paper(name)
    by_preset = {preset: rows_of(name, preset, collected) for preset in presets_shown}
    by_preset = {preset: rows for preset, rows in by_preset.items() if any(rows.values())}
    of = {preset: rows_of(name, preset, collected) for preset in presets_of(name, collected)} | by_preset
    chosen = rows_shown or list(about.rows)
    others = {row: otherwise(of, row, list(by_preset), lambda runs, _: _best_and_last(runs)) for row in chosen}
    last = any(others.values())
    lines = [[*about.columns, *(["paper"] if theirs else []), *(f"`{preset}`" for preset in by_preset)]]
    lines[0] += ["otherwise"] * last
    for row in chosen:
        ours = [_best_and_last(rows[row]) for rows in by_preset.values()]
        lines.append([*about.rows[row].cells, *_theirs(theirs, row), *ours, *([others[row]] if last else [])])
    on: dict[str, list[str]] = {}
    for preset, rows in by_preset.items():
        data = ", ".join(sorted({_data(run) for some in rows.values() for run in some}))
        on.setdefault(data, []).append(f"`{preset}`")
    legend = "; ".join(f"{data} for {', '.join(names)}" for data, names in on.items())
    text = "DSC per volume, best epoch / last epoch; empty where it was not run." + (
        f" Data: {legend}." if legend else ""
    )
    return "\n".join([markdown(lines), "", text, ""])


def otherwise(
    of: Mapping[str, Mapping[str, Sequence[Collected]]],
    row: str,
    shown: Sequence[str],
    say: Callable[[Sequence[Collected], str], str],
) -> str:
    """What other presets found of a row, where none of those that are shown has it."""
    if any(of[preset][row] for preset in shown):
        return ""
    found = {preset: say(rows[row], preset) for preset, rows in of.items() if preset not in shown}
    return ", ".join(f"{text} (`{preset}`)" for preset, text in found.items() if text)


def _best_and_last(runs: Sequence[Collected]) -> str:
    if not runs:
        return ""
    both = (mean([run.value("dsc_volume", protocol) for run in runs]) for protocol in ("best", "last"))
    return " / ".join(both) + came(runs)


def _theirs(theirs: Mapping[str, float | None], row: str) -> list[str]:
    """The paper's figure, where it has any."""
    figure = theirs.get(row)
    return [] if not theirs else ["n/a"] if figure is None else [f"{figure:.3f}"]


def mean(values: Sequence[float]) -> str:
    """The mean of several runs with its standard deviation; nothing of none."""
    if not values:
        return ""
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def _count(runs: Sequence[Collected]) -> str:
    return f"{len(runs)}{came(runs)}" if runs else "not run"


def came(runs: Sequence[Collected]) -> str:
    """Of runs that have not come to their end, how far they came, and how many they are unless it is all."""
    unfinished = [run for run in runs if not run.finished]
    came = {(run.about["epochs"], len(run.curves["epoch"])) for run in unfinished}
    asked = {epochs: [str(far) for of, far in sorted(came) if of == epochs] for epochs, _ in sorted(came)}
    short = [f"{' or '.join(far)} of {epochs} epochs" for epochs, far in asked.items()]
    some = f"{len(unfinished)} had " if len(unfinished) < len(runs) else ""
    return f" ({some}{', '.join(short)})" if short else ""


def _notes(preset: str, by_row: dict[str, list[Collected]]) -> list[str]:
    """What to know of the numbers: how and on what they were found, and which bounds were fitted."""
    runs = [run for some in by_row.values() for run in some]
    if not runs:
        return []
    about = presets()[preset].about if preset in presets() else ""
    changes = sorted({change for run in runs for change in run.about.get("changes", []) if not _speed_alone(change)})
    seeds = sorted({run.about["seed"] for run in runs})
    data = sorted({_data(run) for run in runs})
    parts = [
        f"Preset `{preset}`" + (f": {about}" if about else ""),
        *([f"changed: {', '.join(f'`{change}`' for change in changes)}"] if changes else []),
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        f"data: {', '.join(data)}",
        ", ".join(sorted({run.hardware for run in runs})),
        f"commit {', '.join(sorted({(run.about.get('commit') or 'not known')[:10] for run in runs}))}",
    ]
    notes = ["; ".join(parts) + "."]
    if old := [f"`{row}`" for row, some in by_row.items() if not all(_as_now(run) for run in some)]:
        notes.append(f"Run with settings that the preset has no longer, and that are in their files: {', '.join(old)}.")
    notes += sorted({run.about["note"] for run in runs if run.about.get("note")})
    fitted: dict[str, str] = {}
    for run in runs:
        bounds = ((run.about.get("settings") or {}).get("constraints") or {}).get("size", {}).get("bounds", {})
        patient = bounds.get("patient")
        if patient:
            (size,) = (phrase for phrase in run.about["known"] if phrase.startswith("size"))
            size, _, _ = size.partition(" (aiming")  # which was a setting, not what was fitted
            fitted.setdefault(f"Common bounds fitted on {patient}: {size}.", "")
    return [*notes, *fitted]


def _speed_alone(change: str) -> bool:
    return change.partition("=")[0] in {f"training.{name}" for name in SPEED}


def _as_now(run: Collected) -> bool:
    """Whether a run has the settings that its row and preset have today, as far as that can be told."""
    (name, preset), settings = run.key, run.about.get("settings")
    if not settings or preset not in presets() or run.row not in experiment(name).rows:
        return True
    try:
        had = Settings.model_validate(_without_gone(settings))
    except ValidationError:
        return False
    chosen = (run.about.get("plan") or {}).get("settings")
    now = settings_of(experiment(name), run.row, preset, None, run.about.get("changes", []), chosen)
    fitted = experiment(name).rows[run.row].ranges
    return _deciding(had, fitted) == _deciding(now, fitted)


def _without_gone(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that exist no longer and were off."""
    kept = deepcopy(dict(settings))
    try:
        Settings.model_validate(settings)
    except ValidationError as error:
        for one in error.errors():
            if one["type"] == "extra_forbidden" and not one["input"]:
                group: Any = kept
                for name in one["loc"][:-1]:
                    group = group[name]
                del group[one["loc"][-1]]
    return kept


def _deciding(settings: Settings, fitted: Collection[str]) -> dict[str, Any]:
    """What decides a result; the first patient's name, and the ranges that are fitted on it, are the data's."""
    content = settings.model_dump(exclude={"training": set(SPEED)})
    for name, constraint in content["constraints"].items():
        for end in ("patient", *(("lower", "upper") if name in fitted else ())):
            constraint["bounds"].pop(end, None)
    content["regularisers"] = {name: one for name, one in content["regularisers"].items() if one["weight"]}
    return content


def _data(run: Collected) -> str:
    data = run.about.get("data") or {}
    checksum = data.get("checksums", {}).get("images.npy", "")
    made = run.about.get("preparation") or {}
    size = "x".join(map(str, made.get("shape", [])))
    return f"{data.get('name', 'not known')}" + (
        f" ({size}, {made['fit']}, images {checksum[:10]})" if checksum else ""
    )
