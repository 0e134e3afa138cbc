"""A page that says why there is no studio, for whoever sees the browser and not the terminal."""

from __future__ import annotations

import threading
from html import escape

import uvicorn
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from inbounds.studio.server import PAGE

PATIENCE = 10.0
"""Seconds for a browser to come."""
LINGERS = 1.0
"""Seconds for it to fetch what belongs to the page."""
TEXT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>inbounds studio</title>
<link rel="icon" href="/page/icon.svg"><link rel="stylesheet" href="/page/style.css"></head>
<body><main class="page"><h2>The studio cannot open this project</h2><p class="card">{sentence}</p>
<p class="note">Nothing was changed. When this is mended, start the command again.</p></main></body></html>
"""


class Refusal:
    """The application that shows one sentence, and then ends its server."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self._server: uvicorn.Server | None = None

    def ends(self, server: uvicorn.Server) -> None:
        """Which server ends when the page was seen, or nobody came."""
        self._server = server
        self._end(PATIENCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        await self._answer(scope["path"])(scope, receive, send)
        if scope["path"] == "/":
            self._end(LINGERS)

    def _answer(self, path: str) -> Response:
        if path == "/":
            return HTMLResponse(TEXT.format(sentence=escape(self.sentence)))
        name = path.removeprefix("/page/")
        if name in ("style.css", "icon.svg"):
            return FileResponse(PAGE / name)
        return PlainTextResponse(self.sentence, 404)

    def _end(self, seconds: float) -> None:
        def end() -> None:
            if self._server is not None:
                self._server.should_exit = True

        waiting = threading.Timer(seconds, end)
        waiting.daemon = True
        waiting.start()
