"""The program that reads DICOM, in a process of its own: it knows SimpleITK and pydicom, and nothing of inbounds.

GDCM believes a damaged file: it may ask for all the memory there is, crash, or never come back. `gdcm.py` starts this
file by its path. Each line that comes in is a question as JSON, and each line that goes out an answer; voxels follow
theirs as plain bytes. Nothing is written to a disk.

Who the patient is stays in this process: out goes a digest, and whether a name of a folder or a file tells it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

ENHANCED = tuple(f"1.2.840.10008.5.1.4.1.1.{kind}" for kind in ("2.", "4.", "13.1.", "128.1", "130"))
"""With these begin the classes of objects that say of each frame where it lies: enhanced CT, MR, X-ray 3D and PET."""


def limit(memory: int, seconds: float) -> None:
    """Take no more memory and time than this, and leave no picture of it when dying. Windows has no such limits.

    Who asks has a clock of their own; this one holds where they are no more.
    """
    try:
        import resource
    except ImportError:
        return
    ends = int(process_time() + seconds) + 1
    for kind, count in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, ends), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        with suppress(OSError, ValueError):  # macOS refuses some
            resource.setrlimit(kind, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))


def information(itk: Any, reader: Any, file: str) -> dict[str, Any]:
    """What the header of a file says; of an object whose frames lie anywhere, where each of them does."""
    try:
        reader.ReadImageInformation()
    except RuntimeError:
        if described(file):
            return {"wrong": "this is no image", "image": False}
        raise

    def tag(name: str) -> str:
        return str(reader.GetMetaData(name)).strip(" \0") if reader.HasMetaDataKey(name) else ""

    study = tag("0020|000d")
    person = told("", "") if tag("0012|0062") == "YES" else told(tag("0010|0010"), tag("0010|0020"))
    place = Path(file)
    said = {
        "size": reader.GetSize(),
        "spacing": reader.GetSpacing(),
        "origin": reader.GetOrigin(),
        "direction": reader.GetDirection(),
        "components": reader.GetNumberOfComponents(),
        "pixel": itk.GetPixelIDValueAsString(reader.GetPixelID()),
        "series": tag("0020|000e"),
        "study": study,
        "patient": sha256((tag("0010|0020") or study).encode(errors="replace")).hexdigest()[:8],
        "number": tag("0020|0011"),
        "about": "" if person(tag("0008|103e")) else tag("0008|103e"),
        "modality": tag("0008|0060"),
        "tells": [person(place.parent.name), person(place.name)],
        "places": [],
    }
    kind = tag("0008|0016")
    if kind.startswith(ENHANCED) and tag("0028|0008") not in ("", "0", "1"):
        said |= placed_frames(file)
    return said


def told(name: str, number: str) -> Callable[[str], bool]:
    """Whether a text holds a part of a patient's name, or the number; short ones count as whole words only."""
    parts = {part.casefold() for part in [*re.split(r"[\W_]+", name), number] if len(part) > 1}

    def tells(text: str) -> bool:
        words = {text.casefold(), *re.split(r"[\W_]+", text.casefold())}
        return any(part in words or (len(part) > 3 and part in text.casefold()) for part in parts)

    return tells


def described(file: str) -> bool:
    """Whether a file is sound DICOM that holds no picture: a report, a presentation, a plan."""
    try:
        dicom: Any = import_module("pydicom")
        head = dicom.dcmread(file, stop_before_pixels=True)
        return "Rows" not in head and "Image" not in head.SOPClassUID.name
    except Exception:  # not there, or damaged: then it is not known to be none
        return False


def groups(head: Any, name: str) -> list[Any]:
    """One of the functional groups, for each frame; its own come before those that all share."""
    shared = head.SharedFunctionalGroupsSequence[0] if "SharedFunctionalGroupsSequence" in head else {}
    holders = [each if name in each else shared for each in head.PerFrameFunctionalGroupsSequence]
    return [holder[name].value[0] if name in holder else None for holder in holders]


def placed_frames(file: str) -> dict[str, Any]:
    """Where each frame of an enhanced object lies, and how its numbers are to be read."""
    try:
        dicom: Any = import_module("pydicom")
    except ImportError:
        raise ValueError("it has several frames, which are read with pydicom: pip install 'inbounds[dicom]'") from None
    head = dicom.dcmread(file, stop_before_pixels=True)
    places, turns, pixels = (
        groups(head, name) for name in ("PlanePositionSequence", "PlaneOrientationSequence", "PixelMeasuresSequence")
    )
    if None in (*places, *turns, *pixels):
        raise ValueError("it does not say of each frame where it lies")
    one, size = [float(value) for value in turns[0].ImageOrientationPatient], pixels[0].PixelSpacing
    for turn, pixel in zip(turns, pixels, strict=True):
        apart = [abs(float(a) - b) for a, b in zip(turn.ImageOrientationPatient, one, strict=True)]
        if max(apart) > 1e-3 or pixel.PixelSpacing != size:
            raise ValueError("its frames are oriented differently, or their pixels are not of one size")
    (a, b, c), (d, e, f) = one[:3], one[3:]
    normal = b * f - c * e, c * d - a * f, a * e - b * d
    whole = all(slope == 1 and offset == 0 for slope, offset in slopes(head))
    bits, sign = int(head.BitsAllocated), "un" * (not head.PixelRepresentation)
    return {
        "spacing": [float(size[1]), float(size[0]), 1.0],
        "direction": [*(axis[k] for k in range(3) for axis in (one[:3], one[3:], normal))],
        "places": [[float(value) for value in place.ImagePositionPatient] for place in places],
        "pixel": f"{bits}-bit {sign}signed integer" if whole else "32-bit float",
    }


def slopes(head: Any) -> list[tuple[float, float]]:
    """By what each frame's numbers are multiplied, and what is added."""
    found = groups(head, "PixelValueTransformationSequence")
    return [(1.0, 0.0) if one is None else (float(one.RescaleSlope), float(one.RescaleIntercept)) for one in found]


def stored_frames(file: str) -> memoryview:
    """All frames as they lie in the file, slope and intercept applied."""
    dicom: Any = import_module("pydicom")
    numpy: Any = import_module("numpy")
    head = dicom.dcmread(file)
    frames = head.pixel_array
    each = slopes(head)
    if any(one != (1.0, 0.0) for one in each):
        frames = frames.astype("f4")
        for frame, (slope, offset) in zip(frames, each, strict=True):
            frame *= slope
            frame += offset
    voxels: memoryview = numpy.ascontiguousarray(frames).reshape(-1).view("u1").data
    return voxels


def main() -> None:
    """Answer questions until there are no more."""
    # Whatever a library prints goes nowhere.
    answers, nowhere = os.fdopen(os.dup(1), "wb"), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    first = json.loads(sys.stdin.buffer.readline())
    limit(first["memory"], first["seconds"])
    sys.path += first["paths"]
    sys.dont_write_bytecode = True
    itk: Any = import_module("SimpleITK")
    itk.ProcessObject.SetGlobalWarningDisplay(False)
    for line in sys.stdin.buffer:
        question = json.loads(line)
        answer: dict[str, Any]
        voxels: bytes | memoryview = b""
        try:
            limit(question["memory"], question["seconds"])
            reader = itk.ImageFileReader()
            reader.SetImageIO("GDCMImageIO")
            reader.SetFileName(question["file"])
            if question["voxels"] and question["kind"] == "frames":
                voxels = stored_frames(question["file"])
                answer = {"bytes": len(voxels)}
            elif question["voxels"]:
                if question["kind"]:
                    reader.SetOutputPixelType(getattr(itk, question["kind"]))
                image = reader.Execute()
                voxels = itk.GetArrayViewFromImage(image).reshape(-1).view("u1").data
                answer = {"bytes": len(voxels)}
            else:
                answer = information(itk, reader, question["file"])
        except Exception as error:  # whatever it is, the other side says it to people
            answer, voxels = {"wrong": str(error) or type(error).__name__}, b""
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.write(voxels)
        answers.flush()


if __name__ == "__main__":
    main()
