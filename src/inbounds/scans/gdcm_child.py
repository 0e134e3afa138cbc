"""The program that reads DICOM, in a process of its own: it knows SimpleITK, and nothing of inbounds.

GDCM believes a damaged file: it may ask for all the memory there is, crash, or never come back. `gdcm.py` starts this
file by its path. Each line that comes in is a question as JSON, and each line that goes out an answer; voxels follow
theirs as plain bytes. Nothing is written to a disk.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from time import process_time
from typing import Any


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


def main() -> None:
    """Answer questions until there are no more."""
    # Whatever a library prints goes nowhere.
    answers, nowhere = os.fdopen(os.dup(1), "wb"), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    first = json.loads(sys.stdin.buffer.readline())
    limit(first["memory"], first["seconds"])
    sys.path += first["paths"]
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
            if question["voxels"]:
                if question["kind"]:
                    reader.SetOutputPixelType(getattr(itk, question["kind"]))
                image = reader.Execute()
                voxels = itk.GetArrayViewFromImage(image).reshape(-1).view("u1").data
                answer = {"bytes": len(voxels)}
            else:
                reader.ReadImageInformation()
                answer = {
                    "size": reader.GetSize(),
                    "spacing": reader.GetSpacing(),
                    "origin": reader.GetOrigin(),
                    "direction": reader.GetDirection(),
                    "components": reader.GetNumberOfComponents(),
                    "pixel": itk.GetPixelIDValueAsString(reader.GetPixelID()),
                    "series": reader.GetMetaData("0020|000e") if reader.HasMetaDataKey("0020|000e") else "",
                }
        except Exception as error:  # whatever it is, the other side says it to people
            answer, voxels = {"wrong": str(error) or type(error).__name__}, b""
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.write(voxels)
        answers.flush()


if __name__ == "__main__":
    main()
