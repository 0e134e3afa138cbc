"""What all requests share: the project, its trainings and their masks, and the voxels that are looked at."""

from __future__ import annotations

import math
from concurrent.futures import Future

import numpy as np
from fastapi.responses import JSONResponse, Response
from jaxtyping import UInt8

from inbounds.errors import BadInput
from inbounds.scans.display import Plane
from inbounds.studio.database import Conflict, Missing
from inbounds.studio.project import Project
from inbounds.studio.results import TABLE, Results, newest
from inbounds.studio.training import Trainings
from inbounds.studio.views import Cache, View, need, open_mask, open_view

LATER = 20.0
"""Seconds that a request for a mask waits for voxels that are being read."""


class Studio:
    """What all requests share."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.trainings = Trainings(project)
        self.cache = Cache()
        self.closing = False
        self._results: tuple[object, Results] = None, Results()

    @property
    def results(self) -> Results:
        """The masks of the last training that has any."""
        tables = {table: table.stat().st_mtime_ns for table in self.trainings.folder.glob(f"[0-9]*/masks/{TABLE}")}
        if self._results[0] != tables:
            self._results = tables, newest(self.trainings.folder)
            self.project.shelf.learn(self._results[1].left_out)
        return self._results[1]

    def view(self, number: int) -> Future[View]:
        """The voxels of a scan, now or soon."""
        entry, _ = self.project.usable(number)
        file = entry.files[0]
        return self.cache.ask(self._key(number), lambda: need(file), lambda: open_view(file))

    def loading(self, number: int) -> Response:
        """Says that a scan is being read, and how much of it is."""
        return JSONResponse({"loading": self.cache.share(self._key(number))}, 202)

    def _key(self, number: int) -> tuple[str, int, str]:
        return "scan", number, self.project.shelf.stamp(number)

    def opened(self, number: int, seconds: float) -> View | None:
        """The voxels of a scan, if they are there within some seconds."""
        self.project.usable(number)
        try:
            return self.view(number).result(seconds)
        except TimeoutError:
            return None
        except (BadInput, OSError, ValueError, MemoryError) as error:
            self.project.shelf.spoilt(number, str(error))
            raise Conflict(str(error)) from error

    def mask(self, number: int) -> UInt8[np.ndarray, "slices rows columns"]:
        """The mask of a scan, with the values of the run."""
        entry, shape = self.project.usable(number)
        results = self.results
        file = results.mask(entry.name, entry.files[0])
        if file is None or not file.exists():
            raise Missing(f"{entry.name}: there is no mask of it yet; train, or look at its sentence")
        key = ("mask", results.number, number, file.stat().st_mtime_ns)
        mask: np.ndarray = self.cache.ask(key, lambda: math.prod(shape), lambda: open_mask(file)).result(LATER)
        if mask.shape != shape:
            raise Conflict(f"{file}: its shape {mask.shape} is not the scan's {shape}; train again")
        return mask

    def plane(self, number: int, plane: int, n: int) -> Plane:
        """A plane of a scan in which there is a picture `n`."""
        entry, _ = self.project.usable(number)
        assert entry.planes is not None
        if not (0 <= plane < 3 and 0 <= n < entry.planes[plane].count):
            raise Missing(f"{entry.name} has no picture {n} of plane {plane}")
        return entry.planes[plane]
