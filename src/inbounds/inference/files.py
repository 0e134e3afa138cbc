"""Many scans to many masks: which files there are, what their masks are called, and a table of what is in them.

NAME.nii.gz (or .mhd, .nrrd, .png, a folder of PNG slices ...)   the mask, in the format of its scan; NIfTI for DICOM,
                                                                  or a segmentation object (.dcm) if asked for
NAME_probabilities.npz                                            if asked for
predictions.csv                                                   a row for each scan and class, the most doubtful first
predictions.json                                                  what the values of a mask stand for, who made it, and
                                                                  of which DICOM series
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import inbounds
from inbounds.errors import BadInput
from inbounds.inference.many import COLUMNS, SEGMENTATION, Asked, Found, FoundRegion, segmented
from inbounds.inference.prediction import BACKGROUND
from inbounds.inference.predictor import Predictor
from inbounds.locks import locked
from inbounds.progress import Track
from inbounds.scans.pictures import SUFFIXES as PICTURES
from inbounds.scans.scan import header, is_scan, is_series, stem
from inbounds.scans.segmentation import coded
from inbounds.scans.series import ANY, Wanted
from inbounds.sources.folder import channels as by_channel
from inbounds.sources.folder import recognise
from inbounds.writing import clear, write_json, write_table

WORST = 3
TABLE, ABOUT = "predictions.csv", "predictions.json"


@dataclass(frozen=True)
class Outcome:
    """What became of some scans.

    Attributes:
        masks: Where the mask of each scan is, by case.
        warnings: Sentences about single scans, beginning with the case.
        failures: Why a scan has no mask, by case.
        missing: Sentences about classes that most of the scans lack.
        look_first: The most doubtful scans, the worst first, and why.
    """

    masks: Mapping[str, Path]
    warnings: tuple[str, ...]
    failures: Mapping[str, str]
    missing: tuple[str, ...] = ()
    look_first: tuple[str, ...] = ()


def predict_files(
    predictor: Predictor,
    inputs: Sequence[Path],
    out: Path,
    *,
    probabilities: bool = False,
    overwrite: bool = False,
    wanted: Wanted = ANY,
    codes: Sequence[str] | None = None,
    say: Callable[[str], object] = lambda _: None,
    track: Track[str] = iter,
) -> Outcome:
    """Segment scans and write their masks. A scan that cannot be read does not stop the others.

    The table is written at the end, whatever the end is, and lists the scans whose masks are there.

    Args:
        predictor: The network, or networks.
        inputs: Scans, folders of slices, or folders of scans.
        out: The folder for the masks.
        probabilities: Write the probabilities too.
        overwrite: Replace what an earlier prediction left there.
        wanted: Which DICOM series, and how scans are called.
        codes: With it, masks of DICOM become segmentation objects; `CLASS=SCHEME:VALUE:MEANING` for some classes.
        say: Hears what was taken where there was a choice.
        track: Wraps the names of the scans, for a progress bar.

    Raises:
        BadInput: Before anything is written: an input is no scan, two have the same name, or a result exists already.
        OSError: The disk does not take a mask.
    """
    cases, targets, extra = to_write(predictor, inputs, out, probabilities, codes, wanted, say)
    with locked(out, inside=True):
        check_targets(cases, [*targets.values(), *extra.values()], out, overwrite)
        return _predict(predictor, cases, targets, extra, out, codes, track)


def to_write(
    predictor: Predictor,
    inputs: Sequence[Path],
    out: Path,
    probabilities: bool,
    codes: Sequence[str] | None = None,
    wanted: Wanted = ANY,
    say: Callable[[str], object] = lambda _: None,
) -> tuple[dict[str, tuple[Path, ...]], dict[str, Path], dict[str, Path]]:
    """By scan, its files, where its mask goes, and where its probabilities go if they are asked for."""
    cases = find(inputs, predictor.run.channels, wanted, say)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: this is a file; give the name of a folder for the masks")
    if out.resolve() in {file.resolve() for files in cases.values() for file in files}:
        raise BadInput(f"{out}: this folder is itself a scan; give another one for the masks")
    series = [name for name, files in cases.items() if codes is not None and is_series(files[0])]
    coded(codes or (), predictor.classes)
    if codes is not None and not series:
        raise BadInput("none of the scans is DICOM, so no mask can be a segmentation object; leave --dicom-seg out")
    targets = {name: mask_path(name, files[0], out, name in series) for name, files in cases.items()}
    return cases, targets, {name: out / f"{name}_probabilities.npz" for name in cases if probabilities}


def _predict(
    predictor: Predictor,
    cases: Mapping[str, tuple[Path, ...]],
    targets: Mapping[str, Path],
    extra: Mapping[str, Path],
    out: Path,
    codes: Sequence[str] | None,
    track: Track[str],
) -> Outcome:
    found: list[Found] = []
    asked = [Asked(name, files, targets[name], extra.get(name)) for name, files in cases.items()]
    try:
        with segmented(predictor, asked, codes, found) as coming:
            for _ in track(list(cases)):
                next(coming)
    finally:
        outcome = conclude(predictor, found, targets, out)
    return outcome


def conclude(predictor: Predictor, found: Sequence[Found], targets: Mapping[str, Path], out: Path) -> Outcome:
    """Write what is known of some scans, and say what became of all of them."""
    good = [one for one in found if not one.failure]
    ranked = [(one.name, region) for one in good for region in one.regions]
    ranked.sort(key=lambda row: -row[1].doubt)  # equal ones stay in order
    write_table(out / TABLE, COLUMNS, (region.cells for _, region in ranked))
    values = dict(enumerate((BACKGROUND, *predictor.classes)))
    runs = [str(run.path.resolve()) for run in predictor.runs]
    made_by = {"runs": runs, "model": predictor.model, "inbounds": inbounds.__version__}
    series = {one.name: one.series for one in good if one.series}
    write_json(out / ABOUT, {"classes": values, **made_by, **({"series": series} if series else {})})
    failures = {one.name: one.failure for one in found if one.failure}
    masks = {name: target for name, target in targets.items() if name not in failures}
    warnings = tuple(f"{one.name}: {warning}" for one in good for warning in one.warnings)
    return Outcome(masks, warnings, failures, _missing([one.regions for one in good]), _worst(ranked))


def find(
    inputs: Iterable[Path], channels: int, wanted: Wanted = ANY, say: Callable[[str], object] = lambda _: None
) -> dict[str, tuple[Path, ...]]:
    """The scans that some paths stand for, by name, one file or folder for each channel.

    A folder holds scans, as for `inbounds prepare folder`: DICOM at any depth, files, and folders of pictures. For
    several channels, `NAME_0000`, `NAME_0001`, ... are one scan.

    Args:
        inputs: The paths.
        channels: Of the network.
        wanted: Which DICOM series, and how scans are called.
        say: Hears what was taken where there was a choice.

    Raises:
        BadInput: A path is no scan and holds none, two scans have the same name, or a channel is missing.
    """
    scans: dict[str, tuple[Path, ...]] = {}
    for given in inputs:
        for name, files in _scans(given if given.name not in ("", "..") else given.resolve(), wanted, say).items():
            if name in scans:
                raise BadInput(
                    f"{files[0]}: the scan {scans[name][0]} has the same name, and so would their masks; rename one, "
                    "or predict them into different folders"
                )
            scans[name] = files
    if channels > 1:
        single = {name: files[0] for name, files in scans.items() if len(files) == 1}
        whole = {name: files for name, files in scans.items() if len(files) > 1}
        grouped = by_channel(single)
        if left := set(single.values()) - {file for files in grouped.values() for file in files}:
            raise BadInput(
                f"{min(left)}: the run was trained on {channels} channels, and this name does not say which this is; "
                "call the files of a scan NAME_0000, NAME_0001, ..."
            )
        if both := sorted(whole.keys() & grouped.keys()):
            raise BadInput(f"{grouped[both[0]][0]}: the scan {both[0]!r} is there twice; give it once")
        scans = whole | grouped
    for name, files in scans.items():
        if len(files) != channels:
            raise BadInput(
                f"{files[0]}: the scan {name} has {len(files)} channels, and the run was trained on {channels}"
            )
    return scans


def mask_path(name: str, scan: Path, out: Path, segmentation: bool = False) -> Path:
    """Where the mask of a scan goes: under its name, in its format, and as `.nii.gz` for DICOM unless as that."""
    series = SEGMENTATION if segmentation else ".nii.gz"
    return out / (name + (series if is_series(scan) else scan.name[len(stem(scan)) :].lower()))


def _scans(path: Path, wanted: Wanted, say: Callable[[str], object]) -> dict[str, tuple[Path, ...]]:
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or folder; check the name")
    if not path.is_dir():
        if not is_scan(path):
            header(path)  # which says why not
        return {stem(path): (path,)}
    layout = recognise(path, wanted)
    for note in layout.notes:
        say(note)
    if not layout.images:
        raise BadInput(f"{path}: no scans directly in this folder; give the folder that holds them, or the files")
    slices = [file for files in layout.images.values() for file in files if file.suffix.lower() in PICTURES]
    if len(slices) > 1 and slices[0].parent == path:
        say(f"{path}: each of its pictures is a scan; to segment them as the slices of one, give the folder above")
    return layout.images


def check_targets(cases: Mapping[str, tuple[Path, ...]], results: Sequence[Path], out: Path, overwrite: bool) -> None:
    """Refuse, before anything is written, what would replace a scan or an earlier result."""
    scans = {file.resolve() for files in cases.values() for file in files}
    targets = [*results, out / TABLE, out / ABOUT]
    for number, target in enumerate(targets):
        clear(target)
        if target in targets[:number]:
            raise BadInput(f"{target}: two results would have this name; rename a scan")
        if target.resolve() in scans:
            raise BadInput(f"{target}: the mask would replace the scan itself; give another folder with --out")
        if target.exists() and not overwrite:
            raise BadInput(f"{target}: already exists; give another folder, or replace what is there with --overwrite")
        if target.is_dir() and any(file.suffix.lower() not in PICTURES for file in target.iterdir()):
            raise BadInput(f"{target}: this folder holds more than a mask, and is not replaced; remove or rename it")


def _missing(found: Sequence[tuple[FoundRegion, ...]]) -> tuple[str, ...]:
    """Which classes are in less than half of the scans."""
    counts = {each[0].name: sum(region.voxels > 0 for region in each) for each in zip(*found, strict=True)}
    return tuple(
        f"{name} was found in {count} of {len(found)} scans" for name, count in counts.items() if 2 * count < len(found)
    )


def _worst(ranked: Sequence[tuple[str, FoundRegion]]) -> tuple[str, ...]:
    """The scans with the most doubtful regions."""
    worst: dict[str, str] = {}
    for name, region in ranked:
        if region.doubt > 0 and len(worst) < WORST:
            worst.setdefault(name, f"{name} ({region.name}, doubt {region.doubt:.2f}: {region.reason})")
    return tuple(worst.values())
