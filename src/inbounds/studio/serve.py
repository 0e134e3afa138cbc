"""Serving a project until somebody presses Ctrl+C."""

from __future__ import annotations

import socket
import ssl
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from inbounds.errors import BadInput
from inbounds.studio.door import LOOPBACK, Door
from inbounds.studio.from_store import is_store, scans_of
from inbounds.studio.project import Project
from inbounds.studio.refusal import Refusal
from inbounds.studio.server import create_app
from inbounds.studio.studio import Studio


@dataclass(frozen=True)
class Address:
    """Where the page is.

    Attributes:
        host: The name by which others reach this computer; without one, it alone reaches the page.
        port: Any that is free if 0.
        certificate: A file (PEM) that says that this is that host; the page is encrypted then.
        key: The file of its private key, if that lies apart.
    """

    host: str = ""
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Refuse what others could listen to, and files that are no certificate and key."""
        if self.host and self.host.lower() not in LOOPBACK and self.certificate is None:
            raise BadInput(
                f"--host {self.host}: scans and labels would cross the network in clear; give a --certificate (and its "
                "--key), or leave --host out and come through a tunnel: ssh -L"
            )
        if self.key is not None and self.certificate is None:
            raise BadInput(f"--key {self.key}: it needs the --certificate that it belongs to")
        if self.host in ("0.0.0.0", "::", "*"):
            raise BadInput(f"--host {self.host}: give the name or the number by which others reach this computer")
        if self.certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
            except (OSError, ssl.SSLError, ValueError) as error:
                what = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
                raise BadInput(
                    f"--certificate {self.certificate}: no certificate with its key ({what}); give both as PEM, the "
                    "key without a password"
                ) from None

    def listen(self) -> socket.socket:
        """A socket there."""
        family, place = self._place()
        listener = socket.socket(family)
        if hasattr(socket, "SO_REUSEPORT"):  # not on Windows, where another meaning of reuse would let others in
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(place)
        except OSError as error:
            listener.close()
            what = f"--host {self.host} --port {self.port}" if self.host else f"--port {self.port}"
            raise BadInput(
                f"{what}: cannot be used ({error.strerror or error}); leave it out, or take another"
            ) from None
        return listener

    def _place(self) -> tuple[int, Any]:
        """The kind of network, and the place on it."""
        if not self.host:
            return socket.AF_INET, ("127.0.0.1", self.port)
        try:
            found = socket.getaddrinfo(self.host.strip("[]"), self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise BadInput(f"--host {self.host}: nobody knows this name ({error.strerror}); check it") from None
        return found[0][0], found[0][4]

    def url(self, port: int, token: str) -> str:
        """What a browser is given."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://{self.host or '127.0.0.1'}:{port}/?token={token}"


class _Server(uvicorn.Server):
    """Says when it is ready, and tells open streams when it ends."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready, self.ending = ready, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending()
        await super().shutdown(sockets)


def serve(
    root: Path,
    folder: Path,
    classes: Sequence[str],
    address: Address,
    *,
    browser: bool,
    say: Callable[[str], object],
) -> None:
    """Open a project and its page.

    Args:
        root: The scans, or a store.
        folder: The project.
        classes: Of a new project, the background first.
        address: Of the page.
        browser: Open the page.
        say: Shows a line.
    """
    _check(root, folder)
    address.check()
    try:
        project = Project(folder, scans_of(root, folder) if is_store(root) else root, classes)
    except BadInput as error:
        if browser:  # nobody may be looking at the terminal
            _tell(address, str(error))
        raise
    try:
        with address.listen() as listener:
            port = listener.getsockname()[1]
            studio = Studio(project)
            _, door = create_app(studio, port, host=address.host, secure=address.certificate is not None)
            url = address.url(port, door.token)

            def ready() -> None:
                say(f"{root.name}: {len(project.shelf.entries)} scans; everything you do is kept in {folder}")
                say(f"The page: {url}")
                say("Stop with Ctrl+C; a training goes on without the page.")
                if browser:
                    webbrowser.open(url)

            def ending() -> None:
                studio.closing = True

            _Server(_config(door, address), ready, ending).run([listener])
            studio.trainings.close()
    finally:
        project.close()


def _config(app: ASGIApp, address: Address) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )


def _tell(address: Address, sentence: str) -> None:
    """Show in the browser why there is no studio, once."""
    with address.listen() as listener:
        port = listener.getsockname()[1]
        refusal = Refusal(sentence)
        door = Door(refusal, port, host=address.host, secure=address.certificate is not None)

        def ready() -> None:
            if not webbrowser.open(address.url(port, door.token)):
                server.should_exit = True  # there is no browser

        server = _Server(_config(door, address), ready, lambda: None)
        refusal.ends(server)
        server.run([listener])


def _check(root: Path, folder: Path) -> None:
    if not root.is_dir():
        raise BadInput(f"{root}: there is no such folder; give the folder that holds the scans, or a store")
    if folder.resolve().is_relative_to(root):
        raise BadInput(f"{folder}: this lies among the scans, where nothing is written; choose another with --project")
