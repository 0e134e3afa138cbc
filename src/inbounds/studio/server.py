"""The server of the page: the project over HTTP, on this computer only."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, File, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from jaxtyping import UInt8
from pydantic import BaseModel, ConfigDict, Field

from inbounds.errors import BadInput
from inbounds.scans.display import Plane
from inbounds.studio.actions import Done, Who
from inbounds.studio.database import Conflict, Full
from inbounds.studio.door import Door
from inbounds.studio.export import export
from inbounds.studio.imports import Brought, bring
from inbounds.studio.project import Missing, Project
from inbounds.studio.results import TABLE, Results, newest
from inbounds.studio.rows import project_row, scan_page
from inbounds.studio.training import Trainings
from inbounds.studio.views import Cache, View, need, open_mask, open_view, thumbnail
from inbounds.writing import file_aside

PAGE = Path(__file__).parent / "page"
SOON = 0.5
LATER = 20.0
"""Seconds that a request for a scan, and one for a picture of it, waits for voxels that are being read."""
LOOK, BEAT = 0.1, 15.0
"""Seconds between two looks for something new, and between two signs of life."""


class Person(BaseModel):
    """Who asks."""

    model_config = ConfigDict(extra="forbid")
    who: Who


class Train(Person):
    """A training."""

    minutes: Annotated[float, Field(gt=0, le=100_000)]


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


def create_app(studio: Studio, port: int, token: str | None = None) -> tuple[FastAPI, Door]:
    """The application, and the door before it."""
    app = FastAPI(title="inbounds studio", openapi_url=None, docs_url=None, redoc_url=None)
    _refusals(app)
    _project_routes(app, studio)
    _picture_routes(app, studio)
    _training_routes(app, studio)
    if PAGE.is_dir():
        app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), methods=["GET"])
        app.mount("/page", StaticFiles(directory=PAGE))
    return app, Door(app, port, token)


def _refusals(app: FastAPI) -> None:
    """Every error is one sentence."""

    def answer(status: int) -> Callable[[Request, Exception], Response]:
        def said(_: Request, error: Exception) -> Response:
            return JSONResponse({"error": str(error)}, status)

        return said

    for kind, status in ((BadInput, 400), (Missing, 404), (Conflict, 409), (Full, 507)):
        app.add_exception_handler(kind, answer(status))

    app.add_exception_handler(Exception, answer(500))

    def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:] if part != "body")
        return JSONResponse({"error": f"{where or 'the request'}: {first['msg'].removeprefix('Value error, ')}"}, 400)

    app.add_exception_handler(RequestValidationError, invalid)

    def lost(request: Request, error: Exception) -> Response:
        sentence = f"there is nothing to {request.method} at {request.url.path}"
        return JSONResponse({"error": sentence}, getattr(error, "status_code", 404))

    app.add_exception_handler(404, lost)
    app.add_exception_handler(405, lost)


def _project_routes(app: FastAPI, studio: Studio) -> None:
    project = studio.project

    @app.get("/api/project")
    def whole() -> dict[str, Any]:
        return project_row(project, studio.results, studio.trainings.state())

    @app.post("/api/actions")
    def act(action: Done) -> dict[str, Any]:
        found = studio.results
        entry = project.shelf.entries.get(getattr(action, "scan", 0))
        seen = entry is not None and found.of(entry.name).predicted
        added, warning = project.act(action, found.number if seen else 0)
        return {"id": added, "sequence": project.sequence, **({"warning": warning} if warning else {})}

    @app.post("/api/undo")
    def undo(person: Person) -> dict[str, Any]:
        sequence, scan, what = project.undo(person.who)
        return {"sequence": sequence, "scan": scan, "what": what}

    @app.post("/api/redo")
    def redo(person: Person) -> dict[str, Any]:
        sequence, scan, what = project.redo(person.who)
        return {"sequence": sequence, "scan": scan, "what": what}

    @app.get("/api/events")
    async def events(request: Request, after: int | None = None) -> Response:
        heard = request.headers.get("last-event-id", "")  # of a browser that lost us and is back
        return StreamingResponse(
            _events(studio, int(heard) if heard.isdecimal() else after), media_type="text/event-stream"
        )


def _training_routes(app: FastAPI, studio: Studio) -> None:
    @app.post("/api/train")
    def train(wanted: Train) -> dict[str, Any]:
        return studio.trainings.begin(wanted.minutes, wanted.who)

    @app.post("/api/export")
    def write(_: Person | None = None) -> dict[str, Any]:
        return export(studio.project, studio.results)

    @app.post("/api/import")
    def bring_in(
        file: Annotated[Any, File()],
        who: Annotated[Who, Form()],
        scan: Annotated[int | None, Form()] = None,
        klass: Annotated[int | None, Form(alias="class")] = None,
        values: Annotated[str, Form()] = "{}",
    ) -> dict[str, Any]:
        name = PurePosixPath((getattr(file, "filename", "") or "").replace("\\", "/")).name
        if not name or name.startswith("."):
            raise BadInput("the file has no name; choose it again")
        with TemporaryDirectory(prefix="inbounds-") as folder:
            path = Path(folder) / name
            with path.open("wb") as stream:
                shutil.copyfileobj(file.file, stream)
            batch, sentence = bring(studio.project, who, Brought(path, scan, klass, _values(values)))
        return {"id": batch, "sequence": studio.project.sequence, "sentence": sentence}

    @app.post("/api/train/stop")
    def stop(_: Person) -> dict[str, Any]:
        return studio.trainings.stop()

    @app.post("/api/train/resume")
    def resume(_: Person) -> dict[str, Any]:
        return studio.trainings.resume()


async def _events(studio: Studio, after: int | None) -> AsyncIterator[str]:
    """What happens, as it happens."""
    project = studio.project
    seen = project.sequence if after is None else after
    clock = asyncio.get_running_loop().time
    said, beat, told = clock(), clock(), ""
    yield ": here\n\n"
    while not studio.closing:
        if project.sequence > seen:
            for number, scan, kind, who in project.database.since(seen):
                seen = number
                content = {"sequence": number, "scan": scan, "kind": kind, "who": who}
                yield f"id: {number}\ndata: {json.dumps(content)}\n\n"
            beat = clock()
        if clock() - said >= SOON:
            said = clock()
            training = json.dumps(await asyncio.to_thread(studio.trainings.state))
            if training != told:
                told, beat = training, clock()
                yield f'data: {{"training": {training}}}\n\n'
        if clock() - beat >= BEAT:
            beat = clock()
            yield ": still here\n\n"
        await asyncio.sleep(LOOK)


def _picture_routes(app: FastAPI, studio: Studio) -> None:
    project = studio.project

    @app.get("/api/scans/{number}")
    def scan(number: int) -> Response:
        view = studio.opened(number, SOON)
        if view is None:
            return studio.loading(number)
        return JSONResponse(scan_page(project, studio.results, number, view.window))

    @app.get("/api/scans/{number}/image/{plane}/{n}")
    def image(number: int, plane: int, n: int, request: Request) -> Response:
        shown = studio.plane(number, plane, n)
        tag = f'"{number}-{project.shelf.stamp(number)}-{plane}-{n}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        view = studio.opened(number, LATER)
        if view is None:
            return studio.loading(number)
        return _bytes(view.picture(shown, n).tobytes(), {"etag": tag})

    @app.get("/api/scans/{number}/labels/{plane}/{n}")
    def labels(number: int, plane: int, n: int) -> Response:
        shown, labels = studio.plane(number, plane, n), project.labels(number)
        with project.database.lock:
            return _bytes(labels.picture(shown.picture(labels.kept, n)).tobytes())

    @app.get("/api/scans/{number}/mask/{plane}/{n}")
    def mask(number: int, plane: int, n: int) -> Response:
        shown, found = studio.plane(number, plane, n), studio.results
        return _bytes(found.shown(shown.picture(studio.mask(number), n)).tobytes())

    @app.get("/api/scans/{number}/thumbnail")
    def small(number: int) -> Response:
        entry, _ = project.usable(number)
        stamp = hashlib.sha256(project.shelf.stamp(number).encode()).hexdigest()[:16]
        file = project.folder / "thumbs" / f"{number}-{stamp}.png"
        if not file.is_file():
            view = studio.opened(number, LATER)
            if view is None:
                return studio.loading(number)
            assert entry.planes is not None
            with file_aside(file) as part:
                part.write_bytes(thumbnail(view, entry.planes[0]))
        return Response(file.read_bytes(), media_type="image/png")


def _values(text: str) -> dict[int, int | None]:
    """From the values of a mask to those of classes, as the page sends them."""
    try:
        told = json.loads(text or "{}")
        return {int(value): None if klass is None else int(klass) for value, klass in told.items()}
    except (ValueError, TypeError, AttributeError):
        raise BadInput(f'values: {text[:80]!r} is no mapping of numbers, such as {{"1": 1, "4": 0}}') from None


def _bytes(content: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(content, media_type="application/octet-stream", headers=headers)
