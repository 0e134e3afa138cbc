"""The requests for pictures: a scan, its slices, labels and masks, and its thumbnail."""

from __future__ import annotations

import hashlib

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from inbounds.studio.rows import scan_page
from inbounds.studio.studio import LATER, Studio
from inbounds.studio.views import thumbnail
from inbounds.writing import file_aside

SOON = 0.5
"""Seconds that a request for a scan waits for voxels that are being read."""


def picture_routes(studio: Studio) -> APIRouter:
    """What answers them."""
    routes, project = APIRouter(), studio.project

    @routes.get("/api/scans/{number}")
    def scan(number: int) -> Response:
        view = studio.opened(number, SOON)
        if view is None:
            return studio.loading(number)
        return JSONResponse(scan_page(project, studio.results, number, view.window))

    @routes.get("/api/scans/{number}/image/{plane}/{n}")
    def image(number: int, plane: int, n: int, request: Request) -> Response:
        shown = studio.plane(number, plane, n)
        tag = f'"{number}-{project.shelf.stamp(number)}-{plane}-{n}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        view = studio.opened(number, LATER)
        if view is None:
            return studio.loading(number)
        return _bytes(view.picture(shown, n).tobytes(), {"etag": tag})

    @routes.get("/api/scans/{number}/labels/{plane}/{n}")
    def labels(number: int, plane: int, n: int) -> Response:
        shown, labels = studio.plane(number, plane, n), project.labels(number)
        with project.database.lock:
            return _bytes(labels.picture(shown.picture(labels.kept, n)).tobytes())

    @routes.get("/api/scans/{number}/mask/{plane}/{n}")
    def mask(number: int, plane: int, n: int) -> Response:
        shown, found = studio.plane(number, plane, n), studio.results
        return _bytes(found.shown(shown.picture(studio.mask(number), n)).tobytes())

    @routes.get("/api/scans/{number}/thumbnail")
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

    return routes


def _bytes(content: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(content, media_type="application/octet-stream", headers=headers)
