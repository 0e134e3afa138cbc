"""The program that writes DICOM segmentations, in a process of its own: it knows highdicom, and nothing of inbounds.

`segmentation.py` starts this file by its path, says on one line what to write, and hears what went wrong, if anything.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any


def write(asked: dict[str, Any]) -> None:
    """Write one object."""
    hd: Any = import_module("highdicom")
    dicom: Any = import_module("pydicom")
    numpy: Any = import_module("numpy")
    codes: Any = import_module("pydicom.sr.codedict").codes
    heads = [dicom.dcmread(file, stop_before_pixels=True) for file in asked["files"]]
    mask = numpy.load(asked["mask"], allow_pickle=False)
    algorithm = hd.AlgorithmIdentificationSequence(
        name="inbounds", version=asked["version"], family=codes.cid7162.ArtificialIntelligence
    )

    def term(code: dict[str, str]) -> Any:
        return hd.sr.CodedConcept(code["value"], code["scheme"], code["meaning"])

    segments = [
        hd.seg.SegmentDescription(
            segment_number=number,
            segment_label=one["name"][:64],
            segmented_property_category=term(one["category"]),
            segmented_property_type=term(one["kind"]),
            algorithm_type=hd.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
            algorithm_identification=algorithm,
        )
        for number, one in enumerate(asked["classes"], start=1)
    ]
    made = hd.seg.Segmentation(
        source_images=heads,
        pixel_array=mask,
        segmentation_type=hd.seg.SegmentationTypeValues.BINARY,
        segment_descriptions=segments,
        series_instance_uid=hd.UID(),
        series_number=1000 + int(heads[0].get("SeriesNumber") or 0),
        sop_instance_uid=hd.UID(),
        instance_number=1,
        manufacturer="inbounds",
        manufacturer_model_name="inbounds",
        software_versions=asked["version"],
        device_serial_number="0",
        content_label="SEGMENTATION",
        series_description="Segmentation by inbounds, not for diagnosis",
        omit_empty_frames=bool(mask.any()),
    )
    try:
        with open(asked["out"], "xb") as file:  # noqa: PTH123 (nothing but what it is told is imported here)
            made.save_as(file, enforce_file_format=True)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SystemExit(json.dumps({"wrong": error.strerror or str(error), "disk": True})) from None


def main() -> None:
    """Do what is asked on standard input."""
    asked = json.loads(sys.stdin.buffer.readline())
    runpy.run_path(str(Path(__file__).with_name("gdcm_child.py")))["limit"](asked["memory"], asked["seconds"])
    sys.path += asked["paths"]
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    answer: dict[str, Any] = {}
    try:
        write(asked)
    except SystemExit as told:
        answer = json.loads(str(told))
    except Exception as error:  # whatever it is, the other side says it to people
        answer = {"wrong": f"{type(error).__name__}: {error}", "disk": False}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
