"""`inbounds nnunet`: facts for nnU-Net v2, and how its trainer finds ours."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from inbounds.cli.shared import Json, answer, say_notes
from inbounds.errors import BadInput


def nnunet(
    dataset: Annotated[str, typer.Argument(help="The raw data set: its folder, or its name below $nnUNet_raw.")],
    facts: Annotated[Path, typer.Option(help="A CSV of case, slice, class, size_px, volume_ml, present, ...")],
    margin: Annotated[float, typer.Option(min=0, max=2, help="How far off sizes are, as a share.")] = 0.15,
    plans: Annotated[str, typer.Option(help="Whose spacing: the name of nnU-Net's plans.")] = "nnUNetPlans",
    as_json: Json = False,
) -> None:
    """Write what is known beside nnU-Net's preprocessed data, and print how to train with it."""
    from inbounds.nnunet.facts import write_facts

    raw = Path(dataset)
    if not raw.is_dir() and (root := os.environ.get("nnUNet_raw")):  # noqa: SIM112
        raw = Path(root) / dataset
    if not raw.is_dir():
        raise BadInput(f"{dataset}: there is no such data set; give its folder, or its name below $nnUNet_raw")
    preprocessed = os.environ.get("nnUNet_preprocessed")  # noqa: SIM112
    if not preprocessed:
        raise BadInput("nnUNet_preprocessed is not set: nnU-Net's own variable says where preprocessed data lie")
    target, told, notes = write_facts(raw, Path(preprocessed) / raw.resolve().name, facts, plans, margin)
    say_notes(notes, " of this kind")
    trainers = Path(__file__).parents[1] / "nnunet" / "trainers"
    line = f"export nnUNet_extTrainer={shlex.quote(str(trainers))}"
    counts = {name: len(cases) for name, cases in told.configurations.items()}
    shown = ", ".join(f"{name} of {count} cases" for name, count in counts.items())
    text = f"{target}: facts for {shown}\n{line}\nnnUNetv2_train {raw.resolve().name} 2d 0 -tr nnUNetTrainerInbounds"
    answer(as_json, text, written=target, cases=counts, trainers=trainers, line=line, notes=notes)
