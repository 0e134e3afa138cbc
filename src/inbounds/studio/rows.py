"""What the page shows of a project and its scans, as it is sent."""

from __future__ import annotations

import math
from typing import Any

import inbounds
from inbounds.scans.display import Plane
from inbounds.studio.facts import Fact, told
from inbounds.studio.project import Project
from inbounds.studio.results import Results
from inbounds.studio.shelf import Entry


def project_row(project: Project, results: Results, training: dict[str, Any]) -> dict[str, Any]:
    """The whole project."""
    classes = [{"value": value, "name": name, "colour": colour} for value, (name, colour) in project.classes.items()]
    known, missing = knowledge(project)
    return {
        "name": project.root.name,
        "folder": str(project.folder),
        "classes": [one for one in classes if one["value"]],
        "background": next(one for one in classes if not one["value"]),
        "scans": [scan_row(project, results, number) for number in sorted_scans(project)],
        "known": known,
        "missing": missing,
        "training": training,
        "sequence": project.sequence,
        "version": inbounds.__version__,
    }


def sorted_scans(project: Project) -> list[int]:
    """The numbers of the scans, in the order of their names."""
    entries = project.shelf.entries
    return sorted(entries, key=lambda number: entries[number].name)


def scan_row(project: Project, results: Results, number: int) -> dict[str, Any]:
    """A scan in the list."""
    entry = project.shelf.entries[number]
    summary, found, facts = project.summary(number), results.of(entry.name), project.facts(number)
    labelled = {int(value): count for value, count in summary["classes"].items()}
    volumes, flags = {}, list(found.flags)
    for value, (name, _) in project.classes.items():
        predicted, known = found.volumes.get(value), _volume(facts.get((None, value)), entry)
        if predicted is None and known is None:
            continue
        volumes[name] = {"predicted": predicted, "known": known}
        if predicted is not None and known is not None and not _within(predicted, known):
            flags.append(f"{name}: {predicted:.4g} ml in the mask, {_ends(known)} ml as you said")
    return {
        "id": number,
        "name": entry.name,
        "error": entry.error,
        "shape": None if entry.shape is None else list(entry.shape),
        "labelled": sum(labelled.values()),
        "slices_labelled": len(summary["marks"][0]),
        "facts": len(facts),
        "predicted": found.predicted,
        "training": results.number if found.predicted else 0,
        "doubt": found.doubt,
        "flags": flags,
        "accepted": found.predicted and project.accepted(number) == results.number,
        "volumes": volumes,
    }


def scan_page(project: Project, results: Results, number: int, window: tuple[float, float]) -> dict[str, Any]:
    """A scan that is opened."""
    entry, _ = project.usable(number)
    assert entry.planes is not None
    labels, names = project.labels(number), {value: name for value, (name, _) in project.classes.items()}
    return {
        "row": scan_row(project, results, number),
        "planes": [plane_row(plane) for plane in entry.planes],
        "window": list(window),
        "marks": labels.summary()["marks"],
        "facts": told(project.facts(number), names, entry, labels),
        "sequence": project.sequence,
    }


def plane_row(plane: Plane) -> dict[str, Any]:
    """How a plane is shown."""
    rows, columns = plane.sides
    sides = ("left", "right", "top", "bottom")
    axes = {"through": plane.through, "down": plane.down, "across": plane.across}
    return {
        "name": plane.name,
        **axes,
        "flip": {"through": False, "down": plane.flip_down, "across": plane.flip_across},
        "letters": dict(zip(sides, plane.letters, strict=True)),
        "count": plane.count,
        "rows": rows,
        "columns": columns,
        "mm": {name: plane.spacing[axis] for name, axis in axes.items()},
    }


def knowledge(project: Project) -> tuple[str, list[str]]:
    """What is known of all scans, in one sentence; and what is still to be done before training."""
    summaries, classes = project.summaries(), project.classes
    counts: dict[int, int] = {}
    for summary in summaries.values():
        for value, count in summary["classes"].items():
            counts[int(value)] = counts.get(int(value), 0) + count
    scans = sum(bool(summary["classes"]) for summary in summaries.values())
    facts = [key for number in project.with_facts() for key in project.facts(number)]
    slices, whole = sum(place is not None for place, _ in facts), sum(place is None for place, _ in facts)
    parts = []
    if counts:
        parts.append(
            f"{_count(sum(counts.values()), 'labelled voxel')} in {_count(len(counts), 'class', 'classes')} "
            f"on {_count(scans, 'scan')}"
        )
    if slices:
        parts.append(f"{_count(slices, 'fact')} on slices")
    if whole:
        parts.append(f"{_count(whole, 'fact')} on whole scans")
    told = {
        klass
        for number in project.with_facts()
        for (_, klass), fact in project.facts(number).items()
        if not fact.absent
    }
    sized = any(fact.sized for number in project.with_facts() for fact in project.facts(number).values())
    missing = [f"label some {name}" for value, (name, _) in classes.items() if value and value not in {*counts, *told}]
    if 0 not in counts and not sized:
        missing.insert(0, f"label some {classes[0][0]}, or say how large something is")
    if not counts and not missing:
        missing.append("label something")
    if len(classes) < 2:
        missing.append("add a class beside the background")
    return "; ".join(parts) or "nothing is known yet", missing


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _volume(fact: Fact | None, entry: Entry) -> list[float | None] | None:
    """What is known of a volume, from and to, in ml."""
    if fact is None or (fact.low is None and fact.high is None):
        return [0.0, 0.0] if fact is not None and fact.absent else None
    one = math.prod(entry.spacing) / 1000
    return [None if end is None else round(end * one, 6) for end in fact.pixels(entry.spacing)]


def _within(volume: float, known: list[float | None]) -> bool:
    low, high = known
    return (low is None or volume >= low) and (high is None or volume <= high)


def _ends(known: list[float | None]) -> str:
    low, high = known
    if low is not None and high is not None:
        return f"{low:.4g} to {high:.4g}"
    return f"at least {low:.4g}" if low is not None else f"at most {high or 0:.4g}"
