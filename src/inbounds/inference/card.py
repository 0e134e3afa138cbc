"""What a model is, in words: how scans become its input and masks its output, and a card to hand on with it."""

from __future__ import annotations

from collections.abc import Sequence

import inbounds
from inbounds.described import Described, read_json
from inbounds.errors import BadInput
from inbounds.runs.run import Run
from inbounds.scans.format import by
from inbounds.store.description import IMAGES
from inbounds.store.prepare import Plan, read_plan

_SHOWN = ("dsc_volume", "dsc_slice", "hd95_mm", "relative_size_error", "label_agreement")
_FITTED = {
    "pad": "padded with black or cut around its centre",
    "resize": "stretched",
    "zoom": "enlarged until its longer side has 256 pixels, then padded or cut around its centre",
    "axial": "fitted as axial slices of the spine are",
    "none": "padded with black or cut around its centre",
}


def plan_of(run: Run) -> Plan:
    """How the run's scans were prepared."""
    remedy = "prepare the store with `inbounds prepare` and train again"
    return read_plan(run.about.get("preparation", {}), str(run.path / "run.json"), remedy)


def preprocessing(plan: Plan) -> tuple[str, ...]:
    """What is done to a scan, an array of slices, rows and columns, before the network sees it."""
    steps = []
    if plan.spacing:
        steps.append(f"voxels are taken to measure {by_mm(plan.spacing)} (slices, rows, columns), whatever files say")
    if plan.axis != 3:
        steps.append(f"slices are those along axis {plan.axis} of the file")
    dark, white = plan.window or ("that exceeded by 99.9 % of the scan's voxels", "that exceeded by 0.1 %")
    steps.append(f"brightness, per channel, from {dark} (0) to {white} (1), is scaled linearly and cut there")
    if plan.slice_spacing:
        steps.append(f"slices are resampled to lie {plan.slice_spacing:g} mm apart")
    size = f"resampled to pixels of {plan.pixel:g} mm, then " if plan.pixel else ""
    steps.append(f"each slice is {size}{_FITTED[plan.fitting]} to a grid of {by(plan.shape)}")
    depth = "a multiple of 1/255" if plan.dtype == "uint8" else "half precision"
    return (*steps, f"values are rounded to {depth}, as in training, and given as float32")


def postprocessing(plan: Plan) -> tuple[str, ...]:
    """What is done to probabilities before they are a mask."""
    again = " and slice" if plan.slice_spacing else ""
    return (
        "each pixel takes its most probable class; 0 is background",
        f"each voxel of the scan takes the class of the grid pixel{again} that its centre lies in",
        "what lies outside the grid is background",
    )


def by_mm(sizes: Sequence[float]) -> str:
    """Lengths as text."""
    return " x ".join(f"{size:g}" for size in sizes) + " mm"


class _Summary(Described):
    split: str
    model: str
    metrics: dict[str, dict[str, dict[str, float | int | None]]]


def card(run: Run, model: str) -> str:
    """The model card, in Markdown: data, knowledge used, results, limits. It names no scan and no place."""
    plan, about = plan_of(run), run.about
    trained = f"{run.settings.network.name}, {run.settings.network.dimensions}-D, weights `{model}`"
    sections = {
        "Not a medical device": ["Research software. No diagnosis or treatment may rest on what this network finds."],
        "What it does": [
            f"Segments {', '.join(run.classes)} in scans of {run.channels} channel{'s' * (run.channels > 1)}; "
            f"{trained}; trained with inbounds {inbounds.__version__}, seed {run.seed}.",
        ],
        "Data": [
            f"{about['data']['name']}: {len(about['identity']['parts'].get(IMAGES, ()))} scans.",
            f"Checksum of the images: {about['data']['checksums'].get(IMAGES, 'none')}.",
        ],
        "Knowledge used": list(about["known"]),
        "Results": list(_results(run, model)) or ["Not measured before it was exported: see `inbounds evaluate`."],
        "Input": list(preprocessing(plan)),
        "Output": list(postprocessing(plan)),
        "Limits": [
            "Only scans like those in training: the same modality, part of the body and population. "
            "Nothing is known of others.",
            *(f"{name}: {low:.3g} to {high:.3g} ml in training scans" for name, (low, high) in run.volumes.items()),
            "A mask can look right and be wrong. `inbounds predict` sorts masks by what speaks against them.",
            "A network can reveal what it was trained on. Whether it may be passed on is for the data's owners to say.",
        ],
    }
    text = [f"# {about['data']['name']}: {', '.join(run.classes)}"]
    for title, lines in sections.items():
        text += ["", f"## {title}", "", *(f"- {line}" for line in lines)]
    return "\n".join(text) + "\n"


def _results(run: Run, model: str) -> list[str]:
    lines = []
    for file in sorted(run.path.glob("evaluation/*/summary.json")):
        try:
            found = read_json(file, _Summary, "")
        except BadInput:
            continue  # a card says what there is
        if found.model != model:
            continue
        for metric in _SHOWN:
            for name, numbers in found.metrics.get(metric, {}).items():
                if (mean := numbers.get("mean")) is not None:
                    spread = numbers.get("std")
                    more = f" (standard deviation {spread:.3f})" if spread is not None else ""
                    lines.append(f"{found.split}, {metric}, {name or 'all'}: {mean:.3f}{more}, n = {numbers.get('n')}")
    return lines
