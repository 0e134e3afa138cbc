"""`inbounds prepare`: from scans to a store."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inbounds.cli.shared import (
    Asked,
    Chunk,
    Follow,
    Json,
    NewStore,
    On,
    Seed,
    StorePath,
    Told,
    answer,
    hands,
    open_store,
    say_notes,
)
from inbounds.errors import BadInput

if TYPE_CHECKING:
    from inbounds.jobs.chunks import Hands
    from inbounds.sources.source import Source
    from inbounds.store.prepare import Plan
    from inbounds.store.store import Store

app = typer.Typer(help="Turn scans into a store: sliced, fitted to one grid, split by patient.", no_args_is_help=True)

Fitting = StrEnum("Fitting", ["pad", "resize", "zoom"])
"""How slices are brought to the grid."""


class Depth(StrEnum):
    """How brightness is stored."""

    uint8 = "uint8"
    float16 = "float16"


Splitting = StrEnum("Splitting", ["reference", "random", "scans"])
"""Who validates."""
Folder = Annotated[Path, typer.Argument(help="images/ with labels/, an nnU-Net or Decathlon folder, or scans.")]
Unlabelled = Annotated[int | None, typer.Option(help="The label value that means: nobody has said.")]
Patient = Annotated[str, typer.Option(help="A regular expression that finds the patient in a scan's name.")]
SplitFile = Annotated[
    Path | None, typer.Option("--split", help="A CSV of case or patient, and split: train, validation or test.")
]
Archive = Annotated[Path, typer.Argument(help="The unpacked folder, the downloaded zip, or a folder of zips.")]
SIDE = 256
"""Rows and columns of a grid that nobody chose."""


def _side(usual: str | bool = False) -> Any:
    return typer.Option(min=16, help="Rows and columns of the grid.", show_default=usual)


def _fit(usual: str | bool = False) -> Any:
    return typer.Option(
        help="Zero-pad and centre-crop; stretch to the grid; or zoom until the longer side has 256 pixels, whatever "
        "--side is, then pad and crop.",
        show_default=usual,
    )


ArchiveFit = Annotated[Fitting | None, _fit("as in the paper; of volumes, as the scans need")]
ArchiveSide = Annotated[int | None, _side(f"{SIDE}; of volumes, as the scans need")]
Pixel = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Resample by the spacing in the files until a pixel measures so many mm, then pad and crop.",
        show_default=False,
    ),
]
Dimensions = Annotated[
    int, typer.Option("--dimensions", min=2, max=3, help="3 for networks that see volumes, on a common spacing.")
]
SliceSpacing = Annotated[
    float | None,
    typer.Option(min=0.001, help="Resample until slices lie so many mm apart.", show_default=False),
]
Axis = Annotated[int, typer.Option(min=1, max=3, help="The file's axis to slice along; 3 is its last.")]
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
        fit: ArchiveFit = None,
        side: ArchiveSide = None,
        pixel: Pixel = None,
        dimensions: Dimensions = 2,
        slice_spacing: SliceSpacing = None,
        axis: Axis = 3,
        dtype: Stored = Depth.uint8,
        split: Split = Splitting.reference,
        seed: Seed = 0,
        test: Test = 0.0,
        on: On = None,
        cluster: Asked = None,
        chunk: Chunk = 20,
        follow: Follow = False,  # noqa: ARG001
        as_json: Json = False,
    ) -> None:
        by, shape = hands(on, cluster, chunk), (side, side) if side else None
        volumes = {"dimensions": dimensions, "slice_spacing": slice_spacing, "axis": axis}
        _prepare_archive(name, source, store, fit, usual, shape, dtype, split, seed, test, pixel, as_json, volumes, by)


_add("acdc", "pad", "ACDC: cardiac MR with LV, myocardium and RV, both phases; expert scribbles where there are any.")
_add("promise12", "resize", "PROMISE12: prostate MR. The archive comes as three zips; give the folder that holds them.")


@app.command()
def spine(
    source: Archive,
    store: NewStore,
    side: ArchiveSide = None,
    columns: Annotated[
        int | None,
        typer.Option(
            min=16, help="Columns, if not as many as rows: 96 beside 256 leave out padding alone.", show_default=False
        ),
    ] = None,
    pixel: Pixel = None,
    dimensions: Dimensions = 2,
    slice_spacing: SliceSpacing = None,
    axis: Axis = 3,
    dtype: Stored = Depth.uint8,
    split: Split = Splitting.reference,
    seed: Seed = 0,
    test: Test = 0.0,
    on: On = None,
    cluster: Asked = None,
    chunk: Chunk = 20,
    follow: Follow = False,  # noqa: ARG001
    as_json: Json = False,
) -> None:
    """Vertebral bodies in MR (Zenodo record 22304), cut axially as in the paper; along another axis all is kept."""
    usual = "axial" if axis == 3 and pixel is None else Fitting.pad
    shape = (side or SIDE, columns or side or SIDE) if side or columns else None
    volumes = {"dimensions": dimensions, "slice_spacing": slice_spacing, "axis": axis}
    by = hands(on, cluster, chunk)
    _prepare_archive("spine", source, store, None, usual, shape, dtype, split, seed, test, pixel, as_json, volumes, by)


@app.command()
def folder(
    source: Folder,
    store: NewStore,
    classes: Annotated[str, typer.Option(help="Names for label values 0, 1, 2, ...: background,liver,tumour")] = "",
    unlabelled: Unlabelled = None,
    patient: Patient = "",
    fit: Annotated[Fitting | None, _fit()] = None,
    side: Annotated[int | None, _side()] = None,
    pixel: Pixel = None,
    spacing: Annotated[str, typer.Option(help="Z,Y,X: what voxels measure in mm, whatever the files say.")] = "",
    dimensions: Dimensions = 2,
    slice_spacing: SliceSpacing = None,
    axis: Axis = 3,
    window: Annotated[str, typer.Option(help="LO,HI: the brightness that becomes black, and that for white.")] = "",
    dtype: Stored = Depth.uint8,
    split: SplitFile = None,
    without: Annotated[list[str] | None, typer.Option(help="A scan to leave out, by its name; repeatable.")] = None,
    seed: Seed = 0,
    validation: Validation = 0.25,
    test: Test = 0.0,
    on: On = None,
    cluster: Asked = None,
    chunk: Chunk = 20,
    follow: Follow = False,  # noqa: ARG001
    as_json: Json = False,
) -> None:
    """Your own scans: NIfTI, MetaImage, NRRD, DICOM, PNG, TIFF; labels full, weak, or none at all.

    The grid is chosen from the data unless --fit, --side or --pixel is given; for CT a window; and for volumes how far
    apart slices are.
    """
    from inbounds.sources import folder as data
    from inbounds.store.prepare import FITS, Plan
    from inbounds.store.split import split_by_file, split_by_patient

    _check_pixel(pixel, fit or Fitting.pad)
    black_white, voxel = _window(window), _spacing(spacing)
    layout = data.left_out(data.recognise(source), source, without or ())
    found = "" if patient else data.probable_patient(list(layout.images))
    names = tuple(name.strip() for name in classes.split(",")) if classes else ()
    scans, names = data.sources(layout, source, classes=names, unlabelled=unlabelled, patient=patient or found)
    typer.echo(f"{source}: {layout.kind}, {len(scans)} scans, {sum(s.truth for s in scans)} with a full mask", err=True)
    if split:
        scans = split_by_file(scans, split)
    else:
        scans = split_by_patient(scans, validation=validation, test=test, seed=seed)
    said = (
        [f"patients: told by --patient '{found}' in the scans' names; '.+' takes each scan by itself"] if found else []
    )
    for line in said:
        typer.echo(line, err=True)
    reading = {"patient": patient or found or None, "unlabelled": unlabelled}
    name = source.name.encode(errors="replace").decode() or "folder"
    shape, fitting = (side or SIDE, side or SIDE), fit or Fitting.pad
    plan = Plan(name, names, shape, FITS[fitting], fitting, dtype.value, layout.kind, pixel)
    plan = replace(plan, window=black_white, spacing=voxel, reading=reading)
    plan = replace(plan, dimensions=3 if dimensions == 3 else 2, slice_spacing=slice_spacing, axis=axis)
    plan, chosen = _surveyed(scans, plan, grid=not (fit or side or pixel), window=not window)
    _prepare(scans, store, plan, as_json, [*said, *chosen], by=hands(on, cluster, chunk))


@app.command()
def add(
    source: Folder,
    store: StorePath,
    unlabelled: Unlabelled = None,
    patient: Patient = "",
    split: SplitFile = None,
    on: On = None,
    cluster: Asked = None,
    chunk: Chunk = 20,
    follow: Follow = False,  # noqa: ARG001
    as_json: Json = False,
) -> None:
    """Add scans of your own to a store, prepared as those in it. New patients train, unless --split says otherwise."""
    from inbounds.sources import folder as data
    from inbounds.store.prepare import read_plan
    from inbounds.store.split import joined, split_by_file

    onto = open_store(store)
    plan = read_plan(onto.preparation, str(store), "make a new store of all scans")
    layout = data.recognise(source)
    patient = patient or onto.source.get("patient", "")
    there = {record.patient: record.split for record in onto.records}
    if not patient and (patient := data.probable_patient([*onto.cases, *layout.images])):
        there |= {data.patient_of(name, patient): record.split for name, record in onto.cases.items()}
    given = onto.source.get("unlabelled") if unlabelled is None else unlabelled
    classes = () if layout.classes else onto.classes
    scans, names = data.sources(layout, source, classes=classes, unlabelled=given, patient=patient)
    if names != onto.classes:
        raise BadInput(f"{source}: its classes are {', '.join(names)}; those of {store} are {', '.join(onto.classes)}")
    scans = joined(split_by_file(scans, split) if split else scans, there)
    plan = replace(plan, name=onto.name, classes=onto.classes, dimensions=onto.dimensions)
    _prepare(scans, store, plan, as_json, onto=onto, by=hands(on, cluster, chunk))


@app.command()
def phantom(
    store: NewStore,
    patients: Annotated[int, typer.Option(min=2, help="How many patients, two scans each.")] = 40,
    side: Annotated[int, typer.Option(min=48, help="Rows and columns of the grid.")] = 96,
    dimensions: Dimensions = 2,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Generated hearts that look like cine MR: data that needs no download and no permission."""
    from inbounds.sources import phantom as data
    from inbounds.store.grid import GridWindow
    from inbounds.store.prepare import Plan

    plan = Plan(data.NAME, data.CLASSES, (side, side), GridWindow.pad, "none", "uint8", f"generated, seed {seed}")
    plan = replace(plan, dimensions=3 if dimensions == 3 else 2)
    _prepare(data.sources(patients, side=side, seed=seed), store, plan, as_json)


def _prepare_archive(
    archive: str,
    source: Path,
    store: Path,
    fit: Fitting | None,
    usual: str,
    shape: tuple[int, int] | None,
    dtype: Depth,
    split: Splitting,
    seed: int,
    test: float,
    pixel: float | None,
    as_json: bool,
    volumes: Mapping[str, Any],
    by: Hands | None,
) -> None:
    from inbounds.scans.archive import unpacked
    from inbounds.store.prepare import FITS, Plan
    from inbounds.store.split import hold_out, split_by_patient

    fitting = fit or usual
    _check_pixel(pixel, fitting)
    data = importlib.import_module(f"inbounds.sources.{archive}")
    with unpacked(source, data.wanted, store) as root:
        scans = data.sources(root, reference=split is Splitting.reference)
        typer.echo(f"{source}: {len(scans)} scans, {sum(s.truth for s in scans)} with a full mask", err=True)
        name = data.NAME
        if split is Splitting.scans:
            scans = [replace(scan, patient=scan.name) for scan in scans]
            name += " split by scans"
        if split is Splitting.reference:
            scans = hold_out(scans, test, seed)
        else:
            scans = split_by_patient(scans, validation=data.VALIDATION, test=test, seed=seed)
            name += " split at random" if split is Splitting.random else ""
        by_hand, sides = bool(fit or shape or pixel), shape or (SIDE, SIDE)
        plan = Plan(name, data.CLASSES, sides, FITS[fitting], fitting, dtype.value, data.NAME, pixel, **volumes)
        said: list[str] = []
        if plan.dimensions == 3:
            plan, said = _surveyed(scans, plan, grid=not by_hand, window=False)
        _prepare(scans, store, plan, as_json, said, by=by)


def _surveyed(scans: Sequence[Source], plan: Plan, *, grid: bool, window: bool) -> tuple[Plan, list[str]]:
    """A plan with what the scans decide, and why: a grid, for CT a window, and how far apart slices of volumes are."""
    from inbounds.progress import bar
    from inbounds.store.prepare import FITS
    from inbounds.store.survey import choose, distance

    said = []
    found, ct = choose(scans, grid=grid, window=window, spacing=plan.spacing, axis=plan.axis, track=bar("looking"))
    if found:
        fitting, pixel = found.fitting, found.pixel
        plan = replace(plan, shape=found.shape, fit=FITS[fitting], fitting=fitting, pixel=pixel)
        said.append(f"{found.why}; --fit, --side and --pixel choose another")
    if ct:
        plan = replace(plan, window=ct)
        said.append(
            f"window: {ct[0]:g} to {ct[1]:g}, as this is CT and bodies (above -300) have 98 % of their voxels there; "
            "--window LO,HI sets another, such as -1000,400 for lungs"
        )
    if plan.dimensions == 3 and plan.slice_spacing is None:
        apart, why = distance(scans, plan.spacing, plan.axis)
        plan = replace(plan, slice_spacing=apart)
        said.append(why)
    for line in said:
        typer.echo(line, err=True)
    return plan, said


def _check_pixel(pixel: float | None, fitting: str) -> None:
    if pixel is not None and fitting != Fitting.pad:
        raise BadInput(f"--pixel {pixel:g} says how slices are resampled, and so does --fit {fitting}: give --fit pad")


def _window(text: str) -> tuple[float, float] | None:
    low, *rest = _numbers(text) or (math.nan,)
    if text and not (len(rest) == 1 and low < rest[0]):
        raise BadInput(f"--window {text}: give the brightness of black and a higher one of white, such as -160,240")
    return (low, rest[0]) if text else None


def _spacing(text: str) -> tuple[float, float, float] | None:
    numbers = _numbers(text)
    if text and not (len(numbers) == 3 and min(numbers) > 0):
        raise BadInput(f"--spacing {text}: give mm between slices, rows and columns, such as 8,1.25,1.25")
    return (numbers[0], numbers[1], numbers[2]) if text else None


def _numbers(text: str) -> list[float]:
    """The finite numbers between commas, if there is nothing else."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return []
    return numbers if all(map(math.isfinite, numbers)) else []


def _prepare(
    scans: list[Source],
    store: Path,
    plan: Plan,
    as_json: bool,
    said: Sequence[str] = (),
    onto: Store | None = None,
    by: Hands | None = None,
) -> None:
    from inbounds.progress import bar
    from inbounds.store.prepare import prepare as write

    if by is None:
        report = write(scans, store, plan, bar("preparing"), onto=onto)
    else:
        from inbounds.jobs.preparing import prepare_on

        report = prepare_on(by, scans, store, plan, onto=onto, heard=Told(as_json))
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
    answer(as_json, text, store=store, **facts, truth_pixels_lost=report.lost, notes=[*said, *report.notes])
