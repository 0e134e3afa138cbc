"""`inbounds prepare`: from scans to a store."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inbounds.cli.shared import Json, NewStore, Seed, answer, say_notes
from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.sources.source import Source
    from inbounds.store.prepare import Plan

app = typer.Typer(help="Turn scans into a store: sliced, fitted to one grid, split by patient.", no_args_is_help=True)

Fitting = StrEnum("Fitting", ["pad", "resize", "zoom"])
"""How slices are brought to the grid."""


class Depth(StrEnum):
    """How brightness is stored."""

    uint8 = "uint8"
    float16 = "float16"


Splitting = StrEnum("Splitting", ["reference", "random", "scans"])
"""Who validates."""
Archive = Annotated[Path, typer.Argument(help="The unpacked folder, the downloaded zip, or a folder of zips.")]
Side = Annotated[int, typer.Option(min=16, help="Rows and columns of the grid.")]
Fit = Annotated[
    Fitting,
    typer.Option(
        help="Zero-pad and centre-crop; stretch to the grid; or zoom until the longer side has 256 pixels, "
        "whatever --side is, then pad and crop."
    ),
]
Pixel = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Resample by the spacing in the files until a pixel measures so many mm, then pad and crop.",
        show_default=False,
    ),
]
Stored = Annotated[Depth, typer.Option("--dtype", help="8-bit, or half precision.")]
Split = Annotated[
    Splitting,
    typer.Option(
        help="The reference split of this data set; a random one by patient; or by scans, which lets a patient be on "
        "both sides: a leak, only for measuring what it adds."
    ),
]
Validation = Annotated[float, typer.Option(min=0, max=0.9, help="The share of patients that validate.")]
Test = Annotated[
    float, typer.Option(min=0, max=0.9, help="The share of patients set aside for `evaluate --split test`.")
]


def _add(name: str, fitting: str, about: str) -> None:
    """Add the command for an archive whose slices may be fitted in several ways."""
    usual = Fitting(fitting)

    @app.command(name, help=about)
    def archive(
        source: Archive,
        store: NewStore,
        fit: Fit = usual,
        side: Side = 256,
        pixel: Pixel = None,
        dtype: Stored = Depth.uint8,
        split: Split = Splitting.reference,
        seed: Seed = 0,
        test: Test = 0.0,
        as_json: Json = False,
    ) -> None:
        _prepare_archive(name, source, store, fit, (side, side), dtype, split, seed, test, pixel, as_json)


_add("acdc", "pad", "ACDC: cardiac MR with LV, myocardium and RV, both phases; expert scribbles where there are any.")
_add("promise12", "resize", "PROMISE12: prostate MR. The archive comes as three zips; give the folder that holds them.")


@app.command()
def spine(
    source: Archive,
    store: NewStore,
    side: Side = 256,
    columns: Annotated[
        int | None,
        typer.Option(
            min=16, help="Columns, if not as many as rows: 96 beside 256 leave out padding alone.", show_default=False
        ),
    ] = None,
    dtype: Stored = Depth.uint8,
    split: Split = Splitting.reference,
    seed: Seed = 0,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Vertebral bodies in MR (Zenodo record 22304), cut axially as in the paper."""
    _prepare_archive("spine", source, store, "axial", (side, columns or side), dtype, split, seed, test, None, as_json)


@app.command()
def folder(
    source: Annotated[Path, typer.Argument(help="images/ with labels/, an nnU-Net or Decathlon folder, or scans.")],
    store: NewStore,
    classes: Annotated[str, typer.Option(help="Names for label values 0, 1, 2, ...: background,liver,tumour")] = "",
    unlabelled: Annotated[int | None, typer.Option(help="The label value that means: nobody has said.")] = None,
    patient: Annotated[str, typer.Option(help="A regular expression that finds the patient in a scan's name.")] = "",
    fit: Fit = Fitting.pad,
    side: Side = 256,
    pixel: Pixel = None,
    dtype: Stored = Depth.uint8,
    seed: Seed = 0,
    validation: Validation = 0.25,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Your own scans: NIfTI, MetaImage, NRRD, DICOM, PNG, TIFF; labels full, weak, or none at all."""
    from inbounds.sources import folder as data
    from inbounds.store.prepare import FITS, Plan, split_by_patient

    layout = data.recognise(source)
    names = tuple(name.strip() for name in classes.split(",")) if classes else ()
    scans, names = data.sources(layout, source, classes=names, unlabelled=unlabelled, patient=patient)
    typer.echo(f"{source}: {layout.kind}, {len(scans)} scans, {sum(s.truth for s in scans)} with a full mask", err=True)
    _check_pixel(pixel, fit)
    plan = Plan(source.name or "folder", names, (side, side), FITS[fit], fit, dtype.value, layout.kind, pixel)
    _prepare(split_by_patient(scans, validation=validation, test=test, seed=seed), store, plan, as_json)


@app.command()
def phantom(
    store: NewStore,
    patients: Annotated[int, typer.Option(min=2, help="How many patients, two scans each.")] = 40,
    side: Side = 96,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Generated hearts that look like cine MR: data that needs no download and no permission."""
    from inbounds.sources import phantom as data
    from inbounds.store.grid import GridWindow
    from inbounds.store.prepare import Plan

    if side < data.SMALLEST:
        raise BadInput(f"--side {side}: a phantom needs at least {data.SMALLEST} pixels")
    plan = Plan(data.NAME, data.CLASSES, (side, side), GridWindow.pad, "none", "uint8", f"generated, seed {seed}")
    _prepare(data.sources(patients, side=side, seed=seed), store, plan, as_json)


def _prepare_archive(
    archive: str,
    source: Path,
    store: Path,
    fitting: str,
    shape: tuple[int, int],
    dtype: Depth,
    split: Splitting,
    seed: int,
    test: float,
    pixel: float | None,
    as_json: bool,
) -> None:
    from inbounds.scans.archive import unpacked
    from inbounds.store.prepare import FITS, Plan, hold_out, split_by_patient

    _check_pixel(pixel, fitting)
    data = importlib.import_module(f"inbounds.sources.{archive}")
    with unpacked(source, data.wanted) as root:
        scans = data.sources(root, reference=split is Splitting.reference)
        name = data.NAME
        if split is Splitting.scans:
            scans = [replace(scan, patient=scan.name) for scan in scans]
            name += " split by scans"
        if split is Splitting.reference:
            scans = hold_out(scans, test, seed)
        else:
            scans = split_by_patient(scans, validation=data.VALIDATION, test=test, seed=seed)
            name += " split at random" if split is Splitting.random else ""
        plan = Plan(name, data.CLASSES, shape, FITS[fitting], fitting, dtype.value, data.NAME, pixel)
        _prepare(scans, store, plan, as_json)


def _check_pixel(pixel: float | None, fitting: str) -> None:
    if pixel is not None and fitting != Fitting.pad:
        raise BadInput(f"--pixel {pixel:g} says how slices are resampled, and so does --fit {fitting}: give --fit pad")


def _prepare(scans: list[Source], store: Path, plan: Plan, as_json: bool) -> None:
    from inbounds.progress import bar
    from inbounds.store.prepare import prepare as write

    report = write(scans, store, plan, bar("preparing"))
    say_notes(report.notes, " of this kind")
    if report.lost:
        typer.secho(
            f"{report.lost} foreground pixels of the truth lie outside the grid: see `info`", fg="yellow", err=True
        )
    made, (rows, columns) = report.store, plan.shape
    split = Counter(record.split for record in made.records)
    parts = ", ".join(f"{count} {name}" for name, count in split.items())
    text = f"{store}: {len(made.records)} scans ({parts}), {made.slices} slices of {rows}x{columns}"
    facts = {"scans": len(made.records), "split": split, "slices": made.slices, "shape": plan.shape}
    answer(as_json, text, store=store, **facts, truth_pixels_lost=report.lost, notes=report.notes)
