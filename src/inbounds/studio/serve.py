"""Serving a project until somebody presses Ctrl+C."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from inbounds.errors import BadInput
from inbounds.studio.project import Project
from inbounds.studio.server import create_app
from inbounds.studio.studio import Studio


class _Server(uvicorn.Server):
    """Says when it is ready, and tells open streams when it ends."""

    def __init__(self, config: uvicorn.Config, studio: Studio, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.studio, self.ready = studio, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.studio.closing = True
        await super().shutdown(sockets)


def serve(
    root: Path, folder: Path, classes: Sequence[str], port: int, *, browser: bool, say: Callable[[str], object]
) -> None:
    """Open a project and its page.

    Args:
        root: The scans.
        folder: The project.
        classes: Of a new project, the background first.
        port: Of the page; any that is free if 0.
        browser: Open the page.
        say: Shows a line.
    """
    _check(root, folder)
    project = Project(folder, root, classes)
    try:
        with _listening(port) as listener:
            port = listener.getsockname()[1]
            studio = Studio(project)
            _, door = create_app(studio, port)
            address = f"http://127.0.0.1:{port}/?token={door.token}"

            def ready() -> None:
                say(f"{root.name}: {len(project.shelf.entries)} scans; everything you do is kept in {folder}")
                say(f"The page: {address}")
                say("Stop with Ctrl+C; a training goes on without the page.")
                if browser:
                    webbrowser.open(address)

            config = uvicorn.Config(door, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
            _Server(config, studio, ready).run([listener])
            studio.trainings.close()
    finally:
        project.close()


def _check(root: Path, folder: Path) -> None:
    if (root / "dataset.json").is_file() and (root / "images.npy").is_file():
        raise BadInput(f"{root}: this is a store; give the folder of the scans that it was made from")
    if not root.is_dir():
        raise BadInput(f"{root}: there is no such folder; give the folder that holds the scans")
    if folder.resolve().is_relative_to(root):
        raise BadInput(f"{folder}: this lies among the scans, where nothing is written; choose another with --project")


def _listening(port: int) -> socket.socket:
    listener = socket.socket()
    if hasattr(socket, "SO_REUSEPORT"):  # not on Windows, where another meaning of reuse would let others in
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise BadInput(
            f"--port {port}: cannot be used ({error.strerror or error}); leave it out, or take another"
        ) from None
    return listener
