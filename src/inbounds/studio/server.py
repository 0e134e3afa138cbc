"""The server of the page: the project over HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, File, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field

from inbounds.errors import BadInput
from inbounds.studio.actions import Done, Who
from inbounds.studio.database import Conflict, Full, Missing
from inbounds.studio.door import Door
from inbounds.studio.events import events
from inbounds.studio.export import export
from inbounds.studio.imports import Brought, bring
from inbounds.studio.pictures import picture_routes
from inbounds.studio.rows import project_row
from inbounds.studio.studio import Studio

PAGE = Path(__file__).parent / "page"


class Person(BaseModel):
    """Who asks."""

    model_config = ConfigDict(extra="forbid")
    who: Who


class Train(Person):
    """A training."""

    minutes: Annotated[float, Field(gt=0, le=100_000)]


def create_app(
    studio: Studio, port: int, token: str | None = None, *, host: str = "", secure: bool = False
) -> tuple[FastAPI, Door]:
    """The application, and the door before it."""
    app = FastAPI(title="inbounds studio", openapi_url=None, docs_url=None, redoc_url=None)
    _refusals(app)
    for routes in (_project_routes, picture_routes, _training_routes):
        app.include_router(routes(studio))
    if PAGE.is_dir():
        app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), methods=["GET"])
        app.mount("/page", StaticFiles(directory=PAGE))
    return app, Door(app, port, token, host=host, secure=secure)


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


def _project_routes(studio: Studio) -> APIRouter:
    routes, project = APIRouter(), studio.project

    @routes.get("/api/project")
    def whole() -> dict[str, Any]:
        return project_row(project, studio.results, studio.trainings.state())

    @routes.post("/api/actions")
    def act(action: Done) -> dict[str, Any]:
        found = studio.results
        entry = project.shelf.entries.get(getattr(action, "scan", 0))
        seen = entry is not None and found.of(entry.name).predicted
        added, warning = project.act(action, found.number if seen else 0)
        return {"id": added, "sequence": project.sequence, **({"warning": warning} if warning else {})}

    @routes.post("/api/undo")
    def undo(person: Person) -> dict[str, Any]:
        sequence, scan, what = project.undo(person.who)
        return {"sequence": sequence, "scan": scan, "what": what}

    @routes.post("/api/redo")
    def redo(person: Person) -> dict[str, Any]:
        sequence, scan, what = project.redo(person.who)
        return {"sequence": sequence, "scan": scan, "what": what}

    @routes.get("/api/events")
    async def told(request: Request, after: int | None = None) -> Response:
        heard = request.headers.get("last-event-id", "")  # of a browser that lost us and is back
        return StreamingResponse(
            events(studio, int(heard) if heard.isdecimal() else after), media_type="text/event-stream"
        )

    return routes


def _training_routes(studio: Studio) -> APIRouter:
    routes = APIRouter()

    @routes.post("/api/train")
    def train(wanted: Train) -> dict[str, Any]:
        return studio.trainings.begin(wanted.minutes, wanted.who)

    @routes.get("/api/train/mask/{number}")
    def newest(number: int) -> Response:
        """The newest mask of a scan while it trains, of the one slice that is looked at."""
        entry, _ = studio.project.usable(number)
        seen = studio.trainings.seen()
        if entry.name not in seen.masks:
            raise Missing(f"{entry.name}: this training looks at other scans")
        shown = studio.plane(number, 0, seen.slices[entry.name])
        mask = seen.masks[entry.name]
        if mask.shape != shown.shape[1:]:
            raise Conflict(f"{entry.name}: its file is another than that which trains; train again")
        return Response(shown.picture(mask[None], 0).tobytes(), media_type="application/octet-stream")

    @routes.post("/api/export")
    def write(_: Person | None = None) -> dict[str, Any]:
        return export(studio.project, studio.results)

    @routes.post("/api/import")
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

    @routes.post("/api/train/stop")
    def stop(_: Person) -> dict[str, Any]:
        return studio.trainings.stop()

    @routes.post("/api/train/resume")
    def resume(_: Person) -> dict[str, Any]:
        return studio.trainings.resume()

    return routes


def _values(text: str) -> dict[int, int | None]:
    """From the values of a mask to those of classes, as the page sends them."""
    try:
        told = json.loads(text or "{}")
        return {int(value): None if klass is None else int(klass) for value, klass in told.items()}
    except (ValueError, TypeError, AttributeError):
        raise BadInput(f'values: {text[:80]!r} is no mapping of numbers, such as {{"1": 1, "4": 0}}') from None
