"""Questions about DICOM files, answered by a process of their own: what a damaged file does there harms nobody here.

One process serves all files of a series. To start it takes a tenth of a second.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path
from threading import Timer
from time import monotonic
from types import TracebackType
from typing import Any, cast

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import regular
from inbounds.scans.format import Voxels, library

PATIENCE = 60.0
"""Seconds for a file, and as many more as it has megabytes: no honest file on a slow network takes as long."""
MEMORY = 1 << 30
"""Bytes for a file, beside four times what it holds: the libraries alone take 400 MB of addresses."""
_CHILD = Path(__file__).with_name("gdcm_child.py")
_ALONE = dict.fromkeys(("ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""A thread each has addresses of its own, which would count."""


@dataclass(frozen=True)
class Information:
    """What the header of a file says.

    Attributes:
        size: Columns, rows, frames.
        spacing: Between them, in mm.
        origin: The middle of the first voxel.
        direction: The axes, as the columns of a matrix.
        components: Of a pixel; one, but for colours.
        pixel: The type of its numbers.
        series: The series it is of.
        study: The study that is of.
        patient: A digest that is the same for all files of a patient, and tells nobody's name.
        number: Of the series in its study.
        about: What the scanner's staff called it, unless that names the patient.
        modality: Such as MR; SEG for a segmentation.
        tells: Whether the folder's name, and the file's, name the patient.
        places: Of each frame the origin, where frames say so.
    """

    size: tuple[int, ...]
    spacing: tuple[float, ...]
    origin: tuple[float, ...]
    direction: tuple[float, ...]
    components: int
    pixel: str
    series: str
    study: str
    patient: str
    number: str
    about: str
    modality: str
    tells: tuple[bool, bool]
    places: tuple[tuple[float, float, float], ...]


class Damaged(Exception):  # noqa: N818 (it says what the file is)
    """GDCM has looked at a file and cannot read it; the message is its own."""


class NoImage(Damaged):
    """There is nothing to be read: the file is a report, or another object without pixels."""


class Gdcm:
    """The process, for as long as it is needed.

    A crash, or too much memory or time, becomes a `BadInput` that names the file. The limit on memory holds on Linux;
    other systems have none that works, and there only the others protect.
    """

    def __init__(self, path: Path) -> None:
        modules = library("SimpleITK", path), np
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | _ALONE,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        paths = dict.fromkeys(str(Path(str(module.__file__)).parents[1]) for module in modules)
        if (more := importlib.util.find_spec("pydicom")) and more.origin:
            paths[str(Path(more.origin).parents[1])] = None
        self._questions: list[dict[str, Any]] = [{"memory": MEMORY, "seconds": PATIENCE, "paths": list(paths)}]

    def __enter__(self) -> Gdcm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def information(self, file: Path) -> Information:
        """What a header says; `Damaged` if it cannot be read."""
        said = self._ask(file)
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        return Information(**said | lists | {"places": tuple((x, y, z) for x, y, z in said["places"])})

    def read(self, file: Path, into: Voxels, kind: str = "") -> None:
        """Read the voxels of a file, as numbers of a kind that ITK knows or of its own; `Damaged` if it cannot be.

        The kind `frames` reads frames that have places of their own, in the order of the file.
        """
        self._ask(file, into.reshape(-1).view(np.uint8), kind)

    def _ask(self, file: Path, into: np.ndarray | None = None, kind: str = "") -> dict[str, Any]:
        size = regular(file).stat().st_size + (0 if into is None else into.nbytes)
        memory, seconds = MEMORY + 4 * size, PATIENCE + size / 1e6
        limits = {"memory": memory, "seconds": seconds}
        self._questions.append({"file": str(file), "voxels": into is not None, "kind": kind, **limits})
        asked = b"".join(json.dumps(question).encode() + b"\n" for question in self._questions)
        self._questions.clear()
        stdin, stdout = cast(BufferedWriter, self._process.stdin), cast(BufferedReader, self._process.stdout)
        late, begun = Timer(seconds, self._process.kill), monotonic()
        late.start()
        try:
            stdin.write(asked)
            stdin.flush()
            answer: dict[str, Any] = json.loads(stdout.readline())
            if "wrong" in answer:
                raise Damaged(answer["wrong"]) if answer.get("image", True) else NoImage(answer["wrong"])
            if into is not None and answer["bytes"] != into.nbytes:
                raise Damaged(f"the header promises {into.nbytes:,} bytes of voxels, there are {answer['bytes']:,}")
            if into is not None and stdout.readinto(cast(Any, into)) != into.nbytes:
                raise EOFError
        except (OSError, ValueError, EOFError):
            slow = monotonic() - begun >= seconds
            why = f"takes longer than {seconds:.0f} s" if slow else f"crashes, or wants more than {memory:,} bytes,"
            raise BadInput(
                f"{file}: GDCM, which reads DICOM, {why} over this file; it is damaged: copy or download it again, or "
                "remove it from the series"
            ) from None
        finally:
            late.cancel()
        return answer
